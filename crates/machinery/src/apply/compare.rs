//! What differs between two values of one type.

use serde_json::{Map, Value};

use super::place::{Atom, List, Object, Place};
use crate::fields::{FieldSet, PathElement, equal};

/// What differs between two values; no field is in more than one of the sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Fields that only the old value has.
    pub removed: FieldSet,
    /// Fields that both have, with different values.
    pub modified: FieldSet,
    /// Fields that only the new value has.
    pub added: FieldSet,
}

impl Comparison {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    /// Applies an operation to all three sets.
    #[must_use]
    pub fn map(self, operation: impl Fn(FieldSet) -> FieldSet) -> Self {
        Self {
            removed: operation(self.removed),
            modified: operation(self.modified),
            added: operation(self.added),
        }
    }

    fn push(&mut self, element: impl Fn() -> PathElement, own: Own, below: Self) {
        if own.removed || !below.removed.is_empty() {
            self.removed.push(element(), own.removed, below.removed);
        }
        if own.modified || !below.modified.is_empty() {
            self.modified.push(element(), own.modified, below.modified);
        }
        if own.added || !below.added.is_empty() {
            self.added.push(element(), own.added, below.added);
        }
    }
}

/// What is to be said of a value itself.
#[derive(Clone, Copy, Default)]
struct Own {
    removed: bool,
    modified: bool,
    added: bool,
}

pub(super) fn compare(old: &Value, new: &Value, place: Place<'_>) -> Comparison {
    visit(Some(old), Some(new), place).1
}

/// Compares whole objects, without their managed fields.
pub(crate) fn compare_objects(old: &Value, new: &Value, place: Place<'_>) -> Comparison {
    let (Value::Object(old), Value::Object(new), Atom::Map(object)) = (old, new, place.atom(new)) else {
        return compare(old, new, place);
    };
    let mut out = Comparison::default();
    fields(Some(old), Some(new), None, |name, old, new| {
        let place = object.any_member(name);
        let (own, below) = match (old, new, place.atom_of(old, new)) {
            (Some(Value::Object(old)), Some(Value::Object(new)), Atom::Map(object)) if name == "metadata" => {
                (Own::default(), members(Some(old), Some(new), object, Some("managedFields")))
            }
            _ => visit(old, new, place),
        };
        out.push(|| PathElement::field(name), own, below);
    });
    out
}

fn visit(old: Option<&Value>, new: Option<&Value>, place: Place<'_>) -> (Own, Comparison) {
    let one_sided = Own { removed: new.is_none(), modified: false, added: old.is_none() };
    let leaf = || {
        let modified = old.zip(new).is_some_and(|(old, new)| !equal(old, new));
        (Own { modified, ..one_sided }, Comparison::default())
    };
    if place.forms_differ(old, new) {
        let mut below = Comparison::default();
        if let Place::Deduced = place {
            for (old, new) in [(old, None), (None, new)] {
                if let (Some(Value::Object(_)), _) | (_, Some(Value::Object(_))) = (old, new) {
                    let half = visit(old, new, place).1;
                    below.removed = below.removed.union(half.removed);
                    below.added = below.added.union(half.added);
                }
            }
        }
        return (Own { modified: true, ..Own::default() }, below);
    }
    match place.atom_of(old, new) {
        Atom::Scalar(_) => leaf(),
        Atom::List(list) => {
            let (old_items, new_items) = (array(old), array(new));
            if list.is_atomic() || old_items.is_empty() && new_items.is_empty() {
                return leaf();
            }
            (one_sided, elements(old_items, new_items, list))
        }
        Atom::Map(object) => {
            let (old_fields, new_fields) = (map(old), map(new));
            if object.atomic || old_fields.is_none() && new_fields.is_none() {
                return leaf();
            }
            (one_sided, members(old_fields, new_fields, object, None))
        }
    }
}

fn members(
    old: Option<&Map<String, Value>>,
    new: Option<&Map<String, Value>>,
    object: Object<'_>,
    ignored: Option<&str>,
) -> Comparison {
    let mut out = Comparison::default();
    fields(old, new, ignored, |name, old, new| {
        let (own, below) = visit(old, new, object.any_member(name));
        out.push(|| PathElement::field(name), own, below);
    });
    out
}

fn elements(old: &[Value], new: &[Value], list: List<'_>) -> Comparison {
    let mut out = Comparison::default();
    let (old, new) = (group(old, list), group(new, list));
    let (mut old, mut new) = (old.into_iter().peekable(), new.into_iter().peekable());
    loop {
        let (element, before, after) = match (old.peek(), new.peek()) {
            (None, None) => return out,
            (Some(left), Some(right)) if left.0 == right.0 => match (old.next(), new.next()) {
                (Some((element, before)), Some((_, after))) => (element, before, after),
                _ => return out,
            },
            (Some(left), right) if right.is_none_or(|right| left.0 < right.0) => match old.next() {
                Some((element, before)) => (element, before, Vec::new()),
                None => return out,
            },
            _ => match new.next() {
                Some((element, after)) => (element, Vec::new(), after),
                None => return out,
            },
        };
        let (own, below) = element_change(&before, &after, list);
        out.push(|| element.clone(), own, below);
    }
}

/// Elements that are there more than once are compared as a whole.
fn element_change(before: &[&Value], after: &[&Value], list: List<'_>) -> (Own, Comparison) {
    let single = |items: &[&'_ Value]| items.len() <= 1;
    match (single(before), single(after)) {
        (true, true) => visit(before.first().copied(), after.first().copied(), list.items),
        (false, false) => {
            let same =
                before.len() == after.len() && before.iter().zip(after).all(|(old, new)| equal(old, new));
            (Own { modified: !same, ..Own::default() }, Comparison::default())
        }
        (false, true) => {
            let (own, below) = match after.first() {
                Some(item) => visit(None, Some(item), list.items),
                None => Default::default(),
            };
            (Own { removed: true, ..own }, below)
        }
        (true, false) => {
            let (own, below) = match before.first() {
                Some(item) => visit(Some(item), None, list.items),
                None => Default::default(),
            };
            (Own { added: true, ..own }, below)
        }
    }
}

/// The elements of a list by path element, sorted; those that have none are left out.
fn group<'v>(items: &'v [Value], list: List<'_>) -> Vec<(PathElement, Vec<&'v Value>)> {
    let mut pairs: Vec<(PathElement, Vec<&Value>)> =
        items.iter().filter_map(|item| Some((list.element(item).ok()?, vec![item]))).collect();
    pairs.sort_by(|(left, _), (right, _)| left.cmp(right));
    pairs.dedup_by(|(later, items), (earlier, all)| {
        let same = later == earlier;
        if same {
            all.append(items);
        }
        same
    });
    pairs
}

fn fields<'v>(
    old: Option<&'v Map<String, Value>>,
    new: Option<&'v Map<String, Value>>,
    ignored: Option<&str>,
    mut visit: impl FnMut(&'v str, Option<&'v Value>, Option<&'v Value>),
) {
    let kept = |(name, _): &(&'v String, &'v Value)| Some(name.as_str()) != ignored;
    for (name, value) in old.into_iter().flatten().filter(kept) {
        visit(name, Some(value), new.and_then(|new| new.get(name)));
    }
    for (name, value) in new.into_iter().flatten().filter(kept) {
        if old.is_none_or(|old| !old.contains_key(name)) {
            visit(name, None, Some(value));
        }
    }
}

fn array(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn map(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object).filter(|fields| !fields.is_empty())
}
