//! The Monocle operator with kube-rs' `Controller` alone, as the peer of a benchmark: the same children in the same
//! order, applied at every reconcile as the examples of kube-rs do.

mod children;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use futures::StreamExt as _;
use http::header::{HeaderValue, USER_AGENT};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::controller::{Action, Config as ControllerConfig};
use kube::runtime::{Controller, WatchStreamExt as _, predicates, reflector, watcher};
use kube::{Client, Config, CustomResource, Resource, ResourceExt as _};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Its field manager.
const OPERATOR: &str = "monocle-kube-rs";

/// Run the Monocle operator written with kube-rs
#[derive(Parser)]
struct Arguments {
    /// The cluster
    #[arg(long)]
    kubeconfig: PathBuf,
    /// Monocles that are worked on at once
    #[arg(long, default_value_t = 8)]
    workers: u16,
}

/// One Monocle; only the fields that the benchmark uses are here.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "monocle.monocle.change-metrics.io",
    version = "v1alpha1",
    kind = "Monocle",
    namespaced,
    status = "MonocleStatus"
)]
#[serde(rename_all = "camelCase")]
struct MonocleSpec {
    image: String,
    #[serde(rename = "publicURL")]
    public_url: Option<String>,
    elastic: ElasticSpec,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ElasticSpec {
    image: String,
    storage_size: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct MonocleStatus {
    observed_generation: Option<i64>,
    #[serde(default)]
    conditions: Vec<Value>,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Kube(#[from] kube::Error),
    #[error("failed to decode a child: {0}")]
    Decode(#[from] serde_json::Error),
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let read = Kubeconfig::read_from(&arguments.kubeconfig)?;
    let mut config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
    config.headers.push((USER_AGENT, HeaderValue::from_static(OPERATOR)));
    let client = Client::try_from(config)?;

    let (reader, writer) = reflector::store();
    // Its own status writes do not queue a Monocle again.
    let monocles = watcher(Api::<Monocle>::all(client.clone()), watcher::Config::default())
        .default_backoff()
        .reflect(writer)
        .applied_objects()
        .predicate_filter(predicates::generation, Default::default());
    let controller = Controller::for_stream(monocles, reader)
        .with_config(ControllerConfig::default().concurrency(arguments.workers))
        .owns(Api::<Secret>::all(client.clone()), watcher::Config::default())
        .owns(Api::<ConfigMap>::all(client.clone()), watcher::Config::default())
        .owns(Api::<Service>::all(client.clone()), watcher::Config::default())
        .owns(Api::<StatefulSet>::all(client.clone()), watcher::Config::default())
        .owns(Api::<Deployment>::all(client.clone()), watcher::Config::default())
        .shutdown_on_signal();
    controller.run(reconcile, on_error, Arc::new(client)).for_each(|_| std::future::ready(())).await;
    Ok(())
}

fn on_error(monocle: Arc<Monocle>, error: &Error, _: Arc<Client>) -> Action {
    eprintln!("{}: {error}", monocle.name_any());
    Action::requeue(Duration::from_secs(1))
}

async fn reconcile(monocle: Arc<Monocle>, client: Arc<Client>) -> Result<Action, Error> {
    if monocle.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let work = Work {
        client: (*client).clone(),
        namespace: monocle.namespace().unwrap_or_default(),
        owner: monocle.controller_owner_ref(&()),
    };
    let secret: Secret = work.once(children::secret(&monocle)).await?;
    work.once::<ConfigMap>(children::config(&monocle)).await?;
    work.apply::<Service>(children::service(&monocle, "elastic", 9200)).await?;
    work.apply::<Service>(children::service(&monocle, "api", 8080)).await?;
    let elastic: StatefulSet = work.apply(children::elastic(&monocle)).await?;
    let mut ready = elastic.status.as_ref().is_some_and(|status| status.ready_replicas.unwrap_or(0) > 0);
    let tokens = children::content_hash(&secret);
    for deployment in [children::api(&monocle, &tokens), children::crawler(&monocle, &tokens)] {
        if ready {
            ready = is_available(&work.apply::<Deployment>(deployment).await?);
        }
    }
    report(&monocle, &work, ready).await?;
    Ok(Action::await_change())
}

struct Work {
    client: Client,
    namespace: String,
    owner: Option<OwnerReference>,
}

impl Work {
    async fn apply<K>(&self, mut object: Value) -> Result<K, Error>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        object["metadata"]["ownerReferences"] = json!([self.owner]);
        let api = Api::<K>::namespaced(self.client.clone(), &self.namespace);
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        Ok(api.patch(&name, &PatchParams::apply(OPERATOR).force(), &Patch::Apply(&object)).await?)
    }

    /// Creates what is the user's from then on.
    async fn once<K>(&self, mut object: Value) -> Result<K, Error>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + Serialize
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let api = Api::<K>::namespaced(self.client.clone(), &self.namespace);
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if let Some(found) = api.get_opt(&name).await? {
            return Ok(found);
        }
        object["metadata"]["ownerReferences"] = json!([self.owner]);
        Ok(api.create(&PostParams::default(), &serde_json::from_value(object)?).await?)
    }
}

fn is_available(deployment: &Deployment) -> bool {
    let status = deployment.status.clone().unwrap_or_default();
    status.observed_generation == deployment.metadata.generation
        && status.updated_replicas.unwrap_or(0) > 0
        && status.available_replicas == status.replicas
        && status.available_replicas.unwrap_or(0) > 0
}

/// Writes the status when the Monocle is new or changed, and when it has become ready or is so no more.
async fn report(monocle: &Monocle, work: &Work, ready: bool) -> Result<(), Error> {
    let text = if ready { "True" } else { "False" };
    let previous = monocle.status.clone().unwrap_or_default();
    let same = previous.conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == text);
    if same && previous.observed_generation == monocle.metadata.generation {
        return Ok(());
    }
    let reason = if ready { "Ready" } else { "Progressing" };
    let condition = json!({
        "type": "Ready", "status": text, "reason": reason, "message": "",
        "lastTransitionTime": children::now(), "observedGeneration": monocle.metadata.generation,
    });
    let status = json!({
        "apiVersion": "monocle.monocle.change-metrics.io/v1alpha1", "kind": "Monocle",
        "metadata": {"name": monocle.name_any()},
        "status": {
            "observedGeneration": monocle.metadata.generation, "url": children::public_url(monocle),
            "conditions": [condition],
        },
    });
    let api = Api::<Monocle>::namespaced(work.client.clone(), &work.namespace);
    let params = PatchParams::apply(OPERATOR).force();
    api.patch_status(&monocle.name_any(), &params, &Patch::Apply(&status)).await?;
    Ok(())
}
