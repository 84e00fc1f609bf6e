//! Requests for certificates: they tell who asks, and cannot be changed.

use serde_json::{Value, json};

use super::super::status::Outcome;
use super::super::write::{Write, replace};
use super::{DEFAULT, NameRule, Strategy};

pub(super) const STRATEGY: Strategy = Strategy { name: NameRule::PathSegment, create, update, ..DEFAULT };

fn create(write: &Write<'_>, object: &mut Value) -> Outcome<()> {
    let user = write.user;
    if !object["spec"].is_object() {
        object["spec"] = json!({});
    }
    if let Some(spec) = object["spec"].as_object_mut() {
        for field in ["uid", "extra", "groups"] {
            spec.remove(field);
        }
        spec.insert("username".into(), user.name.clone().into());
        if !user.uid.is_empty() {
            spec.insert("uid".into(), user.uid.clone().into());
        }
        if !user.groups.is_empty() {
            spec.insert("groups".into(), json!(user.groups));
        }
        if !user.extra.is_empty() {
            spec.insert("extra".into(), json!(user.extra));
        }
    }
    object["status"] = json!({});
    Ok(())
}

fn update(write: &Write<'_>, new: &mut Value, old: &Value) -> Outcome<()> {
    if let Some(map) = new.as_object_mut() {
        replace(map, "spec", old.get("spec").cloned());
        if write.subresource.is_none() {
            replace(map, "status", old.get("status").cloned());
        }
    }
    Ok(())
}
