//! Order and readiness: the server is made once the database is ready, and the whole is ready once both are. One
//! that fails holds back only what comes after it.
//!
//! Run it with `cargo run -p windlass-examples --example order`.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::{CustomResource, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass::{Halt, Kind, Operator, Plan, Primary, Status, World};
use windlass_drydock::node::Behaviour;
use windlass_testkit::Harbour;

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Shop", namespaced, status = "Status")]
struct ShopSpec {
    database: String,
}

impl Primary for Shop {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<Deployment>(), Kind::of::<Service>()]
    }

    fn plan(&self, _world: &World, plan: &mut Plan) -> Result<(), Halt> {
        let database = plan.add(run(&format!("{}-database", self.name_any()), &self.spec.database)).ready();
        plan.add(run(&format!("{}-server", self.name_any()), "server:1")).after(&database).ready();
        // Comes after nothing: made at once, whatever becomes of the database.
        let service = json!({"metadata": {"name": self.name_any()}, "spec": {"ports": [{"port": 80}]}});
        plan.add_each(serde_json::from_value::<Service>(service).ok());
        Ok(())
    }
}

fn run(name: &str, image: &str) -> Deployment {
    let labels = json!({"app": name});
    let container = json!({"name": "main", "image": image});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [container]}});
    let spec = json!({"selector": {"matchLabels": labels}, "template": template});
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
}

fn shop(database: &str) -> String {
    format!(
        "{{apiVersion: example.org/v1, kind: Shop, metadata: {{name: shop}}, spec: {{database: {database}}}}}"
    )
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub async fn main() {
    let mut harbour = Harbour::start(|| Operator::new("shops").manages::<Shop>()).await;
    harbour.behaviours().set("broken:1", Behaviour::Unpullable);

    harbour.apply(&shop("broken:1")).await;
    harbour.settle().await;
    println!("deployments while the database cannot start: {:?}", harbour.names::<Deployment>().await);
    assert_eq!(harbour.names::<Deployment>().await, ["shop-database"]);
    assert!(harbour.names::<Service>().await.contains(&"shop".to_owned()));
    let ready = harbour.condition("Ready", "False").await;
    println!("and Ready says: {}", ready["message"]);

    harbour.apply(&shop("database:1")).await;
    harbour.ready().await;
    println!("once it can: {:?}", harbour.names::<Deployment>().await);
    assert_eq!(harbour.names::<Deployment>().await, ["shop-database", "shop-server"]);
}
