//! Made once, then the user's: a random password that people may change, and that is never overwritten. If it is
//! deleted, that is reported instead of making another in silence.
//!
//! Run it with `cargo run -p windlass-examples --example made_once`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::core::ObjectMeta;
use kube::{CustomResource, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass::{Halt, Kind, Operator, Plan, Primary, Status, World};
use windlass_testkit::Harbour;

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Account", namespaced, status = "Status")]
struct AccountSpec {}

impl Primary for Account {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<Secret>()]
    }

    fn plan(&self, world: &World, plan: &mut Plan) -> Result<(), Halt> {
        plan.add(Secret {
            metadata: ObjectMeta { name: Some(self.name_any()), ..ObjectMeta::default() },
            // Randomness comes from the world: a plan stays a pure function, and a test can repeat it.
            string_data: Some(BTreeMap::from([("password".to_owned(), world.random("password", 24))])),
            ..Secret::default()
        })
        .once();
        Ok(())
    }
}

const ACCOUNT: &str = "{apiVersion: example.org/v1, kind: Account, metadata: {name: ada}, spec: {}}";

async fn password(harbour: &Harbour) -> String {
    let secret = harbour.api::<Secret>().get("ada").await.unwrap();
    String::from_utf8(secret.data.unwrap()["password"].0.clone()).unwrap()
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub async fn main() {
    let mut harbour = Harbour::start(|| Operator::new("accounts").manages::<Account>()).await;
    harbour.apply(ACCOUNT).await;
    harbour.ready().await;
    println!("a password of {} letters was made", password(&harbour).await.len());

    let edit = json!({"stringData": {"password": "my own"}});
    harbour.api::<Secret>().patch("ada", &PatchParams::default(), &Patch::Merge(edit)).await.unwrap();
    harbour.restart().await;
    harbour.settle().await;
    println!("after an edit and a restart it is: {}", password(&harbour).await);
    assert_eq!(password(&harbour).await, "my own");

    harbour.api::<Secret>().delete("ada", &DeleteParams::default()).await.unwrap();
    let ready = harbour.condition("Ready", "False").await;
    println!("deleted, and Ready says: {}", ready["message"]);
    assert!(harbour.names::<Secret>().await.is_empty());
}
