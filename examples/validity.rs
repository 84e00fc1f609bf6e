//! Defaults and validity: what the schema cannot say. An invalid spec is reported with the field and the way out,
//! as a condition and an Event, and nothing is touched until it changes.
//!
//! Run it with `cargo run -p windlass-examples --example validity`. The same rules can refuse the object at the
//! API server's door: see `webhooks`.

use k8s_openapi::api::core::v1::{ConfigMap, Event};
use kube::CustomResource;
use kube::core::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{Halt, Invalid, Kind, Operator, Plan, Primary, Status, World};
use windlass_testkit::Harbour;

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Trip", namespaced, status = "Status")]
struct TripSpec {
    from: String,
    to: Option<String>,
}

impl Primary for Trip {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<ConfigMap>()]
    }

    fn defaults(&mut self) {
        self.spec.to.get_or_insert_with(|| "home".into());
    }

    fn validity(&self) -> Vec<Invalid> {
        let mut invalid = Vec::new();
        if self.spec.to.as_ref() == Some(&self.spec.from) {
            invalid.push(Invalid::new("spec.to", "is where the trip begins; choose another place"));
        }
        invalid
    }

    fn plan(&self, _world: &World, plan: &mut Plan) -> Result<(), Halt> {
        let name = format!("{}-to-{}", self.spec.from, self.spec.to.as_deref().unwrap_or_default());
        let metadata = ObjectMeta { name: Some(name), ..ObjectMeta::default() };
        plan.add(ConfigMap { metadata, ..ConfigMap::default() });
        Ok(())
    }
}

fn trip(spec: &str) -> String {
    format!("{{apiVersion: example.org/v1, kind: Trip, metadata: {{name: trip}}, spec: {{{spec}}}}}")
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub async fn main() {
    let mut harbour = Harbour::start(|| Operator::new("trips").manages::<Trip>()).await;
    harbour.apply(&trip("from: harbour")).await;
    harbour.ready().await;
    println!("with the default: {:?}", harbour.names::<ConfigMap>().await);
    assert!(harbour.names::<ConfigMap>().await.contains(&"harbour-to-home".to_owned()));

    harbour.apply(&trip("from: home")).await;
    let ready = harbour.condition("Ready", "False").await;
    println!("invalid: {}", ready["message"].as_str().unwrap_or_default());
    assert_eq!(ready["message"], "spec.to: is where the trip begins; choose another place");
    harbour.settle().await;
    let events = harbour.list::<Event>().await;
    assert!(events.iter().any(|event| event.message.as_deref().is_some_and(|text| text.contains("spec.to"))));
    assert!(harbour.names::<ConfigMap>().await.contains(&"harbour-to-home".to_owned()), "left as it was");
}
