//! Time: a Lease on a parking place that ends by itself. A plan asks the world for the time, and says when to look
//! again; a test lets hours pass in milliseconds.
//!
//! Run it with `cargo run -p windlass-examples --example time`.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::ObjectMeta;
use kube::{CustomResource, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{Halt, Kind, Operator, Plan, Primary, Status, World};
use windlass_testkit::Harbour;

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Ticket", namespaced, status = "Status")]
struct TicketSpec {
    minutes: u32,
}

impl Primary for Ticket {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<ConfigMap>()]
    }

    fn plan(&self, world: &World, plan: &mut Plan) -> Result<(), Halt> {
        let Some(start) = &self.metadata.creation_timestamp else { return Ok(()) };
        let end = start.0 + Duration::from_secs(60 * u64::from(self.spec.minutes));
        let left = world.now().duration_until(end);
        if left.is_positive() {
            let metadata = ObjectMeta { name: Some(self.name_any()), ..ObjectMeta::default() };
            plan.add(ConfigMap { metadata, ..ConfigMap::default() });
            plan.look_again(left.unsigned_abs());
        }
        Ok(())
    }
}

const TICKET: &str = "{apiVersion: example.org/v1, kind: Ticket, metadata: {name: p1}, spec: {minutes: 90}}";

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub async fn main() {
    let mut harbour = Harbour::start(|| Operator::new("tickets").manages::<Ticket>()).await;
    harbour.apply(TICKET).await;
    harbour.ready().await;
    let parked = async || harbour.names::<ConfigMap>().await.contains(&"p1".to_owned());

    tokio::time::sleep(Duration::from_secs(89 * 60)).await;
    println!("after 89 minutes: parked = {}", parked().await);
    assert!(parked().await);

    tokio::time::sleep(Duration::from_secs(2 * 60)).await;
    println!("after 91 minutes: parked = {}", parked().await);
    assert!(!parked().await);
}
