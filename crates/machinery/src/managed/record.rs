//! The entries of `metadata.managedFields`.

use serde_json::{Map, Value};

use super::{Conflicts, Manager};
use crate::apply::{Comparison, Place};
use crate::fields::{FieldSet, FieldsError};
use crate::go;
use crate::schema::Type;

/// Why managed fields cannot be read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ManagedFieldsError {
    /// An entry is not what it should be.
    #[error("{0}")]
    Entry(String),
    /// An entry's fields are no set.
    #[error("error decoding set: {0}")]
    Fields(#[from] FieldsError),
}

/// What one manager manages.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) manager: Box<str>,
    pub(super) applied: bool,
    pub(super) api_version: Box<str>,
    pub(super) subresource: Box<str>,
    pub(super) time: Option<Box<str>>,
    pub(super) set: FieldSet,
    /// The entry that the set was read from, as long as it is what was read: its JSON form is kept as it was.
    entry: Option<usize>,
}

/// All managers of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Records(Vec<Record>);

/// Whether the fields that a request sends ask for all of them to be forgotten.
pub(super) fn is_reset(fields: &Value) -> bool {
    match fields.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([Value::Object(entry)]) => entry.values().all(|value| value.is_null() || value == ""),
        _ => false,
    }
}

impl Record {
    pub(super) fn update(manager: &str, api_version: &str, subresource: &str, set: FieldSet) -> Self {
        Self {
            manager: manager.into(),
            applied: false,
            api_version: api_version.into(),
            subresource: subresource.into(),
            time: None,
            set,
            entry: None,
        }
    }

    fn parse(index: usize, entry: &Value) -> Result<Self, ManagedFieldsError> {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let wrong = |message: String| Err(ManagedFieldsError::Entry(message));
        let applied = match text("operation") {
            "Apply" => true,
            "Update" => false,
            _ => return wrong("operation must be `Apply` or `Update`".to_owned()),
        };
        if text("apiVersion").is_empty() {
            return wrong("apiVersion must not be empty".to_owned());
        }
        match text("fieldsType") {
            "FieldsV1" => {}
            "" => return wrong(format!("missing fieldsType in managed fields entry {index}")),
            other => {
                let other = go::quote(other);
                return wrong(format!("invalid fieldsType {other} in managed fields entry {index}"));
            }
        }
        let json = entry.get("fieldsV1").filter(|fields| !fields.is_null());
        Ok(Self {
            manager: text("manager").into(),
            applied,
            api_version: text("apiVersion").into(),
            subresource: text("subresource").into(),
            time: entry.get("time").and_then(Value::as_str).map(Into::into),
            set: json.map(FieldSet::from_json).transpose()?.unwrap_or_default(),
            entry: json.map(|_| index),
        })
    }

    /// `source` is what it was read from.
    fn into_json(self, source: Option<&Value>) -> Value {
        let kept = self.entry.and_then(|index| source?.get(index)?.get("fieldsV1").cloned());
        let mut entry = Map::new();
        let mut put = |name: &str, value: Value| entry.insert(name.to_owned(), value);
        put("manager", Value::from(&*self.manager));
        put("operation", Value::from(if self.applied { "Apply" } else { "Update" }));
        put("apiVersion", Value::from(&*self.api_version));
        if let Some(time) = self.time {
            put("time", Value::from(&*time));
        }
        put("fieldsType", Value::from("FieldsV1"));
        put("fieldsV1", kept.unwrap_or_else(|| self.set.to_json()));
        if !self.subresource.is_empty() {
            put("subresource", Value::from(&*self.subresource));
        }
        Value::Object(entry)
    }

    pub(super) fn replace(&mut self, set: FieldSet) {
        self.set = set;
        self.entry = None;
    }

    /// The text that tells managers apart; it also is their order.
    pub(super) fn identifier(&self) -> String {
        let mut text = String::from("{\"manager\":");
        go::write_json_string(&mut text, &self.manager);
        text.push_str(if self.applied { ",\"operation\":\"Apply\"" } else { ",\"operation\":\"Update\"" });
        if !self.applied {
            text.push_str(",\"apiVersion\":");
            go::write_json_string(&mut text, &self.api_version);
        }
        if !self.subresource.is_empty() {
            text.push_str(",\"subresource\":");
            go::write_json_string(&mut text, &self.subresource);
        }
        text.push('}');
        text
    }

    pub(super) fn same_manager(&self, other: &Self) -> bool {
        self.manager == other.manager
            && self.applied == other.applied
            && self.subresource == other.subresource
            && (self.applied || self.api_version == other.api_version)
    }
}

impl Records {
    pub(super) fn parse(fields: &Value) -> Result<Self, ManagedFieldsError> {
        let mut records = Self::default();
        for (index, entry) in fields.as_array().into_iter().flatten().enumerate() {
            records.put(Record::parse(index, entry)?);
        }
        Ok(records)
    }

    /// The entries in their order; none if there is none. `source` is what all that were read were read from.
    pub(super) fn into_json(mut self, source: Option<&Value>) -> Option<Value> {
        if self.0.is_empty() {
            return None;
        }
        self.0.sort_by(|left, right| {
            (!left.applied, &left.time, &left.manager, &left.api_version, &left.subresource).cmp(&(
                !right.applied,
                &right.time,
                &right.manager,
                &right.api_version,
                &right.subresource,
            ))
        });
        Some(Value::Array(self.0.into_iter().map(|record| record.into_json(source)).collect()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Record> {
        self.0.iter()
    }

    pub(super) fn retain(&mut self, keep: impl FnMut(&Record) -> bool) {
        self.0.retain(keep);
    }

    /// Adds a record, whoever else is there.
    pub(super) fn push(&mut self, record: Record) {
        self.0.push(record);
    }

    /// Adds a record, in place of the same manager's.
    pub(super) fn put(&mut self, record: Record) {
        match self.0.iter_mut().find(|known| known.same_manager(&record)) {
            Some(known) => *known = record,
            None => self.0.push(record),
        }
    }

    pub(super) fn take(&mut self, identifier: &Record) -> Option<Record> {
        let index = self.0.iter().position(|record| record.same_manager(identifier))?;
        Some(self.0.remove(index))
    }

    /// Adds an updater's changes to what it manages already.
    pub(super) fn add_update(&mut self, who: &Manager<'_>, set: FieldSet, now: &str) {
        let mut record = Record::update(name(who), who.api_version, who.subresource, set);
        record.time = Some(now.into());
        if let Some(previous) = self.take(&record) {
            record.set = record.set.union(previous.set);
        }
        self.0.push(record);
    }

    /// Takes out what an applier manages.
    pub(super) fn take_apply(&mut self, who: &Manager<'_>) -> Option<Record> {
        let wanted =
            Record { applied: true, ..Record::update(name(who), "", who.subresource, FieldSet::new()) };
        self.take(&wanted)
    }

    /// Puts in what an applier manages now.
    pub(super) fn push_apply(&mut self, who: &Manager<'_>, set: FieldSet, time: Option<Box<str>>) {
        if !set.is_empty() {
            let record = Record::update(name(who), who.api_version, who.subresource, set);
            self.put(Record { applied: true, time, ..record });
        }
    }

    /// Everybody gives up what changes, or, if it is not forced, is in conflict.
    pub(super) fn release(&mut self, change: &Comparison, force: bool) -> Option<Conflicts> {
        if !force {
            let touched = change.modified.clone().union(change.added.clone());
            let conflicts = Conflicts::of(self.0.iter(), &touched);
            if conflicts.is_some() {
                return conflicts;
            }
        }
        for record in &mut self.0 {
            for gone in [&change.modified, &change.added, &change.removed] {
                if record.set.intersects(gone) {
                    record.set.subtract(gone);
                    record.entry = None;
                }
            }
        }
        self.0.retain(|record| !record.set.is_empty());
        None
    }

    /// Follows a custom type that has made lists or objects atomic.
    pub(super) fn reconcile(&mut self, ty: Type<'_>) {
        if ty.custom().is_none() {
            return;
        }
        for record in &mut self.0 {
            let reconciled = Place::of(ty).reconciled(&record.set);
            if reconciled != record.set {
                record.replace(reconciled);
            }
        }
    }
}

fn name<'a>(who: &Manager<'a>) -> &'a str {
    if who.name.is_empty() { "unknown" } else { who.name }
}
