//! Who owns what: every object's metadata by uid, and the dependents of each owner. No I/O.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::super::discovery::Kind;
use super::head::Head;
use super::{FOREGROUND, ORPHAN};

/// Something to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Work {
    /// Whether the object with this uid is to be deleted, or can go.
    Collect(String),
    /// Let the dependents of this uid go.
    Orphan(String),
}

/// What is kept of an object.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) kind: Arc<Kind>,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) resource_version: String,
    pub(super) owners: Vec<OwnerReference>,
    pub(super) finalizers: Vec<String>,
    pub(super) deleting: bool,
}

impl Item {
    /// Whether it is being deleted in the foreground: after its dependents.
    pub(super) fn is_waiting(&self) -> bool {
        self.deleting && self.finalizers.iter().any(|finalizer| finalizer == FOREGROUND)
    }

    /// The path of its collection.
    pub(super) fn path(&self) -> String {
        self.kind.path(self.namespace.as_deref())
    }
}

/// The graph.
#[derive(Default)]
pub(super) struct Graph {
    items: HashMap<String, Item>,
    dependents: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    pub(super) fn item(&self, uid: &str) -> Option<Item> {
        self.items.get(uid).cloned()
    }

    pub(super) fn dependents(&self, owner: &str) -> Vec<String> {
        self.dependents.get(owner).into_iter().flatten().cloned().collect()
    }

    /// The dependents that an owner deleted in the foreground waits for.
    pub(super) fn blocking_dependents(&self, owner: &str) -> Vec<String> {
        let blocks = |uid: &&String| {
            self.items.get(*uid).is_some_and(|item| {
                item.owners.iter().any(|of| of.uid == owner && of.block_owner_deletion == Some(true))
            })
        };
        self.dependents.get(owner).into_iter().flatten().filter(blocks).cloned().collect()
    }

    /// The uids of a kind.
    pub(super) fn of_kind(&self, path: &str) -> BTreeSet<String> {
        let of = self.items.values().filter(|item| item.kind.path(None) == path);
        of.map(|item| item.uid.clone()).collect()
    }

    pub(super) fn forget_kind(&mut self, path: &str) {
        for uid in self.of_kind(path) {
            self.take(&uid);
        }
    }

    /// Puts an object in. Returns what to look at now, and whether to give other news a moment first.
    pub(super) fn put(&mut self, kind: &Arc<Kind>, meta: Head) -> Vec<(Work, bool)> {
        if meta.uid.is_empty() {
            return Vec::new();
        }
        let revision = meta.revision();
        let uid = meta.uid.clone();
        let item = Item {
            kind: kind.clone(),
            namespace: meta.namespace,
            name: meta.name,
            uid: meta.uid,
            resource_version: meta.resource_version,
            owners: meta.owner_references.unwrap_or_default(),
            finalizers: meta.finalizers.unwrap_or_default(),
            deleting: meta.deletion_timestamp.is_some(),
        };
        if let Some(known) = self.items.get_mut(&uid) {
            if known.resource_version.parse::<u64>().unwrap_or(0) >= revision {
                return Vec::new();
            }
            // Most changes are of no concern to owners and dependents.
            if !item.deleting && !known.deleting && known.owners == item.owners {
                *known = item;
                return Vec::new();
            }
        }
        let old = self.take(&uid);
        for owner in &item.owners {
            self.dependents.entry(owner.uid.clone()).or_default().insert(uid.clone());
        }
        let work = self.consequences(old.as_ref(), &item);
        self.items.insert(uid, item);
        work
    }

    fn consequences(&self, old: Option<&Item>, new: &Item) -> Vec<(Work, bool)> {
        let mut work = Vec::new();
        // Owners that wait may wait no longer.
        for owner in old.iter().flat_map(|old| &old.owners) {
            let released = !new
                .owners
                .iter()
                .any(|now| now.uid == owner.uid && now.block_owner_deletion == owner.block_owner_deletion);
            if released && self.items.get(&owner.uid).is_some_and(Item::is_waiting) {
                work.push((Work::Collect(owner.uid.clone()), false));
            }
        }
        if new.deleting && new.finalizers.iter().any(|finalizer| finalizer == ORPHAN) {
            work.push((Work::Orphan(new.uid.clone()), false));
        }
        if new.is_waiting() {
            let dependents = self.dependents.get(&new.uid).into_iter().flatten();
            work.extend(dependents.map(|uid| (Work::Collect(uid.clone()), false)));
            work.push((Work::Collect(new.uid.clone()), false));
        }
        if !new.deleting && old.is_none_or(|old| old.owners != new.owners) {
            let unknown = new.owners.iter().any(|owner| !self.items.contains_key(&owner.uid));
            let waited_for =
                new.owners.iter().any(|owner| self.items.get(&owner.uid).is_some_and(Item::is_waiting));
            if unknown || waited_for {
                work.push((Work::Collect(new.uid.clone()), unknown));
            }
        }
        work
    }

    /// Takes an object out. Returns what to look at now.
    pub(super) fn remove(&mut self, uid: &str) -> Vec<(Work, bool)> {
        let Some(gone) = self.take(uid) else {
            return Vec::new();
        };
        let dependents = self.dependents.get(uid).into_iter().flatten();
        let mut work: Vec<_> = dependents.map(|uid| (Work::Collect(uid.clone()), false)).collect();
        for owner in
            gone.owners.iter().filter(|owner| self.items.get(&owner.uid).is_some_and(Item::is_waiting))
        {
            work.push((Work::Collect(owner.uid.clone()), false));
        }
        work
    }

    fn take(&mut self, uid: &str) -> Option<Item> {
        let item = self.items.remove(uid)?;
        for owner in &item.owners {
            if let Some(dependents) = self.dependents.get_mut(&owner.uid) {
                dependents.remove(uid);
                if dependents.is_empty() {
                    self.dependents.remove(&owner.uid);
                }
            }
        }
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use kube::core::ApiResource;
    use serde::de::IgnoredAny;

    use super::*;

    fn kind() -> Arc<Kind> {
        let resource = ApiResource::erase::<k8s_openapi::api::core::v1::ConfigMap>(&());
        Arc::new(Kind { resource, namespaced: true, verbs: Vec::new() })
    }

    fn meta(uid: &str, revision: u64, owner: Option<&str>) -> Head {
        let owner = owner.map(|uid| OwnerReference {
            uid: uid.to_owned(),
            block_owner_deletion: Some(true),
            ..OwnerReference::default()
        });
        Head {
            name: uid.to_owned(),
            uid: uid.to_owned(),
            resource_version: revision.to_string(),
            owner_references: owner.map(|owner| vec![owner]),
            ..Head::default()
        }
    }

    #[test]
    fn dependents_are_looked_at_when_their_owner_goes() {
        let mut graph = Graph::default();
        assert!(graph.put(&kind(), meta("owner", 1, None)).is_empty());
        assert!(graph.put(&kind(), meta("child", 2, Some("owner"))).is_empty());
        assert_eq!(graph.remove("owner"), [(Work::Collect("child".to_owned()), false)]);
    }

    #[test]
    fn a_dependent_of_an_unknown_owner_is_looked_at_after_a_moment() {
        let mut graph = Graph::default();
        let work = graph.put(&kind(), meta("child", 2, Some("owner")));
        assert_eq!(work, [(Work::Collect("child".to_owned()), true)]);
    }

    #[test]
    fn an_owner_deleted_in_the_foreground_waits_for_blocking_dependents() {
        let mut graph = Graph::default();
        graph.put(&kind(), meta("owner", 1, None));
        graph.put(&kind(), meta("child", 2, Some("owner")));
        let mut deleted = meta("owner", 3, None);
        deleted.deletion_timestamp = Some(IgnoredAny);
        deleted.finalizers = Some(vec![FOREGROUND.to_owned()]);
        let work = graph.put(&kind(), deleted);
        assert_eq!(work.len(), 2);
        assert_eq!(graph.blocking_dependents("owner"), ["child"]);
        assert_eq!(graph.remove("child"), [(Work::Collect("owner".to_owned()), false)]);
        assert!(graph.blocking_dependents("owner").is_empty());
    }
}
