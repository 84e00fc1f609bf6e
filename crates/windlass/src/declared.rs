//! What a primary's type says its plan does with which kinds. An operator's permissions follow from it, so a plan is
//! held to it everywhere: what works on a laptop, as a user who may do everything, must not fail on a cluster.

use crate::cache::Reads;
use crate::plan::{Dependent, Owner};
use crate::{Kind, Primary};

/// The declarations of one type of primaries.
#[derive(Debug)]
pub(crate) struct Declared {
    pub(crate) kind: Kind,
    /// Made, changed, pruned.
    pub(crate) owns: Vec<Kind>,
    /// Made by others, of which some fields are set.
    pub(crate) adjusts: Vec<Kind>,
    /// Only looked at.
    pub(crate) reads: Vec<Kind>,
    /// What is owned or adjusted, and therefore watched from the start.
    pub(crate) written: Vec<Kind>,
    /// Whether objects are made in other namespaces than the primary's.
    pub(crate) reaches_out: bool,
    /// Gone before the primary goes.
    pub(crate) stops_first: Vec<Kind>,
    /// Whether a plan may have the primary deleted.
    pub(crate) retires: bool,
}

impl Declared {
    pub(crate) fn of<P: Primary>() -> Self {
        let declared = Self::new(Kind::of::<P>(), P::owns(), P::adjusts(), P::reads(), P::reaches_out());
        Self { stops_first: P::stops_first(), retires: P::retires(), ..declared }
    }

    /// The declarations of a plan that belongs to no custom resource, under a kind that only stands for it.
    pub(crate) fn standing(kind: Kind, owns: Vec<Kind>, reads: Vec<Kind>) -> Self {
        Self::new(kind, owns, Vec::new(), reads, false)
    }

    fn new(kind: Kind, owns: Vec<Kind>, adjusts: Vec<Kind>, reads: Vec<Kind>, reaches_out: bool) -> Self {
        let written = owns.iter().chain(&adjusts).cloned().collect();
        Self { kind, owns, adjusts, reads, written, reaches_out, stops_first: Vec::new(), retires: false }
    }

    /// Whether primaries need a finalizer for what garbage collection does not reach: objects in other namespaces or
    /// in none, for a primary that is in one; or to have something stopped first. External things are not declared here.
    pub(crate) fn needs_finalizer(&self) -> bool {
        !self.stops_first.is_empty()
            || self.kind.namespaced() && (self.reaches_out || self.owns.iter().any(|kind| !kind.namespaced()))
    }

    /// Whether a primary with this dependent may not go by itself.
    pub(crate) fn holds(&self, dependent: &Dependent, owner: &Owner) -> bool {
        dependent.needs_cleanup(owner) || self.stops_first.contains(&dependent.kind)
    }

    /// What is wrong with having read this.
    pub(crate) fn refuse_reads(&self, reads: &Reads) -> Option<String> {
        let undeclared = reads.iter().map(|read| read.kind()).find(|kind| !self.may_read(kind))?;
        Some(format!(
            "the plan of {} reads {}, which nothing declares: add Kind::of::<{undeclared}>() to `reads`, so that the \
             operator's role allows it",
            self.kind,
            undeclared.plural()
        ))
    }

    /// What is wrong with having the primary deleted.
    pub(crate) fn refuse_retirement(&self, retire: bool) -> Option<String> {
        (retire && !self.retires).then(|| {
            format!(
                "the plan of {} retires it, which nothing declares: have `retires` return true, so that the operator's \
                 role allows it",
                self.kind
            )
        })
    }

    /// What is wrong with a dependent of this kind, used like this.
    pub(crate) fn refuse(&self, dependent: &Dependent, owner_namespace: &str) -> Option<String> {
        let kind = &dependent.kind;
        if kind.is_external() {
            return None;
        }
        let (allowed, list) = if dependent.only_looked_at() {
            (self.may_read(kind), "reads")
        } else if dependent.shared() {
            (self.written.contains(kind), "adjusts")
        } else {
            (self.owns.contains(kind), "owns")
        };
        if !allowed {
            return Some(format!(
                "{kind} is not among the kinds that `{list}` of {} declares: add Kind::of::<{kind}>() there",
                self.kind
            ));
        }
        let namespace = dependent.name.namespace.as_str();
        let elsewhere = kind.namespaced() && self.kind.namespaced() && namespace != owner_namespace;
        (elsewhere && list == "owns" && dependent.config.owned && !self.reaches_out).then(|| {
            format!(
                "{kind} {} is in another namespace than its {}: have `reaches_out` return true, so that it may be \
                 cleaned up",
                dependent.name, self.kind
            )
        })
    }

    fn may_read(&self, kind: &Kind) -> bool {
        kind.is_external()
            || [&self.kind].into_iter().chain(&self.written).chain(&self.reads).any(|one| one == kind)
    }
}
