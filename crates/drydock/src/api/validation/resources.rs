//! Resource names and quantities.

use serde_json::Value;
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;
use windlass_machinery::quantity::Quantity;

use super::field::{At, Errors, entries, reasons};

const COUNTED: &[&str] = &[
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
const COMPUTED: &[&str] = &[
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];

/// The quantity that a value holds.
pub(super) fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => Quantity::parse(text).ok(),
        Value::Number(number) => Quantity::parse(&number.to_string()).ok(),
        _ => None,
    }
}

/// What a container asks for, and what it gets at most.
pub(super) fn of_container(out: &mut Errors, resources: &Value, at: &At<'_>) {
    requirements(out, resources, at, container_name);
}

/// The same, of resources whose names follow another rule.
pub(super) fn requirements(
    out: &mut Errors,
    resources: &Value,
    at: &At<'_>,
    name_rule: fn(&mut Errors, &str, &At<'_>),
) {
    let (limits, requests) = (at.child("limits"), at.child("requests"));
    let (mut huge, mut small) = (false, false);
    for (name, value) in entries(resources, "limits") {
        let at = &limits.key(name);
        name_rule(out, name, at);
        amount(out, name, value, at);
        huge |= is_huge(name);
        small |= matches!(name.as_str(), "cpu" | "memory");
    }
    for (name, value) in entries(resources, "requests") {
        let at = &requests.key(name);
        name_rule(out, name, at);
        amount(out, name, value, at);
        huge |= is_huge(name);
        small |= matches!(name.as_str(), "cpu" | "memory");
        let limit = quantity(&resources["limits"][name.as_str()]);
        match (quantity(value), limit) {
            (Some(wanted), Some(limit)) if wanted != limit && !overcommits(name) => {
                let why = format!("must be equal to {name} limit of {limit}");
                out.push(FieldError::invalid(requests, wanted.to_string(), why));
            }
            (Some(wanted), Some(limit)) if wanted > limit => {
                let why = format!("must be less than or equal to {name} limit of {limit}");
                out.push(FieldError::invalid(requests, wanted.to_string(), why));
            }
            (_, None) if !overcommits(name) => {
                out.push(FieldError::required(limits, "Limit must be set for non overcommitable resources"));
            }
            _ => {}
        }
    }
    if huge && !small {
        out.push(FieldError::forbidden(at, "HugePages require cpu or memory"));
    }
}

/// An amount of a resource: not negative, and whole where it counts things.
pub(super) fn amount(out: &mut Errors, name: &str, value: &Value, at: &At<'_>) {
    let Some(amount) = quantity(value) else { return };
    if amount.sign() < 0 {
        out.push(FieldError::invalid(at, amount.to_string(), "must be greater than or equal to 0"));
    }
    if (COUNTED.contains(&name) || is_extended(name)) && amount.milli_value() % 1000 != 0 {
        out.push(FieldError::invalid(at, amount.to_string(), "must be an integer"));
    }
    let page = name.strip_prefix("hugepages-").and_then(|size| Quantity::parse(size).ok());
    if let Some(page) = page
        && (page.value() == 0 || amount.value() % page.value() != 0)
    {
        let why = format!("{amount} is not positive integer multiple of {name}");
        out.push(FieldError::invalid(at, amount.to_string(), why));
    }
}

/// The name of any resource.
pub(super) fn name(out: &mut Errors, name: &str, at: &At<'_>) {
    let why = names::qualified_name(name);
    if !why.is_empty() {
        reasons(out, name, at, why);
    } else if !name.contains('/') && !is_standard(name) {
        out.push(FieldError::invalid(at, name, "must be a standard resource type or fully qualified"));
    }
}

/// The name of a resource that containers use.
pub(super) fn container_name(out: &mut Errors, name: &str, at: &At<'_>) {
    self::name(out, name, at);
    if name.contains('/') {
        if !is_native(name) && !is_extended(name) {
            out.push(FieldError::invalid(at, name, "doesn't follow extended resource name standard"));
        }
    } else if !matches!(name, "cpu" | "memory" | "ephemeral-storage") && !is_huge(name) {
        out.push(FieldError::invalid(at, name, "must be a standard resource for containers"));
    }
}

/// The name of a resource that a quota counts.
pub(super) fn quota_name(out: &mut Errors, name: &str, at: &At<'_>) {
    self::name(out, name, at);
    if !name.contains('/') && !is_quota(name) {
        out.push(FieldError::invalid(at, name, "must be a standard resource for quota"));
    }
}

/// Whether more of a resource may be asked for than there is.
pub(super) fn overcommits(name: &str) -> bool {
    is_native(name) && !is_huge(name)
}

/// Whether a quota knows the resource by itself.
pub(super) fn is_quota(name: &str) -> bool {
    COUNTED.contains(&name)
        || COMPUTED.contains(&name)
        || is_huge(name)
        || name.starts_with("requests.hugepages-")
}

/// Whether a quota resource is about computing, so that it can be scoped by what pods ask for.
pub(super) fn is_computing(name: &str) -> bool {
    COMPUTED.contains(&name)
}

fn is_standard(name: &str) -> bool {
    is_quota(name) || name == "storage"
}

fn is_huge(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether a resource is one that Kubernetes does not know itself.
pub(super) fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::qualified_name(&format!("requests.{name}")).is_empty()
}
