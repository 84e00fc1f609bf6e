//! What is wrong with an object of a kind.
//!
//! Rules are small and about a type (a container, a probe, a selector); the table below says which of them are
//! for which kind. Custom resources are checked by their schema, definitions of them by rules of their own.
//! What depends on other objects is not here but in [`super::admission`].

mod address;
mod api_service;
mod autoscaling;
mod certificate;
mod condition;
mod config;
mod container;
mod cron_job;
mod custom;
mod device_slice;
mod devices;
mod diff;
mod endpoints;
mod env;
mod event;
mod field;
mod flow;
mod internal;
mod job;
mod network;
mod node;
mod pod;
mod pod_resources;
mod pod_status;
mod policy;
mod probe;
mod quota;
mod rbac;
mod resources;
mod runtime;
mod scheduling;
mod security;
mod selector;
mod service;
mod storage;
mod storage_kinds;
mod volume;
mod volume_source;
mod webhook;
mod workload;

use serde_json::Value;
use windlass_machinery::invalid::{FieldError, Path};
use windlass_machinery::{encode, names, structural};

use super::definitions;
use super::registry::Resource;
use super::strategy::{self, NameRule};
use super::write::Write;
use super::write::body::with_type;
use field::Errors;

type Check = fn(&mut Errors, &Value);
type Compare = fn(&mut Errors, &Value, &Value);

/// The rules of one kind.
struct Kind {
    /// What is wrong with a new object.
    create: Check,
    /// What is wrong with a changed object, given the old one.
    update: Compare,
    /// What is wrong with a new object where it is.
    placed: fn(&mut Errors, &Write<'_>, &Value),
    /// What is wrong with a changed status.
    status: Compare,
    /// Whether a change has all of the metadata checked, as creation has.
    rechecks: bool,
    /// Whether the kind looks at the change of metadata, as the server does for all kinds.
    compares: bool,
    /// Whether finalizers need a domain.
    qualified: bool,
    /// Whether the kind leaves its metadata to the server, which looks at it last.
    nameless: bool,
}

const PLAIN: Kind = Kind {
    create: |_, _| {},
    update: |_, _, _| {},
    placed: |_, _, _| {},
    status: |_, _, _| {},
    rechecks: false,
    compares: true,
    qualified: true,
    nameless: false,
};

static TABLE: &[(&str, &str, Kind)] = &[
    (
        "",
        "pods",
        Kind { create: pod::create, update: pod::update, status: pod::status, rechecks: true, ..PLAIN },
    ),
    (
        "",
        "podtemplates",
        Kind {
            create: |out, object| pod::template(out, &object["template"], &field::At::new("template")),
            update: |out, new, _| pod::template(out, &new["template"], &field::At::new("template")),
            ..PLAIN
        },
    ),
    (
        "apps",
        "deployments",
        Kind {
            create: workload::deployment,
            update: |out, new, old| {
                workload::deployment(out, new);
                workload::same_selector(out, new, old);
            },
            status: workload::deployment_status,
            ..PLAIN
        },
    ),
    (
        "apps",
        "replicasets",
        Kind {
            create: workload::replica_set,
            update: |out, new, old| {
                workload::replica_set(out, new);
                workload::same_selector(out, new, old);
            },
            status: workload::replica_status,
            ..PLAIN
        },
    ),
    (
        "apps",
        "statefulsets",
        Kind {
            create: workload::stateful_set,
            update: workload::stateful_set_update,
            status: workload::stateful_status,
            ..PLAIN
        },
    ),
    (
        "apps",
        "daemonsets",
        Kind {
            create: workload::daemon_set,
            update: |out, new, old| {
                workload::same_selector(out, new, old);
                workload::daemon_set(out, new);
            },
            status: workload::daemon_status,
            ..PLAIN
        },
    ),
    (
        "",
        "replicationcontrollers",
        Kind {
            create: workload::replication_controller,
            update: |out, new, _| workload::replication_controller(out, new),
            status: workload::replica_status,
            ..PLAIN
        },
    ),
    (
        "autoscaling",
        "horizontalpodautoscalers",
        Kind {
            create: autoscaling::autoscaler,
            update: |out, new, _| autoscaling::autoscaler(out, new),
            status: autoscaling::status,
            ..PLAIN
        },
    ),
    (
        "node.k8s.io",
        "runtimeclasses",
        Kind {
            create: runtime::class,
            update: runtime::class_update,
            rechecks: true,
            qualified: false,
            ..PLAIN
        },
    ),
    (
        "batch",
        "jobs",
        Kind { create: job::create, update: job::update, status: job::status, rechecks: true, ..PLAIN },
    ),
    ("batch", "cronjobs", Kind { create: cron_job::create, update: cron_job::update, ..PLAIN }),
    (
        "",
        "services",
        Kind { create: service::create, update: service::update, status: service::status, ..PLAIN },
    ),
    (
        "",
        "configmaps",
        Kind { create: config::config_map, update: config::config_map_update, rechecks: true, ..PLAIN },
    ),
    ("", "secrets", Kind { create: config::secret, update: config::secret_update, rechecks: true, ..PLAIN }),
    ("", "serviceaccounts", Kind { rechecks: true, ..PLAIN }),
    (
        "",
        "namespaces",
        Kind { create: node::namespace, status: node::namespace_status, rechecks: true, ..PLAIN },
    ),
    (
        "",
        "nodes",
        Kind { create: node::create, update: node::update, status: node::status, rechecks: true, ..PLAIN },
    ),
    (
        "",
        "persistentvolumeclaims",
        Kind {
            create: storage::claim,
            update: storage::claim_update,
            status: storage::claim_status,
            rechecks: true,
            ..PLAIN
        },
    ),
    (
        "",
        "persistentvolumes",
        Kind {
            create: storage::volume,
            update: storage::volume_update,
            rechecks: true,
            compares: false,
            ..PLAIN
        },
    ),
    (
        "",
        "resourcequotas",
        Kind { create: quota::quota, update: quota::quota_update, status: quota::quota_status, ..PLAIN },
    ),
    (
        "",
        "limitranges",
        Kind {
            create: quota::limit_range,
            update: |out, new, _| quota::limit_range(out, new),
            rechecks: true,
            compares: false,
            ..PLAIN
        },
    ),
    (
        "",
        "endpoints",
        Kind {
            create: endpoints::endpoints,
            update: |out, new, old| {
                if new["subsets"] != old["subsets"] {
                    endpoints::endpoints(out, new);
                }
            },
            rechecks: true,
            ..PLAIN
        },
    ),
    (
        "",
        "events",
        Kind {
            create: event::old,
            update: |out, new, _| event::old(out, new),
            compares: false,
            qualified: false,
            nameless: true,
            ..PLAIN
        },
    ),
    ("events.k8s.io", "events", Kind { create: event::new, update: event::update, ..PLAIN }),
    (
        "discovery.k8s.io",
        "endpointslices",
        Kind {
            create: endpoints::slice,
            update: endpoints::slice_update,
            rechecks: true,
            compares: false,
            ..PLAIN
        },
    ),
    (
        "coordination.k8s.io",
        "leases",
        Kind {
            create: endpoints::lease,
            update: |out, new, _| endpoints::lease(out, new),
            qualified: false,
            ..PLAIN
        },
    ),
    (
        "policy",
        "poddisruptionbudgets",
        Kind {
            create: endpoints::budget,
            update: |out, new, _| endpoints::budget(out, new),
            status: endpoints::budget_status,
            compares: false,
            qualified: false,
            ..PLAIN
        },
    ),
    (
        "networking.k8s.io",
        "ingresses",
        Kind {
            create: network::ingress_create,
            update: |out, new, _| network::ingress(out, new),
            status: network::ingress_status,
            rechecks: true,
            ..PLAIN
        },
    ),
    (
        "networking.k8s.io",
        "ingressclasses",
        Kind { create: network::class, update: network::class_update, rechecks: true, ..PLAIN },
    ),
    (
        "networking.k8s.io",
        "networkpolicies",
        Kind { create: network::policy, update: |out, new, _| network::policy(out, new), ..PLAIN },
    ),
    (
        "scheduling.k8s.io",
        "priorityclasses",
        Kind { create: node::priority, update: node::priority_update, ..PLAIN },
    ),
    (
        "storage.k8s.io",
        "storageclasses",
        Kind { create: storage::class, update: storage::class_update, rechecks: true, ..PLAIN },
    ),
    (
        "storage.k8s.io",
        "csidrivers",
        Kind { create: storage_kinds::driver, update: storage_kinds::driver_update, ..PLAIN },
    ),
    (
        "storage.k8s.io",
        "csinodes",
        Kind {
            create: storage_kinds::node,
            update: storage_kinds::node_update,
            rechecks: true,
            compares: false,
            ..PLAIN
        },
    ),
    (
        "storage.k8s.io",
        "csistoragecapacities",
        Kind {
            create: storage_kinds::capacity,
            update: storage_kinds::capacity_update,
            rechecks: true,
            ..PLAIN
        },
    ),
    (
        "storage.k8s.io",
        "volumeattachments",
        Kind {
            create: storage_kinds::attachment,
            update: storage_kinds::attachment_update,
            rechecks: true,
            compares: false,
            ..PLAIN
        },
    ),
    (
        "storage.k8s.io",
        "volumeattributesclasses",
        Kind {
            create: storage_kinds::attributes,
            update: storage_kinds::attributes_update,
            rechecks: true,
            ..PLAIN
        },
    ),
    (
        "certificates.k8s.io",
        "certificatesigningrequests",
        Kind {
            create: certificate::request,
            update: certificate::update,
            status: certificate::update,
            rechecks: true,
            ..PLAIN
        },
    ),
    (
        "rbac.authorization.k8s.io",
        "roles",
        Kind { create: rbac::role, update: |out, new, _| rbac::role(out, new), rechecks: true, ..PLAIN },
    ),
    (
        "rbac.authorization.k8s.io",
        "clusterroles",
        Kind {
            create: rbac::cluster_role,
            update: |out, new, _| rbac::cluster_role(out, new),
            rechecks: true,
            ..PLAIN
        },
    ),
    (
        "rbac.authorization.k8s.io",
        "rolebindings",
        Kind {
            create: rbac::binding,
            update: |out, new, old| {
                rbac::binding(out, new);
                rbac::same_role(out, new, old);
            },
            rechecks: true,
            ..PLAIN
        },
    ),
    (
        "rbac.authorization.k8s.io",
        "clusterrolebindings",
        Kind {
            create: rbac::cluster_binding,
            update: |out, new, old| {
                rbac::cluster_binding(out, new);
                rbac::same_role(out, new, old);
            },
            rechecks: true,
            ..PLAIN
        },
    ),
    (
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        Kind { create: webhook::validating, update: |out, new, _| webhook::validating(out, new), ..POLICY },
    ),
    (
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
        Kind { create: webhook::mutating, update: |out, new, _| webhook::mutating(out, new), ..POLICY },
    ),
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicies",
        Kind {
            create: policy::policy,
            update: |out, new, _| policy::policy(out, new),
            status: |out, new, _| condition::conditions(out, &new["status"], &field::At::new("status")),
            ..POLICY
        },
    ),
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicybindings",
        Kind { create: policy::binding, update: |out, new, _| policy::binding(out, new), ..POLICY },
    ),
    (
        "admissionregistration.k8s.io",
        "mutatingadmissionpolicies",
        Kind {
            create: policy::mutating_policy,
            update: |out, new, _| policy::mutating_policy(out, new),
            ..POLICY
        },
    ),
    (
        "admissionregistration.k8s.io",
        "mutatingadmissionpolicybindings",
        Kind {
            create: policy::mutating_binding,
            update: |out, new, _| policy::mutating_binding(out, new),
            ..POLICY
        },
    ),
    (
        "flowcontrol.apiserver.k8s.io",
        "flowschemas",
        Kind {
            create: flow::schema,
            update: |out, new, _| flow::schema(out, new),
            status: condition::typed,
            rechecks: true,
            compares: false,
            ..PLAIN
        },
    ),
    (
        "flowcontrol.apiserver.k8s.io",
        "prioritylevelconfigurations",
        Kind {
            create: flow::level,
            update: |out, new, _| flow::level(out, new),
            status: condition::typed,
            rechecks: true,
            compares: false,
            ..PLAIN
        },
    ),
    (
        "networking.k8s.io",
        "ipaddresses",
        Kind { create: network::ip_address, update: network::ip_address_update, rechecks: true, ..PLAIN },
    ),
    (
        "networking.k8s.io",
        "servicecidrs",
        Kind { create: network::service_range, update: network::service_range_update, ..PLAIN },
    ),
    (
        "resource.k8s.io",
        "deviceclasses",
        Kind {
            create: |out, class| devices::class(out, class, None),
            update: |out, new, old| devices::class(out, new, Some(old)),
            rechecks: true,
            ..PLAIN
        },
    ),
    (
        "resource.k8s.io",
        "resourceclaims",
        Kind {
            create: devices::claim,
            update: devices::claim_update,
            placed: |out, write, claim| devices::admin_access(out, write, &claim["spec"]),
            status: device_slice::claim_status,
            rechecks: true,
            ..PLAIN
        },
    ),
    (
        "resource.k8s.io",
        "resourceclaimtemplates",
        Kind {
            create: devices::template,
            update: devices::template_update,
            placed: |out, write, template| devices::admin_access(out, write, &template["spec"]["spec"]),
            rechecks: true,
            ..PLAIN
        },
    ),
    (
        "resource.k8s.io",
        "resourceslices",
        Kind {
            create: |out, slice| device_slice::slice(out, slice, None),
            update: |out, new, old| device_slice::slice(out, new, Some(old)),
            ..PLAIN
        },
    ),
    (
        "apiregistration.k8s.io",
        "apiservices",
        Kind {
            create: api_service::service,
            update: |out, new, _| api_service::service(out, new),
            status: api_service::status,
            rechecks: true,
            qualified: false,
            ..PLAIN
        },
    ),
    (
        "apps",
        "controllerrevisions",
        Kind { create: workload::revision, update: workload::revision_update, rechecks: true, ..PLAIN },
    ),
];

/// Webhooks and policies check all of their metadata again and nothing of its change.
const POLICY: Kind = Kind { rechecks: true, compares: false, qualified: false, ..PLAIN };

/// What is wrong with a new object; `given` has the empty lists and maps of it that are dropped elsewhere.
#[must_use]
pub fn create(write: &Write<'_>, object: &Value, given: Option<&Value>) -> Vec<FieldError> {
    let errors = create_faults(write, object);
    as_given(errors, object, given, |object| create_faults(write, object))
}

/// What is wrong with a changed object; `given` has the empty lists and maps of it that are dropped elsewhere.
#[must_use]
pub fn update(write: &mut Write<'_>, new: &Value, old: &Value, given: Option<&Value>) -> Vec<FieldError> {
    let errors = update_faults(write, new, old);
    as_given(errors, new, given, |new| update_faults(write, new, old))
}

/// Messages show what is there and empty otherwise than what is not there, while no rule tells them apart: faults
/// are found without, and shown with them.
fn as_given(
    mut errors: Vec<FieldError>,
    object: &Value,
    given: Option<&Value>,
    mut again: impl FnMut(&Value) -> Vec<FieldError>,
) -> Vec<FieldError> {
    let Some(given) = given.filter(|_| !errors.is_empty()) else { return errors };
    let mut whole = object.clone();
    encode::put_back(&mut whole, given);
    let shown = again(&whole);
    let same =
        |error: &FieldError, other: &FieldError| error.kind == other.kind && error.field == other.field;
    let of = |all: &[FieldError], one: &FieldError| all.iter().filter(|other| same(one, other)).count();
    let mut taken = vec![false; shown.len()];
    for index in 0..errors.len() {
        if of(&errors, &errors[index]) != of(&shown, &errors[index]) {
            continue;
        }
        let next = (0..shown.len()).find(|other| !taken[*other] && same(&errors[index], &shown[*other]));
        if let Some(next) = next {
            taken[next] = true;
            errors[index] = shown[next].clone();
        }
    }
    errors
}

fn create_faults(write: &Write<'_>, object: &Value) -> Vec<FieldError> {
    let resource = write.resource;
    if definitions::is_definition(resource) {
        return structural::check_definition(object, None);
    }
    let kind = kind(resource);
    if kind.nameless {
        let mut errors = Errors::new();
        (kind.create)(&mut errors, object);
        return if errors.is_empty() { whole_metadata(resource, kind, object) } else { errors };
    }
    let mut errors = whole_metadata(resource, kind, object);
    if resource.custom.is_some() {
        errors.extend(custom(resource, object));
    } else {
        (kind.create)(&mut errors, object);
        (kind.placed)(&mut errors, write, object);
    }
    errors
}

fn update_faults(write: &mut Write<'_>, new: &Value, old: &Value) -> Vec<FieldError> {
    let resource = write.resource;
    if definitions::is_definition(resource) {
        return match write.subresource {
            Some("status") => structural::check_definition_status(new, old),
            _ => structural::check_definition(new, Some(old)),
        };
    }
    let kind = kind(resource);
    let metadata = Path::new("metadata");
    let changes = names::object_meta_update(&new["metadata"], &old["metadata"], &metadata);
    // The server checks the metadata of all kinds, and then every kind once more, which shows in the causes.
    let mut errors =
        names::object_meta(&new["metadata"], resource.namespaced, names::path_segment_name, &metadata);
    errors.extend(changes.iter().cloned());
    if kind.compares {
        errors.extend(changes);
    }
    if resource.custom.is_some() {
        let old = with_type(old, resource);
        let (faults, passed) =
            structural::validate_change(&with_type(new, resource), Some(&old), resource.ty());
        errors.extend(faults);
        errors.extend(custom::scale(resource, new, write.subresource));
        // What passes because it did not change is told nevertheless.
        write.warnings.extend(passed.iter().map(ToString::to_string));
        return errors;
    }
    if kind.qualified && kind.compares {
        errors.extend(names::finalizers_qualified(&new["metadata"], &metadata));
    }
    match write.subresource {
        Some("status") => (kind.status)(&mut errors, new, old),
        Some("ephemeralcontainers") => {
            errors.extend(whole_metadata(resource, kind, new));
            pod::ephemeral_containers(&mut errors, new, old);
        }
        Some("resize") => {
            errors.extend(whole_metadata(resource, kind, new));
            pod::resize(&mut errors, new, old);
        }
        Some("finalize") => namespace_finalizers(&mut errors, new),
        // They change one thing that was checked already.
        Some("binding" | "eviction") => {}
        Some("approval") => certificate::approval(&mut errors, new, old),
        _ => {
            if kind.rechecks {
                errors.extend(whole_metadata(resource, kind, new));
            }
            (kind.update)(&mut errors, new, old);
        }
    }
    errors
}

/// The behavior of an autoscaler as the server writes it with Go's own names.
#[must_use]
pub fn behavior_text(behavior: &Value) -> String {
    internal::text("HorizontalPodAutoscalerBehavior", behavior)
}

/// The finalizers of a namespace are the server's own, or say whose they are.
fn namespace_finalizers(out: &mut Errors, namespace: &Value) {
    let finalizers = namespace["spec"]["finalizers"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (index, name) in finalizers.iter().filter_map(Value::as_str).enumerate() {
        let at = Path::new("spec").child("finalizers").index(index);
        let faults = names::qualified_name(name);
        let unqualified = !name.contains('/') && name != "kubernetes";
        out.extend(faults.iter().map(|why| FieldError::invalid(&at, name, why.clone())));
        if unqualified {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            out.push(FieldError::invalid(&at, name, why));
        }
    }
}

fn whole_metadata(resource: &Resource, kind: &Kind, object: &Value) -> Errors {
    let rule = match strategy::of(resource).name {
        NameRule::Subdomain => names::subdomain_name,
        NameRule::LongName => names::long_name,
        NameRule::Label => names::label_name,
        NameRule::PathSegment => names::path_segment_name,
        NameRule::Address => |name: &str, _: bool| {
            let mut wrong = Errors::new();
            address::ip(&mut wrong, name, &field::At::new(""));
            wrong.into_iter().map(|error| error.detail).collect()
        },
    };
    let path = Path::new("metadata");
    let mut errors = names::object_meta(&object["metadata"], resource.namespaced, rule, &path);
    if kind.qualified && resource.custom.is_none() {
        errors.extend(names::finalizers_qualified(&object["metadata"], &path));
    }
    errors
}

fn kind(resource: &Resource) -> &'static Kind {
    static UNKNOWN: Kind = PLAIN;
    TABLE
        .iter()
        .find(|(group, plural, _)| *group == resource.group && *plural == resource.plural)
        .map_or(&UNKNOWN, |(_, _, kind)| kind)
}

/// What a custom object's schema and rules say; rules may look at its `apiVersion` and `kind`.
fn custom(resource: &Resource, new: &Value) -> Vec<FieldError> {
    let mut errors = structural::validate(&with_type(new, resource), None, resource.ty());
    errors.extend(custom::scale(resource, new, None));
    errors
}
