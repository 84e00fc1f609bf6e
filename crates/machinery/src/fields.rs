//! Sets of fields: who owns what in an object, as `FieldsV1` writes it.
//!
//! A set is a trie of path elements. Each element may itself be a member, and may have members below it. The
//! operations are those of structured-merge-diff; elements are kept sorted, so each is one merge of two lists.

mod element;
mod json;

use std::cmp::Ordering;
use std::fmt;

pub use element::PathElement;
pub(crate) use element::equal;
pub use json::FieldsError;

/// A set of fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    entries: Vec<Entry>,
}

/// An element of the trie; it is a member, or has members below it, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) element: PathElement,
    pub(crate) member: bool,
    pub(crate) children: FieldSet,
}

/// A path, as messages show it (`.spec.containers[name="c"].image`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path(Vec<PathElement>);

impl FieldSet {
    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// A set of named fields, each given by the names on the way to it.
    #[must_use]
    pub fn of(paths: &[&[&str]]) -> Self {
        let mut set = Self::new();
        for path in paths {
            set.insert(path.iter().map(|name| PathElement::field(name)));
        }
        set
    }

    /// Whether there is no member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds the field at a path; the empty path is nobody's.
    pub fn insert(&mut self, path: impl IntoIterator<Item = PathElement>) {
        let mut path = path.into_iter().peekable();
        let mut set = self;
        while let Some(element) = path.next() {
            let entry = set.entry(element);
            if path.peek().is_none() {
                entry.member = true;
                return;
            }
            set = &mut entry.children;
        }
    }

    /// Whether the field at a path is a member.
    #[must_use]
    pub fn contains(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.get(last).is_some_and(|entry| entry.member),
            [first, rest @ ..] => self.get(first).is_some_and(|entry| entry.children.contains(rest)),
        }
    }

    /// The fields below an element.
    #[must_use]
    pub fn below(&self, element: &PathElement) -> Option<&FieldSet> {
        self.get(element).map(|entry| &entry.children).filter(|children| !children.is_empty())
    }

    /// The members of both sets.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        if self.is_empty() {
            return other;
        }
        if other.is_empty() {
            return self;
        }
        let mut entries = Vec::with_capacity(self.entries.len().max(other.entries.len()));
        let mut right = other.entries.into_iter().peekable();
        for mut entry in self.entries {
            while let Some(before) = right.next_if(|next| next.element < entry.element) {
                entries.push(before);
            }
            if let Some(same) = right.next_if(|next| next.element == entry.element) {
                entry.member |= same.member;
                entry.children = entry.children.union(same.children);
            }
            entries.push(entry);
        }
        entries.extend(right);
        Self { entries }
    }

    /// The members that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut entries = Vec::new();
        zip(&self.entries, &other.entries, |left, right| {
            let Some(right) = right else { return };
            let member = left.member && right.member;
            let children = left.children.intersection(&right.children);
            if member || !children.is_empty() {
                entries.push(Entry { element: left.element.clone(), member, children });
            }
        });
        Self { entries }
    }

    /// Whether some member is in both sets.
    #[must_use]
    pub fn intersects(&self, other: &Self) -> bool {
        let mut found = false;
        zip(&self.entries, &other.entries, |left, right| {
            found = found
                || right.is_some_and(|right| {
                    left.member && right.member || left.children.intersects(&right.children)
                });
        });
        found
    }

    /// The members that are not in the other set.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut entries = Vec::new();
        zip(&self.entries, &other.entries, |left, right| {
            let Some(right) = right else {
                return entries.push(left.clone());
            };
            let member = left.member && !right.member;
            let children = left.children.difference(&right.children);
            if member || !children.is_empty() {
                entries.push(Entry { element: left.element.clone(), member, children });
            }
        });
        Self { entries }
    }

    /// The members that are neither in the other set nor below one of its members.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        let mut entries = Vec::new();
        zip(&self.entries, &other.entries, |left, right| match right {
            None => entries.push(left.clone()),
            Some(right) if right.member => {}
            Some(right) => {
                let children = left.children.recursive_difference(&right.children);
                if left.member || !children.is_empty() {
                    entries.push(Entry { element: left.element.clone(), member: left.member, children });
                }
            }
        });
        Self { entries }
    }

    /// Takes out the members of the other set, as [`FieldSet::difference`] does, without a copy.
    pub(crate) fn subtract(&mut self, other: &Self) {
        self.retain_matched(&other.entries, |left, right| {
            left.member &= !right.member;
            left.children.subtract(&right.children);
            left.member || !left.children.is_empty()
        });
    }

    /// Takes out the members of the other set and what is below them, as [`FieldSet::recursive_difference`] does,
    /// without a copy.
    pub(crate) fn subtract_recursive(&mut self, other: &Self) {
        self.retain_matched(&other.entries, |left, right| {
            if right.member {
                return false;
            }
            left.children.subtract_recursive(&right.children);
            left.member || !left.children.is_empty()
        });
    }

    /// Keeps the entries that the other set has none of, and of the others those that `keep` wants.
    fn retain_matched(&mut self, other: &[Entry], keep: impl Fn(&mut Entry, &Entry) -> bool) {
        let mut right = other.iter().peekable();
        self.entries.retain_mut(|left| {
            while right.next_if(|next| next.element < left.element).is_some() {}
            match right.next_if(|next| next.element == left.element) {
                Some(right) => keep(left, right),
                None => true,
            }
        });
    }

    /// Whether every member is a member of the other set.
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        let mut subset = true;
        zip(&self.entries, &other.entries, |left, right| {
            subset = subset
                && right.is_some_and(|right| {
                    (!left.member || right.member) && left.children.is_subset(&right.children)
                });
        });
        subset
    }

    /// All members' paths, those of one level before those below it.
    #[must_use]
    pub fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn get(&self, element: &PathElement) -> Option<&Entry> {
        let index = self.entries.binary_search_by(|entry| entry.element.cmp(element)).ok()?;
        Some(&self.entries[index])
    }

    /// The entry of a named field.
    pub(crate) fn get_field(&self, name: &str) -> Option<&Entry> {
        let index = self.entries.binary_search_by(|entry| match &entry.element {
            PathElement::Field(other) => (**other).cmp(name),
            _ => Ordering::Greater,
        });
        index.ok().map(|index| &self.entries[index])
    }

    /// Adds an entry of which elements mostly come in order; empty ones are not added.
    pub(crate) fn push(&mut self, element: PathElement, member: bool, children: FieldSet) {
        if !member && children.is_empty() {
            return;
        }
        if self.entries.last().is_none_or(|last| last.element < element) {
            self.entries.push(Entry { element, member, children });
            return;
        }
        let entry = self.entry(element);
        entry.member |= member;
        entry.children = std::mem::take(&mut entry.children).union(children);
    }

    fn entry(&mut self, element: PathElement) -> &mut Entry {
        let index = match self.entries.binary_search_by(|entry| entry.element.cmp(&element)) {
            Ok(index) => index,
            Err(index) => {
                self.entries.insert(index, Entry { element, member: false, children: FieldSet::new() });
                index
            }
        };
        &mut self.entries[index]
    }

    fn collect(&self, prefix: &mut Vec<PathElement>, paths: &mut Vec<Path>) {
        for entry in self.entries.iter().filter(|entry| entry.member) {
            let mut path = prefix.clone();
            path.push(entry.element.clone());
            paths.push(Path(path));
        }
        for entry in &self.entries {
            prefix.push(entry.element.clone());
            entry.children.collect(prefix, paths);
            prefix.pop();
        }
    }
}

impl Path {
    /// The elements of the path.
    #[must_use]
    pub fn elements(&self) -> &[PathElement] {
        &self.0
    }
}

impl fmt::Display for Path {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(out))
    }
}

/// Visits the left entries, each with the right entry of the same element.
fn zip<'s>(left: &'s [Entry], right: &'s [Entry], mut visit: impl FnMut(&'s Entry, Option<&'s Entry>)) {
    let mut right = right.iter().peekable();
    for entry in left {
        while right.next_if(|next| next.element < entry.element).is_some() {}
        visit(entry, right.next_if(|next| next.element == entry.element));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(json: &serde_json::Value) -> FieldSet {
        FieldSet::from_json(json).unwrap()
    }

    #[test]
    fn operations() {
        let left = set(&json!({"f:a": {}, "f:b": {".": {}, "f:c": {}, "f:d": {}}}));
        let right = set(&json!({"f:b": {"f:c": {}}, "f:e": {}}));
        assert_eq!(
            left.clone().union(right.clone()).to_json(),
            json!({"f:a": {}, "f:b": {".": {}, "f:c": {}, "f:d": {}}, "f:e": {}})
        );
        assert_eq!(left.intersection(&right).to_json(), json!({"f:b": {"f:c": {}}}));
        assert!(left.intersects(&right));
        assert_eq!(left.difference(&right).to_json(), json!({"f:a": {}, "f:b": {".": {}, "f:d": {}}}));
        let parent = set(&json!({"f:b": {}}));
        assert_eq!(left.difference(&parent).to_json(), json!({"f:a": {}, "f:b": {"f:c": {}, "f:d": {}}}));
        assert_eq!(left.recursive_difference(&parent).to_json(), json!({"f:a": {}}));
        assert!(left.intersection(&right).is_subset(&left));
        assert!(!right.is_subset(&left));
    }

    #[test]
    fn paths() {
        let set = set(&json!({"f:spec": {
            "f:atom": {},
            "f:items": {"k:{\"id\":\"a\",\"n\":1}": {".": {}, "f:v": {}}},
            "f:set": {"v:\"x\"": {}, "v:3": {}},
            "f:list": {"i:2": {}}
        }}));
        let paths: Vec<_> = set.paths().iter().map(ToString::to_string).collect();
        assert_eq!(
            paths,
            [
                ".spec.atom",
                ".spec.items[id=\"a\",n=1]",
                ".spec.items[id=\"a\",n=1].v",
                ".spec.list[2]",
                ".spec.set[=3]",
                ".spec.set[=\"x\"]"
            ]
        );
        assert!(set.contains(FieldSet::of(&[&["spec", "atom"]]).paths()[0].elements()));
    }
}
