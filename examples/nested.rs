//! A primary as a dependent of another: a Town is made of Houses, and is ready when they are. Each kind has its own
//! plan, and one operator manages both.
//!
//! Run it with `cargo run -p windlass-examples --example nested`.

use k8s_openapi::api::apps::v1::Deployment;
use kube::{CustomResource, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass::{Halt, Kind, Operator, Plan, Primary, Status, World};
use windlass_drydock::node::Behaviour;
use windlass_testkit::Harbour;

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Town", namespaced, status = "Status")]
struct TownSpec {
    houses: Vec<String>,
}

impl Primary for Town {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<House>()]
    }

    fn plan(&self, _world: &World, plan: &mut Plan) -> Result<(), Halt> {
        for name in &self.spec.houses {
            plan.add(House::new(name, HouseSpec { image: format!("{name}:1") })).ready();
        }
        Ok(())
    }
}

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "House", namespaced, status = "Status")]
struct HouseSpec {
    image: String,
}

impl Primary for House {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<Deployment>()]
    }

    fn plan(&self, _world: &World, plan: &mut Plan) -> Result<(), Halt> {
        let labels = json!({"house": self.name_any()});
        let pod = json!({"containers": [{"name": "house", "image": self.spec.image}]});
        let template = json!({"metadata": {"labels": labels}, "spec": pod});
        let spec = json!({"selector": {"matchLabels": labels}, "template": template});
        let deployment = json!({"metadata": {"name": self.name_any()}, "spec": spec});
        plan.add(serde_json::from_value::<Deployment>(deployment).unwrap()).ready();
        Ok(())
    }
}

const TOWN: &str =
    "{apiVersion: example.org/v1, kind: Town, metadata: {name: town}, spec: {houses: [mill, inn]}}";

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub async fn main() {
    let operator = || Operator::new("towns").manages::<Town>().manages::<House>();
    let mut harbour = Harbour::start(operator).await;
    harbour.behaviours().set("inn:1", Behaviour::Unready);
    harbour.apply(TOWN).await;
    harbour.settle().await;
    let ready = harbour.condition("Ready", "False").await;
    println!("while the inn is closed: {}", ready["message"]);
    assert!(ready["message"].as_str().unwrap().starts_with("House inn: "), "{ready}");

    harbour.behaviours().remove("inn:1");
    harbour
        .api::<k8s_openapi::api::core::v1::Pod>()
        .delete_collection(&Default::default(), &Default::default())
        .await
        .unwrap();
    harbour.ready().await;
    println!(
        "open: houses {:?}, deployments {:?}",
        harbour.names::<House>().await,
        harbour.names::<Deployment>().await
    );
    assert_eq!(harbour.names::<Deployment>().await, ["inn", "mill"]);
}
