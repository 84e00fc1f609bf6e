//! What an API server says of the objects of a bundle: a drydock in this process is asked to take them.

use std::time::Duration;

use anyhow::Result;
use kube::api::{DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use windlass_drydock::controllers::Selection;
use windlass_drydock::{Drydock, Options, Snapshot};

use super::bundle::{Bundle, Manifest, Refusal, Refused};
use super::{Finding, csv, finding};

/// Where objects are put that live in a namespace.
const NAMESPACE: &str = "default";
/// Kinds that only some clusters have, whose objects are not asked about.
const UNKNOWN_GROUPS: [&str; 3] = ["monitoring.coreos.com", "console.openshift.io", "autoscaling.k8s.io"];
/// How long a definition may take to be served.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(2);

/// A new cluster. Making one takes a while, starting from one does not.
static NEW: OnceCell<Snapshot> = OnceCell::const_new();

/// What is refused, and why.
pub(super) async fn refusals(bundle: &Bundle) -> Result<Vec<Refusal>> {
    let new = NEW.get_or_try_init(new_cluster).await?;
    let drydock =
        Drydock::start(Options { controllers: Selection::parse("")?, ..Options::restored(new) }).await?;
    let client = drydock.client("bundle");
    let mut refusals = Vec::new();
    let mut refuse = |of: Refused, finding: Option<Finding>| {
        refusals.extend(finding.map(|finding| Refusal { of, finding }));
    };
    for manifest in &bundle.manifests {
        match manifest.kind() {
            "ClusterServiceVersion" => {}
            "CustomResourceDefinition" => {
                let said = refused(&client, &manifest.file, "", &manifest.tree, false).await;
                if said.is_none() {
                    served(&client, manifest).await;
                }
                refuse(Refused::Definition, said);
            }
            _ => refuse(Refused::Other, refused(&client, &manifest.file, "", &manifest.tree, true).await),
        }
    }
    if let Some(csv) = bundle.csv() {
        for (index, deployment) in bundle.deployments().iter().enumerate() {
            let tree = json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": deployment["name"]}, "spec": deployment["spec"],
            });
            let field = format!("spec.install.spec.deployments[{index}]");
            refuse(Refused::Deployment, refused(&client, &csv.file, &field, &tree, true).await);
        }
        let owned = bundle.owned();
        for example in csv::shown(bundle) {
            let (group, version) =
                example["apiVersion"].as_str().and_then(|text| text.split_once('/')).unwrap_or_default();
            let kind = example["kind"].as_str().unwrap_or_default();
            // Of others, another rule speaks.
            if owned.contains(&(group.into(), version.into(), kind.into())) {
                let field = format!("metadata.annotations.alm-examples ({kind})");
                refuse(Refused::Example, refused(&client, &csv.file, &field, &example, true).await);
            }
        }
    }
    drydock.stop().await;
    Ok(refusals)
}

async fn new_cluster() -> Result<Snapshot> {
    let drydock = Drydock::start(Options { controllers: Selection::parse("")?, ..Options::live() }).await?;
    let snapshot = drydock.snapshot();
    drydock.stop().await;
    Ok(snapshot)
}

/// Has the API server take an object; what it says if it does not.
async fn refused(client: &Client, file: &str, field: &str, tree: &Value, dry_run: bool) -> Option<Finding> {
    let say = |message: String| Some(finding(file, field, message));
    let mut object: DynamicObject = match serde_json::from_value(tree.clone()) {
        Ok(object) => object,
        Err(error) => return say(format!("it is no object: {error}")),
    };
    let types = object.types.clone().unwrap_or_default();
    let Ok(gvk) = GroupVersionKind::try_from(&types) else {
        return say(format!("{:?} is no API version", types.api_version));
    };
    if UNKNOWN_GROUPS.contains(&gvk.group.as_str()) {
        return None;
    }
    // Where the bundle has no definition of it there is nothing to hold it against.
    let (resource, capabilities) = kube::discovery::pinned_kind(client, &gvk).await.ok()?;
    let api = api(client, &resource, capabilities.scope == kube::discovery::Scope::Namespaced, &mut object);
    match api.create(&PostParams { dry_run, ..PostParams::default() }, &object).await {
        Ok(_) => None,
        Err(kube::Error::Api(status)) => say(status.message.clone()),
        Err(error) => say(error.to_string()),
    }
}

fn api(
    client: &Client,
    resource: &ApiResource,
    namespaced: bool,
    object: &mut DynamicObject,
) -> Api<DynamicObject> {
    object.metadata.namespace = namespaced.then(|| NAMESPACE.to_owned());
    match namespaced {
        true => Api::namespaced_with(client.clone(), NAMESPACE, resource),
        false => Api::all_with(client.clone(), resource),
    }
}

/// Waits until the kinds of a definition are served, unless they never are.
async fn served(client: &Client, definition: &Manifest) {
    let (group, kind) = (definition.text("/spec/group"), definition.text("/spec/names/kind"));
    let versions = definition.list("/spec/versions").iter().filter(|version| version["served"] == true);
    for version in versions.filter_map(|version| version["name"].as_str()) {
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let found = async {
            while kube::discovery::pinned_kind(client, &gvk).await.is_err() {
                tokio::time::sleep(PAUSE).await;
            }
        };
        if tokio::time::timeout(PATIENCE, found).await.is_err() {
            return;
        }
    }
}
