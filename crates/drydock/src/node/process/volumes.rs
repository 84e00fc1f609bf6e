//! A pod's volumes as directories: made when its first container starts, and kept up to date while it lives.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{
    ConfigMap, ConfigMapVolumeSource, DownwardAPIVolumeFile, KeyToPath, Pod, ProjectedVolumeSource, Secret,
    SecretVolumeSource, ServiceAccountTokenProjection, Volume,
};

use super::atomic::{Directory, File, Payload, make_directory};
use super::fields;
use super::objects::{Objects, Token};

const DEFAULT_MODE: i32 = 0o644;

/// The volumes of one pod.
pub(super) struct Volumes {
    objects: Objects,
    path: PathBuf,
    /// Where the claims of the cluster have their files.
    claims: PathBuf,
    /// The directories by volume; a payload is kept once it is wholly there.
    written: BTreeMap<String, (Directory, Option<Payload>)>,
    /// Tokens in use, by volume and path.
    tokens: BTreeMap<(String, String), Token>,
}

impl Volumes {
    pub(super) fn new(objects: Objects, path: PathBuf, claims: PathBuf) -> Self {
        Self { objects, path, claims, written: BTreeMap::new(), tokens: BTreeMap::new() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Brings all volumes up to date. What has not changed is not written.
    pub(super) async fn write(&mut self, pod: &Pod, now: Timestamp) -> Result<(), String> {
        make_directory(&self.path).map_err(|error| error.to_string())?;
        for volume in pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten()) {
            let failed =
                |why: String| format!("MountVolume.SetUp failed for volume {:?} : {why}", volume.name);
            self.write_one(pod, volume, now).await.map_err(failed)?;
        }
        Ok(())
    }

    /// When a token is next to be renewed.
    pub(super) fn renewal(&self) -> Option<Timestamp> {
        self.tokens.values().map(|token| token.renew).min()
    }

    async fn write_one(&mut self, pod: &Pod, volume: &Volume, now: Timestamp) -> Result<(), String> {
        let place = self.path.join(&volume.name);
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let text = |error: std::io::Error| error.to_string();
        if volume.empty_dir.is_some() || volume.ephemeral.is_some() {
            return make_directory(&place).map_err(text);
        }
        if let Some(source) = &volume.persistent_volume_claim {
            let claim = self.claims.join(namespace).join(&source.claim_name);
            make_directory(&claim).map_err(text)?;
            return link(&claim, &place).map_err(text);
        }
        if let Some(source) = &volume.host_path {
            return link(Path::new(&source.path), &place).map_err(text);
        }
        let payload = match self.payload(pod, volume, now).await? {
            Some(payload) => payload,
            None => return Err("the drydock does not have volumes of this kind".to_owned()),
        };
        if self.written.get(&volume.name).is_some_and(|(_, known)| known.as_ref() == Some(&payload)) {
            return Ok(());
        }
        make_directory(&place).map_err(text)?;
        let entry = self.written.entry(volume.name.clone());
        let (directory, known) = entry.or_insert_with(|| (Directory::new(place), None));
        // After a failure it is not known what is there: it is written again.
        *known = None;
        directory.write(&payload).map_err(text)?;
        *known = Some(payload);
        Ok(())
    }

    async fn payload(
        &mut self,
        pod: &Pod,
        volume: &Volume,
        now: Timestamp,
    ) -> Result<Option<Payload>, String> {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        if let Some(source) = &volume.config_map {
            return self.config_map(namespace, source).await.map(Some);
        }
        if let Some(source) = &volume.secret {
            return self.secret(namespace, source).await.map(Some);
        }
        if let Some(source) = &volume.downward_api {
            let items = source.items.as_deref().unwrap_or_default();
            return downward(pod, items, source.default_mode).map(Some);
        }
        if let Some(source) = &volume.projected {
            return self.projected(pod, &volume.name, source, now).await.map(Some);
        }
        Ok(None)
    }

    async fn config_map(&self, namespace: &str, source: &ConfigMapVolumeSource) -> Result<Payload, String> {
        let optional = source.optional == Some(true);
        let object = self.objects.config_map(namespace, &source.name).await?;
        if object.is_none() && !optional {
            return Err(format!("configmap {:?} not found", source.name));
        }
        let data = object.map(config_map_data).unwrap_or_default();
        select(data, source.items.as_deref(), source.default_mode, optional, "config")
    }

    async fn secret(&self, namespace: &str, source: &SecretVolumeSource) -> Result<Payload, String> {
        let optional = source.optional == Some(true);
        let name = source.secret_name.as_deref().unwrap_or_default();
        let object = self.objects.secret(namespace, name).await?;
        if object.is_none() && !optional {
            return Err(format!("secret {name:?} not found"));
        }
        let data = object.map(secret_data).unwrap_or_default();
        select(data, source.items.as_deref(), source.default_mode, optional, "secret")
    }

    async fn projected(
        &mut self,
        pod: &Pod,
        volume: &str,
        source: &ProjectedVolumeSource,
        now: Timestamp,
    ) -> Result<Payload, String> {
        let namespace = pod.metadata.namespace.clone().unwrap_or_default();
        let mode = source.default_mode;
        let mut payload = Payload::new();
        for part in source.sources.iter().flatten() {
            if let Some(part) = &part.config_map {
                let whole = ConfigMapVolumeSource {
                    name: part.name.clone(),
                    items: part.items.clone(),
                    optional: part.optional,
                    default_mode: mode,
                };
                payload.extend(self.config_map(&namespace, &whole).await?);
            }
            if let Some(part) = &part.secret {
                let whole = SecretVolumeSource {
                    secret_name: Some(part.name.clone()),
                    items: part.items.clone(),
                    optional: part.optional,
                    default_mode: mode,
                };
                payload.extend(self.secret(&namespace, &whole).await?);
            }
            if let Some(part) = &part.downward_api {
                payload.extend(downward(pod, part.items.as_deref().unwrap_or_default(), mode)?);
            }
            if let Some(part) = &part.service_account_token {
                let content = self.token(pod, volume, part, now).await?.into_bytes();
                let mode = bits(mode);
                payload.insert(part.path.clone(), File { content, mode });
            }
        }
        Ok(payload)
    }

    async fn token(
        &mut self,
        pod: &Pod,
        volume: &str,
        wanted: &ServiceAccountTokenProjection,
        now: Timestamp,
    ) -> Result<String, String> {
        let key = (volume.to_owned(), wanted.path.clone());
        if let Some(token) = self.tokens.get(&key).filter(|token| token.renew > now) {
            return Ok(token.text.clone());
        }
        let token = self.objects.token(pod, wanted, now).await?;
        let text = token.text.clone();
        self.tokens.insert(key, token);
        Ok(text)
    }
}

/// The ConfigMaps and Secrets that a pod's volumes show.
pub(super) fn shown(pod: &Pod) -> (Vec<String>, Vec<String>) {
    let (mut maps, mut secrets) = (Vec::new(), Vec::new());
    for volume in pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten()) {
        maps.extend(volume.config_map.as_ref().map(|source| source.name.clone()));
        secrets.extend(volume.secret.as_ref().and_then(|source| source.secret_name.clone()));
        let projected = volume.projected.iter().flat_map(|source| source.sources.iter().flatten());
        for source in projected {
            maps.extend(source.config_map.as_ref().map(|source| source.name.clone()));
            secrets.extend(source.secret.as_ref().map(|source| source.name.clone()));
        }
    }
    (maps, secrets)
}

fn config_map_data(object: ConfigMap) -> BTreeMap<String, Vec<u8>> {
    let text = object.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.into_bytes()));
    let binary = object.binary_data.unwrap_or_default().into_iter();
    text.chain(binary.map(|(key, ByteString(value))| (key, value))).collect()
}

fn secret_data(object: Secret) -> BTreeMap<String, Vec<u8>> {
    object.data.unwrap_or_default().into_iter().map(|(key, ByteString(value))| (key, value)).collect()
}

/// The files of a ConfigMap or Secret: all keys, or those that are asked for.
fn select(
    data: BTreeMap<String, Vec<u8>>,
    items: Option<&[KeyToPath]>,
    mode: Option<i32>,
    optional: bool,
    what: &str,
) -> Result<Payload, String> {
    let Some(items) = items.filter(|items| !items.is_empty()) else {
        let file = |content| File { content, mode: bits(mode) };
        return Ok(data.into_iter().map(|(key, content)| (key, file(content))).collect());
    };
    let mut payload = Payload::new();
    for item in items {
        match data.get(&item.key) {
            Some(content) => {
                let mode = bits(item.mode.or(mode));
                payload.insert(item.path.clone(), File { content: content.clone(), mode });
            }
            None if optional => {}
            None => return Err(format!("references non-existent {what} key: {}", item.key)),
        }
    }
    Ok(payload)
}

fn downward(pod: &Pod, items: &[DownwardAPIVolumeFile], mode: Option<i32>) -> Result<Payload, String> {
    let mut payload = Payload::new();
    for item in items {
        let content = match (&item.field_ref, &item.resource_field_ref) {
            (Some(field), _) => fields::field(pod, &field.field_path)?,
            (None, Some(resource)) => {
                let name = resource.container_name.as_deref().unwrap_or_default();
                let spec = pod.spec.as_ref();
                let container = spec.and_then(|spec| spec.containers.iter().find(|known| known.name == name));
                let container = container.ok_or_else(|| format!("container {name:?} not found"))?;
                fields::resource(container, resource)?
            }
            (None, None) => String::new(),
        };
        let mode = bits(item.mode.or(mode));
        payload.insert(item.path.clone(), File { content: content.into_bytes(), mode });
    }
    Ok(payload)
}

fn bits(mode: Option<i32>) -> u32 {
    u32::try_from(mode.unwrap_or(DEFAULT_MODE)).unwrap_or_default()
}

fn link(target: &Path, place: &Path) -> std::io::Result<()> {
    match symlink(target, place) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        outcome => outcome,
    }
}
