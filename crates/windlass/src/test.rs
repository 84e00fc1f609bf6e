//! Plans without a server: say what the cluster holds, plan a primary, look at what it wants. The crate's own
//! documentation begins with an example.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::apply::without_nulls;
use crate::cache::{Lookup, Read, Shares, Stored};
use crate::controller::{Planned as Inner, Poison, Subject as _, SubjectOf};
use crate::declared::Declared;
use crate::world::Source;
use crate::{Condition, Halt, Kind, Object, ObjectName, Primary, Status};

/// What a cluster holds. All kinds count as loaded.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    objects: BTreeMap<(Kind, ObjectName), Arc<Stored>>,
}

impl Cluster {
    /// An empty cluster.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an object, or replaces the one of its name.
    ///
    /// # Panics
    /// If the object cannot be serialised.
    #[must_use]
    #[allow(clippy::panic, reason = "a test kit fails by panicking")]
    pub fn with<K: Object>(mut self, object: &K) -> Self {
        let Ok(tree) = serde_json::to_value(object) else { panic!("not an object: {object:?}") };
        let stored = Stored::made(&tree, &Shares::new(Default::default()));
        self.objects.insert((Kind::of::<K>(), stored.name.clone()), Arc::new(stored));
        self
    }

    /// Plans a primary as it would be planned in this cluster, after its defaults.
    ///
    /// # Panics
    /// If the primary's defaults panic. A panic in its plan is a [`Planned::halt`].
    #[allow(clippy::panic, reason = "a test kit fails by panicking")]
    pub fn plan<P: Primary>(&self, primary: &P) -> Planned {
        match subject(primary) {
            Ok(subject) => Planned(subject.plan(Box::new(self.clone()))),
            Err(poison) => panic!("{poison}"),
        }
    }

    /// The status of a primary, given the framework's part of it.
    ///
    /// # Panics
    /// If the primary's own code panics.
    #[allow(clippy::panic, reason = "a test kit fails by panicking")]
    pub fn status<P: Primary>(&self, primary: &P, report: &Status) -> Value {
        let current = primary.status().and_then(|status| serde_json::to_value(status).ok());
        let current = current.unwrap_or_else(|| Value::Object(Default::default()));
        let told = subject(primary)
            .and_then(|subject| subject.status(Box::new(self.clone()), &without_nulls(current), report));
        match told {
            Ok(told) => told.status,
            Err(poison) => panic!("{poison}"),
        }
    }
}

fn subject<P: Primary>(primary: &P) -> Result<SubjectOf<P>, Poison> {
    SubjectOf::new(primary.clone(), "test", Arc::new(Declared::of::<P>()))
}

impl Source for Cluster {
    fn named(&self, kind: &Kind, name: &ObjectName) -> Lookup {
        let found = self.objects.get(&(kind.clone(), name.clone()));
        found.map_or(Lookup::Absent, |stored| Lookup::Present(Arc::clone(stored)))
    }

    fn selected(&self, read: &Read) -> Option<Vec<Arc<Stored>>> {
        let matching =
            self.objects.iter().filter(|((kind, _), stored)| kind == read.kind() && read.matches(stored));
        Some(matching.map(|(_, stored)| Arc::clone(stored)).collect())
    }

    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn random(&self, key: &str, length: usize) -> String {
        key.chars().filter(char::is_ascii_alphanumeric).cycle().take(length).collect()
    }
}

/// What a primary wants.
pub struct Planned(Inner);

impl Planned {
    /// A dependent as it is to be applied.
    #[must_use]
    pub fn object<K: Object>(&self, name: &str) -> Option<K> {
        let wanted =
            |d: &&crate::plan::Dependent| d.kind == Kind::of::<K>() && d.name.name == name && !d.keep;
        let found = self.0.dependents.iter().find(wanted)?;
        serde_json::from_value(found.desired.clone()).ok()
    }

    /// Kind and name of all dependents, in order: `Deployment sample-api`.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0.dependents.iter().map(|d| format!("{} {}", d.kind, d.name.name)).collect()
    }

    /// All dependents as they are to be applied, for snapshots.
    #[must_use]
    pub fn objects(&self) -> Vec<Value> {
        self.0.dependents.iter().filter(|d| !d.keep).map(|d| d.desired.clone()).collect()
    }

    /// What the plan reported without stopping.
    #[must_use]
    pub fn problems(&self) -> &[Condition] {
        &self.0.problems
    }

    /// Why the plan is not complete, if it is not.
    #[must_use]
    pub fn halt(&self) -> Option<&Halt> {
        self.0.halt.as_ref()
    }
}
