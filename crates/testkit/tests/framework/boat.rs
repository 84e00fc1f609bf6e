//! A Boat: a ConfigMap, a berth outside Kubernetes if it asks for one, and whatever else a test wants of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::stream::{BoxStream, StreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use kube::CustomResource;
use kube::core::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::broadcast;
use windlass::{
    Condition, Config, External, ExternalError, Halt, Kind, Operator, Plan, Primary, Status, World,
};

#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Boat", namespaced, status = "Status")]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct BoatSpec {
    /// The text of its ConfigMap.
    pub text: String,
    /// Its berth in the marina, and how long it has to be.
    pub berth: Option<String>,
    pub length: u32,
    /// A Secret that somebody else keeps.
    pub secret: Option<String>,
    /// A ConfigMap in another namespace.
    pub elsewhere: Option<String>,
    /// A ConfigMap that outlives it.
    pub logbook: Option<String>,
    /// Fields of a Service that somebody else makes.
    pub pier: Option<String>,
    /// Whether changes of its ConfigMap are to be overlooked.
    pub unwatched: bool,
    /// A Service that can never be made, and one that waits for it.
    pub broken: bool,
}

impl Primary for Boat {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<ConfigMap>(), Kind::of::<Service>()]
    }

    fn reads() -> Vec<Kind> {
        vec![Kind::of::<Secret>()]
    }

    fn reaches_out() -> bool {
        true
    }

    fn plan(&self, world: &World, plan: &mut Plan) -> Result<(), Halt> {
        let spec = &self.spec;
        let name = self.metadata.name.clone().unwrap_or_default();
        plan.add(map(&name, None, &spec.text))
            .config(Config { watched: !spec.unwatched, ..Config::default() });
        if let Some(namespace) = &spec.elsewhere {
            plan.add(map(&name, Some(namespace), &spec.text));
        }
        if let Some(logbook) = &spec.logbook {
            plan.add(map(logbook, None, "log")).unowned();
        }
        if let Some(pier) = &spec.pier {
            plan.add(service(pier, json!({"sessionAffinity": "ClientIP"}))).existing();
        }
        if spec.broken {
            let bad = plan.add(service(&format!("{name}-bad"), json!({"ports": [{"port": 0}]}))).ready();
            let good = json!({"clusterIP": "None", "selector": {"a": "b"}});
            plan.add(service(&format!("{name}-held"), good)).after(&bad).ready();
        }
        if let Some(berth) = &spec.berth {
            plan.add_external::<Marina>(berth, &spec.length).ready();
            if let Some(length) = world.external::<Marina>(berth)? {
                plan.add(map(&format!("{name}-berth"), None, &length.to_string()));
            }
        }
        if let Some(secret) = &spec.secret {
            let secret: Secret = world.need(secret)?;
            let text = windlass::content_hash(&secret.data);
            plan.add(map(&format!("{name}-secret"), None, &text));
        }
        Ok(())
    }
}

fn map(name: &str, namespace: Option<&str>, text: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.into()),
            namespace: namespace.map(str::to_owned),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("text".to_owned(), text.to_owned())])),
        ..ConfigMap::default()
    }
}

fn service(name: &str, spec: serde_json::Value) -> Service {
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
}

/// The berths of a marina, in memory: the simplest thing outside Kubernetes.
#[derive(Clone)]
pub(crate) struct Marina {
    pub(crate) berths: Arc<Mutex<BTreeMap<String, u32>>>,
    /// While it is set, every change fails with this.
    pub(crate) closed: Arc<Mutex<Option<String>>>,
    pub(crate) told: broadcast::Sender<String>,
    pub(crate) polled: bool,
}

impl Default for Marina {
    fn default() -> Self {
        Self { berths: Arc::default(), closed: Arc::default(), told: broadcast::channel(16).0, polled: true }
    }
}

impl Marina {
    pub(crate) fn berth(&self, id: &str) -> Option<u32> {
        self.berths.lock().unwrap().get(id).copied()
    }

    fn open(&self) -> Result<(), ExternalError> {
        match self.closed.lock().unwrap().clone() {
            Some(why) => Err(why.into()),
            None => Ok(()),
        }
    }

    pub(crate) fn operator(&self) -> impl Fn() -> Operator + Send + Sync + 'static {
        let marina = self.clone();
        move || Operator::new("boatman").manages::<Boat>().external(marina.clone())
    }
}

impl External for Marina {
    const TYPE: &'static str = "Berth";
    type Desired = u32;
    type Observed = u32;

    async fn observe(&self, id: &str) -> Result<Option<u32>, ExternalError> {
        Ok(self.berth(id))
    }

    async fn apply(&self, id: &str, desired: &u32) -> Result<u32, ExternalError> {
        self.open()?;
        self.berths.lock().unwrap().insert(id.to_owned(), *desired);
        Ok(*desired)
    }

    async fn remove(&self, id: &str) -> Result<(), ExternalError> {
        self.open()?;
        self.berths.lock().unwrap().remove(id);
        Ok(())
    }

    fn differs(&self, desired: &u32, observed: &u32) -> bool {
        desired != observed
    }

    fn condition(&self, observed: &u32) -> Condition {
        match observed {
            0 => Condition::pending("NoLength", "it has no length yet"),
            length => Condition::ready().attribute("length", length.to_string()),
        }
    }

    fn poll(&self) -> Option<Duration> {
        self.polled.then_some(Duration::from_secs(30))
    }

    fn changes(&self) -> BoxStream<'static, String> {
        let told = self.told.subscribe();
        futures::stream::unfold(told, async |mut told| told.recv().await.ok().map(|id| (id, told))).boxed()
    }
}

/// A manifest of a Boat named `ada`.
pub(crate) fn boat(spec: serde_json::Value) -> String {
    json!({"apiVersion": "example.org/v1", "kind": "Boat", "metadata": {"name": "ada"}, "spec": spec})
        .to_string()
}
