//! The operator's port: metrics, health, readiness, and why an object is as it is. On a cluster it is served over
//! HTTP with `Runtime::listen`; `windlass explain` reads it.
//!
//! Run it with `cargo run -p windlass-examples --example port`.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::core::ObjectMeta;
use kube::{CustomResource, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass::explain::Explanation;
use windlass::{Halt, Kind, Operator, Plan, Primary, Runtime, Status, World};
use windlass_drydock::{Drydock, Options};

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Lamp", namespaced, status = "Status")]
struct LampSpec {}

impl Primary for Lamp {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<ConfigMap>()]
    }

    fn plan(&self, _world: &World, plan: &mut Plan) -> Result<(), Halt> {
        let metadata = ObjectMeta { name: Some(self.name_any()), ..ObjectMeta::default() };
        let data = [("light".to_owned(), "on".to_owned())].into();
        plan.add(ConfigMap { metadata, data: Some(data), ..ConfigMap::default() });
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub async fn main() {
    let drydock = Drydock::start(Options::seeded(1)).await.unwrap();
    let runtime = Runtime::new(drydock.client("operator"), drydock.context().clone())
        .install_crds()
        .host(Operator::new("lamps").manages::<Lamp>());
    let port = runtime.port();
    let running = tokio::spawn(runtime.run(std::future::pending()));
    while port.get("/readyz").status != 200 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    println!("readyz: {}", port.get("/readyz").body);

    let lamps: Api<Lamp> = Api::default_namespaced(drydock.client("test"));
    lamps.create(&PostParams::default(), &Lamp::new("lamp", LampSpec {})).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(drydock.client("test"));
    let off = Patch::Merge(json!({"data": {"light": "off"}}));
    maps.patch("lamp", &PatchParams::default(), &off).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;

    let page = port.get("/explain/lamp/default/lamp");
    let explained: Vec<Explanation> = serde_json::from_str(&page.body).unwrap();
    for pass in &explained[0].passes {
        println!("because of {:?}: {}", pass.causes, pass.result);
        for write in &pass.writes {
            let changes: Vec<_> = write.changes.iter().map(|change| change.path.as_str()).collect();
            println!("    {} {} {changes:?}", write.verb, write.object);
        }
    }
    let last = explained[0].passes.last().unwrap();
    assert_eq!(last.causes, ["ConfigMap default/lamp changed"]);
    let metrics = port.get("/metrics").body;
    for line in metrics.lines().filter(|line| line.starts_with("windlass_reconcile")).take(3) {
        println!("{line}");
    }
    running.abort();
}
