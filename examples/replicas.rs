//! Two replicas, one leader: the other stands by with warm caches, and takes over when the first is killed.
//!
//! Run it with `cargo run -p windlass-examples --example replicas`. With `Runtime::shards` in place of
//! `Runtime::leader` the replicas share the work instead.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::core::ObjectMeta;
use kube::{Client, CustomResource, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::task::JoinHandle;
use windlass::{Halt, Kind, LeaseName, Operator, Plan, Port, Primary, Runtime, Status, World};
use windlass_drydock::{Drydock, Options};

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Note", namespaced, status = "Status")]
struct NoteSpec {
    text: String,
}

impl Primary for Note {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<ConfigMap>()]
    }

    fn plan(&self, _world: &World, plan: &mut Plan) -> Result<(), Halt> {
        let data = [("text".to_owned(), self.spec.text.clone())].into();
        let metadata = ObjectMeta { name: Some(self.name_any()), ..ObjectMeta::default() };
        plan.add(ConfigMap { metadata, data: Some(data), ..ConfigMap::default() });
        Ok(())
    }
}

/// Starts a replica; on a cluster, each is a pod of a Deployment.
fn replica(drydock: &Drydock, name: &str) -> (JoinHandle<()>, Port) {
    let runtime = Runtime::new(drydock.client(name), drydock.context().clone())
        .install_crds()
        .identity(name)
        .leader(LeaseName { namespace: "default".into(), name: "notes".into() })
        .host(Operator::new("notes").manages::<Note>());
    let port = runtime.port();
    let task = tokio::spawn(async move { runtime.run(std::future::pending()).await.unwrap() });
    (task, port)
}

async fn until_copied(client: &Client, text: &str) {
    let copies: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let copied = async || copies.get("note").await.ok()?.data?.get("text").cloned();
    while copied().await.as_deref() != Some(text) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub async fn main() {
    let drydock = Drydock::start(Options::seeded(1)).await.unwrap();
    let client = drydock.client("test");
    let (first, first_port) = replica(&drydock, "first");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (_second, second_port) = replica(&drydock, "second");
    tokio::time::sleep(Duration::from_secs(5)).await;
    println!("first: {}second: {}", first_port.get("/readyz").body, second_port.get("/readyz").body);
    assert_eq!(second_port.get("/readyz").body, "ok (standby)\n");

    let notes: Api<Note> = Api::default_namespaced(client.clone());
    notes.create(&PostParams::default(), &Note::new("note", NoteSpec { text: "one".into() })).await.unwrap();
    until_copied(&client, "one").await;

    first.abort();
    let patch = Patch::Merge(json!({"spec": {"text": "two"}}));
    notes.patch("note", &PatchParams::default(), &patch).await.unwrap();
    until_copied(&client, "two").await;
    println!("the first was killed; second: {}", second_port.get("/readyz").body);
    assert_eq!(second_port.get("/readyz").body, "ok (leader)\n");
}
