//! A write as rules and webhooks see it: the `request` of an AdmissionReview.

use serde_json::{Value, json};

use super::super::registry::Resource;
use super::super::write::name_of;
use super::{Admission, Operation};

impl Operation {
    /// Its name in rules.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }

    fn options(self) -> &'static str {
        match self {
            Self::Create => "CreateOptions",
            Self::Update => "UpdateOptions",
            Self::Delete => "DeleteOptions",
        }
    }
}

impl Admission<'_> {
    /// The name that the request is about; a deletion of many names none.
    pub(super) fn name<'o>(&'o self, object: &'o Value) -> &'o str {
        match (self.name, name_of(object)) {
            (Some(name), _) => name,
            (None, "") => self.old.map(name_of).unwrap_or_default(),
            (None, name) => name,
        }
    }

    /// What refusals call the object, which may not have its name yet.
    pub(super) fn called<'o>(&'o self, object: &'o Value) -> &'o str {
        match self.name(object) {
            "" => object["metadata"]["generateName"].as_str().unwrap_or("Unknown"),
            name => name,
        }
    }

    /// The namespace that the request is about, which for a namespace is itself.
    pub(super) fn request_namespace<'o>(&'o self, object: &'o Value) -> &'o str {
        if self.is_for("", "namespaces") { self.name(object) } else { self.namespace }
    }

    /// What is shown of an object.
    pub(super) fn seen(&self, object: &Value) -> Value {
        match self.shown {
            Some(shown) => shown(self.resource, object),
            None => object.clone(),
        }
    }

    /// The kind of the objects, where the resource is seen as `seen`.
    pub(super) fn kind<'k>(&'k self, seen: &'k Resource) -> &'k Resource {
        self.part.unwrap_or(seen)
    }

    /// The request, without its objects. `seen` is the resource in the version that a rule names.
    pub(super) fn request(&self, object: &Value, seen: &Resource) -> Value {
        let kind_of =
            |kind: &Resource| json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
        let resource_of = |resource: &Resource| json!({"group": resource.group, "version": resource.version, "resource": resource.plural});
        let user = self.user;
        let mut options = self.options.clone();
        options.insert("apiVersion".into(), "meta.k8s.io/v1".into());
        options.insert("kind".into(), self.operation.options().into());
        let mut request = json!({
            "kind": kind_of(self.kind(seen)), "resource": resource_of(seen),
            "requestKind": kind_of(self.kind(self.resource)), "requestResource": resource_of(self.resource),
            "operation": self.operation.name(), "dryRun": self.dry_run,
            "userInfo": {"username": user.name, "groups": user.groups}, "options": options,
        });
        let part = self.subresource.unwrap_or_default();
        let optional = [
            ("name", self.name(object)),
            ("namespace", self.request_namespace(object)),
            ("subResource", part),
            ("requestSubResource", part),
        ];
        for (field, text) in optional.into_iter().filter(|(_, text)| !text.is_empty()) {
            request[field] = text.into();
        }
        if !user.uid.is_empty() {
            request["userInfo"]["uid"] = json!(user.uid);
        }
        if !user.extra.is_empty() {
            request["userInfo"]["extra"] = json!(user.extra);
        }
        request
    }
}
