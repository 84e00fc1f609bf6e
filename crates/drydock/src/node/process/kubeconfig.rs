//! A kubeconfig with the pod's service account, for clients that know no other way than a fixed path.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use k8s_openapi::api::core::v1::{Container, Pod};
use serde_json::json;

use super::atomic::make_directory;
use super::root::Root;

/// Where a pod finds its service account's files.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Writes the kubeconfig of a container that has a service account's token, where the API can be reached.
///
/// It names the token's file, so that clients take up a new one.
pub(super) fn write(
    pod: &Pod,
    container: &Container,
    root: &Root,
    api: Option<SocketAddr>,
) -> io::Result<Option<PathBuf>> {
    let mounted = container.volume_mounts.iter().flatten().any(|mount| mount.mount_path == ACCOUNT);
    let Some(api) = api.filter(|_| mounted) else {
        return Ok(None);
    };
    let account = root.place(ACCOUNT);
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "drydock", "cluster": {
            "server": format!("https://{api}"),
            "certificate-authority": account.join("ca.crt"),
        }}],
        "users": [{"name": "pod", "user": {"tokenFile": account.join("token")}}],
        "contexts": [{"name": "drydock", "context": {
            "cluster": "drydock",
            "user": "pod",
            "namespace": pod.metadata.namespace,
        }}],
        "current-context": "drydock",
    });
    let file = root.place("/.kube/config");
    if let Some(parent) = file.parent() {
        make_directory(parent)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(&file)?.write_all(config.to_string().as_bytes())?;
    Ok(Some(file))
}
