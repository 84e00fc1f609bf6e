//! A container's environment: its variables in the order in which the kubelet sets them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use k8s_openapi::api::core::v1::{Container, EnvVar, EnvVarSource, Pod};

use super::expansion::expand;
use super::fields;
use super::objects::Objects;
use super::root::Root;

/// The variables of a process.
pub(super) type Variables = BTreeMap<String, String>;

/// Builds the environment of a container.
pub(super) async fn build(
    objects: &Objects,
    pod: &Pod,
    container: &Container,
    root: &Root,
    api: Option<SocketAddr>,
) -> Result<Variables, String> {
    let mut variables = machine(pod, root);
    if let Some(api) = api {
        variables.extend(in_cluster(api));
    }
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    for source in container.env_from.iter().flatten() {
        let prefix = source.prefix.as_deref().unwrap_or_default();
        let mut found = Variables::new();
        if let Some(reference) = &source.config_map_ref {
            let map = objects.config_map(namespace, &reference.name).await?;
            if map.is_none() && reference.optional != Some(true) {
                return Err(format!("configmap {:?} not found", reference.name));
            }
            found.extend(map.and_then(|map| map.data).unwrap_or_default());
        }
        if let Some(reference) = &source.secret_ref {
            let secret = objects.secret(namespace, &reference.name).await?;
            if secret.is_none() && reference.optional != Some(true) {
                return Err(format!("secret {:?} not found", reference.name));
            }
            let data = secret.and_then(|secret| secret.data).unwrap_or_default();
            found.extend(data.into_iter().map(|(key, value)| (key, text(&value.0))));
        }
        let named = found.into_iter().map(|(key, value)| (format!("{prefix}{key}"), value));
        variables.extend(named.filter(|(name, value)| is_possible(name, value)));
    }
    for variable in container.env.iter().flatten() {
        let value = match &variable.value_from {
            Some(source) => match referred(objects, pod, container, source).await? {
                Some(value) => value,
                None => continue,
            },
            None => literal(variable, &variables, root),
        };
        if is_possible(&variable.name, &value) {
            variables.insert(variable.name.clone(), value);
        }
    }
    Ok(variables)
}

/// What a process needs of the machine, and nothing of whoever runs the drydock.
fn machine(pod: &Pod, root: &Root) -> Variables {
    let place = root.path().to_string_lossy().into_owned();
    let mut variables = Variables::from([
        ("HOSTNAME".to_owned(), pod.metadata.name.clone().unwrap_or_default()),
        ("HOME".to_owned(), place.clone()),
        ("TMPDIR".to_owned(), root.place("/tmp").to_string_lossy().into_owned()),
        ("WINDLASS_ROOT".to_owned(), place),
    ]);
    if let Ok(path) = std::env::var("PATH") {
        variables.insert("PATH".to_owned(), path);
    }
    variables
}

/// The variables that clients in a cluster look for, with an address that is really the API's.
fn in_cluster(api: SocketAddr) -> Variables {
    let (host, port) = (api.ip().to_string(), api.port().to_string());
    let url = format!("tcp://{api}");
    [
        ("KUBERNETES_SERVICE_HOST", host),
        ("KUBERNETES_SERVICE_PORT", port.clone()),
        ("KUBERNETES_SERVICE_PORT_HTTPS", port),
        ("KUBERNETES_PORT", url),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

fn literal(variable: &EnvVar, known: &Variables, root: &Root) -> String {
    let value = variable.value.as_deref().unwrap_or_default();
    root.rewrite(&expand(value, |name| known.get(name).map(String::as_str)))
}

async fn referred(
    objects: &Objects,
    pod: &Pod,
    container: &Container,
    source: &EnvVarSource,
) -> Result<Option<String>, String> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    if let Some(reference) = &source.field_ref {
        return fields::field(pod, &reference.field_path).map(Some);
    }
    if let Some(reference) = &source.resource_field_ref {
        let of = |name: &str| {
            let spec = pod.spec.as_ref()?;
            spec.containers
                .iter()
                .chain(spec.init_containers.iter().flatten())
                .find(|known| known.name == name)
        };
        let named = reference.container_name.as_deref().and_then(of);
        return fields::resource(named.unwrap_or(container), reference).map(Some);
    }
    if let Some(reference) = &source.config_map_key_ref {
        let map = objects.config_map(namespace, &reference.name).await?;
        let found = map.as_ref().and_then(|map| map.data.as_ref()?.get(&reference.key).cloned());
        return match (found, reference.optional == Some(true), map.is_some()) {
            (Some(value), _, _) => Ok(Some(value)),
            (None, true, _) => Ok(None),
            (None, false, false) => Err(format!("configmap {:?} not found", reference.name)),
            (None, false, true) => Err(format!(
                "couldn't find key {} in ConfigMap {namespace}/{}",
                reference.key, reference.name
            )),
        };
    }
    if let Some(reference) = &source.secret_key_ref {
        let secret = objects.secret(namespace, &reference.name).await?;
        let found = secret.as_ref().and_then(|secret| secret.data.as_ref()?.get(&reference.key));
        return match (found, reference.optional == Some(true), secret.is_some()) {
            (Some(value), _, _) => Ok(Some(text(&value.0))),
            (None, true, _) => Ok(None),
            (None, false, false) => Err(format!("secret {:?} not found", reference.name)),
            (None, false, true) => {
                Err(format!("couldn't find key {} in Secret {namespace}/{}", reference.key, reference.name))
            }
        };
    }
    Err("the drydock does not know this source of a variable".to_owned())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether the system takes a variable.
fn is_possible(name: &str, value: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0')
}
