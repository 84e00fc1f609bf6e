//! Something outside Kubernetes: a berth in a marina, made, kept and removed by async code of its own. The plan
//! stays pure and reads what is there as a fact; a finalizer sees to it that nothing is left behind.
//!
//! Run it with `cargo run -p windlass-examples --example external`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use kube::api::DeleteParams;
use kube::{CustomResource, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{External, ExternalError, Halt, Kind, Operator, Plan, Primary, Status, World};
use windlass_testkit::Harbour;

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Boat", namespaced, status = "Status")]
struct BoatSpec {
    length: u32,
}

impl Primary for Boat {
    fn owns() -> Vec<Kind> {
        Vec::new()
    }

    fn plan(&self, _world: &World, plan: &mut Plan) -> Result<(), Halt> {
        // `world.external::<Marina>(id)` would read what is there.
        plan.add_external::<Marina>(format!("berth-of-{}", self.name_any()), &self.spec.length).ready();
        Ok(())
    }
}

/// A service somewhere; here, a map of berths and their lengths.
#[derive(Clone, Default)]
struct Marina(Arc<Mutex<BTreeMap<String, u32>>>);

impl External for Marina {
    const TYPE: &'static str = "Berth";
    type Desired = u32;
    type Observed = u32;

    async fn observe(&self, id: &str) -> Result<Option<u32>, ExternalError> {
        Ok(self.0.lock().unwrap().get(id).copied())
    }

    async fn apply(&self, id: &str, length: &u32) -> Result<u32, ExternalError> {
        self.0.lock().unwrap().insert(id.to_owned(), *length);
        Ok(*length)
    }

    async fn remove(&self, id: &str) -> Result<(), ExternalError> {
        self.0.lock().unwrap().remove(id);
        Ok(())
    }

    fn differs(&self, desired: &u32, observed: &u32) -> bool {
        desired != observed
    }
}

const BOAT: &str = "{apiVersion: example.org/v1, kind: Boat, metadata: {name: ada}, spec: {length: 12}}";

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub async fn main() {
    let marina = Marina::default();
    let berths = || marina.0.lock().unwrap().clone();
    let theirs = marina.clone();
    let operator = move || Operator::new("harbourmaster").manages::<Boat>().external(theirs.clone());
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(BOAT).await;
    harbour.ready().await;
    println!("berths: {:?}", berths());

    marina.0.lock().unwrap().insert("berth-of-ada".into(), 3);
    harbour.until("the berth to be put right", async || berths()["berth-of-ada"] == 12).await;
    println!("somebody changed it; put right at the next look");

    harbour.api::<Boat>().delete("ada", &DeleteParams::default()).await.unwrap();
    harbour.until("the Boat to be gone", async || harbour.names::<Boat>().await.is_empty()).await;
    println!("the Boat is gone, and with it its berth: {:?}", berths());
    assert!(berths().is_empty());
}
