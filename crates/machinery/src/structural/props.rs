//! Reading a schema that is still JSON: what is absent, `null` or empty counts as not set, as it does in Go.

use serde_json::{Map, Value};

/// One level of an `openAPIV3Schema`.
#[derive(Clone, Copy)]
pub(super) struct Props<'a>(pub(super) &'a Value);

/// `additionalProperties`.
#[derive(Clone, Copy)]
pub(super) enum Additional<'a> {
    /// `true` or `false`.
    Flag(bool),
    /// A schema.
    Schema(Props<'a>),
}

/// `items`.
#[derive(Clone, Copy)]
pub(super) enum Items<'a> {
    /// One schema for all.
    One(Props<'a>),
    /// One for each, which is not supported.
    Many(&'a [Value]),
}

impl<'a> Props<'a> {
    pub(super) fn get(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn text(self, name: &str) -> &'a str {
        self.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// A string that differs from an absent one even when it is empty.
    pub(super) fn pointer(self, name: &str) -> Option<&'a str> {
        self.get(name).and_then(Value::as_str)
    }

    pub(super) fn flag(self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    pub(super) fn integer(self, name: &str) -> Option<i64> {
        self.get(name).and_then(Value::as_i64)
    }

    pub(super) fn number(self, name: &str) -> Option<f64> {
        self.get(name).and_then(Value::as_f64)
    }

    pub(super) fn list(self, name: &str) -> &'a [Value] {
        self.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub(super) fn strings(self, name: &str) -> impl Iterator<Item = &'a str> + Clone {
        self.list(name).iter().filter_map(Value::as_str)
    }

    pub(super) fn schema(self, name: &str) -> Option<Props<'a>> {
        self.get(name).filter(|value| value.is_object()).map(Props)
    }

    pub(super) fn schemas(self, name: &str) -> impl Iterator<Item = Props<'a>> {
        self.list(name).iter().map(Props)
    }

    pub(super) fn map(self, name: &str) -> impl Iterator<Item = (&'a str, Props<'a>)> {
        let entries = self.get(name).and_then(Value::as_object).into_iter().flat_map(Map::iter);
        entries.map(|(key, value)| (key.as_str(), Props(value)))
    }

    pub(super) fn has_map(self, name: &str) -> bool {
        self.map(name).next().is_some()
    }

    pub(super) fn property(self, name: &str) -> Option<Props<'a>> {
        self.get("properties")?.get(name).map(Props)
    }

    pub(super) fn additional(self) -> Option<Additional<'a>> {
        match self.get("additionalProperties")? {
            Value::Bool(flag) => Some(Additional::Flag(*flag)),
            schema => Some(Additional::Schema(Props(schema))),
        }
    }

    pub(super) fn items(self) -> Option<Items<'a>> {
        match self.get("items")? {
            Value::Array(all) => Some(Items::Many(all)),
            one => Some(Items::One(Props(one))),
        }
    }

    pub(super) fn item(self) -> Option<Props<'a>> {
        match self.items()? {
            Items::One(one) => Some(one),
            Items::Many(_) => None,
        }
    }

    pub(super) fn kind(self) -> &'a str {
        self.text("type")
    }

    pub(super) fn preserves(self) -> bool {
        self.flag("x-kubernetes-preserve-unknown-fields")
    }

    pub(super) fn embedded(self) -> bool {
        self.flag("x-kubernetes-embedded-resource")
    }

    pub(super) fn int_or_string(self) -> bool {
        self.flag("x-kubernetes-int-or-string")
    }

    /// Whether something holds of this schema or of any inside it.
    pub(super) fn any(self, test: &impl Fn(Props<'a>) -> bool) -> bool {
        let in_items = || match self.items() {
            Some(Items::One(one)) => one.any(test),
            Some(Items::Many(all)) => all.iter().any(|one| Props(one).any(test)),
            None => false,
        };
        let in_lists = || {
            ["allOf", "anyOf", "oneOf"].into_iter().any(|name| self.schemas(name).any(|one| one.any(test)))
        };
        let in_maps = || {
            let maps = ["properties", "patternProperties", "definitions"];
            maps.into_iter().any(|name| self.map(name).any(|(_, one)| one.any(test)))
        };
        let in_additional = || matches!(self.additional(), Some(Additional::Schema(one)) if one.any(test));
        let in_not = || self.schema("not").is_some_and(|one| one.any(test));
        test(self) || in_items() || in_lists() || in_not() || in_maps() || in_additional()
    }
}
