//! What is wrong with an object of a kind.

use serde_json::Value;
use windlass_machinery::invalid::{FieldError, Path};
use windlass_machinery::{names, structural};

use super::registry::Resource;
use super::strategy::{self, NameRule};
use super::write::Write;

/// What is wrong with a new object.
#[must_use]
pub fn create(write: &Write<'_>, object: &Value) -> Vec<FieldError> {
    let resource = write.resource;
    if is_definition(resource) {
        return structural::check_definition(object, None);
    }
    let rule = match strategy::of(resource).name {
        NameRule::Subdomain => names::subdomain_name,
        NameRule::Label => names::label_name,
        NameRule::PathSegment => names::path_segment_name,
    };
    let metadata = Path::new("metadata");
    let mut errors = names::object_meta(&object["metadata"], resource.namespaced, rule, &metadata);
    errors.extend(own(resource, object, None));
    errors
}

/// What is wrong with a changed object.
#[must_use]
pub fn update(write: &Write<'_>, new: &Value, old: &Value) -> Vec<FieldError> {
    if is_definition(write.resource) {
        return match write.subresource {
            Some("status") => structural::check_definition_status(new, old),
            _ => structural::check_definition(new, Some(old)),
        };
    }
    let metadata = Path::new("metadata");
    let mut errors = names::object_meta_update(&new["metadata"], &old["metadata"], &metadata);
    errors.extend(own(write.resource, new, Some(old)));
    errors
}

fn own(resource: &Resource, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    if resource.custom.is_some() {
        return structural::validate(new, old, resource.ty());
    }
    Vec::new()
}

fn is_definition(resource: &Resource) -> bool {
    resource.group == "apiextensions.k8s.io" && resource.plural == "customresourcedefinitions"
}
