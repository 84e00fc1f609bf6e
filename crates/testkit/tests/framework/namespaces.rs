//! An operator that is limited to some namespaces, with roles in them and nothing else.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::rbac::v1::Role;
use kube::CustomResource;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::sleep;
use windlass::{Halt, Kind, Operator, Plan, Port, Primary, Runtime, Status, World};
use windlass_drydock::faults::{Effect, Fault, Target};
use windlass_drydock::{Drydock, Options};
use windlass_testkit::account;

use crate::boat::{Boat, Marina, boat};
use crate::fleet::Process;

const ACCOUNT: &str = "boatman";
const REPLICA: &str = "replica-a";

/// Unlike a Boat, it stays in its namespace.
#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Buoy", namespaced, status = "Status")]
struct BuoySpec {}

impl Primary for Buoy {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<ConfigMap>()]
    }

    fn plan(&self, _: &World, plan: &mut Plan) -> Result<(), Halt> {
        let metadata = ObjectMeta { name: Some("buoy".into()), ..ObjectMeta::default() };
        plan.add(ConfigMap { metadata, ..ConfigMap::default() });
        Ok(())
    }
}

struct Yard {
    drydock: Drydock,
    process: Process,
}

impl Yard {
    /// With the namespaces a, b and c, and an operator that works in a and b.
    async fn start() -> Self {
        let drydock = Drydock::start(Options::seeded(1)).await.unwrap();
        drydock.record().keep_entries();
        for name in ["a", "b", "c"] {
            let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
            let api: Api<Namespace> = Api::all(drydock.client("test"));
            api.create(&PostParams::default(), &namespace).await.unwrap();
        }
        let client = account::client(&drydock, ACCOUNT, REPLICA);
        let runtime = Runtime::new(client, drydock.context().clone())
            .namespaces(["a", "b"])
            .install_crds()
            .host(Marina::default().operator()())
            .host(Operator::new("buoys").manages::<Buoy>());
        account::grant(&drydock, ACCOUNT, &runtime.permissions()).await;
        let process = Process::start(runtime);
        let yard = Self { drydock, process };
        while yard.port().get("/readyz").status != 200 {
            sleep(Duration::from_millis(100)).await;
        }
        yard
    }

    fn port(&self) -> &Port {
        &self.process.port
    }

    async fn apply(&self, namespace: &str, spec: serde_json::Value) {
        let api: Api<Boat> = Api::namespaced(self.drydock.client("test"), namespace);
        let body: serde_json::Value = serde_json::from_str(&boat(spec)).unwrap();
        api.patch("ada", &PatchParams::apply("test").force(), &Patch::Apply(body)).await.unwrap();
        sleep(Duration::from_secs(60)).await;
    }

    async fn status(&self, namespace: &str) -> Option<Status> {
        let api: Api<Boat> = Api::namespaced(self.drydock.client("test"), namespace);
        api.get("ada").await.unwrap().status
    }

    async fn maps(&self, namespace: &str) -> BTreeSet<String> {
        let api: Api<ConfigMap> = Api::namespaced(self.drydock.client("test"), namespace);
        let list = api.list(&ListParams::default()).await.unwrap();
        list.items
            .into_iter()
            .filter_map(|map| map.metadata.name)
            .filter(|name| name != "kube-root-ca.crt")
            .collect()
    }
}

#[tokio::test(start_paused = true)]
async fn it_works_there_and_nowhere_else_and_asks_for_nothing_elsewhere() {
    let yard = Yard::start().await;
    for namespace in ["a", "b", "c"] {
        yard.apply(namespace, json!({"text": "one"})).await;
    }
    let ready = |status: Option<Status>| status.is_some_and(|status| status.is_ready());
    assert!(ready(yard.status("a").await) && ready(yard.status("b").await));
    assert!(yard.status("c").await.is_none() && yard.maps("c").await.is_empty());

    // Drift and pruning, as ever.
    let maps: Api<ConfigMap> = Api::namespaced(yard.drydock.client("test"), "b");
    maps.delete("ada", &DeleteParams::default()).await.unwrap();
    sleep(Duration::from_secs(30)).await;
    assert_eq!(yard.maps("b").await, ["ada".to_owned()].into());

    let entries = yard.drydock.record().entries(REPLICA);
    let refused: Vec<_> = entries.iter().filter(|entry| entry.code == 403).collect();
    assert!(refused.is_empty(), "{refused:?}");
    let elsewhere = entries.iter().filter(|entry| entry.resource != "customresourcedefinitions");
    let namespaces: BTreeSet<_> = elsewhere.filter_map(|entry| entry.namespace.clone()).collect();
    assert_eq!(namespaces, ["a".to_owned(), "b".to_owned()].into());
}

#[tokio::test(start_paused = true)]
async fn what_a_plan_wants_elsewhere_is_refused_in_words() {
    let yard = Yard::start().await;
    yard.apply("a", json!({"text": "one", "elsewhere": "b"})).await;
    assert_eq!(yard.maps("b").await, ["ada".to_owned()].into());
    yard.apply("a", json!({"text": "one", "elsewhere": "c"})).await;
    let said = serde_json::to_string(&yard.status("a").await).unwrap();
    assert!(said.contains("the operator does not work in namespace c"), "{said}");
    assert!(yard.maps("c").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_role_that_is_gone_in_one_namespace_is_no_matter_in_the_other() {
    let yard = Yard::start().await;
    let roles: Api<Role> = Api::namespaced(yard.drydock.client("test"), "b");
    let role = roles.get(ACCOUNT).await.unwrap();
    roles.delete(ACCOUNT, &DeleteParams::default()).await.unwrap();
    yard.drydock
        .faults()
        .add(Fault::new(Target::any().client(REPLICA).verb("watch"), Effect::CutWatch(0)).times(20));
    sleep(Duration::from_secs(600)).await;
    for namespace in ["a", "b"] {
        let buoys: Api<Buoy> = Api::namespaced(yard.drydock.client("test"), namespace);
        buoys.create(&PostParams::default(), &Buoy::new("red", BuoySpec {})).await.unwrap();
    }
    sleep(Duration::from_secs(60)).await;
    let ready = async |namespace: &str| {
        let buoys: Api<Buoy> = Api::namespaced(yard.drydock.client("test"), namespace);
        buoys.get("red").await.unwrap().status.is_some_and(|status| status.is_ready())
    };
    assert!(ready("a").await && !ready("b").await);
    assert!(yard.port().get("/readyz").body.contains("cannot"), "{}", yard.port().get("/readyz").body);
    let again =
        Role { metadata: ObjectMeta { name: role.metadata.name, ..Default::default() }, rules: role.rules };
    roles.create(&PostParams::default(), &again).await.unwrap();
    sleep(Duration::from_secs(300)).await;
    assert!(ready("b").await);
}
