//! What a plan has read: the record that decides what is watched.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use kube::core::{Expression, Selector};

use super::Stored;
use crate::{Kind, ObjectName};

/// All that one plan has read.
pub(crate) type Reads = BTreeSet<Read>;

/// One thing that a plan has read.
#[derive(Clone, Debug)]
pub(crate) enum Read {
    /// One object by its name, whether it was there or not.
    Named { kind: Kind, name: ObjectName },
    /// All objects that match a selector, in one namespace or in all.
    Selected(Arc<Selection>),
}

/// What is selected.
#[derive(Debug)]
pub(crate) struct Selection {
    pub(crate) kind: Kind,
    pub(crate) namespace: Option<String>,
    /// The selector's written form, by which selections are told apart.
    pub(crate) text: String,
    pub(crate) expressions: Vec<Expression>,
}

impl Read {
    pub(crate) fn named(kind: Kind, name: ObjectName) -> Self {
        Self::Named { kind, name }
    }

    pub(crate) fn selected(kind: Kind, namespace: Option<String>, selector: Selector) -> Self {
        let text = selector.to_string();
        let expressions = selector.into_iter().collect();
        Self::Selected(Arc::new(Selection { kind, namespace, text, expressions }))
    }

    pub(crate) fn kind(&self) -> &Kind {
        match self {
            Self::Named { kind, .. } => kind,
            Self::Selected(selection) => &selection.kind,
        }
    }

    /// The namespace that was looked at; `None` for all of them.
    pub(crate) fn namespace(&self) -> Option<&str> {
        match self {
            Self::Named { name, .. } => Some(&name.namespace),
            Self::Selected(selection) => selection.namespace.as_deref(),
        }
    }

    /// Whether an object of this kind is part of what was read.
    pub(crate) fn matches(&self, stored: &Stored) -> bool {
        match self {
            Self::Named { name, .. } => stored.name == *name,
            Self::Selected(selection) => {
                selection.namespace.as_ref().is_none_or(|namespace| *namespace == stored.name.namespace)
                    && stored.labels.match_all(&selection.expressions)
            }
        }
    }

    fn key(&self) -> (&Kind, Option<&ObjectName>, Option<&String>, &str) {
        match self {
            Self::Named { kind, name } => (kind, Some(name), None, ""),
            Self::Selected(selection) => {
                let Selection { kind, namespace, text, .. } = &**selection;
                (kind, None, namespace.as_ref(), text)
            }
        }
    }
}

impl fmt::Display for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named { kind, name } => write!(f, "{kind} {name}"),
            Self::Selected(selection) => {
                let Selection { kind, namespace, text, .. } = &**selection;
                write!(f, "{}", kind.plural())?;
                match namespace {
                    Some(namespace) => write!(f, " in {namespace}")?,
                    None => write!(f, " in all namespaces")?,
                }
                match text.as_str() {
                    "" => Ok(()),
                    text => write!(f, " with {text}"),
                }
            }
        }
    }
}

impl Ord for Read {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Read {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Read {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Read {}
