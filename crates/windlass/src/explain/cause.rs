//! What queues a primary.

use std::fmt;

use crate::{Kind, ObjectName};

/// So many different causes are kept of one pass.
const MOST: usize = 8;

/// What queued a primary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// An object has come or changed.
    Changed(Kind, ObjectName),
    /// An object is gone.
    Gone(Kind, ObjectName),
    /// Another primary's pass wrote an object.
    Written(Kind, ObjectName),
    /// What it waited for is loaded.
    Loaded(Kind),
    /// What it waits for cannot be watched.
    Unwatchable(Kind),
    /// An earlier pass failed.
    Retry,
    /// An earlier pass asked to look again.
    Again,
    /// This replica may write what it could not before.
    Granted,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed(kind, name) => write!(f, "{kind} {name} changed"),
            Self::Gone(kind, name) => write!(f, "{kind} {name} is gone"),
            Self::Written(kind, name) => write!(f, "{kind} {name} was written"),
            Self::Loaded(kind) => write!(f, "{} are loaded", kind.plural()),
            Self::Unwatchable(kind) => write!(f, "{} cannot be watched", kind.plural()),
            Self::Retry => f.write_str("an earlier pass failed"),
            Self::Again => f.write_str("an earlier pass asked to look again"),
            Self::Granted => f.write_str("this replica may write now"),
        }
    }
}

/// What queued a primary since its last pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct Causes {
    different: Vec<(Cause, u32)>,
    more: u32,
}

impl Causes {
    pub(crate) fn add(&mut self, cause: Cause) {
        if let Some((_, count)) = self.different.iter_mut().find(|(known, _)| *known == cause) {
            *count += 1;
        } else if self.different.len() < MOST {
            self.different.push((cause, 1));
        } else {
            self.more += 1;
        }
    }

    /// For people.
    pub(crate) fn texts(&self) -> Vec<String> {
        let text = |(cause, count): &(Cause, u32)| match count {
            1 => cause.to_string(),
            count => format!("{cause} ({count} times)"),
        };
        let more = (self.more > 0).then(|| format!("{} more", self.more));
        self.different.iter().map(text).chain(more).collect()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Secret;

    use super::*;

    #[test]
    fn causes_are_counted_and_bounded() {
        let mut causes = Causes::default();
        let changed = |name: &str| Cause::Changed(Kind::of::<Secret>(), ObjectName::new("team", name));
        causes.add(changed("tokens"));
        causes.add(changed("tokens"));
        for number in 0..100 {
            causes.add(changed(&number.to_string()));
        }
        let texts = causes.texts();
        assert_eq!(texts[0], "Secret team/tokens changed (2 times)");
        assert_eq!(texts.len(), MOST + 1);
        assert_eq!(texts[MOST], "93 more");
    }
}
