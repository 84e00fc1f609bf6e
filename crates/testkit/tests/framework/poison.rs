//! One poisonous object is put aside with a condition; all others go on.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use kube::CustomResource;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind, ObjectMeta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass::{Halt, Invalid, Kind, Operator, Plan, Primary, Status, World};
use windlass_testkit::Harbour;

#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Barrel", namespaced, status = "Status")]
struct BarrelSpec {
    /// Where it goes off.
    fuse: Option<String>,
    litres: u32,
}

static PLANS: AtomicU32 = AtomicU32::new(0);

impl Barrel {
    fn burn(&self, place: &str) {
        assert!(self.spec.fuse.as_deref() != Some(place), "it went off in {place}");
    }
}

impl Primary for Barrel {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<ConfigMap>()]
    }

    fn defaults(&mut self) {
        self.burn("defaults");
    }

    fn validity(&self) -> Vec<Invalid> {
        self.burn("validity");
        Vec::new()
    }

    fn plan(&self, _: &World, plan: &mut Plan) -> Result<(), Halt> {
        if self.spec.fuse.is_some() {
            PLANS.fetch_add(1, Ordering::Relaxed);
        }
        let metadata = ObjectMeta { name: self.metadata.name.clone(), ..ObjectMeta::default() };
        let data = [("litres".to_owned(), self.spec.litres.to_string())].into();
        plan.add(ConfigMap { metadata, data: Some(data), ..ConfigMap::default() });
        self.burn("plan");
        Ok(())
    }

    fn own_status(&self, _: &World, _: &Status, _: &mut Status) -> Result<(), Halt> {
        self.burn("own_status");
        Ok(())
    }
}

fn barrel(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "example.org/v1", "kind": "Barrel", "metadata": {"name": name}, "spec": spec})
}

async fn harbour() -> Harbour {
    Harbour::start(|| Operator::new("cooper").manages::<Barrel>()).await
}

fn barrels(harbour: &Harbour) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.org", "v1", "Barrel"));
    Api::default_namespaced_with(harbour.client(), &kind)
}

async fn degraded(harbour: &Harbour, name: &str) -> Option<Value> {
    let object = barrels(harbour).get(name).await.unwrap();
    let conditions = object.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|one| one["type"] == "Degraded" && one["status"] == "True")
}

async fn litres(harbour: &Harbour, name: &str) -> Option<String> {
    let map = harbour.api::<ConfigMap>().get_opt(name).await.unwrap();
    map.and_then(|map| map.data).and_then(|data| data.get("litres").cloned())
}

#[tokio::test(start_paused = true)]
async fn code_that_panics_is_caught_named_and_backed_off_and_mends() {
    let mut harbour = harbour().await;
    for place in ["defaults", "validity", "plan", "own_status"] {
        harbour.put(&barrel("bomb", json!({"fuse": place, "litres": 1})).to_string()).await;
        harbour.until(place, async || degraded(&harbour, "bomb").await.is_some()).await;
        let condition = degraded(&harbour, "bomb").await.unwrap();
        assert_eq!(condition["reason"], "Panicked", "{condition}");
        let message = condition["message"].as_str().unwrap();
        assert!(message.contains(&format!("panicked in {place}: it went off in {place}")), "{message}");
        // Another is not hindered.
        harbour.apply(&barrel("water", json!({"litres": 7})).to_string()).await;
        harbour.ready().await;

        PLANS.store(0, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let plans = PLANS.load(Ordering::Relaxed);
        assert!(plans < 60, "tried {plans} times in an hour");
        harbour.put(&barrel("bomb", json!({"litres": 2})).to_string()).await;
        harbour.until("it to be well", async || degraded(&harbour, "bomb").await.is_none()).await;
        assert_eq!(litres(&harbour, "bomb").await.as_deref(), Some("2"));
    }
    let events = harbour.list::<Event>().await;
    let said = events.iter().filter(|event| event.reason.as_deref() == Some("Panicked")).count();
    assert_eq!(said, 4, "one Event for each");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_decoded_is_put_aside_with_the_field_named() {
    let mut harbour = harbour().await;
    let definitions: Api<DynamicObject> = Api::all_with(
        harbour.client(),
        &ApiResource::from_gvk(&GroupVersionKind::gvk(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
        )),
    );
    let lax = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let loosen = json!([{"op": "replace",
        "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec", "value": lax}]);
    let loosen: Patch<()> = Patch::Json(serde_json::from_value(loosen).unwrap());
    definitions.patch("barrels.example.org", &PatchParams::default(), &loosen).await.unwrap();
    harbour.settle().await;
    harbour.put(&barrel("bad", json!({"litres": "many"})).to_string()).await;
    harbour.until("it to be named", async || degraded(&harbour, "bad").await.is_some()).await;
    let condition = degraded(&harbour, "bad").await.unwrap();
    let message = condition["message"].as_str().unwrap();
    assert!(
        message.starts_with("failed to decode default/bad: spec.litres: invalid type: string"),
        "{message}"
    );
    harbour.apply(&barrel("good", json!({"litres": 3})).to_string()).await;
    harbour.ready().await;
    assert_eq!(litres(&harbour, "bad").await, None);

    let before = harbour.revision();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(harbour.revision(), before, "it is not tried again until it changes");
    harbour.put(&barrel("bad", json!({"litres": 4})).to_string()).await;
    harbour.until("it to be well", async || litres(&harbour, "bad").await.as_deref() == Some("4")).await;
}
