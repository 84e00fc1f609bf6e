//! A plan with a memory gives what a plan without one gives, and works only on what has changed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;

use super::*;
use crate::cache::{Reads, Shares};
use crate::{Halt, Kind, Object, ObjectName, Query, World};

type Objects = BTreeMap<(Kind, ObjectName), Arc<Stored>>;

/// A cluster that changes under a memory.
#[derive(Clone, Default)]
struct Cluster {
    objects: Rc<RefCell<Objects>>,
    memo: Rc<Memo>,
    /// What the last plan derived, as a primary's memory keeps it.
    kept: Rc<RefCell<Vec<Arc<Derived>>>>,
}

impl Cluster {
    fn put<K: Object>(&self, name: &str, version: u64, text: &str) {
        let kind = Kind::of::<K>();
        let object = json!({"apiVersion": kind.api_version(), "kind": kind.name(), "metadata": {"namespace": "n",
            "name": name, "uid": name, "resourceVersion": version.to_string()}, "data": {"text": text}});
        let stored = Stored::made(&object, &Shares::new(Default::default()));
        self.objects.borrow_mut().insert((kind, stored.name.clone()), Arc::new(stored));
    }

    fn remove<K: Object>(&self, name: &str) {
        self.objects.borrow_mut().remove(&(Kind::of::<K>(), ObjectName::new("n", name)));
    }

    /// What a plan derives from all ConfigMaps, and what it has read.
    fn plan(&self, with: &'static str) -> (Vec<String>, Reads) {
        let world = World::new(Box::new(self.clone()), "n");
        let derived = world.derive(&Query::default(), &with, derive).unwrap();
        let texts = derived.iter().map(|text| (**text).clone()).collect();
        let looked = world.finish();
        *self.kept.borrow_mut() = looked.derived;
        (texts, looked.reads)
    }
}

impl Source for Cluster {
    fn named(&self, kind: &Kind, name: &ObjectName) -> Lookup {
        let objects = self.objects.borrow();
        objects
            .get(&(kind.clone(), name.clone()))
            .map_or(Lookup::Absent, |stored| Lookup::Present(Arc::clone(stored)))
    }

    fn selected(&self, read: &Read) -> Option<Vec<Arc<Stored>>> {
        let objects = self.objects.borrow();
        let matching =
            objects.iter().filter(|((kind, _), stored)| kind == read.kind() && read.matches(stored));
        Some(matching.map(|(_, stored)| Arc::clone(stored)).collect())
    }

    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn random(&self, _: &str, _: usize) -> String {
        String::new()
    }

    fn memo(&self) -> Option<&Memo> {
        Some(&self.memo)
    }
}

static DERIVED: AtomicUsize = AtomicUsize::new(0);

/// The text of a ConfigMap, with that of the Secret that it names.
fn derive(world: &World, map: &ConfigMap, with: &&'static str) -> Result<String, Halt> {
    DERIVED.fetch_add(1, Ordering::Relaxed);
    let text = map.data.clone().unwrap_or_default()["text"].clone();
    let secret: Option<Secret> = world.get(&text)?;
    let secret = secret.map(|secret| String::from_utf8(secret.data.unwrap()["text"].0.clone()).unwrap());
    Ok(format!("{with} {text} {}", secret.unwrap_or_default()))
}

#[test]
fn only_what_has_changed_is_derived_again_and_all_of_it_counts_as_read() {
    let cluster = Cluster::default();
    for index in 0..10 {
        cluster.put::<ConfigMap>(&format!("c{index}"), 1, &format!("s{index}"));
    }
    cluster.put::<Secret>("s3", 1, "YQ==");
    let count = || DERIVED.swap(0, Ordering::Relaxed);
    let (first, reads) = cluster.plan("x");
    assert_eq!((first.len(), first[3].as_str(), count()), (10, "x s3 a", 10));
    assert_eq!(reads.len(), 11, "the selection, and ten Secrets that are there or not");

    let (again, reads_again) = cluster.plan("x");
    assert_eq!((again, count()), (first, 0));
    assert_eq!(reads_again, reads, "what was not derived again is read nevertheless");

    cluster.put::<ConfigMap>("c1", 2, "other");
    assert_eq!((cluster.plan("x").0[1].as_str(), count()), ("x other ", 1), "the object itself");
    cluster.put::<ConfigMap>("c1", 3, "other");
    assert_eq!((cluster.plan("x").0.len(), count()), (10, 0), "a new version with the same content");
    cluster.put::<Secret>("s3", 2, "Yg==");
    assert_eq!((cluster.plan("x").0[3].as_str(), count()), ("x s3 b", 1), "what its derivation read");
    cluster.put::<Secret>("s5", 3, "Yw==");
    assert_eq!((cluster.plan("x").0[5].as_str(), count()), ("x s5 c", 1), "what was not there");
    cluster.remove::<Secret>("s5");
    assert_eq!((cluster.plan("x").0[5].as_str(), count()), ("x s5 ", 1), "what is gone");
    assert_eq!((cluster.plan("y").0[5].as_str(), count()), ("y s5 ", 10), "what is given");
    cluster.remove::<ConfigMap>("c0");
    assert_eq!((cluster.plan("y").0.len(), count()), (9, 0));
    assert_eq!(cluster.kept.borrow().len(), 9, "nothing is kept of what is gone");
}

#[test]
fn what_no_plan_uses_any_more_is_let_go() {
    let cluster = Cluster::default();
    let world = World::new(Box::new(cluster.clone()), "n");
    let value = world.remember(&1_u32, |number: &u32| vec![0_u8; *number as usize]);
    let weak = Arc::downgrade(&value);
    drop(value);
    let kept = world.finish().derived;
    let world = World::new(Box::new(cluster), "n");
    let again = world.remember(&1_u32, |number: &u32| vec![1_u8; *number as usize]);
    assert_eq!(*again, [1], "another derivation of the same type is another value");
    assert!(weak.upgrade().is_some());
    drop(kept);
    assert!(weak.upgrade().is_none());
}
