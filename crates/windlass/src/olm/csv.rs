//! The ClusterServiceVersion: what OLM installs and what a catalog shows.

use std::collections::BTreeSet;

use k8s_openapi::ByteString;
use serde_json::{Map, Value, json};

use super::descriptors::{self, display_name};
use super::{Package, Release};
use crate::{Kind, ObjectName, manifests};

/// An operator works in all namespaces, and its roles say so.
const INSTALL_MODES: [(&str, bool); 4] =
    [("OwnNamespace", false), ("SingleNamespace", false), ("MultiNamespace", false), ("AllNamespaces", true)];

pub(super) fn csv(package: &Package<'_>, release: &Release) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": package.name(&release.version),
            "annotations": annotations(package, release),
        },
        "spec": spec(package, release),
    })
}

fn annotations(package: &Package<'_>, release: &Release) -> Value {
    let Package { listing, setup, .. } = package;
    let mut annotations = json!({
        "alm-examples": serde_json::to_string_pretty(&examples(package)).unwrap_or_default(),
        "capabilities": listing.capabilities,
        "categories": listing.categories.join(", "),
        "containerImage": setup.image,
        "description": listing.summary,
        "operatorframework.io/suggested-namespace": setup.namespace,
        "operators.operatorframework.io/builder": concat!("windlass-v", env!("CARGO_PKG_VERSION")),
        "repository": listing.repository,
        "support": listing.provider.0,
    });
    if let Some(created) = &release.created_at {
        annotations["createdAt"] = created.as_str().into();
    }
    if let Some(range) = &release.skip_range {
        annotations["olm.skipRange"] = range.as_str().into();
    }
    annotations
}

/// The samples of the kinds that come with the bundle.
fn examples(package: &Package<'_>) -> Vec<Value> {
    let mut owned = BTreeSet::new();
    for definition in package.owned() {
        for version in definition["spec"]["versions"].as_array().into_iter().flatten() {
            let of = |field: &Value| field.as_str().unwrap_or_default().to_owned();
            let group = of(&definition["spec"]["group"]);
            owned.insert((
                format!("{group}/{}", of(&version["name"])),
                of(&definition["spec"]["names"]["kind"]),
            ));
        }
    }
    let is_owned = |sample: &&Value| {
        let of = |field: &str| sample[field].as_str().unwrap_or_default().to_owned();
        owned.contains(&(of("apiVersion"), of("kind")))
    };
    package.samples.iter().filter(is_owned).cloned().collect()
}

fn spec(package: &Package<'_>, release: &Release) -> Value {
    let Package { listing, setup, .. } = package;
    let (required, owned) = package.definitions();
    let mut definitions = json!({"owned": described(package, &owned)});
    if !required.is_empty() {
        // How they are shown is up to their own package.
        let brief = |mut one: Value| {
            for field in ["resources", "specDescriptors", "statusDescriptors"] {
                one.as_object_mut().and_then(|one| one.remove(field));
            }
            one
        };
        definitions["required"] = described(package, &required).into_iter().map(brief).collect();
    }
    let named = |(name, url): &(&str, &str)| json!({"name": name, "url": url});
    let maintainer = |(name, email): &(&str, &str)| json!({"name": name, "email": email});
    let image = |(name, image): &(&str, &str)| json!({"name": name, "image": image});
    let own = [("operator", setup.image.as_str())];
    let images: Vec<Value> = own.iter().chain(listing.images).map(image).collect();
    let mut spec = json!({
        "displayName": listing.display_name,
        "description": listing.description,
        "version": release.version,
        "maturity": listing.maturity,
        "minKubeVersion": listing.min_kube_version,
        "keywords": listing.keywords,
        "maintainers": listing.maintainers.iter().map(maintainer).collect::<Vec<_>>(),
        "provider": named(&listing.provider),
        "links": listing.links.iter().map(named).collect::<Vec<_>>(),
        "icon": [{"base64data": ByteString(listing.icon.as_bytes().to_vec()), "mediatype": "image/svg+xml"}],
        "installModes": INSTALL_MODES.map(|(kind, supported)| json!({"type": kind, "supported": supported})),
        "install": {"strategy": "deployment", "spec": install(package)},
        "customresourcedefinitions": definitions,
        "relatedImages": images,
    });
    if let Some(replaces) = &release.replaces {
        spec["replaces"] = replaces.as_str().into();
    }
    if !release.skips.is_empty() {
        spec["skips"] = json!(release.skips);
    }
    spec
}

/// What OLM makes: the account, its roles, the Deployment.
fn install(package: &Package<'_>) -> Value {
    let Package { operator, setup, .. } = package;
    let account = ObjectName::new(setup.namespace.clone(), operator.name());
    let permissions = setup.permissions(operator);
    let granted = |rules| json!({"serviceAccountName": account.name, "rules": rules});
    let mut install = json!({
        "deployments": [{
            "name": account.name,
            "label": manifests::labels(&account.name),
            "spec": manifests::deployment_spec(&account, setup),
        }],
    });
    // All of them are for the namespace that it runs in.
    let own: Vec<Value> =
        permissions.in_namespaces().into_values().map(|rules| granted(json!(rules))).collect();
    if !own.is_empty() {
        install["permissions"] = own.into();
    }
    let cluster = permissions.in_cluster();
    if !cluster.is_empty() {
        install["clusterPermissions"] = json!([granted(json!(cluster))]);
    }
    install
}

/// Definitions as a catalog shows them: each version, newest first as in the definition.
fn described(package: &Package<'_>, definitions: &[Value]) -> Vec<Value> {
    let mut described = Vec::new();
    for definition in definitions {
        let names = &definition["spec"]["names"];
        let kind = names["kind"].as_str().unwrap_or_default();
        for version in definition["spec"]["versions"].as_array().into_iter().flatten() {
            let fields = &version["schema"]["openAPIV3Schema"]["properties"];
            let description = fields["spec"]["description"].as_str().map(str::to_owned);
            let mut one = Map::new();
            one.insert("name".into(), definition["metadata"]["name"].clone());
            one.insert("version".into(), version["name"].clone());
            one.insert("kind".into(), kind.into());
            one.insert("displayName".into(), display_name(kind).into());
            one.insert("description".into(), description.unwrap_or_else(|| format!("A {kind}.")).into());
            let parts = [
                ("resources", used(package, definition["spec"]["group"].as_str().unwrap_or_default(), kind)),
                ("specDescriptors", descriptors::of(&fields["spec"], &descriptors::SPEC)),
                ("statusDescriptors", descriptors::of(&fields["status"], &descriptors::STATUS)),
            ];
            for (part, list) in parts.into_iter().filter(|(_, list)| !list.is_empty()) {
                one.insert(part.into(), list.into());
            }
            described.push(Value::Object(one));
        }
    }
    described
}

/// The kinds that objects of this kind consist of or refer to.
fn used(package: &Package<'_>, group: &str, kind: &str) -> Vec<Value> {
    let of_kind = |known: &Kind| known.group() == group && known.name() == kind;
    let Some(controller) = package.kinds.controllers().iter().find(|one| of_kind(one.kind())) else {
        return Vec::new();
    };
    let declared = controller.declared();
    let kinds: BTreeSet<&Kind> = declared.written.iter().chain(&declared.reads).collect();
    let custom = |kind: &Kind| package.kinds.crds().iter().any(|crd| crd.spec.group == kind.group());
    let reference = |kind: &Kind| {
        let name = if custom(kind) { format!("{}.{}", kind.plural(), kind.group()) } else { String::new() };
        json!({"name": name, "kind": kind.name(), "version": kind.version()})
    };
    kinds.into_iter().map(reference).collect()
}
