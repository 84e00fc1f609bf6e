//! Merges a configuration into a value, with the list order of structured-merge-diff.

use serde_json::{Map, Value};

use super::place::{Atom, List, Object, Place};
use crate::fields::PathElement;

pub(super) fn merge(live: &Value, config: &Value, place: Place<'_>) -> Value {
    visit(Some(live), Some(config), place).unwrap_or(Value::Null)
}

/// Merges whole objects; the live object's managed fields are left out.
pub(crate) fn merge_objects(live: &Value, config: &Value, place: Place<'_>) -> Value {
    let (Value::Object(live), Value::Object(config), Atom::Map(object)) = (live, config, place.atom(config))
    else {
        return merge(live, config, place);
    };
    let mut out = Map::new();
    for (name, live) in live {
        let config = config.get(name);
        let place = object.any_member(name);
        let merged = match (live, place.atom_of(Some(live), config)) {
            (Value::Object(live), Atom::Map(object)) if name == "metadata" && !object.atomic => {
                members(Some(live), config.and_then(Value::as_object), object, Some("managedFields"))
            }
            _ => visit(Some(live), config, place),
        };
        if let Some(merged) = merged {
            out.insert(name.clone(), merged);
        }
    }
    for (name, config) in config.iter().filter(|(name, _)| !live.contains_key(*name)) {
        out.insert(name.clone(), config.clone());
    }
    Value::Object(out)
}

fn visit(live: Option<&Value>, config: Option<&Value>, place: Place<'_>) -> Option<Value> {
    let leaf = || config.or(live).cloned();
    if place.forms_differ(live, config) {
        return leaf();
    }
    match place.atom_of(live, config) {
        Atom::Scalar(_) => leaf(),
        Atom::List(list) => {
            let (live_items, config_items) = (array(live), array(config));
            if list.is_atomic() || live_items.is_empty() && config_items.is_empty() {
                return leaf();
            }
            elements(live_items, config_items, list)
        }
        Atom::Map(object) => {
            let (live_fields, config_fields) = (map(live), map(config));
            if object.atomic || live_fields.is_none() && config_fields.is_none() {
                return leaf();
            }
            members(live_fields, config_fields, object, None)
        }
    }
}

fn members(
    live: Option<&Map<String, Value>>,
    config: Option<&Map<String, Value>>,
    object: Object<'_>,
    ignored: Option<&str>,
) -> Option<Value> {
    let mut out = Map::new();
    for (name, value) in live.into_iter().flatten().filter(|(name, _)| Some(name.as_str()) != ignored) {
        let config = config.and_then(|config| config.get(name));
        let merged = match config {
            Some(_) => visit(Some(value), config, object.any_member(name)),
            None => Some(value.clone()),
        };
        if let Some(merged) = merged {
            out.insert(name.clone(), merged);
        }
    }
    for (name, value) in config.into_iter().flatten() {
        if live.is_none_or(|live| !live.contains_key(name)) {
            out.insert(name.clone(), value.clone());
        }
    }
    (!out.is_empty()).then_some(Value::Object(out))
}

/// A list's elements by path element.
struct Index<'v> {
    elements: Vec<PathElement>,
    /// The elements' items in the list's order; none for an element that is there more than once.
    sorted: Vec<(usize, Option<&'v Value>)>,
}

impl<'v> Index<'v> {
    fn of(items: &'v [Value], list: List<'_>) -> (Self, Vec<&'v Value>) {
        let (elements, values): (Vec<PathElement>, Vec<&Value>) =
            items.iter().filter_map(|item| Some((list.element(item).ok()?, item))).unzip();
        let mut sorted: Vec<(usize, Option<&Value>)> =
            values.iter().enumerate().map(|(index, item)| (index, Some(*item))).collect();
        sorted.sort_by(|(left, _), (right, _)| elements[*left].cmp(&elements[*right]));
        sorted.dedup_by(|(later, _), (earlier, item)| {
            let same = elements[*later] == elements[*earlier];
            if same {
                *item = None;
            }
            same
        });
        (Self { elements, sorted }, values)
    }

    /// The item of an element, where it is there; the item is missing if it is there more than once.
    fn get(&self, element: &PathElement) -> Option<Option<&'v Value>> {
        let found = self.sorted.binary_search_by(|(index, _)| self.elements[*index].cmp(element)).ok()?;
        Some(self.sorted[found].1)
    }
}

/// The order is the configuration's where the two share elements; the live list's other elements keep their place
/// among them as far as possible.
fn elements(live: &[Value], config: &[Value], list: List<'_>) -> Option<Value> {
    let (right, _) = Index::of(config, list);
    let (left, left_values) = Index::of(live, list);
    let mut out = Vec::with_capacity(live.len().max(config.len()));
    let mut shared = right.elements.iter().filter(|element| left.get(element).is_some());
    let mut next_shared = shared.next();
    let mut merged: Vec<&PathElement> = Vec::new();
    let both = |element: &PathElement| {
        let duplicate = left.get(element) == Some(None);
        let live = if duplicate { Some(&Value::Null) } else { left.get(element).flatten() };
        visit(live, right.get(element).flatten(), list.items)
    };
    let (mut l, mut r) = (0, 0);
    while l < left.elements.len() || r < right.elements.len() {
        if l < left.elements.len() && r < right.elements.len() {
            let element = &left.elements[l];
            if *element == right.elements[r] {
                mark(&mut merged, &right.elements[r]);
                out.extend(both(element));
                l += 1;
                r += 1;
                next_shared = shared.next();
                continue;
            }
            if right.get(element).is_some() && next_shared.is_some_and(|next| next != element) {
                // A shared element, but not the one whose turn it is.
                l += 1;
                continue;
            }
        }
        if l < left.elements.len() {
            let element = &left.elements[l];
            if right.get(element).is_none() {
                out.extend(visit(Some(left_values[l]), None, list.items));
                l += 1;
                continue;
            } else if merged.binary_search(&element).is_ok() {
                l += 1;
            }
        }
        if r < right.elements.len() {
            let element = &right.elements[r];
            mark(&mut merged, &right.elements[r]);
            out.extend(both(element));
            r += 1;
            if next_shared == Some(element) {
                next_shared = shared.next();
            }
        }
    }
    (!out.is_empty()).then_some(Value::Array(out))
}

fn mark<'e>(merged: &mut Vec<&'e PathElement>, element: &'e PathElement) {
    if let Err(index) = merged.binary_search(&element) {
        merged.insert(index, element);
    }
}

fn array(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn map(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object).filter(|fields| !fields.is_empty())
}
