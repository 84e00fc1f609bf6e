//! Devices that are asked for: claims, their templates, and classes of devices.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::Value;
use windlass_machinery::cel::{Environment, Program, Type};
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;

use super::field::{At, Errors, count, has, immutable_as, is, list, reasons, strings, text};
use super::{field, internal, resources, storage};
use crate::api::write::{Write, decoded};
use crate::store::Key;

const SPEC: At<'static> = At::new("spec");
/// How many requests, constraints, configurations and selectors there may be.
const MOST: usize = 32;
const MOST_ALTERNATIVES: usize = 8;
const LONGEST_EXPRESSION: usize = 10 * 1024;
const LARGEST_PARAMETERS: usize = 10 * 1024;
const LONGEST_IDENTIFIER: usize = 32;
pub(super) const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];

/// A claim.
pub(super) fn claim(out: &mut Errors, claim: &Value) {
    claim_spec(out, &claim["spec"], &SPEC);
}

/// What a claim asks for does not change.
pub(super) fn claim_update(out: &mut Errors, new: &Value, old: &Value) {
    immutable_as(out, &new["spec"], &old["spec"], &SPEC, |spec| internal::shown("ResourceClaimSpec", spec));
}

/// A template of claims.
pub(super) fn template(out: &mut Errors, template: &Value) {
    let spec = &template["spec"];
    let at = &SPEC.child("metadata");
    field::labels(out, &spec["metadata"], "labels", at);
    field::annotations(out, &spec["metadata"], "annotations", at);
    for (field, shown) in [
        ("name", "name"),
        ("generateName", "generateName"),
        ("namespace", "namespace"),
        ("selfLink", "selfLink"),
        ("uid", "uID"),
        ("resourceVersion", "resourceVersion"),
        ("generation", "generation"),
        ("creationTimestamp", "creationTimestamp"),
        ("deletionTimestamp", "deletionTimestamp"),
        ("deletionGracePeriodSeconds", "deletionGracePeriodSeconds"),
        ("ownerReferences", "ownerReferences"),
        ("finalizers", "finalizers"),
        ("managedFields", "managedFields"),
    ] {
        if has(&spec["metadata"], field) {
            out.push(FieldError::forbidden(at.child(shown), "cannot be set"));
        }
    }
    claim_spec(out, &spec["spec"], &SPEC.child("spec"));
}

/// A template does not change either.
pub(super) fn template_update(out: &mut Errors, new: &Value, old: &Value) {
    template(out, new);
    immutable_as(out, &new["spec"], &old["spec"], &SPEC, |spec| {
        internal::shown("ResourceClaimTemplateSpec", spec)
    });
}

/// Who looks into devices of others needs a namespace where that is allowed.
pub(super) fn admin_access(out: &mut Errors, write: &Write<'_>, spec: &Value) {
    const LABEL: &str = "resource.kubernetes.io/admin-access";
    let at = &SPEC.child("devices");
    let at = &at.child("requests");
    for (index, request) in list(&spec["devices"], "requests").iter().enumerate() {
        if is(&request["exactly"], "adminAccess") && !is_labelled(write, LABEL) {
            let why = "admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on \
                       the containing namespace";
            out.push(FieldError::forbidden(at.index(index).child("adminAccess"), why));
        }
    }
}

fn is_labelled(write: &Write<'_>, label: &str) -> bool {
    let registry = write.server.registry();
    let stored = registry
        .core("namespaces")
        .and_then(|namespaces| write.server.store.get(namespaces.table, &Key::new("", write.namespace)));
    let namespace = stored.and_then(|stored| decoded(&stored).ok()).unwrap_or_default();
    namespace["metadata"]["labels"][label] == "true"
}

/// A class of devices; what was there before was checked before.
pub(super) fn class(out: &mut Errors, class: &Value, old: Option<&Value>) {
    let spec = &class["spec"];
    let stored = |field: &str| old.is_some_and(|old| old["spec"][field] == spec[field]);
    let known = stored("selectors");
    selectors(out, spec, &SPEC, known);
    let known = stored("config");
    each(out, list(spec, "config"), MOST, &SPEC.child("config"), |out, config, at| {
        configuration(out, config, at, known);
    });
    let name = text(spec, "extendedResourceName");
    if has(spec, "extendedResourceName") && !resources::is_extended(name) {
        let at = SPEC.child("extendedResourceName");
        out.push(FieldError::invalid(at, name, "must be a valid extended resource name"));
    }
}

fn claim_spec(out: &mut Errors, spec: &Value, at: &At<'_>) {
    let devices = &spec["devices"];
    let at = &at.child("devices");
    let names = Requests::of(devices);
    set(out, list(devices, "requests"), MOST, &at.child("requests"), |item| text(item, "name"), request);
    each(out, list(devices, "constraints"), MOST, &at.child("constraints"), |out, constraint, at| {
        request_names(out, constraint, at, &names);
        let attribute =
            ["matchAttribute", "distinctAttribute"].into_iter().find(|field| has(constraint, field));
        match attribute {
            Some(field) => full_name(out, text(constraint, field), &at.child(field)),
            None => {
                let why = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple \
                           fields are set";
                out.push(FieldError::required(at, why));
            }
        }
    });
    each(out, list(devices, "config"), MOST, &at.child("config"), |out, config, at| {
        request_names(out, config, at, &names);
        configuration(out, config, at, false);
    });
}

fn request(out: &mut Errors, request: &Value, at: &At<'_>) {
    label(out, text(request, "name"), &at.child("name"));
    let alternatives = list(request, "firstAvailable");
    match (has(request, "exactly"), !alternatives.is_empty()) {
        (false, false) => {
            out.push(FieldError::required(at, "exactly one of `exactly` or `firstAvailable` is required"));
        }
        (true, true) => {
            let why = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set";
            out.push(FieldError::invalid(at, &Value::Null, why));
        }
        (true, false) => wanted(out, &request["exactly"], &at.child("exactly")),
        (false, true) => {
            let at = &at.child("firstAvailable");
            set(
                out,
                alternatives,
                MOST_ALTERNATIVES,
                at,
                |item| text(item, "name"),
                |out, item, at| {
                    label(out, text(item, "name"), &at.child("name"));
                    wanted(out, item, at);
                },
            );
        }
    }
}

/// What is asked for: a class, selectors, how many.
fn wanted(out: &mut Errors, wanted: &Value, at: &At<'_>) {
    if field::required(out, wanted, "deviceClassName", at) {
        let name = text(wanted, "deviceClassName");
        reasons(out, name, &at.child("deviceClassName"), names::dns1123_subdomain(name));
    }
    selectors(out, wanted, at, false);
    let number = count(wanted, "count");
    match text(wanted, "allocationMode") {
        "All" if number != 0 => {
            let why = "must not be specified when allocationMode is 'All'";
            out.push(FieldError::invalid(at.child("count"), number, why));
        }
        "ExactCount" if number <= 0 => {
            out.push(FieldError::invalid(at.child("count"), number, "must be greater than zero"));
        }
        "All" | "ExactCount" => {}
        other => {
            let at = at.child("allocationMode");
            out.push(FieldError::not_supported(at, other, ["All", "ExactCount"]));
        }
    }
    tolerations(out, wanted, at);
}

/// Taints of devices that are put up with.
pub(super) fn tolerations(out: &mut Errors, within: &Value, at: &At<'_>) {
    let at = &at.child("tolerations");
    if list(within, "tolerations").len() > 16 {
        out.push(FieldError::too_many(at, list(within, "tolerations").len(), 16));
        return;
    }
    for (index, toleration) in list(within, "tolerations").iter().enumerate() {
        let at = &at.index(index);
        field::named(out, toleration, "key", at, names::qualified_name);
        let value = text(toleration, "value");
        match text(toleration, "operator") {
            "Exists" if !value.is_empty() => {
                out.push(FieldError::invalid(
                    at.child("value"),
                    value,
                    "must be empty for operator `Exists`",
                ));
            }
            "Equal" => reasons(out, value, &at.child("value"), names::label_value(value)),
            "Exists" => {}
            "" => out.push(FieldError::required(at.child("operator"), "")),
            other => {
                out.push(FieldError::not_supported(at.child("operator"), other, ["Equal", "Exists"]));
            }
        }
        if has(toleration, "effect") {
            field::optional_choice(out, toleration, "effect", at, &EFFECTS);
        }
    }
}

fn selectors(out: &mut Errors, within: &Value, at: &At<'_>, stored: bool) {
    each(out, list(within, "selectors"), MOST, &at.child("selectors"), |out, selector, at| {
        let at = &at.child("cel");
        if !has(selector, "cel") {
            out.push(FieldError::required(at, ""));
        } else if !stored {
            expression(out, text(&selector["cel"], "expression"), &at.child("expression"));
        }
    });
}

fn expression(out: &mut Errors, text: &str, at: &At<'_>) {
    static DEVICE: LazyLock<Environment> = LazyLock::new(|| {
        let by_domain = |of: Type| Type::map(Type::String, Type::map(Type::String, of));
        let device = Type::object(
            "kubernetes.DRADevice",
            [
                ("driver", Type::String),
                ("attributes", by_domain(Type::Dyn)),
                ("capacity", by_domain(Type::Named("kubernetes.Quantity"))),
                ("allowMultipleAllocations", Type::Bool),
            ],
        );
        Environment::default().with("device", device)
    });
    if text.len() > LONGEST_EXPRESSION {
        out.push(FieldError::too_long(at, LONGEST_EXPRESSION));
        return;
    }
    match Program::compile(text, &DEVICE) {
        Err(why) => out.push(FieldError::invalid(at, text, format!("compilation failed: {why}"))),
        Ok(program) if !matches!(program.output(), Type::Bool | Type::Dyn) => {
            out.push(FieldError::invalid(
                at,
                text,
                "must evaluate to bool or the unknown type, not %s"
                    .replace("%s", &program.output().to_string()),
            ));
        }
        Ok(_) => {}
    }
}

/// A driver's own parameters.
pub(super) fn configuration(out: &mut Errors, config: &Value, at: &At<'_>, stored: bool) {
    let at = &at.child("opaque");
    if !has(config, "opaque") {
        out.push(FieldError::required(at, ""));
        return;
    }
    let opaque = &config["opaque"];
    storage::driver_name(out, opaque, "driver", at);
    raw(out, &opaque["parameters"], &at.child("parameters"), LARGEST_PARAMETERS, stored);
}

/// An object of a type that the server does not know.
pub(super) fn raw(out: &mut Errors, value: &Value, at: &At<'_>, most: usize, stored: bool) {
    match value {
        Value::Null => out.push(FieldError::required(at, "")),
        value if !stored && value.to_string().len() > most => out.push(FieldError::too_long(at, most)),
        Value::Object(_) => {}
        _ => out.push(FieldError::invalid(at, "<value omitted>", "must be a valid JSON object")),
    }
}

/// The requests of a claim, with the alternatives within them.
pub(super) struct Requests<'v>(BTreeMap<&'v str, BTreeSet<&'v str>>);

impl<'v> Requests<'v> {
    pub(super) fn of(devices: &'v Value) -> Self {
        let requests = list(devices, "requests").iter();
        Self(
            requests
                .map(|request| {
                    let inner = list(request, "firstAvailable").iter().map(|item| text(item, "name"));
                    (text(request, "name"), inner.collect())
                })
                .collect(),
        )
    }

    fn has(&self, name: &str) -> bool {
        match name.split_once('/') {
            None => self.0.contains_key(name),
            Some((request, inner)) => self.0.get(request).is_some_and(|names| names.contains(inner)),
        }
    }
}

/// The requests that something is for.
pub(super) fn request_names(out: &mut Errors, within: &Value, at: &At<'_>, known: &Requests<'_>) {
    let names = list(within, "requests");
    let key = |item: &'_ Value| item.as_str().unwrap_or_default().to_owned();
    set(out, names, MOST, &at.child("requests"), key, |out, name, at| {
        request_name(out, name.as_str().unwrap_or_default(), at, known);
    });
}

/// The name of a request, or of an alternative in one.
pub(super) fn request_name(out: &mut Errors, name: &str, at: &At<'_>, known: &Requests<'_>) {
    if name.matches('/').count() < 2 {
        name.split('/').for_each(|part| label(out, part, at));
    }
    if !known.has(name) {
        let why = "must be the name of a request in the claim or the name of a request and a subrequest separated \
                   by '/'";
        out.push(FieldError::invalid(at, name, why));
    }
}

/// A DNS label.
pub(super) fn label(out: &mut Errors, name: &str, at: &At<'_>) {
    reasons(out, name, at, names::dns1123_label(name));
}

/// The name of an attribute or a capacity, in a domain perhaps.
pub(super) fn qualified(out: &mut Errors, name: &str, at: &At<'_>) {
    let identifier = |out: &mut Errors, name: &str| {
        if name.len() > LONGEST_IDENTIFIER {
            out.push(FieldError::too_long(at, LONGEST_IDENTIFIER));
        }
        reasons(out, name, at, names::c_identifier(name));
    };
    match name.split_once('/') {
        None => identifier(out, name),
        // The server does not look at more than that.
        Some((_, rest)) if rest.contains('/') => {}
        Some((domain, name)) => {
            if domain.is_empty() {
                out.push(FieldError::invalid(at, "", "the domain must not be empty"));
            } else {
                storage::driver(out, domain, at);
            }
            if name.is_empty() {
                out.push(FieldError::invalid(at, "", "the name must not be empty"));
            } else {
                identifier(out, name);
            }
        }
    }
}

fn full_name(out: &mut Errors, name: &str, at: &At<'_>) {
    qualified(out, name, at);
    if !name.contains('/') {
        let why = "a fully qualified name must be a domain and a name separated by a slash";
        out.push(FieldError::invalid(at, name, why));
    }
}

/// Each element of a list that is not too long.
pub(super) fn each(
    out: &mut Errors,
    items: &[Value],
    most: usize,
    at: &At<'_>,
    check: impl Fn(&mut Errors, &Value, &At<'_>),
) {
    if items.len() > most {
        out.push(FieldError::too_many(at, items.len(), most));
        return;
    }
    for (index, item) in items.iter().enumerate() {
        check(out, item, &at.index(index));
    }
}

/// Each element of a list that is not too long and has nothing twice.
pub(super) fn set<'v, K: AsRef<str>>(
    out: &mut Errors,
    items: &'v [Value],
    most: usize,
    at: &At<'_>,
    key: impl Fn(&'v Value) -> K,
    check: impl Fn(&mut Errors, &Value, &At<'_>),
) {
    each(out, items, most, at, check);
    if items.len() > most {
        return;
    }
    let mut known = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let key = key(item).as_ref().to_owned();
        if known.contains(&key) {
            out.push(FieldError::duplicate(at.index(index), &key));
        }
        known.insert(key);
    }
}

/// The conditions that a device waits for, and those that end the waiting.
pub(super) fn binding_conditions(out: &mut Errors, device: &Value, at: &At<'_>) {
    const FIELDS: [&str; 2] = ["bindingConditions", "bindingFailureConditions"];
    for field in FIELDS {
        each(out, list(device, field), 4, &at.child(field), |out, name, at| {
            let name = name.as_str().unwrap_or_default();
            reasons(out, name, at, names::qualified_name(name));
        });
    }
    for field in FIELDS {
        let at = &at.child(field);
        let mut known = BTreeSet::new();
        for (index, name) in strings(device, field).enumerate() {
            if !known.insert(name) {
                out.push(FieldError::duplicate(at.index(index), name));
            }
            if field == FIELDS[1] && strings(device, FIELDS[0]).any(|other| other == name) {
                let why = "bindingFailureConditions must not overlap with bindingConditions";
                out.push(FieldError::invalid(at.index(index), name, why));
            }
        }
    }
    for (empty, other) in [(FIELDS[0], FIELDS[1]), (FIELDS[1], FIELDS[0])] {
        if list(device, empty).is_empty() && !list(device, other).is_empty() {
            let why = format!("{empty} are required to use {other}");
            out.push(FieldError::invalid(at.child(empty), &device[empty], why));
        }
    }
}
