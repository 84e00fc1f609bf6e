//! What the operator's port tells: metrics, health, readiness, and why an object is as it is.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::core::ObjectMeta;
use serde_json::json;
use tokio::time::sleep;
use windlass::explain::Explanation;
use windlass_drydock::faults::{Effect, Fault, Target};

use crate::boat::Boat;
use crate::fleet::{Fleet, Process};

const MERGE: fn() -> PatchParams = PatchParams::default;

fn api<K>(fleet: &Fleet) -> Api<K>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    Api::namespaced(fleet.drydock.client("test"), "default")
}

async fn change(fleet: &Fleet, spec: serde_json::Value) {
    let patch = Patch::Merge(json!({"spec": spec}));
    api::<Boat>(fleet).patch("boat-0", &MERGE(), &patch).await.unwrap();
    sleep(Duration::from_secs(30)).await;
}

fn explanation(process: &Process) -> Explanation {
    let page = process.port.get("/explain/boat/default/boat-0");
    assert_eq!(page.status, 200, "{}", page.body);
    let mut all: Vec<Explanation> = serde_json::from_str(&page.body).unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

#[tokio::test(start_paused = true)]
async fn it_explains_what_caused_a_pass_and_what_was_written() {
    let fleet = Fleet::start().await;
    let process = Process::start(fleet.runtime("replica-a"));
    fleet.boats(1, "one").await;
    fleet.until_done(1, "one").await;
    change(&fleet, json!({"text": "two"})).await;

    let explained = explanation(&process);
    assert_eq!((explained.operator.as_str(), explained.kind.as_str()), ("boatman", "Boat"));
    let created =
        explained.passes.iter().flat_map(|pass| &pass.writes).find(|write| write.verb == "create").unwrap();
    assert_eq!(created.object, "ConfigMap default/boat-0");
    let pass =
        explained.passes.iter().find(|pass| pass.writes.iter().any(|write| write.verb == "apply")).unwrap();
    assert_eq!(pass.causes, ["Boat default/boat-0 changed"]);
    let write = pass.writes.iter().find(|write| write.verb == "apply").unwrap();
    let change = &write.changes[0];
    assert_eq!(
        (change.path.as_str(), change.from.as_deref(), change.to.as_deref()),
        ("data.text", Some("one"), Some("two"))
    );
    assert!(pass.reads.contains(&"ConfigMap default/boat-0".to_owned()), "{pass:?}");
    assert!(pass.compared.iter().any(|one| one.object == "ConfigMap default/boat-0"), "{pass:?}");
    assert!(pass.writes.iter().any(|write| write.verb == "status"), "{pass:?}");
    assert_eq!(pass.result, "settled");

    // Somebody else's change is named as the cause, and put right.
    let drift = Patch::Merge(json!({"data": {"text": "drift"}}));
    api::<ConfigMap>(&fleet).patch("boat-0", &MERGE(), &drift).await.unwrap();
    sleep(Duration::from_secs(5)).await;
    let explained = explanation(&process);
    let last =
        explained.passes.iter().rfind(|pass| pass.writes.iter().any(|write| write.verb == "apply")).unwrap();
    assert_eq!(last.causes, ["ConfigMap default/boat-0 changed"]);

    assert_eq!(process.port.get("/explain/boats/default/nobody").status, 404);
    assert!(process.port.get("/explain/ship/default/x").body.contains("there is: Boat"));
}

#[tokio::test(start_paused = true)]
async fn it_never_shows_what_is_secret() {
    let fleet = Fleet::start().await;
    let process = Process::start(fleet.runtime("replica-a"));
    fleet.boats(1, "one").await;
    let secret = Secret {
        metadata: ObjectMeta { name: Some("tokens".into()), ..ObjectMeta::default() },
        string_data: Some([("token".to_owned(), "open-sesame".to_owned())].into()),
        ..Secret::default()
    };
    api::<Secret>(&fleet).create(&PostParams::default(), &secret).await.unwrap();
    change(&fleet, json!({"secret": "tokens"})).await;
    let page = process.port.get("/explain/boat/default/boat-0").body;
    assert!(page.contains("Secret default/tokens"), "{page}");
    assert!(!page.contains("open-sesame") && !page.contains("b3Blbi1zZXNhbWU"), "{page}");
}

#[tokio::test(start_paused = true)]
async fn its_metrics_count_passes_writes_watches_and_the_cache() {
    let fleet = Fleet::start().await;
    let process = Process::start(fleet.runtime("replica-a"));
    fleet.boats(2, "one").await;
    fleet.until_done(2, "one").await;
    let conflict = Effect::Refuse(http::StatusCode::CONFLICT, "Conflict");
    fleet.drydock.faults().add(
        Fault::new(Target::any().client("replica-a").resource("configmaps").verb("patch"), conflict).times(1),
    );
    change(&fleet, json!({"text": "two"})).await;
    let page = process.port.get("/metrics");
    assert_eq!(page.content_type, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    let of = r#"operator="boatman",kind="Boat""#;
    let maps = r#"operator="boatman",kind="ConfigMap""#;
    for line in [
        format!(r#"windlass_writes_total{{{maps},verb="create",result="ok"}} 2"#),
        format!(r#"windlass_writes_total{{{maps},verb="apply",result="ok"}} 1"#),
        format!(r#"windlass_writes_total{{{maps},verb="apply",result="conflict"}} 1"#),
        format!(r#"windlass_reconciles_total{{{of},result="retry"}} 1"#),
        format!(r#"windlass_queue_retries_total{{{of}}} 1"#),
        r#"windlass_cache_objects{kind="Boat",group="example.org"} 2"#.to_owned(),
        r#"windlass_watch_loaded{kind="Boat",group="example.org"} 1"#.to_owned(),
        r#"windlass_watch_failing{kind="ConfigMap",group=""} 0"#.to_owned(),
        r#"windlass_watch_restarts_total{kind="Boat",group="example.org"} 0"#.to_owned(),
        r#"windlass_replica_role{role="alone"} 1"#.to_owned(),
        "windlass_queue_depth 0".to_owned(),
        "# EOF".to_owned(),
    ] {
        assert!(page.body.lines().any(|one| one == line), "no {line} in\n{}", page.body);
    }
    for name in [
        "windlass_reconcile_duration_seconds_bucket",
        "windlass_queue_wait_seconds_count",
        "windlass_cache_size_bytes",
    ] {
        assert!(page.body.contains(name), "no {name} in\n{}", page.body);
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_ready_when_its_watches_are_loaded_and_says_which_are_not() {
    let fleet = Fleet::start().await;
    let refuse = Effect::Refuse(http::StatusCode::FORBIDDEN, "Forbidden");
    let services = Target::any().client("replica-a").resource("services");
    fleet.drydock.faults().add(Fault::new(services, refuse));
    let process = Process::start(fleet.runtime("replica-a"));
    sleep(Duration::from_secs(60)).await;
    let page = process.port.get("/readyz");
    assert_eq!(page.status, 503);
    assert!(page.body.contains("failed to watch services"), "{}", page.body);
    // A restart would not help.
    assert_eq!(process.port.get("/healthz").status, 200);

    fleet.drydock.faults().clear();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(process.port.get("/readyz").body, "ok (alone)\n");

    // A watch that hangs before it has brought anything is another matter.
    let services = Target::any().client("replica-b").resource("services");
    fleet.drydock.faults().add(Fault::new(services, Effect::Hang));
    let stuck = Process::start(fleet.runtime("replica-b"));
    sleep(Duration::from_secs(900)).await;
    let page = stuck.port.get("/healthz");
    assert_eq!((page.status, page.body.as_str()), (500, "the watch of services gives no sign of life\n"));
}

#[tokio::test]
async fn it_is_served_over_http() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let fleet = Fleet::start().await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let process = Process::start(fleet.runtime("replica-a").listen(listener));
    for (request, answer) in [("GET /healthz", "200 OK"), ("POST /metrics", "405"), ("GET /nothing", "404")] {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let request = format!("{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        // The runtime takes a moment to start.
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        assert!(text.starts_with("HTTP/1.1 ") && (text.contains(answer) || text.contains("503")), "{text}");
    }
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_no_plan_reads_any_more_is_not_watched_any_more() {
    let fleet = Fleet::start().await;
    let process = Process::start(fleet.runtime("replica-a"));
    let secret = Secret {
        metadata: ObjectMeta { name: Some("tokens".into()), ..ObjectMeta::default() },
        ..Secret::default()
    };
    api::<Secret>(&fleet).create(&PostParams::default(), &secret).await.unwrap();
    fleet.boats(1, "one").await;
    fleet.until_done(1, "one").await;
    let watched = || process.port.get("/metrics").body.contains(r#"windlass_watch_loaded{kind="Secret""#);
    assert!(!watched());
    change(&fleet, json!({"secret": "tokens"})).await;
    assert!(watched());
    change(&fleet, json!({"secret": null})).await;
    assert!(watched(), "it may soon be wanted again");
    sleep(Duration::from_secs(900)).await;
    assert!(!watched());
    let before = fleet.requests("replica-a");
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(fleet.requests("replica-a"), before);
    change(&fleet, json!({"secret": "tokens"})).await;
    assert!(watched());
    assert!(api::<ConfigMap>(&fleet).get_opt("boat-0-secret").await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_change_outside_kubernetes_is_named_as_the_cause() {
    let fleet = Fleet::start().await;
    let process = Process::start(fleet.runtime("replica-a"));
    fleet.boats(1, "one").await;
    fleet.until_done(1, "one").await;
    change(&fleet, json!({"berth": "b1", "length": 3})).await;
    fleet.marina.berths.lock().unwrap().insert("b1".into(), 1);
    sleep(Duration::from_secs(60)).await;
    let explained = explanation(&process);
    let pass =
        explained.passes.iter().rfind(|pass| pass.writes.iter().any(|write| write.object == "Berth b1"));
    assert_eq!(pass.unwrap().causes, ["Berth b1 changed"]);
}

#[tokio::test(start_paused = true)]
async fn two_operators_in_a_process_share_their_watches() {
    let fleet = Fleet::start().await;
    let other = windlass::Operator::new("other").manages::<Boat>();
    let _process = Process::start(fleet.runtime("replica-a").host(other));
    sleep(Duration::from_secs(60)).await;
    for resource in ["boats", "configmaps", "services"] {
        let entries = fleet.drydock.record().entries("replica-a").into_iter();
        let lists = entries.filter(|entry| entry.resource == resource && entry.verb == "list").count();
        assert_eq!(lists, 1, "{resource}");
    }
}

#[tokio::test(start_paused = true)]
async fn events_are_not_repeated_by_restarts_and_counted_when_they_recur() {
    let fleet = Fleet::start().await;
    let process = Process::start(fleet.runtime("replica-a"));
    fleet.boats(1, "one").await;
    fleet.until_done(1, "one").await;
    change(&fleet, json!({"broken": true})).await;
    let events = async || {
        let all = api::<Event>(&fleet).list(&ListParams::default()).await.unwrap().items;
        let ours = all.into_iter().filter(|event| event.reporting_controller.as_deref() == Some("boatman"));
        ours.map(|event| (event.note.unwrap_or_default(), event.series.map_or(1, |series| series.count)))
            .collect::<Vec<_>>()
    };
    let first = events().await;
    assert_eq!(first.len(), 1, "{first:?}");
    process.stop().await;
    let process = Process::start(fleet.runtime("replica-a"));
    sleep(Duration::from_secs(600)).await;
    assert_eq!(events().await, first, "a restart says nothing new");

    // It is mended and broken again, by another process: the same Event, counted.
    process.kill();
    let _process = Process::start(fleet.runtime("replica-b"));
    change(&fleet, json!({"broken": false})).await;
    change(&fleet, json!({"broken": true})).await;
    let again = events().await;
    assert_eq!((again.len(), again[0].1), (1, 2), "{again:?}");
}
