//! ConfigMaps and Secrets that a pod needs before its containers can be made.

use k8s_openapi::api::core::v1::{Container, Pod};

use super::Kubelet;
use crate::controllers::informer::ObjectKey;

/// The authority's certificate is mounted into every pod; nothing simulated reads it.
const ROOT_CA: &str = "kube-root-ca.crt";

impl Kubelet {
    /// The first volume of a pod that cannot be mounted: its name and why.
    ///
    /// A simulated pod does without the authority's certificate, which a real one reads.
    pub(super) fn missing_volume(&self, pod: &Pod, real: bool) -> Option<(String, String)> {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        for volume in pod.spec.as_ref()?.volumes.iter().flatten() {
            let mut missing = None;
            let needed = |name: &str| real || name != ROOT_CA;
            if let Some(source) = volume
                .config_map
                .as_ref()
                .filter(|source| source.optional != Some(true) && needed(&source.name))
            {
                missing = missing.or_else(|| self.missing_config_map(namespace, &source.name));
            }
            if let Some(source) = volume.secret.as_ref().filter(|source| source.optional != Some(true)) {
                missing = missing.or_else(|| self.missing_secret(namespace, source.secret_name.as_deref()?));
            }
            for source in volume.projected.iter().filter_map(|projected| projected.sources.as_ref()).flatten()
            {
                if let Some(source) = source
                    .config_map
                    .as_ref()
                    .filter(|source| source.optional != Some(true) && needed(&source.name))
                {
                    missing = missing.or_else(|| self.missing_config_map(namespace, &source.name));
                }
                if let Some(source) = source.secret.as_ref().filter(|source| source.optional != Some(true)) {
                    missing = missing.or_else(|| self.missing_secret(namespace, &source.name));
                }
            }
            if let Some(missing) = missing {
                return Some((volume.name.clone(), missing));
            }
        }
        None
    }

    /// What a container's environment refers to and does not exist.
    pub(super) fn missing_env(&self, pod: &Pod, container: &Container) -> Option<String> {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        for source in container.env_from.iter().flatten() {
            let missing = match (&source.config_map_ref, &source.secret_ref) {
                (Some(source), _) if source.optional != Some(true) => {
                    self.missing_config_map(namespace, &source.name)
                }
                (_, Some(source)) if source.optional != Some(true) => {
                    self.missing_secret(namespace, &source.name)
                }
                _ => None,
            };
            if missing.is_some() {
                return missing;
            }
        }
        for source in container.env.iter().flatten().filter_map(|env| env.value_from.as_ref()) {
            let missing = match (&source.config_map_key_ref, &source.secret_key_ref) {
                (Some(key), _) if key.optional != Some(true) => {
                    self.missing_config_map(namespace, &key.name).or_else(|| {
                        let object = self.config_maps.get(&ObjectKey::new(namespace, &key.name))?;
                        (!object.has_key(&key.key)).then(|| {
                            format!("couldn't find key {} in ConfigMap {namespace}/{}", key.key, key.name)
                        })
                    })
                }
                (_, Some(key)) if key.optional != Some(true) => {
                    self.missing_secret(namespace, &key.name).or_else(|| {
                        let object = self.secrets.get(&ObjectKey::new(namespace, &key.name))?;
                        (!object.has_key(&key.key)).then(|| {
                            format!("couldn't find key {} in Secret {namespace}/{}", key.key, key.name)
                        })
                    })
                }
                _ => None,
            };
            if missing.is_some() {
                return missing;
            }
        }
        None
    }

    fn missing_config_map(&self, namespace: &str, name: &str) -> Option<String> {
        let there = self.config_maps.get(&ObjectKey::new(namespace, name)).is_some();
        (!there).then(|| format!("configmap {name:?} not found"))
    }

    fn missing_secret(&self, namespace: &str, name: &str) -> Option<String> {
        let there = self.secrets.get(&ObjectKey::new(namespace, name)).is_some();
        (!there).then(|| format!("secret {name:?} not found"))
    }
}
