use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::{Expression, Selector};
use serde_json::{Value, json};
use windlass_machinery::Context;

use super::*;

const OPERATOR: &str = "tester";

struct Fixture {
    cache: Cache,
    queue: Arc<Queue<PrimaryKey>>,
    commands: mpsc::UnboundedReceiver<Command>,
    kind: Kind,
}

impl Fixture {
    /// A cache with one loaded kind, in which these objects exist.
    fn new(objects: &[Value]) -> Self {
        let (sender, commands) = mpsc::unbounded_channel();
        let queue = Arc::new(Queue::new(Context::seeded(1)));
        let cache = Cache::new(Arc::clone(&queue), sender, vec![], [OPERATOR.to_owned()].into());
        let mut fixture = Self { cache, queue, commands, kind: Kind::of::<ConfigMap>() };
        fixture.cache.open(&fixture.kind);
        fixture.list(objects);
        assert!(matches!(fixture.commands.try_recv(), Ok(Command::Watch(..))));
        fixture
    }

    fn list(&self, objects: &[Value]) {
        self.cache.list_began(&self.kind, &None);
        objects.iter().for_each(|object| self.arrived(object));
        self.cache.list_done(&self.kind, &None);
    }

    fn stored(&self, object: &Value) -> Stored {
        Stored::made(object, self.cache.shares())
    }

    fn arrived(&self, object: &Value) {
        self.cache.arrived(&self.kind, &Delivered::made(object));
    }

    fn gone(&self, object: &Value) {
        self.cache.gone(&self.kind, &self.stored(object));
    }

    fn named(&self, reader: &str, name: &str) -> Lookup {
        self.cache.named(&key(reader), &self.kind, &ObjectName::new("n", name))
    }

    fn select(&self, reader: &str, labels: &[(&str, &str)]) -> Option<usize> {
        let equal = |(label, value): &(&str, &str)| Expression::Equal((*label).into(), (*value).into());
        let selector: Selector = labels.iter().map(equal).collect();
        let read = Read::selected(self.kind.clone(), Some("n".into()), selector);
        self.cache.selected(&key(reader), &read).map(|found| found.len())
    }

    /// Who is queued.
    async fn queued(&self) -> Vec<String> {
        let mut names = Vec::new();
        while let Ok(key) = tokio::time::timeout(std::time::Duration::from_millis(1), self.queue.next()).await
        {
            self.queue.done(&key);
            names.push(key.name.name.clone());
        }
        names.sort();
        names
    }
}

fn key(name: &str) -> PrimaryKey {
    PrimaryKey { controller: 0, name: ObjectName::new("n", name) }
}

fn object(name: &str, version: u64, labels: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": name, "namespace": "n", "uid": format!("uid-{name}"), "resourceVersion": version.to_string(),
        "labels": labels}, "data": {"version": version.to_string()}})
}

#[tokio::test(start_paused = true)]
async fn a_change_queues_exactly_those_who_read_the_object() {
    let fixture = Fixture::new(&[object("a", 1, json!({})), object("b", 2, json!({}))]);
    fixture.named("reader-of-a", "a");
    fixture.named("reader-of-b", "b");
    fixture.named("reader-of-absent", "c");
    fixture.arrived(&object("a", 3, json!({})));
    assert_eq!(fixture.queued().await, ["reader-of-a"]);
    fixture.arrived(&object("c", 4, json!({})));
    assert_eq!(fixture.queued().await, ["reader-of-absent"]);
    fixture.gone(&object("b", 5, json!({})));
    assert_eq!(fixture.queued().await, ["reader-of-b"]);
    fixture.arrived(&object("unrelated", 6, json!({})));
    assert!(fixture.queued().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn entering_and_leaving_a_selector_queues_its_reader() {
    let fixture = Fixture::new(&[]);
    assert_eq!(fixture.select("blue", &[("colour", "blue")]), Some(0));
    assert_eq!(fixture.select("red", &[("colour", "red")]), Some(0));
    fixture.arrived(&object("a", 1, json!({"colour": "blue"})));
    assert_eq!(fixture.queued().await, ["blue"]);
    assert_eq!(fixture.select("blue", &[("colour", "blue")]), Some(1));
    fixture.arrived(&object("a", 2, json!({"colour": "red"})));
    assert_eq!(fixture.queued().await, ["blue", "red"]);
    fixture.arrived(&object("a", 3, json!({"colour": "green"})));
    assert_eq!(fixture.queued().await, ["red"]);
}

#[tokio::test(start_paused = true)]
async fn what_an_owner_owns_queues_it() {
    let fixture = Fixture::new(&[]);
    fixture.cache.record(&key("owner"), "uid-owner", &Reads::new());
    let mut child = object("a", 1, json!({}));
    child["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "X", "name": "owner", "uid": "uid-owner"}]);
    fixture.arrived(&child);
    assert_eq!(fixture.queued().await, ["owner"]);
    assert_eq!(fixture.cache.owned(std::slice::from_ref(&fixture.kind), "uid-owner").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_record_that_is_replaced_queues_no_more() {
    let fixture = Fixture::new(&[]);
    fixture.named("reader", "a");
    fixture.cache.record(&key("reader"), "uid", &Reads::new());
    fixture.arrived(&object("a", 1, json!({})));
    assert!(fixture.queued().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_older_event_does_not_undo_our_own_write() {
    let fixture = Fixture::new(&[]);
    fixture.named("writer", "a");
    fixture.named("bystander", "a");
    let written = &Delivered::made(&object("a", 9, json!({})));
    fixture.cache.wrote(&key("writer"), &fixture.kind, written);
    assert_eq!(fixture.queued().await, ["bystander"], "the writer has seen its own write");
    fixture.arrived(&object("a", 8, json!({})));
    fixture.arrived(&object("a", 9, json!({})));
    assert!(fixture.queued().await.is_empty());
    let Lookup::Present(stored) = fixture.named("writer", "a") else { panic!() };
    assert_eq!(stored.resource_version, 9);
}

#[test]
fn a_first_status_is_only_a_status() {
    let shares = Shares::new(Default::default());
    let stored = |tree: Value| Stored::made(&tree, &shares);
    let without = stored(object("a", 1, json!({})));
    let mut tree = object("a", 1, json!({}));
    tree["metadata"]["resourceVersion"] = "2".into();
    tree["status"] = json!({"x": 1});
    let with = stored(tree);
    assert!(with.same_but_status(&without) && !with.same_content(&without));
}

#[tokio::test(start_paused = true)]
async fn what_nobody_names_is_not_kept_and_fetched_when_somebody_does() {
    let mut fixture = Fixture::new(&[object("a", 1, json!({})), object("b", 2, json!({}))]);
    assert!(matches!(fixture.named("reader", "a"), Lookup::Loading));
    let Ok(Command::Fetch(_, name)) = fixture.commands.try_recv() else { panic!("nothing fetched") };
    assert!(matches!(fixture.named("reader", "a"), Lookup::Loading));
    assert!(fixture.commands.try_recv().is_err(), "fetched once");
    let fetched = fixture.stored(&object("a", 1, json!({})));
    fixture.cache.fetched(&fixture.kind, &name, Some(fetched));
    assert_eq!(fixture.queued().await, ["reader"]);
    assert!(matches!(fixture.named("reader", "a"), Lookup::Present(_)));
    assert!(matches!(fixture.named("reader", "nothing"), Lookup::Absent));
}

#[tokio::test(start_paused = true)]
async fn a_selector_over_all_lists_again_but_one_over_our_own_does_not() {
    let mut fixture = Fixture::new(&[object("a", 1, json!({"x": "y"}))]);
    assert_eq!(fixture.select("reader", &[(crate::MANAGED_BY, OPERATOR)]), Some(0));
    assert!(fixture.commands.try_recv().is_err());
    assert_eq!(fixture.select("reader", &[("x", "y")]), None);
    assert!(matches!(fixture.commands.try_recv(), Ok(Command::Watch(..))));
    fixture.list(&[object("a", 1, json!({"x": "y"}))]);
    assert_eq!(fixture.queued().await, ["reader"]);
    assert_eq!(fixture.select("reader", &[("x", "y")]), Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_new_list_removes_what_is_gone_but_not_what_we_just_wrote() {
    let fixture = Fixture::new(&[]);
    fixture.named("reader", "old");
    fixture.named("reader", "new");
    fixture.arrived(&object("old", 1, json!({})));
    assert_eq!(fixture.queued().await, ["reader"]);
    fixture.cache.list_began(&fixture.kind, &None);
    let written = &Delivered::made(&object("new", 5, json!({})));
    fixture.cache.wrote(&key("reader"), &fixture.kind, written);
    fixture.cache.list_done(&fixture.kind, &None);
    assert_eq!(fixture.queued().await, ["reader"]);
    assert!(matches!(fixture.named("reader", "old"), Lookup::Absent));
    assert!(matches!(fixture.named("reader", "new"), Lookup::Present(_)));
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_nobody_reads_any_more_is_closed_after_a_while() {
    let mut fixture = Fixture::new(&[]);
    let secrets = Kind::of::<k8s_openapi::api::core::v1::Secret>();
    let read = |name: &str| fixture.cache.named(&key(name), &secrets, &ObjectName::new("n", "s"));
    let linger = |commands: &mut mpsc::UnboundedReceiver<Command>| match commands.try_recv() {
        Ok(Command::Linger(kind, pause)) => (kind, pause),
        other => panic!("{other:?}"),
    };
    assert!(matches!(read("one"), Lookup::Loading) && matches!(read("two"), Lookup::Loading));
    assert!(matches!(fixture.commands.try_recv(), Ok(Command::Watch(..))));
    fixture.cache.record(&key("one"), "1", &Reads::new());
    assert!(fixture.commands.try_recv().is_err(), "the other reads it");
    fixture.cache.forget(&key("two"));
    let (kind, pause) = linger(&mut fixture.commands);
    // Read again, and not any more: the time begins anew.
    tokio::time::advance(pause / 2).await;
    read("one");
    fixture.cache.record(
        &key("one"),
        "1",
        &Reads::from([Read::named(kind.clone(), ObjectName::new("n", "s"))]),
    );
    fixture.cache.record(&key("one"), "1", &Reads::new());
    linger(&mut fixture.commands);
    tokio::time::advance(pause / 2).await;
    fixture.cache.close_unused(&kind);
    assert_eq!(linger(&mut fixture.commands).1, pause / 2);
    tokio::time::advance(pause / 2).await;
    fixture.cache.close_unused(&kind);
    assert!(matches!(fixture.commands.try_recv(), Ok(Command::Close(closed)) if closed == secrets));
    assert_eq!(fixture.cache.survey().len(), 1, "what is open in any case stays");
    assert!(matches!(read("one"), Lookup::Loading));
    assert!(matches!(fixture.commands.try_recv(), Ok(Command::Watch(..))), "it is opened again");
}

#[tokio::test(start_paused = true)]
async fn each_namespace_is_loaded_and_listed_by_itself() {
    let (sender, mut commands) = mpsc::unbounded_channel();
    let queue = Arc::new(Queue::new(Context::seeded(1)));
    let cache = Cache::new(Arc::clone(&queue), sender, vec![], [OPERATOR.to_owned()].into());
    let cache = cache.within(&["n".to_owned(), "m".to_owned()].into());
    let kind = Kind::of::<ConfigMap>();
    let find =
        |namespace: &str, name: &str| cache.named(&key("reader"), &kind, &ObjectName::new(namespace, name));
    assert!(matches!(find("n", "a"), Lookup::Loading));
    let Ok(Command::Watch(_, scopes)) = commands.try_recv() else { panic!() };
    assert_eq!(scopes, [Some("m".into()), Some("n".into())]);
    let list = |namespace: &str, objects: &[Value]| {
        let scope = Some(namespace.into());
        cache.list_began(&kind, &scope);
        for object in objects {
            let mut object = object.clone();
            object["metadata"]["namespace"] = namespace.into();
            cache.arrived(&kind, &Delivered::made(&object));
        }
        cache.list_done(&kind, &scope);
    };
    list("n", &[object("a", 1, json!({}))]);
    // What may not be watched elsewhere does not matter here.
    cache.watch_failed(&kind, &Some("m".into()), "forbidden", true);
    assert!(matches!(find("n", "a"), Lookup::Present(_)) && matches!(find("n", "b"), Lookup::Absent));
    assert!(matches!(find("m", "a"), Lookup::Loading));
    assert_eq!(cache.trouble(&key("reader"), &kind, Some("n")), None);
    assert_eq!(cache.trouble(&key("reader"), &kind, None).as_deref(), Some("forbidden"));
    list("m", &[object("c", 2, json!({}))]);
    assert!(matches!(find("n", "a"), Lookup::Present(_)), "another namespace's list says nothing of it");
    assert_eq!(cache.trouble(&key("reader"), &kind, None), None);
    list("n", &[]);
    assert!(matches!(find("n", "a"), Lookup::Absent));
    let Lookup::Failed(error) = find("elsewhere", "a") else { panic!() };
    assert_eq!(error, "the operator does not work in namespace elsewhere");
}
