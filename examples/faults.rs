//! Faults: an operator's whole life under everything that can go wrong, in one line of a test; and one fault chosen by
//! hand.
//!
//! Run it with `cargo run -p windlass-examples --example faults`.

use http::StatusCode;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::ObjectMeta;
use kube::{CustomResource, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{Halt, Kind, Operator, Plan, Primary, Status, World, content_hash};
use windlass_drydock::faults::{Effect, Fault, Target};
use windlass_testkit::{Harbour, Matrix, OPERATOR};

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Vault", namespaced, status = "Status")]
struct VaultSpec {}

impl Primary for Vault {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<Secret>(), Kind::of::<ConfigMap>()]
    }

    fn plan(&self, world: &World, plan: &mut Plan) -> Result<(), Halt> {
        let metadata = || ObjectMeta { name: Some(self.name_any()), ..ObjectMeta::default() };
        let key = [("key".to_owned(), world.random("key", 32))].into();
        let secret =
            plan.add(Secret { metadata: metadata(), string_data: Some(key), ..Secret::default() }).once();
        let hash = content_hash(&world.observed(&secret)?.data);
        let data = [("fingerprint".to_owned(), hash)].into();
        plan.add(ConfigMap { metadata: metadata(), data: Some(data), ..ConfigMap::default() });
        Ok(())
    }
}

fn operator() -> Operator {
    Operator::new("vaults").manages::<Vault>()
}

const VAULT: &str = "{apiVersion: example.org/v1, kind: Vault, metadata: {name: vault}, spec: {}}";

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub async fn main() {
    // A crash after each of its writes, stale reads, cut, doubled and expired watches, lost answers, refusals.
    Matrix::new(operator, &[VAULT]).run().await;
    println!("the matrix found nothing");

    let mut harbour = Harbour::start(operator).await;
    let creates = Target::any().client(OPERATOR).resource("configmaps").verb("patch");
    let full = Effect::Refuse(StatusCode::INSUFFICIENT_STORAGE, "InternalError");
    harbour.drydock().faults().add(Fault::new(creates, full).times(3));
    harbour.apply(VAULT).await;
    let degraded = harbour.condition("Degraded", "True").await;
    println!("while the server refuses: {}", degraded["message"]);
    harbour.ready().await;
    println!("and then: ready");
}
