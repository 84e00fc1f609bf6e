//! The smallest operator: a Greeting becomes a ConfigMap. Runs on the cluster of your kubeconfig, or on a drydock
//! in this process.
//!
//! Run it with `cargo run -p windlass-examples --example hello`; with `-- --cluster` on your own cluster.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::ObjectMeta;
use kube::{Client, CustomResource, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{Context, Halt, Kind, Operator, Plan, Primary, Runtime, Status, World};
use windlass_testkit::Harbour;

/// A text that is to be in a ConfigMap.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Greeting", namespaced, status = "Status")]
struct GreetingSpec {
    text: String,
}

impl Primary for Greeting {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<ConfigMap>()]
    }

    fn plan(&self, _world: &World, plan: &mut Plan) -> Result<(), Halt> {
        plan.add(ConfigMap {
            metadata: ObjectMeta { name: Some(self.name_any()), ..ObjectMeta::default() },
            data: Some(BTreeMap::from([("text".to_owned(), self.spec.text.clone())])),
            ..ConfigMap::default()
        });
        Ok(())
    }
}

fn operator() -> Operator {
    Operator::new("greeter").manages::<Greeting>()
}

const HELLO: &str = "{apiVersion: example.org/v1, kind: Greeting, metadata: {name: hello}, spec: {text: hi}}";

/// On a real cluster this is all of `main`.
async fn on_a_cluster() -> anyhow::Result<()> {
    let client = Client::try_default().await?;
    let stop = async { tokio::signal::ctrl_c().await.unwrap_or_default() };
    println!("running; apply a Greeting such as {HELLO}");
    Ok(Runtime::new(client, Context::live()).install_crds().host(operator()).run(stop).await?)
}

async fn on_a_drydock() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(HELLO).await;
    harbour.ready().await;
    let made = harbour.api::<ConfigMap>().get("hello").await.unwrap();
    println!("made: {}", serde_json::to_string(&made.data).unwrap());
    assert_eq!(made.data.unwrap()["text"], "hi");
    println!("with these requests: {:?}", harbour.requests());
    assert_eq!(harbour.requests().values().sum::<u64>(), 2, "one for the ConfigMap, one for the status");
}

#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("--cluster") => on_a_cluster().await.unwrap(),
        _ => on_a_drydock().await,
    }
}
