//! What a catalog says of a bundle: its document, and its place in a channel.

use std::collections::BTreeSet;

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::version::Version;

/// What a catalog needs to know of a bundle.
pub(super) struct Facts {
    pub(super) package: String,
    pub(super) channels: Vec<String>,
    pub(super) default_channel: Option<String>,
    pub(super) csv: Value,
    /// The kinds that its definitions define: group, version, kind.
    pub(super) defined: Vec<(String, String, String)>,
}

impl Facts {
    pub(super) fn name(&self) -> &str {
        self.csv["metadata"]["name"].as_str().unwrap_or_default()
    }

    pub(super) fn spec(&self, field: &str) -> &Value {
        &self.csv["spec"][field]
    }

    pub(super) fn version(&self) -> Result<Version> {
        Version::parse(self.spec("version").as_str().unwrap_or_default()).map_err(anyhow::Error::msg)
    }

    /// The entry of a channel.
    pub(super) fn entry(&self) -> Value {
        let mut entry = json!({"name": self.name()});
        let range = &self.csv["metadata"]["annotations"]["olm.skipRange"];
        for (field, value) in
            [("replaces", self.spec("replaces")), ("skips", self.spec("skips")), ("skipRange", range)]
        {
            if !value.is_null() {
                entry[field] = value.clone();
            }
        }
        entry
    }

    /// The bundle's document.
    pub(super) fn document(&self, image: &str) -> Value {
        let gvk = |(group, version, kind): &(String, String, String)| json!({"group": group, "version": version, "kind": kind});
        let property = |kind: &str, value: Value| json!({"type": kind, "value": value});
        let mut properties: Vec<Value> =
            self.defined.iter().map(|kind| property("olm.gvk", gvk(kind))).collect();
        for one in self.spec("customresourcedefinitions")["required"].as_array().into_iter().flatten() {
            let name = one["name"].as_str().unwrap_or_default();
            let group = name.split_once('.').map_or("", |(_, group)| group);
            let value = json!({"group": group, "version": one["version"], "kind": one["kind"]});
            properties.push(property("olm.gvk.required", value));
        }
        let version = self.spec("version");
        properties.push(property("olm.package", json!({"packageName": self.package, "version": version})));
        properties.push(property("olm.csv.metadata", self.metadata()));
        json!({
            "schema": "olm.bundle", "name": self.name(), "package": self.package, "image": image,
            "properties": properties, "relatedImages": self.images(image),
        })
    }

    /// What a catalog shows of the ClusterServiceVersion.
    fn metadata(&self) -> Value {
        let mut shown = Map::new();
        shown.insert("annotations".into(), self.csv["metadata"]["annotations"].clone());
        shown.insert("labels".into(), self.csv["metadata"]["labels"].clone());
        shown.insert("crdDescriptions".into(), self.spec("customresourcedefinitions").clone());
        let apis = self.spec("apiservicedefinitions");
        shown.insert("apiServiceDefinitions".into(), if apis.is_null() { json!({}) } else { apis.clone() });
        for field in [
            "description",
            "displayName",
            "installModes",
            "keywords",
            "links",
            "maintainers",
            "maturity",
            "minKubeVersion",
            "nativeAPIs",
            "provider",
        ] {
            shown.insert(field.into(), self.spec(field).clone());
        }
        shown.retain(|_, value| !value.is_null());
        shown.into()
    }

    /// All images that it takes to install and run it, for those who mirror them.
    fn images(&self, bundle_image: &str) -> Vec<Value> {
        let mut images: Vec<Value> = self.spec("relatedImages").as_array().cloned().unwrap_or_default();
        let mut known: BTreeSet<String> =
            images.iter().filter_map(|one| one["image"].as_str().map(str::to_owned)).collect();
        let deployments = self.spec("install")["spec"]["deployments"].as_array().into_iter().flatten();
        let pods = deployments.map(|deployment| &deployment["spec"]["template"]["spec"]);
        let containers = pods.flat_map(|pod| ["initContainers", "containers"].map(|list| &pod[list]));
        let deployed = containers
            .flat_map(|list| list.as_array().into_iter().flatten())
            .filter_map(|one| one["image"].as_str());
        for image in [bundle_image].into_iter().chain(deployed) {
            if known.insert(image.to_owned()) {
                images.push(json!({"name": "", "image": image}));
            }
        }
        images.sort_by(|one, other| one["image"].as_str().cmp(&other["image"].as_str()));
        images
    }
}
