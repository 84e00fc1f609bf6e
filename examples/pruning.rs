//! What a plan no longer has is deleted: the fifth of five shards, also if it went while no operator ran.
//!
//! Run it with `cargo run -p windlass-examples --example pruning`.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::ObjectMeta;
use kube::{CustomResource, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{Halt, Kind, Operator, Plan, Primary, Status, World};
use windlass_testkit::Harbour;

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Fleet", namespaced, status = "Status")]
struct FleetSpec {
    boats: usize,
}

impl Primary for Fleet {
    // What is pruned is found by these kinds, also after a restart: nothing is remembered.
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<ConfigMap>()]
    }

    fn plan(&self, _world: &World, plan: &mut Plan) -> Result<(), Halt> {
        plan.add_each((1..=self.spec.boats).map(|number| ConfigMap {
            metadata: ObjectMeta {
                name: Some(format!("{}-{number}", self.name_any())),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        }));
        Ok(())
    }
}

fn fleet(boats: usize) -> String {
    format!(
        "{{apiVersion: example.org/v1, kind: Fleet, metadata: {{name: fleet}}, spec: {{boats: {boats}}}}}"
    )
}

async fn boats(harbour: &Harbour) -> Vec<String> {
    let mut names = harbour.names::<ConfigMap>().await;
    names.retain(|name| name.starts_with("fleet-"));
    names
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub async fn main() {
    let mut harbour = Harbour::start(|| Operator::new("admiral").manages::<Fleet>()).await;
    harbour.apply(&fleet(5)).await;
    harbour.ready().await;
    println!("five boats: {:?}", boats(&harbour).await);
    assert_eq!(boats(&harbour).await.len(), 5);

    harbour.apply(&fleet(4)).await;
    harbour.settle().await;
    println!("one less:   {:?}", boats(&harbour).await);
    assert_eq!(boats(&harbour).await.len(), 4);

    harbour.stop().await;
    harbour.apply(&fleet(2)).await;
    harbour.run();
    harbour.settle().await;
    println!("two less while no operator ran: {:?}", boats(&harbour).await);
    assert_eq!(boats(&harbour).await, ["fleet-1", "fleet-2"]);
}
