//! Values derived from what is read, which the next plan gets again where nothing has changed.

use std::hash::Hash;
use std::rc::Rc;
use std::sync::Arc;

use super::{Halt, Query, World};
use crate::cache::Stored;
use crate::memo::{self, Derived, Seen};
use crate::{Kind, Object};

impl World {
    /// A value for each object that matches, ordered by namespace and name; derived anew only for those that have
    /// changed since the last plan, or whose derivation read something that has, or where `with` is another.
    ///
    /// `derive` gets `with`, which holds all else that the values depend on, and a world of its own: its reads count as
    /// this plan's, and its namespace is that of the object. It is a function that captures nothing: what it captured would
    /// not be compared. Primaries that derive the same share the values. What cannot be decoded is left out, as by
    /// [`select`](Self::select).
    ///
    /// # Errors
    /// Halts as [`select`](Self::select) does, and if a derivation halts; the others are then derived nevertheless,
    /// so that all that is missing is loaded at once.
    pub fn derive<K, W, T, F>(&self, query: &Query, with: &W, derive: F) -> Result<Vec<Arc<T>>, Halt>
    where
        K: Object,
        W: Hash + Eq + Clone + Send + Sync + 'static,
        T: Send + Sync + 'static,
        F: Fn(&World, &K, &W) -> Result<T, Halt> + 'static,
    {
        const { assert!(size_of::<F>() == 0, "what is derived must depend on arguments only") };
        let kind = Kind::of::<K>();
        let given = memo::key::<F>(with).1;
        let mut values = Vec::new();
        let mut halt = None;
        for stored in self.found::<K>(query)? {
            let key = memo::key::<F>((given, &stored.name));
            let known = self.known(key, with, Some(&stored));
            let value = match known {
                Some(value) => Ok(value),
                None => {
                    let Some(object) = self.decoded(&kind, &stored) else { continue };
                    self.derived(key, with, &stored, |world| derive(world, &object, with))
                }
            };
            match value {
                Ok(value) => values.push(value),
                Err(stop) => halt = halt.or(Some(stop)),
            }
        }
        match halt {
            Some(halt) => Err(halt),
            None => Ok(values),
        }
    }

    /// The value that `compute` makes of `with`; the last plan's where it had the same.
    pub fn remember<W, T, F>(&self, with: &W, compute: F) -> Arc<T>
    where
        W: Hash + Eq + Clone + Send + Sync + 'static,
        T: Send + Sync + 'static,
        F: Fn(&W) -> T + 'static,
    {
        const { assert!(size_of::<F>() == 0, "what is remembered must depend on arguments only") };
        let key = memo::key::<F>(with);
        if let Some(value) = self.known(key, with, None) {
            return value;
        }
        let value = Arc::new(compute(with));
        self.keep(key, with, Vec::new(), Arc::clone(&value));
        value
    }

    fn known<W, T>(&self, key: memo::Key, with: &W, stored: Option<&Arc<Stored>>) -> Option<Arc<T>>
    where
        W: Eq + 'static,
        T: Send + Sync + 'static,
    {
        let found = self.source.memo()?.find(key, |derived| {
            let object = match (derived.seen.first(), stored) {
                (Some(Seen::Object(before)), Some(now)) => memo::same(before, now),
                (_, None) => true,
                _ => false,
            };
            object && derived.with.downcast_ref::<W>() == Some(with) && derived.holds(self.source.as_ref())
        })?;
        let value = Arc::clone(&found.value).downcast::<T>().ok()?;
        self.count_as_read(&found.seen);
        self.derived.borrow_mut().push(found);
        Some(value)
    }

    fn derived<W, T>(
        &self,
        key: memo::Key,
        with: &W,
        stored: &Arc<Stored>,
        derive: impl FnOnce(&World) -> Result<T, Halt>,
    ) -> Result<Arc<T>, Halt>
    where
        W: Clone + Send + Sync + 'static,
        T: Send + Sync + 'static,
    {
        let world = Self {
            seen: Some(vec![Seen::Object(Arc::clone(stored))].into()),
            ..Self::over(Rc::clone(&self.source), stored.name.namespace.clone())
        };
        let outcome = derive(&world).map(Arc::new);
        let fickle = world.fickle.get();
        self.derived.borrow_mut().append(&mut world.derived.borrow_mut());
        self.reads.borrow_mut().append(&mut world.reads.borrow_mut());
        self.left_out.borrow_mut().append(&mut world.left_out.borrow_mut());
        let seen = world.seen.map(std::cell::RefCell::into_inner).unwrap_or_default();
        match &outcome {
            Ok(value) if !fickle => {
                self.count_as_read(&seen);
                self.keep(key, with, seen, Arc::clone(value));
            }
            _ => self.fickle.set(true),
        }
        outcome
    }

    fn keep<W, T>(&self, key: memo::Key, with: &W, seen: Vec<Seen>, value: Arc<T>)
    where
        W: Clone + Send + Sync + 'static,
        T: Send + Sync + 'static,
    {
        if let Some(memo) = self.source.memo() {
            let derived = Arc::new(Derived { with: Box::new(with.clone()), seen, value });
            memo.insert(key, &derived);
            self.derived.borrow_mut().push(derived);
        }
    }

    /// What a derived value was derived from is read by whoever gets it.
    fn count_as_read(&self, seen: &[Seen]) {
        for one in seen {
            match one {
                Seen::Object(_) => {}
                Seen::Named(read, _) | Seen::Selected(read, _) => {
                    self.reads.borrow_mut().insert(read.clone());
                }
            }
        }
        if let Some(mine) = &self.seen {
            mine.borrow_mut().extend(seen.iter().skip_while(|one| matches!(one, Seen::Object(_))).cloned());
        }
    }
}
