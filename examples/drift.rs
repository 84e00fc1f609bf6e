//! Drift: what people change by hand is put back, unless it is a field that the plan does not set. Another program
//! that keeps changing a field back is named in a condition, and the fight ends after a few rounds.
//!
//! Run it with `cargo run -p windlass-examples --example drift`.

use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use kube::api::{Patch, PatchParams};
use kube::{CustomResource, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass::{Halt, Kind, Operator, Plan, Primary, Status, World};
use windlass_testkit::Harbour;

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Door", namespaced, status = "Status")]
struct DoorSpec {
    port: u16,
}

impl Primary for Door {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<Service>()]
    }

    fn plan(&self, _world: &World, plan: &mut Plan) -> Result<(), Halt> {
        let ports = json!([{"name": "http", "port": self.spec.port}]);
        let spec = json!({"ports": ports, "sessionAffinity": "None"});
        let service = json!({"metadata": {"name": self.name_any()}, "spec": spec});
        plan.add_each(serde_json::from_value::<Service>(service).ok());
        Ok(())
    }
}

const DOOR: &str = "{apiVersion: example.org/v1, kind: Door, metadata: {name: door}, spec: {port: 80}}";

async fn edit(harbour: &Harbour, who: &str, spec: serde_json::Value) {
    let parameters = PatchParams { field_manager: Some(who.into()), ..PatchParams::default() };
    let patch = Patch::Merge(json!({"spec": spec}));
    harbour.api::<Service>().patch("door", &parameters, &patch).await.unwrap();
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub async fn main() {
    let mut harbour = Harbour::start(|| Operator::new("doors").manages::<Door>()).await;
    harbour.apply(DOOR).await;
    harbour.ready().await;

    edit(&harbour, "a-person", json!({"sessionAffinity": "ClientIP", "publishNotReadyAddresses": true}))
        .await;
    harbour.settle().await;
    let spec = harbour.api::<Service>().get("door").await.unwrap().spec.unwrap();
    println!("put back: {:?}; left alone: {:?}", spec.session_affinity, spec.publish_not_ready_addresses);
    assert_eq!(spec.session_affinity.as_deref(), Some("None"));
    assert_eq!(spec.publish_not_ready_addresses, Some(true));

    for _ in 0..20 {
        edit(&harbour, "another-operator", json!({"sessionAffinity": "ClientIP"})).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let degraded = harbour.condition("Degraded", "True").await;
    println!("a fight: {}", degraded["message"].as_str().unwrap_or_default());
    assert!(degraded["message"].as_str().unwrap().contains("another-operator"));
}
