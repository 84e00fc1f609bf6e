//! What is wrong with a CustomResourceDefinition.
//!
//! The server works on an older form, where what all versions share (`schema`, `subresources`, columns) stands
//! at the top as `spec.validation` and so on: that is why its errors speak of fields that nobody wrote.

mod approval;
mod conversion;
mod version;

use serde_json::{Value, json};

use approval::approval;
use version::{columns, deprecation, selectable, subresources};

use super::check::check;
use super::golang::{self, Shared};
use super::props::Props;
use crate::invalid::{FieldError, Path, Shown};
use crate::names;

/// Gives a definition its defaults: names and conversion. The version that is stored from now on becomes one
/// of those in its status.
pub fn default_definition(definition: &mut Value) {
    let kind = definition["spec"]["names"]["kind"].as_str().unwrap_or_default().to_owned();
    let empty = |value: &Value| value.as_str().unwrap_or_default().is_empty();
    let spec = &mut definition["spec"];
    if empty(&spec["names"]["singular"]) && !kind.is_empty() {
        spec["names"]["singular"] = json!(kind.to_lowercase());
    }
    if empty(&spec["names"]["listKind"]) && !kind.is_empty() {
        spec["names"]["listKind"] = json!(format!("{kind}List"));
    }
    if spec["conversion"].is_null() {
        spec["conversion"] = json!({"strategy": "None"});
    }
    if let Some(service) =
        spec.pointer_mut("/conversion/webhook/clientConfig/service").filter(|s| s.is_object())
        && service["port"].is_null()
    {
        service["port"] = json!(443);
    }
    let storage = Props(spec).schemas("versions").find(|version| version.flag("storage"));
    let Some(storage) = storage.map(|version| json!(version.text("name"))) else {
        return;
    };
    match definition["status"]["storedVersions"].as_array_mut() {
        Some(stored) if stored.contains(&storage) => {}
        Some(stored) => stored.push(storage),
        None => definition["status"]["storedVersions"] = json!([storage]),
    }
}

/// What is wrong with a definition, new or in place of an old one. It has its defaults, and a status.
#[must_use]
pub fn check_definition(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let (metadata, path) = (&new["metadata"], Path::new("metadata"));
    let spec = Props(&new["spec"]);
    let mut out = match old {
        Some(old) => names::object_meta_update(metadata, &old["metadata"], &path),
        None => {
            let wanted = format!(
                "{}.{}",
                new["spec"]["names"]["plural"].as_str().unwrap_or_default(),
                spec.text("group")
            );
            let rule = |name: &str, prefix: bool| {
                let mut out = names::subdomain_name(name, prefix);
                if name != wanted {
                    out.push("must be spec.names.plural+\".\"+spec.group".to_owned());
                }
                out
            };
            names::object_meta(metadata, false, rule, &path)
        }
    };
    let established = old.is_some_and(is_established);
    Definition::new(spec).check(old.filter(|_| established), &mut out);
    if let Some(old) = old {
        let was = &old["spec"];
        let mut immutable = |new: &Value, old: &Value, path: &str| {
            if new != old {
                out.push(FieldError::invalid(path, new, "field is immutable"));
            }
        };
        if established {
            immutable(&new["spec"]["scope"], &was["scope"], "spec.scope");
            immutable(&new["spec"]["names"]["kind"], &was["names"]["kind"], "spec.names.kind");
        }
        immutable(&new["spec"]["group"], &was["group"], "spec.group");
        immutable(&new["spec"]["names"]["plural"], &was["names"]["plural"], "spec.names.plural");
    }
    let status = Path::new("status");
    resource_names(Props(&new["status"]["acceptedNames"]), &status.child("acceptedNames"), &mut out);
    stored_versions(Props(&new["status"]), spec, &status.child("storedVersions"), &mut out);
    out.extend(approval(new, old));
    let preserved = |definition: &Value| definition["spec"]["preserveUnknownFields"].as_bool() == Some(true);
    if preserved(new) && !old.is_some_and(preserved) {
        let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        out.push(FieldError::invalid("spec.preserveUnknownFields", true, why));
    }
    out
}

/// What is wrong with an update of a definition's status.
#[must_use]
pub fn check_definition_status(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut out = names::object_meta_update(&new["metadata"], &old["metadata"], &Path::new("metadata"));
    resource_names(Props(&new["status"]["acceptedNames"]), &Path::new("status.acceptedNames"), &mut out);
    out
}

fn is_established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|one| one["type"] == "Established" && one["status"] == "True")
}

/// A definition with what its versions share moved to the top.
struct Definition<'a> {
    spec: Props<'a>,
    versions: Vec<Props<'a>>,
    shared: Shared,
}

impl<'a> Definition<'a> {
    fn new(spec: Props<'a>) -> Self {
        let versions: Vec<Props<'a>> = spec.schemas("versions").collect();
        let same = |name: &str| {
            let value = |version: &Props<'a>| {
                version.get(name).filter(|value| value.as_array().is_none_or(|all| !all.is_empty()))
            };
            versions.windows(2).all(|pair| value(&pair[0]) == value(&pair[1]))
        };
        let shared = Shared {
            schema: same("schema"),
            subresources: same("subresources"),
            columns: same("additionalPrinterColumns"),
            selectable: same("selectableFields"),
        };
        Self { spec, versions, shared }
    }

    fn check(&self, established: Option<&Value>, out: &mut Vec<FieldError>) {
        let (spec, path) = (self.spec, Path::new("spec"));
        let group = spec.text("group");
        let at = path.child("group");
        let wrong = names::dns1123_subdomain(group);
        if group.is_empty() {
            out.push(FieldError::required(at, ""));
        } else if !wrong.is_empty() {
            out.push(FieldError::invalid(at, group, wrong.join(",")));
        } else if !group.contains('.') {
            out.push(FieldError::invalid(at, group, "should be a domain with at least one dot"));
        }
        out.extend(one_of(spec.text("scope"), &["Cluster", "Namespaced"], &path.child("scope")));
        let versions_path = path.child("versions");
        for (index, version) in self.versions.iter().enumerate() {
            if schema_of(*version).is_none() {
                let at = versions_path.index(index).child("schema").child("openAPIV3Schema");
                out.push(FieldError::required(at, ""));
            }
        }
        let preserve = spec.flag("preserveUnknownFields");
        let has_defaults = |schema: Props<'a>| schema.any(&|one| one.get("default").is_some());
        if preserve && self.versions.iter().filter_map(|version| schema_of(*version)).any(has_defaults) {
            let why = "must be false in order to use defaults in the schema";
            out.push(FieldError::invalid(path.child("preserveUnknownFields"), true, why));
        }
        for (index, version) in self.versions.iter().enumerate() {
            self.version(*version, &versions_path.index(index), out);
        }
        self.version_list(&path, out);
        let names = spec.schema("names").unwrap_or(Props(&Value::Null));
        for name in ["plural", "singular", "kind", "listKind"] {
            if names.text(name).is_empty() {
                out.push(FieldError::required(path.child("names").child(name), ""));
            }
        }
        resource_names(names, &path.child("names"), out);
        self.shared_parts(&path, out);
        conversion::check(spec.schema("conversion"), preserve, established, &path.child("conversion"), out);
    }

    /// What a version has of its own.
    fn version(&self, version: Props<'a>, path: &Path, out: &mut Vec<FieldError>) {
        let name = version.text("name");
        let wrong = names::dns1035_label(name);
        if !wrong.is_empty() {
            out.push(FieldError::invalid(path.child("name"), name, wrong.join(",")));
        }
        out.extend(deprecation(version, &path.child("deprecationWarning")));
        if let (false, Some(schema)) = (self.shared.schema, schema_of(version)) {
            let at = path.child("schema").child("openAPIV3Schema");
            out.extend(check(schema.0, has_status(version), &at));
        }
        if let (false, Some(one)) = (self.shared.subresources, version.schema("subresources")) {
            subresources(one, &path.child("subresources"), out);
        }
        if !self.shared.columns {
            columns(version, &path.child("additionalPrinterColumns"), out);
        }
        if !self.shared.selectable && !version.list("selectableFields").is_empty() {
            let at = path.child("selectableFields");
            match schema_of(version).filter(|_| !self.shared.schema) {
                Some(schema) => selectable(version, schema, &at, out),
                None => {
                    let why = "may only be set when `version.schema.openAPIV3Schema` is not included";
                    out.push(FieldError::invalid(at, "", why));
                }
            }
        }
    }

    fn version_list(&self, path: &Path, out: &mut Vec<FieldError>) {
        let at = path.child("versions");
        let mut wrong = |why: &str| {
            let shown = golang::versions(self.spec.get("versions"), &self.shared);
            out.push(FieldError::invalid(&at, Shown::raw(shown), why));
        };
        let names: Vec<&str> = self.versions.iter().map(|version| version.text("name")).collect();
        if (1..names.len()).any(|at| names[..at].contains(&names[at])) {
            wrong("must contain unique version names");
        }
        if self.versions.iter().filter(|version| version.flag("storage")).count() != 1 {
            wrong("must have exactly one version marked as storage version");
        }
        if let Some(first) = names.first().filter(|first| !first.is_empty()) {
            let why = names::dns1035_label(first);
            if !why.is_empty() {
                out.push(FieldError::invalid(path.child("version"), *first, why.join(",")));
            }
        }
    }

    /// What all versions have in common.
    fn shared_parts(&self, path: &Path, out: &mut Vec<FieldError>) {
        let Some(first) = self.versions.first() else {
            return;
        };
        if let (true, Some(schema)) = (self.shared.schema, schema_of(*first)) {
            let status = self.versions.iter().any(|version| has_status(*version));
            out.extend(check(schema.0, status, &path.child("validation").child("openAPIV3Schema")));
        }
        if let (true, Some(one)) = (self.shared.subresources, first.schema("subresources")) {
            subresources(one, &path.child("subresources"), out);
        }
        if self.shared.columns {
            columns(*first, &path.child("additionalPrinterColumns"), out);
        }
        if self.shared.selectable && !first.list("selectableFields").is_empty() {
            let at = path.child("selectableFields");
            match schema_of(*first).filter(|_| self.shared.schema) {
                Some(schema) => selectable(*first, schema, &at, out),
                None => out.push(FieldError::invalid(
                    at,
                    "",
                    "may only be set when validations.schema is included",
                )),
            }
        }
    }
}

fn schema_of(version: Props<'_>) -> Option<Props<'_>> {
    version.schema("schema")?.schema("openAPIV3Schema")
}

fn has_status(version: Props<'_>) -> bool {
    version.schema("subresources").is_some_and(|one| one.get("status").is_some())
}

fn one_of(value: &str, accepted: &[&str], path: &Path) -> Option<FieldError> {
    match value {
        "" => Some(FieldError::required(path, "")),
        value if accepted.contains(&value) => None,
        value => Some(FieldError::not_supported(path, value, accepted)),
    }
}

fn resource_names(given: Props<'_>, path: &Path, out: &mut Vec<FieldError>) {
    let mut label = |value: &str, lower: bool, at: Path| {
        let mixed = if lower { "may have mixed case, but should otherwise match: " } else { "" };
        let why = names::dns1035_label(&if lower { value.to_lowercase() } else { value.to_owned() });
        if !why.is_empty() {
            out.push(FieldError::invalid(at, value, format!("{mixed}{}", why.join(","))));
        }
    };
    for (name, lower) in [("plural", false), ("singular", false), ("kind", true), ("listKind", true)] {
        if !given.text(name).is_empty() {
            label(given.text(name), lower, path.child(name));
        }
    }
    let several = |name: &str, label: &mut dyn FnMut(&str, bool, Path)| {
        for (index, value) in given.strings(name).enumerate() {
            label(value, false, path.child(name).index(index));
        }
    };
    several("shortNames", &mut label);
    if !given.text("kind").is_empty() && given.text("kind") == given.text("listKind") {
        let why = "kind and listKind may not be the same";
        out.push(FieldError::invalid(path.child("listKind"), given.text("kind"), why));
    }
    for (index, value) in given.strings("categories").enumerate() {
        let why = names::dns1035_label(value);
        if !why.is_empty() {
            out.push(FieldError::invalid(path.child("categories").index(index), value, why.join(",")));
        }
    }
}

fn stored_versions(status: Props<'_>, spec: Props<'_>, path: &Path, out: &mut Vec<FieldError>) {
    let stored: Vec<&str> = status.strings("storedVersions").collect();
    let shown = status.get("storedVersions").unwrap_or(&Value::Null);
    if stored.is_empty() {
        out.push(FieldError::invalid(path, shown, "must have at least one stored version"));
        return;
    }
    for version in spec.schemas("versions").filter(|version| version.flag("storage")) {
        let name = version.text("name");
        if !stored.contains(&name) {
            out.push(FieldError::invalid(path, shown, format!("must have the storage version {name}")));
        }
    }
    for (index, name) in stored.iter().enumerate() {
        if !spec.schemas("versions").any(|version| version.text("name") == *name) {
            let why = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            );
            out.push(FieldError::invalid(path.index(index), *name, why));
        }
    }
}
