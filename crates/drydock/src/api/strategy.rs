//! What each kind does of its own when it is created, updated and deleted: a table of small rules.

use std::borrow::Cow;
use std::sync::LazyLock;

use serde_json::{Value, json};
use windlass_machinery::Context;
use windlass_machinery::fields::FieldSet;

use super::options::Propagation;
use super::registry::Resource;
use super::status::Outcome;
use super::write::{Write, metadata_mut, metadata_of, replace};

mod certificate;
mod disabled;
mod job;
mod service;

/// How names of a kind are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// A DNS subdomain.
    Subdomain,
    /// A DNS subdomain, checked by declared rules.
    LongName,
    /// A DNS label.
    Label,
    /// Anything that can stand in a path.
    PathSegment,
    /// An IP address.
    Address,
}

/// The rules of one kind.
pub struct Strategy {
    /// How its names are checked.
    pub name: NameRule,
    /// Whether an update without a resource version is allowed.
    pub unconditional_update: bool,
    /// Whether an update creates what is not there.
    pub create_on_update: bool,
    /// Whether `metadata.generation` counts changes.
    pub generation: bool,
    /// Whether `metadata.generation` counts changes of annotations too.
    pub annotations_count: bool,
    /// Whether `metadata.generation` counts changes of labels too.
    pub labels_count: bool,
    /// Whether `metadata.generation` counts fields that are not kept.
    pub counts_dropped: bool,
    /// Whether `metadata.generation` stays what it was at creation.
    pub counts_nothing: bool,
    /// What becomes of dependents unless the client says so.
    pub propagation: Propagation,
    /// Whether who deletes is told what becomes of dependents.
    pub tells_of_orphans: bool,
    /// Whether a new object may come with a status.
    pub status_on_create: bool,
    /// Whether the answer to a deletion is the object.
    pub returns_deleted: bool,
    /// Whether a deletion marks the object before it removes it.
    pub graceful: bool,
    /// Whether a deletion mark has a grace period.
    pub dated: bool,
    /// The grace period of a deletion, given what the client asks for.
    pub grace: fn(&Value, Option<i64>) -> i64,
    /// Whether something other than finalizers in the metadata holds the object.
    pub held: fn(&Value) -> bool,
    /// What a deletion mark changes besides.
    pub mark: fn(&mut Value, &Context),
    /// What a status update keeps of the old metadata.
    pub status_keeps: &'static [&'static str],
    /// What creation changes.
    pub create: fn(&Write<'_>, &mut Value) -> Outcome<()>,
    /// What an update changes.
    pub update: fn(&Write<'_>, &mut Value, &Value) -> Outcome<()>,
}

const DEFAULT: Strategy = Strategy {
    name: NameRule::Subdomain,
    unconditional_update: true,
    create_on_update: false,
    generation: false,
    annotations_count: false,
    labels_count: false,
    counts_dropped: false,
    counts_nothing: false,
    propagation: Propagation::Background,
    tells_of_orphans: false,
    status_on_create: false,
    returns_deleted: false,
    graceful: false,
    dated: true,
    grace: |_, _| 0,
    held: |_| false,
    mark: |_, _| {},
    status_keeps: &[],
    create: |_, _| Ok(()),
    update: |_, _, _| Ok(()),
};

const WORKLOAD: Strategy = Strategy { generation: true, ..DEFAULT };
const COUNTED: Strategy = Strategy { generation: true, ..DEFAULT };

/// What guards others is changed by those only who know what it is.
const GUARDED: Strategy = Strategy { unconditional_update: false, ..COUNTED };

const CUSTOM: Strategy =
    Strategy { unconditional_update: false, generation: true, status_keeps: WHOLE_METADATA, ..DEFAULT };

const FLOW: Strategy = Strategy { status_keeps: WHOLE_METADATA, ..COUNTED };

const WHOLE_METADATA: &[&str] = &[
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generateName",
];

static TABLE: &[(&str, &str, Strategy)] = &[
    (
        "",
        "namespaces",
        Strategy {
            name: NameRule::Label,
            dated: false,
            held: |object| object["spec"]["finalizers"].as_array().is_some_and(|list| !list.is_empty()),
            mark: |object, _| object["status"]["phase"] = "Terminating".into(),
            create: |_, object| {
                let own = object["spec"]["finalizers"].as_array().cloned().unwrap_or_default();
                if !own.iter().any(|name| name == "kubernetes") {
                    object["spec"]["finalizers"] = json!([own, vec![json!("kubernetes")]].concat());
                }
                object["status"] = json!({"phase": "Active"});
                // A name that was made up just now was not there yet when the label got its default.
                if let Some(name) = object["metadata"]["name"].as_str().map(ToOwned::to_owned) {
                    object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name.into();
                }
                Ok(())
            },
            update: |write, new, old| {
                if write.subresource != Some("finalize") {
                    new["spec"]["finalizers"] = old["spec"]["finalizers"].clone();
                }
                Ok(())
            },
            ..DEFAULT
        },
    ),
    (
        "",
        "pods",
        Strategy {
            generation: true,
            returns_deleted: true,
            graceful: true,
            grace: pod_grace,
            status_keeps: &["ownerReferences", "deletionTimestamp", "deletionGracePeriodSeconds"],
            create: |write, object| {
                object["status"] = json!({"phase": "Pending", "qosClass": qos_class(&object["spec"])});
                if object["spec"]["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0)
                {
                    object["spec"]["terminationGracePeriodSeconds"] = 1.into();
                }
                if object["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
                    object["status"]["conditions"] = json!([{
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "SchedulingGated",
                        "message": "Scheduling is blocked due to non-empty scheduling gates",
                        "lastProbeTime": null,
                        "lastTransitionTime": write.server.context.now_text(),
                    }]);
                }
                Ok(())
            },
            update: |write, new, old| {
                // A status without it is none that changes it.
                if write.subresource == Some("status") && new["status"]["qosClass"].is_null() {
                    replace_field(&mut new["status"], "qosClass", &old["status"]);
                }
                Ok(())
            },
            ..DEFAULT
        },
    ),
    (
        "",
        "services",
        Strategy {
            name: NameRule::Label,
            create_on_update: true,
            returns_deleted: true,
            create: service::create,
            update: service::update,
            ..DEFAULT
        },
    ),
    (
        "",
        "serviceaccounts",
        Strategy {
            returns_deleted: true,
            create: |_, object| {
                only_names(object);
                Ok(())
            },
            update: |_, new, _| {
                only_names(new);
                Ok(())
            },
            ..DEFAULT
        },
    ),
    ("", "endpoints", Strategy { create_on_update: true, ..DEFAULT }),
    ("", "events", Strategy { name: NameRule::PathSegment, create_on_update: true, ..DEFAULT }),
    ("events.k8s.io", "events", Strategy { create_on_update: true, ..DEFAULT }),
    (
        "",
        "limitranges",
        Strategy {
            create_on_update: true,
            create: |write, object| {
                if metadata_of(object).get("name").is_none_or(|name| name == "") {
                    metadata_mut(object).insert("name".into(), write.server.context.uid().into());
                }
                Ok(())
            },
            ..DEFAULT
        },
    ),
    ("", "podtemplates", Strategy { generation: true, returns_deleted: true, ..DEFAULT }),
    ("", "resourcequotas", Strategy { returns_deleted: true, ..DEFAULT }),
    (
        "",
        "persistentvolumeclaims",
        Strategy {
            returns_deleted: true,
            create: |_, object| {
                one_source(&mut object["spec"], &Value::Null);
                object["status"] = json!({"phase": "Pending"});
                Ok(())
            },
            update: |write, new, old| {
                if write.subresource.is_none() {
                    one_source(&mut new["spec"], &old["spec"]);
                }
                Ok(())
            },
            ..DEFAULT
        },
    ),
    (
        "",
        "persistentvolumes",
        Strategy {
            returns_deleted: true,
            create: |write, object| {
                let now = write.server.context.now_text();
                object["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": now});
                Ok(())
            },
            update: |write, new, old| {
                const SINCE: &str = "lastPhaseTransitionTime";
                if write.subresource == Some("status") {
                    let (now, was) = (&new["status"], &old["status"]);
                    if now["phase"] == was["phase"] && now[SINCE].is_null() {
                        new["status"][SINCE] = was[SINCE].clone();
                    } else if now["phase"] != was["phase"]
                        && (now[SINCE].is_null() || now[SINCE] == was[SINCE])
                    {
                        new["status"][SINCE] = write.server.context.now_text().into();
                    }
                }
                Ok(())
            },
            ..DEFAULT
        },
    ),
    ("", "nodes", Strategy { status_on_create: true, ..DEFAULT }),
    (
        "",
        "replicationcontrollers",
        Strategy {
            name: NameRule::LongName,
            propagation: Propagation::Orphan,
            returns_deleted: true,
            ..WORKLOAD
        },
    ),
    ("apps", "deployments", Strategy { annotations_count: true, status_keeps: &["labels"], ..WORKLOAD }),
    ("apps", "replicasets", WORKLOAD),
    ("apps", "statefulsets", Strategy { name: NameRule::Label, ..WORKLOAD }),
    ("apps", "daemonsets", Strategy { update: template_generation, ..WORKLOAD }),
    (
        "batch",
        "jobs",
        Strategy { propagation: Propagation::Orphan, tells_of_orphans: true, create: job::create, ..COUNTED },
    ),
    ("batch", "cronjobs", COUNTED),
    ("networking.k8s.io", "ingresses", COUNTED),
    ("networking.k8s.io", "networkpolicies", COUNTED),
    ("networking.k8s.io", "ingressclasses", COUNTED),
    (
        "policy",
        "poddisruptionbudgets",
        Strategy { name: NameRule::PathSegment, unconditional_update: false, ..COUNTED },
    ),
    ("discovery.k8s.io", "endpointslices", Strategy { labels_count: true, counts_dropped: true, ..COUNTED }),
    ("scheduling.k8s.io", "priorityclasses", Strategy { counts_nothing: true, ..COUNTED }),
    (
        "coordination.k8s.io",
        "leases",
        Strategy { create_on_update: true, unconditional_update: false, ..DEFAULT },
    ),
    ("storage.k8s.io", "storageclasses", Strategy { returns_deleted: true, ..DEFAULT }),
    (
        "storage.k8s.io",
        "csidrivers",
        Strategy {
            returns_deleted: true,
            unconditional_update: false,
            // Its changes are counted, but not from its creation.
            update: |_, new, old| {
                if new["spec"] != old["spec"] {
                    let known =
                        metadata_of(old).get("generation").and_then(Value::as_i64).unwrap_or_default();
                    metadata_mut(new).insert("generation".into(), (known + 1).into());
                }
                Ok(())
            },
            ..DEFAULT
        },
    ),
    (
        "storage.k8s.io",
        "csinodes",
        Strategy { returns_deleted: true, unconditional_update: false, ..DEFAULT },
    ),
    ("storage.k8s.io", "csistoragecapacities", Strategy { unconditional_update: false, ..DEFAULT }),
    ("storage.k8s.io", "volumeattributesclasses", Strategy { returns_deleted: true, ..DEFAULT }),
    ("networking.k8s.io", "ipaddresses", Strategy { name: NameRule::Address, ..DEFAULT }),
    (
        "storage.k8s.io",
        "volumeattachments",
        Strategy {
            returns_deleted: true,
            unconditional_update: false,
            status_keeps: WHOLE_METADATA,
            ..DEFAULT
        },
    ),
    ("networking.k8s.io", "servicecidrs", Strategy { status_keeps: WHOLE_METADATA, ..DEFAULT }),
    (
        "node.k8s.io",
        "runtimeclasses",
        Strategy { create_on_update: true, unconditional_update: false, ..DEFAULT },
    ),
    ("flowcontrol.apiserver.k8s.io", "flowschemas", FLOW),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", FLOW),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations", GUARDED),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", GUARDED),
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicies",
        Strategy { status_keeps: WHOLE_METADATA, ..GUARDED },
    ),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings", GUARDED),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies", GUARDED),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings", GUARDED),
    ("certificates.k8s.io", "certificatesigningrequests", certificate::STRATEGY),
    ("rbac.authorization.k8s.io", "roles", RBAC),
    ("rbac.authorization.k8s.io", "rolebindings", RBAC),
    ("rbac.authorization.k8s.io", "clusterroles", RBAC),
    ("rbac.authorization.k8s.io", "clusterrolebindings", RBAC),
    (
        "apiregistration.k8s.io",
        "apiservices",
        Strategy {
            name: NameRule::PathSegment,
            unconditional_update: false,
            status_keeps: WHOLE_METADATA,
            create: |write, object| {
                // What this server serves itself is there.
                if object["spec"]["service"].is_null() {
                    object["status"] = json!({"conditions": [{
                        "type": "Available",
                        "status": "True",
                        "lastTransitionTime": write.server.context.now_text(),
                        "reason": "Local",
                        "message": "Local APIServices are always available",
                    }]});
                }
                Ok(())
            },
            ..DEFAULT
        },
    ),
    (
        "resource.k8s.io",
        "deviceclasses",
        Strategy { name: NameRule::LongName, returns_deleted: true, ..COUNTED },
    ),
    (
        "resource.k8s.io",
        "resourceclaims",
        Strategy {
            returns_deleted: true,
            update: drop_freed_devices,
            status_keeps: WHOLE_METADATA,
            ..DEFAULT
        },
    ),
    ("resource.k8s.io", "resourceclaimtemplates", Strategy { returns_deleted: true, ..DEFAULT }),
    (
        "resource.k8s.io",
        "resourceslices",
        Strategy {
            returns_deleted: true,
            create: |write, object| date_taints(write, object),
            update: |write, new, _| date_taints(write, new),
            ..COUNTED
        },
    ),
    (
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        Strategy {
            unconditional_update: false,
            generation: true,
            dated: false,
            held: |object| !metadata_of(object).contains_key("deletionTimestamp"),
            mark: super::definitions::mark_terminating,
            create: super::definitions::prepare_create,
            update: super::definitions::prepare_update,
            ..DEFAULT
        },
    ),
];

const RBAC: Strategy = Strategy { name: NameRule::PathSegment, create_on_update: true, ..DEFAULT };

/// The rules of a resource.
#[must_use]
pub fn of(resource: &Resource) -> &'static Strategy {
    static PLAIN: Strategy = DEFAULT;
    static CUSTOM_RULES: Strategy = CUSTOM;
    if resource.custom.is_some() {
        return &CUSTOM_RULES;
    }
    TABLE
        .iter()
        .find(|(group, plural, _)| *plural == resource.plural && *group == resource.group)
        .map_or(&PLAIN, |(_, _, strategy)| strategy)
}

/// What the real server's storage calls a kind, which its messages show.
#[must_use]
pub fn storage_name(resource: &Resource) -> Cow<'_, str> {
    const NAMES: [(&str, &str, &str); 5] = [
        ("", "services", "services/specs"),
        ("", "endpoints", "services/endpoints"),
        ("", "nodes", "minions"),
        ("", "replicationcontrollers", "controllers"),
        ("networking.k8s.io", "ingresses", "ingress"),
    ];
    let known =
        NAMES.iter().find(|(group, plural, _)| *plural == resource.plural && *group == resource.group);
    // Other servers than the one of the built-in kinds tell groups apart.
    let elsewhere = ["apiextensions.k8s.io", "apiregistration.k8s.io"].contains(&resource.group.as_str());
    match known {
        Some((_, _, name)) => Cow::Borrowed(name),
        None if elsewhere || resource.custom.is_some() => {
            Cow::Owned(format!("{}/{}", resource.group, resource.plural))
        }
        None => Cow::Borrowed(&resource.plural),
    }
}

/// Whether the garbage collector looks after a kind.
#[must_use]
pub fn collects(resource: &Resource) -> bool {
    const LEFT_ALONE: [(&str, &str); 3] =
        [("", "events"), ("events.k8s.io", "events"), ("apiextensions.k8s.io", "customresourcedefinitions")];
    !LEFT_ALONE.contains(&(resource.group.as_str(), resource.plural.as_str()))
}

/// The fields that a write of the resource, or of its subresource, cannot set.
#[must_use]
pub fn reset_fields(resource: &Resource, subresource: Option<&str>) -> &'static FieldSet {
    static NONE: LazyLock<FieldSet> = LazyLock::new(FieldSet::default);
    static STATUS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of(&[&["status"]]));
    static SPEC: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of(&[&["spec"]]));
    static SPEC_AND_LABELS: LazyLock<FieldSet> =
        LazyLock::new(|| FieldSet::of(&[&["spec"], &["metadata", "labels"]]));
    static BOTH: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of(&[&["spec"], &["status"]]));
    static SPEC_AND_METADATA: LazyLock<FieldSet> =
        LazyLock::new(|| FieldSet::of(&[&["spec"], &["metadata"]]));
    match subresource {
        Some("finalize") => &STATUS,
        Some("status") if resource.custom.is_some() => &SPEC_AND_METADATA,
        None if resource.group == "certificates.k8s.io" => &BOTH,
        None if resource.subresources.contains_key("status") => &STATUS,
        Some("status") if of(resource).status_keeps == WHOLE_METADATA => &SPEC_AND_METADATA,
        Some("status") if of(resource).status_keeps.contains(&"labels") && resource.custom.is_none() => {
            &SPEC_AND_LABELS
        }
        Some("status") => &SPEC,
        _ => &NONE,
    }
}

/// What creation changes, for every kind and for this one.
///
/// # Errors
/// When the kind refuses.
pub fn prepare_create(write: &Write<'_>, object: &mut Value) -> Outcome<()> {
    let strategy = of(write.resource);
    if write.resource.subresources.contains_key("status")
        && !strategy.status_on_create
        && let Some(map) = object.as_object_mut()
    {
        map.remove("status");
    }
    if strategy.generation {
        metadata_mut(object).insert("generation".into(), 1.into());
    }
    disabled::drop_fields(write.resource, object);
    (strategy.create)(write, object)
}

/// What an update changes, for every kind and for this one.
///
/// # Errors
/// When the kind refuses.
pub fn prepare_update(write: &Write<'_>, new: &mut Value, old: &Value) -> Outcome<()> {
    let strategy = of(write.resource);
    let status = write.subresource == Some("status");
    for field in ["creationTimestamp", "generation"] {
        replace(metadata_mut(new), field, metadata_of(old).get(field).cloned());
    }
    // What is left out stays; what is said otherwise is refused later, but a deletion cannot be taken back.
    let (now, before) = (metadata_mut(new), metadata_of(old));
    for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let said = now.get(field).is_some_and(|value| *value != "");
        if !said || (field == "deletionTimestamp" && before.contains_key(field)) {
            replace(now, field, before.get(field).cloned());
        }
    }
    if let Some(part) = write.subresource {
        keep_part(part, new, old);
    }
    if status {
        for field in strategy.status_keeps {
            replace(metadata_mut(new), field, metadata_of(old).get(*field).cloned());
        }
    }
    if let Some(map) = new.as_object_mut() {
        if status {
            // All but the status and the metadata is as it was.
            let own = map.remove("status");
            let metadata = map.remove("metadata");
            *map = old.as_object().cloned().unwrap_or_default();
            replace(map, "status", own);
            replace(map, "metadata", metadata);
        } else if write.resource.subresources.contains_key("status") {
            replace(map, "status", old.get("status").cloned());
        }
    }
    let early = strategy.counts_dropped && changes_generation(write.resource, new, old);
    disabled::drop_fields(write.resource, new);
    (strategy.update)(write, new, old)?;
    if strategy.generation
        && !strategy.counts_nothing
        && !status
        && (early || changes_generation(write.resource, new, old))
    {
        let generation = metadata_of(old).get("generation").and_then(Value::as_i64).unwrap_or(0);
        metadata_mut(new).insert("generation".into(), (generation + 1).into());
    }
    Ok(())
}

/// Parts of a pod that have an address of their own: of all that is sent, only they are taken.
fn keep_part(part: &str, new: &mut Value, old: &Value) {
    let sent = match part {
        "ephemeralcontainers" | "resize" => new["spec"].take(),
        _ => return,
    };
    for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
        replace(metadata_mut(new), field, metadata_of(old).get(field).cloned());
    }
    new["spec"] = old["spec"].clone();
    if part == "ephemeralcontainers" {
        if let Some(spec) = new["spec"].as_object_mut() {
            replace(spec, "ephemeralContainers", sent.get("ephemeralContainers").cloned());
        }
        return;
    }
    for list in ["containers", "initContainers"] {
        let wanted = sent[list].as_array().map(Vec::as_slice).unwrap_or_default();
        for container in new["spec"][list].as_array_mut().into_iter().flatten() {
            let same = wanted.iter().find(|wanted| wanted["name"] == container["name"]);
            if let (Some(same), Some(container)) = (same, container.as_object_mut()) {
                for field in ["resources", "resizePolicy"] {
                    replace(container, field, same.get(field).cloned());
                }
            }
        }
    }
}

/// Whether an update is one that `metadata.generation` counts.
fn changes_generation(resource: &Resource, new: &Value, old: &Value) -> bool {
    let has_status = resource.subresources.contains_key("status");
    let counts = |field: &str| field != "metadata" && !(has_status && field == "status");
    let fields =
        |object: &'_ Value| object.as_object().map(|map| map.keys().filter(|key| counts(key)).count());
    let same = |field: &String, value: &Value| !counts(field) || old.get(field) == Some(value);
    let unchanged = fields(new) == fields(old)
        && new.as_object().into_iter().flatten().all(|(field, value)| same(field, value));
    let differs = |field: &str| metadata_of(new).get(field) != metadata_of(old).get(field);
    let strategy = of(resource);
    !unchanged
        || (strategy.annotations_count && differs("annotations"))
        || (strategy.labels_count && differs("labels"))
}

/// How often the template of a daemon set was changed is also told in an annotation.
fn template_generation(write: &Write<'_>, new: &mut Value, old: &Value) -> Outcome<()> {
    const GENERATION: &str = "deprecated.daemonset.template.generation";
    let known =
        metadata_of(old).get("annotations").and_then(|all| all.get(GENERATION)).and_then(Value::as_str);
    let known = known.and_then(|text| text.parse::<i64>().ok()).unwrap_or_default();
    let changed = write.subresource.is_none() && new["spec"]["template"] != old["spec"]["template"];
    let annotations = metadata_mut(new).entry("annotations").or_insert_with(|| json!({}));
    annotations[GENERATION] = (known + i64::from(changed)).to_string().into();
    Ok(())
}

/// What is told of a device goes with its allocation.
fn drop_freed_devices(write: &Write<'_>, new: &mut Value, old: &Value) -> Outcome<()> {
    if write.subresource != Some("status") {
        return Ok(());
    }
    let same = |device: &Value, other: &Value| {
        ["driver", "pool", "device", "shareID"].iter().all(|field| device[*field] == other[*field])
    };
    let results = |claim: &Value| {
        claim["status"]["allocation"]["devices"]["results"].as_array().cloned().unwrap_or_default()
    };
    let (now, was) = (results(new), results(old));
    if let Some(devices) = new["status"].get_mut("devices").and_then(Value::as_array_mut) {
        devices.retain(|device| {
            now.iter().any(|result| same(result, device)) || !was.iter().any(|result| same(result, device))
        });
    }
    Ok(())
}

/// A taint of a device says since when it is there.
fn date_taints(write: &Write<'_>, slice: &mut Value) -> Outcome<()> {
    let devices = slice["spec"]["devices"].as_array_mut().into_iter().flatten();
    for taint in devices.filter_map(|device| device.get_mut("taints")?.as_array_mut()).flatten() {
        if taint["timeAdded"].is_null() {
            taint["timeAdded"] = write.server.context.now_text().into();
        }
    }
    Ok(())
}

/// A service account refers to secrets by their names only.
fn only_names(account: &mut Value) {
    for secret in account.get_mut("secrets").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(secret) = secret.as_object_mut() {
            secret.retain(|field, _| field == "name");
        }
    }
}

/// A claim tells in two fields what its volume starts from; the older one knows claims and snapshots only.
fn one_source(spec: &mut Value, old: &Value) {
    let fits = |source: &Value| {
        let group = source["apiGroup"].as_str().unwrap_or_default();
        matches!(
            (group, source["kind"].as_str()),
            ("", Some("PersistentVolumeClaim")) | ("snapshot.storage.k8s.io", Some("VolumeSnapshot"))
        )
    };
    let Some(spec) = spec.as_object_mut() else { return };
    let elsewhere = |reference: &Value| reference["namespace"].as_str().is_some_and(|name| !name.is_empty());
    // Sources in other namespaces are a feature that is off by default.
    if old["dataSourceRef"].is_null() && spec.get("dataSourceRef").is_some_and(elsewhere) {
        spec.remove("dataSourceRef");
    }
    let known = !old["dataSource"].is_null() || !old["dataSourceRef"].is_null();
    let sole = !spec.contains_key("dataSourceRef");
    if !known && sole && spec.get("dataSource").is_some_and(|source| !fits(source)) {
        spec.remove("dataSource");
    }
    match (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned()) {
        (Some(source), None) => _ = spec.insert("dataSourceRef".into(), source),
        (None, Some(reference)) if !elsewhere(&reference) => {
            let mut source = reference;
            if let Some(source) = source.as_object_mut() {
                source.remove("namespace");
            }
            spec.insert("dataSource".into(), source);
        }
        _ => {}
    }
}

fn replace_field(map: &mut Value, field: &str, from: &Value) {
    if let Some(map) = map.as_object_mut() {
        replace(map, field, from.get(field).cloned());
    }
}

/// A pod that was never scheduled, or has ended, goes at once.
fn pod_grace(pod: &Value, asked: Option<i64>) -> i64 {
    let scheduled = pod["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    let ended = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if !scheduled || ended {
        return 0;
    }
    let period = asked.or_else(|| pod["spec"]["terminationGracePeriodSeconds"].as_i64()).unwrap_or(30);
    if period < 0 { 1 } else { period }
}

/// The quality of service of a pod.
pub(super) fn qos_class(spec: &Value) -> &'static str {
    let containers =
        ["containers", "initContainers"].iter().filter_map(|list| spec[*list].as_array()).flatten();
    // What a pod asks for as a whole counts alone.
    let containers: Vec<&Value> =
        if spec["resources"].is_object() { vec![spec] } else { containers.collect() };
    let amounts = |container: &Value, kind: &str| -> Vec<(String, String)> {
        let resources = container["resources"][kind].as_object();
        resources
            .into_iter()
            .flatten()
            .filter(|(name, amount)| matches!(name.as_str(), "cpu" | "memory") && *amount != "0")
            .map(|(name, amount)| (name.clone(), amount.as_str().unwrap_or_default().to_owned()))
            .collect()
    };
    let mut any = false;
    let mut guaranteed = true;
    for container in containers {
        let (limits, requests) = (amounts(container, "limits"), amounts(container, "requests"));
        any |= !limits.is_empty() || !requests.is_empty();
        guaranteed &= limits.len() == 2 && limits == requests;
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
