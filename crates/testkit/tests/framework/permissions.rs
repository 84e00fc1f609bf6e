//! An operator runs with the permissions that follow from what it declares; where one is missing, it says which.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use kube::CustomResource;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::core::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass::{Halt, Kind, Operator, Plan, Primary, Runtime, Status, World};
use windlass_drydock::{Drydock, Options};
use windlass_testkit::{Harbour, OPERATOR, account};

use crate::boat::{Boat, Marina, boat};
use crate::fleet::lease;

/// Takes one verb for one resource out of the operator's role.
async fn forbid(harbour: &Harbour, verb: &str, resource: &str) {
    let roles: Api<ClusterRole> = Api::all(harbour.client());
    let mut role = roles.get(OPERATOR).await.unwrap();
    let mut rules = Vec::new();
    for rule in role.rules.take().unwrap_or_default() {
        let (of, others): (Vec<_>, Vec<_>) =
            rule.resources.clone().unwrap_or_default().into_iter().partition(|one| one == resource);
        let verbs = rule.verbs.iter().filter(|one| *one != verb).cloned().collect();
        rules.push(PolicyRule { resources: Some(of), verbs, ..rule.clone() });
        rules.push(PolicyRule { resources: Some(others), ..rule });
    }
    rules.retain(|rule| rule.resources.as_ref().is_some_and(|all| !all.is_empty()) && !rule.verbs.is_empty());
    role.rules = Some(rules);
    roles.replace(OPERATOR, &PostParams::default(), &role).await.unwrap();
}

/// Everything that the conditions and dependents of the Boat say.
async fn words(harbour: &Harbour) -> String {
    let boat = harbour.api::<Boat>().get("ada").await.unwrap();
    serde_json::to_string(&boat.status).unwrap().replace("\\\"", "\"")
}

#[tokio::test(start_paused = true)]
async fn a_missing_permission_is_named_with_its_verb_and_resource() {
    for (verb, resource) in [
        ("list", "configmaps"),
        ("watch", "configmaps"),
        ("create", "configmaps"),
        ("patch", "configmaps"),
        ("delete", "configmaps"),
        ("list", "secrets"),
        ("watch", "secrets"),
        ("get", "secrets"),
        ("patch", "boats"),
    ] {
        let mut harbour = Harbour::start(Marina::default().operator()).await;
        let secret = |name: &str| Secret {
            metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
            ..Secret::default()
        };
        for name in ["one", "two"] {
            harbour.api::<Secret>().create(&PostParams::default(), &secret(name)).await.unwrap();
        }
        forbid(&harbour, verb, resource).await;
        harbour.restart().await;
        // Makes two ConfigMaps, reads a Secret; then one that was not kept, and one ConfigMap fewer.
        harbour.apply(&boat(json!({"text": "one", "secret": "one", "berth": "b1", "length": 3}))).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        let mut spec = json!({"text": "two", "secret": "two"});
        if resource == "boats" {
            // Only for a berth does it need a finalizer.
            (spec["berth"], spec["length"]) = ("b1".into(), 3.into());
        }
        harbour.apply(&boat(spec)).await;
        let missing = format!("cannot {verb} resource \"{resource}\"");
        let what = format!("the status to say: {missing}");
        harbour.until(&what, async || words(&harbour).await.contains(&missing)).await;
        let events: Api<Event> = Api::all(harbour.client());
        // What cannot be looked at may yet be well: that is waited for, and no cause for a warning.
        let warned = (verb, resource) != ("get", "secrets");
        harbour
            .until("an Event that says so", async || {
                if !warned {
                    return true;
                }
                let all = events.list(&Default::default()).await.unwrap().items;
                all.iter().any(|event| event.note.as_deref().unwrap_or_default().contains(&missing))
            })
            .await;

        // Once it is allowed, the work goes on without a restart.
        let permissions = Runtime::new(harbour.client(), harbour.drydock().context().clone())
            .host(Marina::default().operator()())
            .install_crds()
            .permissions();
        account::grant(harbour.drydock(), OPERATOR, &permissions).await;
        harbour.until("the words to be gone", async || !words(&harbour).await.contains(&missing)).await;
        harbour.ready().await;
        let text = harbour.api::<ConfigMap>().get("ada").await.unwrap().data.unwrap()["text"].clone();
        assert_eq!(text, "two", "without {verb} {resource}");
    }
}

/// Neither can be said in a status.
#[tokio::test(start_paused = true)]
async fn an_operator_that_may_not_write_statuses_or_see_its_primaries_says_so_in_an_event() {
    for (verb, resource, about) in
        [("patch", "boats/status", "Boat"), ("list", "boats", "CustomResourceDefinition")]
    {
        let mut harbour = Harbour::start(Marina::default().operator()).await;
        forbid(&harbour, verb, resource).await;
        harbour.restart().await;
        harbour.put(&boat(json!({"text": "one"}))).await;
        let missing = format!("cannot {verb} resource \"{resource}\"");
        let events: Api<Event> = Api::all(harbour.client());
        let said = async || {
            let all = events.list(&Default::default()).await.unwrap().items.into_iter();
            let about = all.filter(|event| {
                event.regarding.as_ref().is_some_and(|one| one.kind.as_deref() == Some(about))
            });
            about
                .filter(|event| event.note.as_deref().unwrap_or_default().contains(&missing))
                .collect::<Vec<_>>()
        };
        harbour.until("an Event that says so", async || !said().await.is_empty()).await;
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let said = said().await;
        assert_eq!((said.len(), said[0].series.as_ref()), (1, None), "said once: {said:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_allowed_that_is_never_used() {
    let marina = Marina::default();
    let mut harbour = Harbour::start(marina.operator()).await;
    for name in ["one", "two"] {
        let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
        let secret = Secret { metadata, ..Secret::default() };
        harbour.api::<Secret>().create(&PostParams::default(), &secret).await.unwrap();
    }
    let pier = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "pier"},
        "spec": {"ports": [{"port": 80}]}});
    harbour.put(&pier.to_string()).await;
    for spec in [
        json!({"text": "one", "secret": "one", "pier": "pier", "berth": "b1", "length": 1}),
        // A Secret that was there and not kept; a ConfigMap fewer, a Service that is refused, one that is not.
        json!({"text": "two", "secret": "two", "broken": true}),
        json!({"text": "two"}),
        json!({"text": "two", "broken": true}),
    ] {
        harbour.apply(&boat(spec)).await;
        harbour.settle().await;
    }
    // An object that somebody makes just before the operator does, and one with the other's name.
    harbour.api::<Boat>().delete("ada", &DeleteParams::background()).await.unwrap();
    harbour.settle().await;
    let unused = harbour.unused_permissions();
    let reasons = [
        // An operator that owns a kind may make, adjust and prune it; this one's Services can never be made.
        "create services",
        "delete services",
        // To look at an object that a list has not kept, or that is there before its event: no more than `list` shows.
        "get configmaps",
    ];
    assert_eq!(unused, reasons.map(str::to_owned).into(), "allowed, and neither used nor explained");
}

#[tokio::test(start_paused = true)]
async fn a_leader_and_a_member_of_shards_need_no_more_than_they_say() {
    for shards in [false, true] {
        let drydock = Drydock::start(Options::seeded(1)).await.unwrap();
        drydock.record().keep_entries();
        let marina = Marina::default();
        let runtime = |name: &str| {
            let client = account::client(&drydock, "boatman", name);
            let runtime = Runtime::new(client, drydock.context().clone()).identity(name).install_crds();
            let runtime = runtime.host(marina.operator()());
            if shards { runtime.shards(lease()) } else { runtime.leader(lease()) }
        };
        account::grant(&drydock, "boatman", &runtime("").permissions()).await;
        let (stop, stopped) = tokio::sync::watch::channel(());
        let mut tasks = Vec::new();
        for name in ["a", "b"] {
            let mut stopped = stopped.clone();
            tasks.push(tokio::spawn(runtime(name).run(async move { drop(stopped.changed().await) })));
            tokio::time::sleep(Duration::from_secs(30)).await;
        }
        let boats: Api<Boat> = Api::namespaced(drydock.client("test"), "default");
        let params = PatchParams::apply("test");
        let body: serde_json::Value = serde_json::from_str(&boat(json!({"text": "one"}))).unwrap();
        boats.patch("ada", &params, &Patch::Apply(body)).await.unwrap();
        // One that was killed leaves its Lease, which another member clears away.
        if shards {
            tasks.remove(0).abort();
            tokio::time::sleep(Duration::from_secs(300)).await;
        }
        tokio::time::sleep(Duration::from_secs(30)).await;
        let ready = boats.get("ada").await.unwrap().status.unwrap_or_default().conditions;
        assert!(ready.iter().any(|one| one.type_ == "Ready" && one.status == "True"), "{ready:?}");
        stop.send_replace(());
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        let refused = drydock.record().entries("").into_iter().filter(|entry| entry.code == 403);
        assert_eq!(refused.collect::<Vec<_>>(), [], "shards: {shards}");
        let unused: BTreeSet<String> = ["a", "b"]
            .map(|name| account::unused(drydock.record(), name, &runtime("").permissions()))
            .into_iter()
            .reduce(|one, other| one.intersection(&other).cloned().collect())
            .unwrap();
        let leases: Vec<_> = unused.iter().filter(|one| one.ends_with(" leases")).collect();
        // A Lease that was lost to another's write is read again.
        let expected: &[&str] = if shards { &["get leases"] } else { &[] };
        assert_eq!(leases, expected, "shards: {shards}");
    }
}

#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Dinghy", namespaced, status = "Status")]
struct DinghySpec {
    /// What it does that it has not declared.
    what: String,
}

impl Primary for Dinghy {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<ConfigMap>()]
    }

    fn plan(&self, world: &World, plan: &mut Plan) -> Result<(), Halt> {
        let metadata = |namespace: Option<&str>| ObjectMeta {
            name: self.metadata.name.clone(),
            namespace: namespace.map(str::to_owned),
            ..ObjectMeta::default()
        };
        plan.add(ConfigMap { metadata: metadata(None), ..ConfigMap::default() });
        match self.spec.what.as_str() {
            "read" => drop(world.get::<Secret>("x")?),
            "make" => drop(plan.add(Secret { metadata: metadata(None), ..Secret::default() })),
            "adjust" => drop(plan.add(Secret { metadata: metadata(None), ..Secret::default() }).existing()),
            "reach" => {
                drop(plan.add(ConfigMap { metadata: metadata(Some("kube-system")), ..ConfigMap::default() }))
            }
            "retire" => plan.retire(),
            _ => {}
        }
        Ok(())
    }

    fn own_status(&self, world: &World, _: &Status, _: &mut Status) -> Result<(), Halt> {
        if self.spec.what == "report" {
            world.get::<Secret>("x")?;
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_plan_does_without_declaring_it_is_refused_with_the_way_out() {
    let mut harbour = Harbour::start(|| Operator::new("dinghies").manages::<Dinghy>()).await;
    for (what, way_out) in [
        ("read", "add Kind::of::<Secret>() to `reads`"),
        ("report", "add Kind::of::<Secret>() to `reads`"),
        ("make", "`owns` of Dinghy declares: add Kind::of::<Secret>() there"),
        ("adjust", "`adjusts` of Dinghy declares: add Kind::of::<Secret>() there"),
        ("reach", "have `reaches_out` return true"),
        ("retire", "have `retires` return true"),
    ] {
        let dinghy = json!({"apiVersion": "example.org/v1", "kind": "Dinghy", "metadata": {"name": "d"},
            "spec": {"what": what}});
        harbour.apply(&dinghy.to_string()).await;
        let degraded = harbour.condition("Degraded", "True").await;
        assert!(degraded["message"].as_str().unwrap().contains(way_out), "{what}: {degraded}");
        // What it may do, it does.
        assert!(harbour.names::<ConfigMap>().await.contains(&"d".to_owned()));
        assert!(harbour.names::<Secret>().await.is_empty());
    }
}
