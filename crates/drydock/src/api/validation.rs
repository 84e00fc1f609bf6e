//! What is wrong with an object of a kind.
//!
//! Rules are small and about a type (a container, a probe, a selector); the table below says which of them are
//! for which kind. Custom resources are checked by their schema, definitions of them by rules of their own.
//! What depends on other objects is not here but in [`super::admission`].

mod address;
mod autoscaling;
mod config;
mod container;
mod cron_job;
mod diff;
mod endpoints;
mod env;
mod field;
mod internal;
mod job;
mod network;
mod node;
mod pod;
mod probe;
mod quota;
mod rbac;
mod resources;
mod scheduling;
mod security;
mod selector;
mod service;
mod storage;
mod volume;
mod webhook;
mod workload;

use serde_json::Value;
use windlass_machinery::invalid::{FieldError, Path};
use windlass_machinery::{names, structural};

use super::admission::policy::{check_binding, check_policy};
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
    /// What is wrong with a changed status.
    status: Compare,
    /// Whether a change has all of the metadata checked, as creation has.
    rechecks: bool,
    /// Whether finalizers need a domain.
    qualified: bool,
}

const PLAIN: Kind =
    Kind { create: |_, _| {}, update: |_, _, _| {}, status: |_, _, _| {}, rechecks: false, qualified: true };

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
            ..PLAIN
        },
    ),
    (
        "node.k8s.io",
        "runtimeclasses",
        Kind { create: autoscaling::runtime_class, update: autoscaling::runtime_class_update, ..PLAIN },
    ),
    ("batch", "jobs", Kind { create: job::create, update: job::update, status: job::status, ..PLAIN }),
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
    ("", "namespaces", Kind { status: node::namespace_status, rechecks: true, ..PLAIN }),
    ("", "nodes", Kind { create: node::create, update: node::update, status: node::update, ..PLAIN }),
    (
        "",
        "persistentvolumeclaims",
        Kind { create: storage::claim, update: storage::claim_update, rechecks: true, ..PLAIN },
    ),
    (
        "",
        "persistentvolumes",
        Kind {
            create: storage::volume,
            update: |out, new, _| storage::volume(out, new),
            rechecks: true,
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
    ("", "events", Kind { create: endpoints::event, qualified: false, ..PLAIN }),
    ("events.k8s.io", "events", Kind { create: endpoints::new_event, ..PLAIN }),
    (
        "discovery.k8s.io",
        "endpointslices",
        Kind { create: endpoints::slice, update: endpoints::slice_update, rechecks: true, ..PLAIN },
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
    ("networking.k8s.io", "ingressclasses", Kind { update: network::class_update, rechecks: true, ..PLAIN }),
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
        Kind { create: storage::class, update: storage::class_update, ..PLAIN },
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
        Kind {
            create: webhook::validating,
            update: |out, new, _| webhook::validating(out, new),
            rechecks: true,
            qualified: false,
            ..PLAIN
        },
    ),
    (
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
        Kind {
            create: webhook::mutating,
            update: |out, new, _| webhook::mutating(out, new),
            rechecks: true,
            qualified: false,
            ..PLAIN
        },
    ),
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicies",
        Kind { create: check_policy, update: |out, new, _| check_policy(out, new), ..PLAIN },
    ),
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicybindings",
        Kind { create: check_binding, update: |out, new, _| check_binding(out, new), ..PLAIN },
    ),
];

/// What is wrong with a new object.
#[must_use]
pub fn create(write: &Write<'_>, object: &Value) -> Vec<FieldError> {
    let resource = write.resource;
    if definitions::is_definition(resource) {
        return structural::check_definition(object, None);
    }
    let kind = kind(resource);
    let mut errors = whole_metadata(resource, kind, object);
    if resource.custom.is_some() {
        errors.extend(custom(resource, object, None));
    } else {
        (kind.create)(&mut errors, object);
    }
    errors
}

/// What is wrong with a changed object.
#[must_use]
pub fn update(write: &Write<'_>, new: &Value, old: &Value) -> Vec<FieldError> {
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
    errors.extend(changes);
    if resource.custom.is_some() {
        errors.extend(custom(resource, new, Some(old)));
        return errors;
    }
    if kind.qualified {
        errors.extend(names::finalizers_qualified(&new["metadata"], &metadata));
    }
    match write.subresource {
        Some("status") => (kind.status)(&mut errors, new, old),
        Some("ephemeralcontainers") => {
            errors.extend(whole_metadata(resource, kind, new));
            pod::ephemeral_containers(&mut errors, new, old);
        }
        // They change one thing that was checked already.
        Some("binding" | "eviction" | "finalize" | "approval") => {}
        _ => {
            if kind.rechecks {
                errors.extend(whole_metadata(resource, kind, new));
            }
            (kind.update)(&mut errors, new, old);
        }
    }
    errors
}

fn whole_metadata(resource: &Resource, kind: &Kind, object: &Value) -> Errors {
    let rule = match strategy::of(resource).name {
        NameRule::Subdomain => names::subdomain_name,
        NameRule::Label => names::label_name,
        NameRule::PathSegment => names::path_segment_name,
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
fn custom(resource: &Resource, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let old = old.map(|old| with_type(old, resource));
    structural::validate(&with_type(new, resource), old.as_ref(), resource.ty())
}
