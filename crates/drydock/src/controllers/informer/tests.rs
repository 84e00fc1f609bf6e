//! What the cache must hold to, whatever order news comes in.

use k8s_openapi::api::core::v1::ConfigMap;

use super::*;

fn object(name: &str, uid: &str, revision: u64) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some("n".to_owned()),
            uid: Some(uid.to_owned()),
            resource_version: Some(revision.to_string()),
            labels: Some(BTreeMap::from([("app".to_owned(), name.to_owned())])),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

fn revision(informer: &Informer<ConfigMap>, name: &str) -> Option<u64> {
    informer.get(&ObjectKey::new("n", name)).map(|object| revision_of(&object.metadata))
}

#[test]
fn own_writes_are_seen_at_once_and_never_undone_by_older_news() {
    let informer = Informer::new(None, true);
    informer.observe(object("a", "1", 5));
    assert_eq!(revision(&informer, "a"), Some(5));
    // The watch tells of the creation only now; the write above was an update of it.
    assert!(informer.lock().put(object("a", "1", 4)).is_empty());
    assert_eq!(revision(&informer, "a"), Some(5));
    assert_eq!(informer.lock().delete(object("a", "1", 6)).len(), 1);
    assert_eq!(revision(&informer, "a"), None);
}

#[test]
fn an_answer_that_the_watch_has_passed_brings_nothing_back() {
    let informer = Informer::new(None, true);
    {
        let mut store = informer.lock();
        store.put(object("a", "1", 5));
        store.delete(object("a", "1", 6));
        store.seen = 6;
    }
    informer.observe(object("a", "1", 5));
    assert_eq!(revision(&informer, "a"), None);
}

#[test]
fn a_new_object_of_an_old_name_is_a_deletion_and_an_addition() {
    let informer = Informer::new(None, true);
    informer.lock().put(object("a", "1", 5));
    let changes = informer.lock().put(object("a", "2", 9));
    assert_eq!(changes.len(), 2);
    assert!(changes[0].new.is_none() && changes[1].old.is_none());
    let labels = BTreeMap::from([("app".to_owned(), "a".to_owned())]);
    assert_eq!(informer.labelled("n", &labels).len(), 1);
    assert_eq!(informer.orphans("n").len(), 1);
    assert!(informer.labelled("n", &BTreeMap::new()).is_empty());
}

#[test]
fn the_answer_of_a_write_that_removed_the_object_replaces_what_is_held() {
    let informer = Informer::new(None, true);
    let mut held = object("a", "1", 5);
    held.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH));
    held.metadata.finalizers = Some(vec!["x.org/y".to_owned()]);
    let mut last = held.clone();
    last.metadata.finalizers = None;
    {
        let mut store = informer.lock();
        store.put(held.clone());
        store.seen = 5;
    }
    informer.observe(last.clone());
    assert_eq!(informer.get(&ObjectKey::new("n", "a")).unwrap().metadata.finalizers, None);
    assert!(informer.lock().put(held).is_empty(), "older news do not bring the finalizer back");
    informer.lock().delete(object("a", "1", 6));
    informer.observe(last);
    assert_eq!(revision(&informer, "a"), None);
}
