//! Looking at part of an object: only a change of that part plans again. And while a primary is on its way, the statuses
//! of its dependents are judged without a plan.

use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim};
use kube::api::{Patch, PatchParams};
use kube::{Api, CustomResource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass::{Halt, Kind, Operator, Plan, Primary, Status, World};
use windlass_testkit::Harbour;

static PLANS: AtomicUsize = AtomicUsize::new(0);

/// A volume whose label is the level of the oil that a ConfigMap tells.
#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Lantern", namespaced, status = "Status")]
struct LanternSpec {}

impl Primary for Lantern {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<PersistentVolumeClaim>()]
    }

    fn reads() -> Vec<Kind> {
        vec![Kind::of::<ConfigMap>()]
    }

    fn plan(&self, world: &World, plan: &mut Plan) -> Result<(), Halt> {
        PLANS.fetch_add(1, Ordering::Relaxed);
        let level = world.view("oil", |oil: Option<&ConfigMap>| oil?.data.as_ref()?.get("level").cloned())?;
        let volume = json!({
            "metadata": {"name": "volume", "labels": {"level": level.unwrap_or_else(|| "none".into())}},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                // There is no such class, so nothing but the test binds it.
                "storageClassName": "nowhere",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        });
        let volume: PersistentVolumeClaim =
            serde_json::from_value(volume).map_err(|error| Halt::failed("Broken", error.to_string()))?;
        plan.add(volume).ready();
        Ok(())
    }
}

fn oil(level: &str, colour: &str) -> String {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "oil"},
        "data": {"level": level, "colour": colour}})
    .to_string()
}

struct Lamp {
    harbour: Harbour,
    volumes: Api<PersistentVolumeClaim>,
}

impl Lamp {
    async fn lit() -> Self {
        let mut harbour = Harbour::start(|| Operator::new("lanterns").manages::<Lantern>()).await;
        harbour.put(&oil("full", "amber")).await;
        let lantern = json!({"apiVersion": "example.org/v1", "kind": "Lantern", "metadata": {"name": "lantern"},
            "spec": {}});
        harbour.apply(&lantern.to_string()).await;
        harbour.condition("Ready", "False").await;
        let volumes = Api::default_namespaced(harbour.client());
        let lamp = Self { harbour, volumes };
        // The status was written, and a plan may read its own status: the next change plans once more.
        lamp.status(json!({"conditions": [condition("Resizing")]})).await;
        lamp
    }

    /// How often is planned while this is done.
    async fn plans(&self, change: impl Future<Output = ()>) -> usize {
        let before = PLANS.load(Ordering::Relaxed);
        change.await;
        self.harbour.settle().await;
        PLANS.load(Ordering::Relaxed) - before
    }

    async fn status(&self, status: Value) {
        let params = PatchParams::default();
        self.volumes.patch_status("volume", &params, &Patch::Merge(json!({"status": status}))).await.unwrap();
        self.harbour.settle().await;
    }

    async fn metadata(&self, metadata: Value) {
        let params = PatchParams { field_manager: Some("somebody".into()), ..PatchParams::default() };
        self.volumes.patch("volume", &params, &Patch::Merge(json!({"metadata": metadata}))).await.unwrap();
    }

    async fn level(&self) -> Option<String> {
        self.volumes.get("volume").await.unwrap().metadata.labels?.get("level").cloned()
    }
}

fn condition(kind: &str) -> Value {
    json!({"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

#[tokio::test(start_paused = true)]
async fn only_what_a_plan_looked_at_plans_again() {
    let lamp = Lamp::lit().await;
    let harbour = &lamp.harbour;

    assert_eq!(lamp.plans(async { drop(harbour.put(&oil("full", "red")).await) }).await, 0, "not looked at");
    let changed = lamp.plans(async { drop(harbour.put(&oil("half", "red")).await) }).await;
    assert!(changed > 0, "looked at");
    assert_eq!(lamp.level().await.as_deref(), Some("half"));

    let status = json!({"conditions": [condition("FileSystemResizePending")]});
    assert_eq!(lamp.plans(lamp.status(status)).await, 0, "a status is judged without a plan");
    let theirs = lamp.metadata(json!({"annotations": {"example.org/by": "somebody"}}));
    assert_eq!(lamp.plans(theirs).await, 0, "what is not ours does not matter");

    let ours = lamp.metadata(json!({"labels": {"level": "empty"}}));
    assert!(lamp.plans(ours).await > 0, "what is ours does");
    assert_eq!(lamp.level().await.as_deref(), Some("half"), "and is put right");

    lamp.status(json!({"phase": "Bound"})).await;
    harbour.ready().await;
}
