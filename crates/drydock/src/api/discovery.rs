//! Discovery: which groups, versions and resources there are, in the old form and the aggregated one.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::ACCEPT;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::registry::{Registry, Resource, api_version};

/// Whether the client wants the aggregated form.
#[must_use]
pub fn wants_aggregated(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accept.split(',').next().is_some_and(|first| {
        let has = |wanted: &str| first.split(';').any(|parameter| parameter.trim() == wanted);
        has("as=APIGroupDiscoveryList") && has("g=apidiscovery.k8s.io") && has("v=v2")
    })
}

/// The media type of the aggregated form.
pub const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The groups, in the order they are listed, each with its versions, the preferred one first.
fn groups(registry: &Registry) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for resource in registry.all() {
        let group = match groups.iter_mut().find(|(name, _)| *name == resource.group) {
            Some((_, versions)) => versions,
            None => {
                groups.push((resource.group.clone(), Vec::new()));
                match groups.last_mut() {
                    Some((_, versions)) => versions,
                    None => continue,
                }
            }
        };
        if !group.contains(&resource.version) {
            group.push(resource.version.clone());
        }
    }
    for (_, versions) in &mut groups {
        versions.sort_by_key(|version| std::cmp::Reverse(priority(version)));
    }
    groups
}

/// Stable before beta before alpha, newer before older.
pub(super) fn priority(version: &str) -> (u8, u64, u64) {
    let Some(rest) = version.strip_prefix('v') else { return (0, 0, 0) };
    let (stage, major, minor) = match (rest.split_once("beta"), rest.split_once("alpha")) {
        (Some((major, minor)), _) => (2, major, minor),
        (None, Some((major, minor))) => (1, major, minor),
        (None, None) => (3, rest, "0"),
    };
    (stage, major.parse().unwrap_or(0), minor.parse().unwrap_or(0))
}

fn resources<'r>(
    registry: &'r Registry,
    group: &'r str,
    version: &'r str,
) -> impl Iterator<Item = &'r Arc<Resource>> {
    registry.all().iter().filter(move |resource| resource.group == group && resource.version == version)
}

/// The answer for a discovery path, where it is one.
#[must_use]
pub fn answer(registry: &Registry, path: &str, aggregated: bool) -> Option<Value> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    match parts.as_slice() {
        ["api"] if aggregated => Some(aggregate(registry, true)),
        ["apis"] if aggregated => Some(aggregate(registry, false)),
        ["api"] => Some(json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}],
        })),
        ["apis"] => {
            let groups = groups(registry)
                .into_iter()
                .filter(|(name, _)| !name.is_empty())
                .map(|(name, versions)| group(&name, &versions))
                .collect::<Vec<_>>();
            Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        ["apis", name] => {
            let (name, versions) = groups(registry).into_iter().find(|(group, _)| group == name)?;
            let mut found = group(&name, &versions);
            found["kind"] = "APIGroup".into();
            found["apiVersion"] = "v1".into();
            Some(found)
        }
        ["api", version] => version_list(registry, "", version),
        ["apis", group, version] => version_list(registry, group, version),
        _ => None,
    }
}

fn group(name: &str, versions: &[String]) -> Value {
    let entry = |version: &String| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    let listed = versions.iter().map(entry).collect::<Vec<_>>();
    json!({"name": name, "versions": listed, "preferredVersion": listed.first()})
}

fn version_list(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let mut listed = Vec::new();
    for resource in resources(registry, group, version) {
        let mut entry = json!({
            "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
            "kind": resource.kind, "verbs": resource.verbs,
        });
        if !resource.short_names.is_empty() {
            entry["shortNames"] = json!(resource.short_names);
        }
        if !resource.categories.is_empty() {
            entry["categories"] = json!(resource.categories);
        }
        if resource.allows("watch") {
            entry["storageVersionHash"] = storage_hash(resource).into();
        }
        listed.push(entry);
        // Custom resources list their status before their scale.
        let mut subs: Vec<_> = resource.subresources.iter().collect();
        if resource.custom.is_some() {
            subs.reverse();
        }
        for (name, sub) in subs {
            let mut entry = json!({
                "name": format!("{}/{name}", resource.plural), "singularName": "",
                "namespaced": resource.namespaced, "kind": sub.kind, "verbs": sub.verbs,
            });
            if (sub.group.as_str(), sub.version.as_str()) != (group, version) {
                entry["group"] = sub.group.clone().into();
                entry["version"] = sub.version.clone().into();
            }
            listed.push(entry);
        }
    }
    if listed.is_empty() {
        return None;
    }
    let name = api_version(group, version);
    let mut list = json!({"kind": "APIResourceList", "groupVersion": name, "resources": listed});
    // The oldest group of all says less of itself.
    if !group.is_empty() {
        list["apiVersion"] = "v1".into();
    }
    Some(list)
}

/// What changes when objects are stored in another version.
/// What is told of the version that objects are stored in. For some kinds that is not one that is shown.
fn storage_hash(resource: &Resource) -> String {
    const ELSEWHERE: [(&str, &str, (&str, &str)); 5] = [
        ("autoscaling", "HorizontalPodAutoscaler", ("autoscaling", "v2")),
        ("apiextensions.k8s.io", "CustomResourceDefinition", ("apiextensions.k8s.io", "v1beta1")),
        (
            "admissionregistration.k8s.io",
            "MutatingAdmissionPolicy",
            ("admissionregistration.k8s.io", "v1beta1"),
        ),
        (
            "admissionregistration.k8s.io",
            "MutatingAdmissionPolicyBinding",
            ("admissionregistration.k8s.io", "v1beta1"),
        ),
        ("events.k8s.io", "Event", ("", "v1")),
    ];
    let version = resource.custom.as_ref().and_then(|custom| custom.conversion.as_ref());
    let version = version.map_or(resource.version.as_str(), |conversion| conversion.storage());
    let known = ELSEWHERE.iter().find(|(group, kind, _)| *group == resource.group && *kind == resource.kind);
    let (group, version) = known.map_or((resource.group.as_str(), version), |(_, _, stored)| *stored);
    let text = format!("{group}/{version}/{}", resource.kind);
    STANDARD.encode(&Sha256::digest(text)[..8])
}

fn aggregate(registry: &Registry, core: bool) -> Value {
    let items = groups(registry)
        .into_iter()
        .filter(|(name, _)| name.is_empty() == core)
        .map(|(name, versions)| {
            let versions = versions
                .iter()
                .map(|version| {
                    let listed =
                        resources(registry, &name, version).map(|r| aggregated(r)).collect::<Vec<_>>();
                    json!({"version": version, "resources": listed, "freshness": "Current"})
                })
                .collect::<Vec<_>>();
            let metadata = if name.is_empty() { json!({}) } else { json!({"name": name}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect::<Vec<_>>();
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
    })
}

fn aggregated(resource: &Resource) -> Value {
    // Built-in kinds of the group and version that they are listed in do not repeat them.
    let kind = |group: &str, version: &str, kind: &str| {
        let own = (group, version) == (resource.group.as_str(), resource.version.as_str());
        let (group, version) = if own && resource.custom.is_none() { ("", "") } else { (group, version) };
        json!({"group": group, "version": version, "kind": kind})
    };
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": kind(&resource.group, &resource.version, &resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
    if !resource.subresources.is_empty() {
        let subs = resource.subresources.iter().map(|(name, sub)| {
            json!({
                "subresource": name, "responseKind": kind(&sub.group, &sub.version, &sub.kind),
                "verbs": sub.verbs,
            })
        });
        entry["subresources"] = subs.collect::<Vec<_>>().into();
    }
    entry
}
