//! Looking at part of an object, so that a change of the rest plans nothing again.

use std::any::{Any, TypeId};
use std::hash::Hash;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Halt, World, decode};
use crate::cache::{Read, Stored};
use crate::hash::seeded;
use crate::{Kind, Object, ObjectName};

impl World {
    /// What `view` makes of the object of this name in the primary's namespace, or of its absence.
    ///
    /// The plan depends on that value only: what else changes in the object, such as the counts in a Deployment's status,
    /// does not plan again. `view` is a function that captures nothing.
    ///
    /// # Errors
    /// Halts while the kind is not loaded.
    pub fn view<K, T, F>(&self, name: &str, view: F) -> Result<T, Halt>
    where
        K: Object,
        T: Hash + Clone + Send + Sync + 'static,
        F: Fn(Option<&K>) -> T + Copy + Send + Sync + 'static,
    {
        const { assert!(size_of::<F>() == 0, "what is seen must depend on the object only") };
        let kind = Kind::of::<K>();
        let namespace = if kind.namespaced() { self.namespace.as_str() } else { "" };
        let name = ObjectName::new(namespace, name);
        let lookup = self.source.named(&kind, &name);
        let read = Read::named(kind.clone(), name);
        let stored = self.looked_up(&read, lookup)?;
        let whole = stored.as_deref().map(whole);
        let value = match self.source.views().and_then(|views| views.find::<T, F>(&read, whole)) {
            Some(known) => known,
            None => {
                let object = stored.as_deref().map(|stored| decode::<K>(&kind, stored)).transpose()?;
                let value = view(object.as_ref());
                if let Some(views) = self.source.views() {
                    views.keep::<T, F>(&read, whole, &value);
                }
                value
            }
        };
        let probe = Box::new(View { view, object: PhantomData::<fn(K) -> T> });
        self.glimpses.borrow_mut().push(Glimpse { read, whole, part: Some((seeded(&value), probe)) });
        Ok(value)
    }

    /// What `view` makes of the object of this name in the primary's namespace, which the plan cannot do without. See
    /// [`view`](Self::view).
    ///
    /// # Errors
    /// Halts while it is not there.
    pub fn need_view<K, T, F>(&self, name: &str, view: F) -> Result<T, Halt>
    where
        K: Object,
        T: Hash + Clone + Send + Sync + 'static,
        F: Fn(&K) -> T + Copy + Send + Sync + 'static,
    {
        let seen = self.view::<K, Option<T>, _>(name, move |object| object.map(view))?;
        seen.ok_or_else(|| Halt::absent(&Kind::of::<K>(), name))
    }

    /// Notes that a whole object, or its absence, was looked at.
    pub(super) fn saw(&self, read: Read, stored: Option<&Stored>) {
        self.glimpses.borrow_mut().push(Glimpse { read, whole: stored.map(whole), part: None });
    }

    /// Notes that these objects, and no others, were selected.
    pub(super) fn saw_all(&self, read: Read, found: &[Arc<Stored>]) {
        self.glimpses.borrow_mut().push(Glimpse { read, whole: Some(whole_of(found)), part: None });
    }
}

/// One thing that was looked at, and how it was.
pub(crate) struct Glimpse {
    read: Read,
    /// A hash of all of it; nothing if it was not there.
    whole: Option<u64>,
    /// A hash of the part that was looked at, and how to look at it again, if that was not all.
    part: Option<(u64, Box<dyn Probe>)>,
}

impl Glimpse {
    pub(crate) fn read(&self) -> &Read {
        &self.read
    }

    /// Whether an object that was looked at by name is as it was, as far as it was looked at.
    pub(crate) fn holds(&mut self, now: Option<&Stored>) -> bool {
        let whole = now.map(whole);
        if self.whole == whole {
            return true;
        }
        let same = self.part.as_ref().is_some_and(|(part, probe)| probe.look(now) == Some(*part));
        if same {
            self.whole = whole;
        }
        same
    }

    /// Whether what was selected is as it was.
    pub(crate) fn holds_for_all(&self, now: &[Arc<Stored>]) -> bool {
        self.whole == Some(whole_of(now))
    }
}

fn whole(stored: &Stored) -> u64 {
    seeded((&stored.uid, stored.content_hash(), stored.status_hash()))
}

fn whole_of(found: &[Arc<Stored>]) -> u64 {
    found.iter().fold(0, |hash, stored| seeded((hash, whole(stored))))
}

/// How to look at part of an object again.
trait Probe: Send + Sync {
    /// A hash of that part; nothing if the object cannot be decoded.
    fn look(&self, stored: Option<&Stored>) -> Option<u64>;
}

struct View<K, T, F> {
    view: F,
    object: PhantomData<fn(K) -> T>,
}

impl<K, T, F> Probe for View<K, T, F>
where
    K: Object,
    T: Hash,
    F: Fn(Option<&K>) -> T + Send + Sync,
{
    fn look(&self, stored: Option<&Stored>) -> Option<u64> {
        let object = stored.map(|stored| stored.decode::<K>().ok());
        match object {
            None => Some(seeded((self.view)(None))),
            Some(object) => object.map(|object| seeded((self.view)(Some(&object)))),
        }
    }
}

/// What was made of objects in one pass, which looks at some of them more than once.
#[derive(Default)]
pub(crate) struct Views(Mutex<Vec<Known>>);

struct Known {
    view: TypeId,
    read: Read,
    whole: Option<u64>,
    value: Box<dyn Any + Send + Sync>,
}

impl Views {
    fn find<T: Clone + 'static, F: 'static>(&self, read: &Read, whole: Option<u64>) -> Option<T> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |one: &&Known| one.view == TypeId::of::<F>() && one.whole == whole && one.read == *read;
        known.iter().find(same)?.value.downcast_ref::<T>().cloned()
    }

    fn keep<T: Clone + Send + Sync + 'static, F: 'static>(&self, read: &Read, whole: Option<u64>, value: &T) {
        let known =
            Known { view: TypeId::of::<F>(), read: read.clone(), whole, value: Box::new(value.clone()) };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(known);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::test::Cluster;

    #[test]
    fn what_depends_on_the_time_is_certain_only_until_it_is_looked_at_again() {
        let world = || World::new(Box::new(Cluster::new()), "n");
        assert!(world().finish().certain(None).is_some());
        for (look_again, certain) in [(None, false), (Some(Duration::from_secs(1)), true)] {
            let world = world();
            let _ = world.now();
            assert_eq!(world.finish().certain(look_again).is_some(), certain);
        }
    }
}
