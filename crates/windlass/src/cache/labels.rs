//! The labels of an object, kept in little space.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use kube::core::Expression;

use crate::hash::seeded;

/// The labels of an object: lines of `key=value`, in the order of the keys. Neither can hold these letters.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Labels(Arc<str>);

impl Labels {
    /// The value of a label.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        let pairs = self.0.lines().filter_map(|line| line.split_once('='));
        pairs.filter(|(found, _)| *found == key).map(|(_, value)| value).next()
    }

    /// Whether all of these hold.
    pub(crate) fn match_all(&self, expressions: &[Expression]) -> bool {
        expressions.iter().all(|expression| match expression {
            Expression::In(key, values) => self.get(key).is_some_and(|value| values.contains(value)),
            Expression::NotIn(key, values) => self.get(key).is_none_or(|value| !values.contains(value)),
            Expression::Exists(key) => self.get(key).is_some(),
            Expression::DoesNotExist(key) => self.get(key).is_none(),
            Expression::Equal(key, value) => self.get(key) == Some(value),
            Expression::NotEqual(key, value) => self.get(key) != Some(value),
        })
    }
}

/// One copy of all labels that are equal: many objects of one primary have the same.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<HashMap<u64, Weak<str>>>);

impl Known {
    pub(super) fn labels(&self, labels: &BTreeMap<String, String>) -> Labels {
        let lines: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}\n")).collect();
        let text = lines.concat();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = seeded(&text);
        if let Some(same) = known.get(&hash).and_then(Weak::upgrade).filter(|one| **one == *text) {
            return Labels(same);
        }
        if known.len() == known.capacity() {
            known.retain(|_, labels| labels.strong_count() > 0);
        }
        let labels: Arc<str> = text.into();
        known.insert(hash, Arc::downgrade(&labels));
        Labels(labels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_found_and_matched() {
        let known = Known::default();
        let map = [("a".to_owned(), "1".to_owned()), ("b".to_owned(), String::new())].into();
        let labels = known.labels(&map);
        assert_eq!((labels.get("a"), labels.get("b"), labels.get("c")), (Some("1"), Some(""), None));
        assert!(Arc::ptr_eq(&labels.0, &known.labels(&map).0));
        let text = |text: &str| text.to_owned();
        let (one, two) = (["1".to_owned()], ["2".to_owned()]);
        let holds = [
            Expression::Equal(text("a"), text("1")),
            Expression::In(text("a"), one.clone().into()),
            Expression::NotIn(text("c"), one.into()),
            Expression::NotIn(text("a"), two.clone().into()),
            Expression::Exists(text("b")),
            Expression::DoesNotExist(text("c")),
            Expression::NotEqual(text("c"), text("1")),
        ];
        assert!(labels.match_all(&holds));
        for fails in [
            Expression::Equal(text("b"), text("1")),
            Expression::In(text("c"), two.into()),
            Expression::DoesNotExist(text("b")),
            Expression::NotEqual(text("a"), text("1")),
        ] {
            assert!(!labels.match_all(&[fails]));
        }
    }
}
