//! Rendering without a cluster: the objects of manifests in place of it.

mod form;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::ByteString;
use kube::core::SelectorExt as _;
use serde_json::{Map, Value};
use windlass::{Halt, Kind, Object};

use crate::assets::{Contents, Lookup};
use crate::config::{Collected, Common, Piece, Runs, Scene};
use crate::discovery::{Choice, Discovery, Find, Namespaces};
use crate::kinds::{GrafanaAgent, LeftOut, Named as _};
use crate::outcome::rendered;

/// What a manifest cannot be rendered for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is no YAML.
    #[error("failed to read {source_name}: {message}")]
    Unreadable {
        /// Where it is from.
        source_name: String,
        /// Why.
        message: String,
    },
    /// An object is not what its kind says.
    #[error("failed to decode {kind} {name}: {message}")]
    Undecodable {
        /// The kind.
        kind: String,
        /// Namespace and name.
        name: String,
        /// Why.
        message: String,
    },
    /// There is none, or more than one.
    #[error("there are {} GrafanaAgents{}; exactly one can be rendered", .0.len(), listed(.0))]
    Agents(Vec<String>),
    /// Something is missing.
    #[error("failed to render: {0}")]
    Halted(String),
}

/// Which configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// That of the agents that scrape.
    Metrics,
    /// That of the agents that follow logs.
    Logs,
    /// That of integrations, wherever they run.
    Integrations,
}

/// A configuration, and what was left out of it.
pub struct Rendered {
    /// The configuration, as YAML.
    pub yaml: String,
    /// What was left out, and what is wrong with what is in nevertheless.
    pub troubles: Vec<LeftOut>,
    /// What is wrong otherwise, with selectors and with the manifests themselves.
    pub faults: Vec<String>,
}

/// The objects of manifests.
#[derive(Clone, Debug, Default)]
pub struct Manifests {
    /// By kind, namespace and name.
    objects: BTreeMap<(String, String, String), Value>,
    /// What was not taken as it is written.
    notes: Vec<String>,
}

impl Manifests {
    /// Adds the objects of a text; the last of a name counts. `source_name` names it in errors.
    ///
    /// # Errors
    /// If it is no YAML.
    pub fn add(&mut self, text: &str, source_name: &str) -> Result<(), Error> {
        let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| Error::Unreadable {
            source_name: source_name.to_owned(),
            message: error.to_string(),
        })?;
        documents.into_iter().for_each(|document| self.insert(without_nulls(document), source_name));
        Ok(())
    }

    /// The configuration of the one agent that there is.
    ///
    /// # Errors
    /// If there is not exactly one agent, or an object is not what its kind says.
    pub fn render(&self, which: Type) -> Result<Rendered, Error> {
        let agents: Vec<GrafanaAgent> = self.all()?;
        let [agent] = agents.as_slice() else {
            return Err(Error::Agents(agents.iter().map(|agent| agent.path()).collect()));
        };
        self.check()?;
        let faults = self.notes.iter().cloned().chain(form::unknown_fields(self.objects.values()));
        let faults: Vec<String> = faults.collect();
        let rendered = rendered(agent, self, |found, assets| {
            let scene = Scene::new(agent, assets);
            let yaml = scene.text_of(&render_one(&scene, found, which)).to_string();
            let findings = scene.into_findings();
            let troubles = findings.left_out.into_iter().chain(findings.complaints).collect();
            Rendered { yaml, troubles, faults: faults.iter().chain(&found.faults).cloned().collect() }
        });
        // Nothing here is ever still to be loaded.
        rendered.map_err(|halt| Error::Halted(halt.to_string()))
    }

    fn insert(&mut self, mut document: Value, source_name: &str) {
        let is_list = document["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
        if is_list && let Value::Array(items) = document["items"].take() {
            items.into_iter().for_each(|item| self.insert(item, source_name));
            return;
        }
        let Some(fields) = document.as_object_mut() else { return };
        fields.entry("spec").or_insert_with(|| Value::Object(Map::new()));
        let metadata = fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.entry("namespace").or_insert_with(|| "default".into());
        }
        let text =
            |pointer: &str| document.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (version, kind) = (text("/apiVersion"), text("/kind"));
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        if version.is_empty() || kind.is_empty() || name.is_empty() {
            let note =
                format!("{source_name}: what has no apiVersion, kind or metadata.name is no object; ignored");
            self.notes.push(note);
            return;
        }
        self.notes.extend(form::other_version(&kind, &version).map(|right| {
            format!(
                "{kind} {namespace}/{name}: is ignored, for its apiVersion {version} is unknown; use {right}"
            )
        }));
        let key = (format!("{version} {kind}"), namespace, name);
        let title = format!("{kind} {}/{}", key.1, key.2);
        if self.objects.insert(key, document).is_some() {
            self.notes.push(format!("{title} is given twice; the one in {source_name} counts"));
        }
    }

    /// All objects of a kind, by namespace and name.
    fn all<K: Object>(&self) -> Result<Vec<K>, Error> {
        let kind = Kind::of::<K>();
        let wanted = format!("{} {}", kind.api_version(), kind.name());
        let objects = self.objects.iter().filter(|((kind, ..), _)| *kind == wanted);
        objects
            .map(|((_, namespace, name), object)| {
                serde_json::from_value(object.clone()).map_err(|error| Error::Undecodable {
                    kind: kind.name().to_owned(),
                    name: format!("{namespace}/{name}"),
                    message: form::misfits(object).unwrap_or_else(|| error.to_string()),
                })
            })
            .collect()
    }

    /// Whether everything is what its kind says.
    fn check(&self) -> Result<(), Error> {
        use crate::kinds::{
            Integration, LogsInstance, MetricsInstance, PodLogs, PodMonitor, Probe, ServiceMonitor,
        };
        self.all::<MetricsInstance>()?;
        self.all::<LogsInstance>()?;
        self.all::<Integration>()?;
        self.all::<ServiceMonitor>()?;
        self.all::<PodMonitor>()?;
        self.all::<Probe>()?;
        self.all::<PodLogs>()?;
        Ok(())
    }

    fn get(&self, kind: &str, namespace: &str, name: &str) -> Option<&Value> {
        self.objects.get(&(format!("v1 {kind}"), namespace.to_owned(), name.to_owned()))
    }

    /// The labels of a namespace. One that no manifest has is labelled with its name, as the API server does.
    fn labels_of(&self, namespace: &str) -> BTreeMap<String, String> {
        let spaces = self.objects.iter().filter(|((kind, ..), _)| kind == "v1 Namespace");
        let found = spaces.filter(|((_, _, name), _)| name == namespace).map(|(_, object)| object).next();
        let labels = found.and_then(|object| object.pointer("/metadata/labels"));
        let mut labels: BTreeMap<String, String> =
            labels.and_then(|labels| serde_json::from_value(labels.clone()).ok()).unwrap_or_default();
        labels.insert("kubernetes.io/metadata.name".into(), namespace.into());
        labels
    }
}

impl Find for Manifests {
    fn select<K: Object>(&self, choice: &Choice) -> Result<Vec<K>, Halt> {
        let in_namespace = |object: &K| match &choice.namespaces {
            Namespaces::Parent(name) => object.space() == name,
            Namespaces::All => true,
            Namespaces::Labelled(labels) => labels.matches(&self.labels_of(object.space())),
        };
        let no_labels = BTreeMap::new();
        let mut objects: Vec<K> = self.all().unwrap_or_default();
        objects.retain(|object| {
            in_namespace(object) && choice.labels.matches(object.meta().labels.as_ref().unwrap_or(&no_labels))
        });
        Ok(objects)
    }

    fn pieces<K: Collected>(&self, choice: &Choice, common: &Arc<Common>) -> Result<Vec<Arc<Piece>>, Halt> {
        let objects: Vec<K> = self.select(choice)?;
        objects.iter().map(|object| Piece::of(self, object, common).map(Arc::new)).collect()
    }
}

impl Lookup for Manifests {
    fn secret(&self, namespace: &str, name: &str) -> Result<Option<Contents>, Halt> {
        Ok(self.get("Secret", namespace, name).map(|object| contents(object, "data", "stringData")))
    }

    fn config_map(&self, namespace: &str, name: &str) -> Result<Option<Contents>, Halt> {
        Ok(self.get("ConfigMap", namespace, name).map(|object| contents(object, "binaryData", "data")))
    }
}

fn render_one(scene: &Scene<'_>, found: &Discovery, which: Type) -> crate::document::Document {
    match which {
        Type::Metrics => scene.metrics(found),
        Type::Logs => scene.logs(found),
        Type::Integrations => scene.integrations(found, Runs::Anywhere),
    }
}

/// What an object holds: base64 in one field, plain text in another, which comes first.
fn contents(object: &Value, encoded: &str, plain: &str) -> Contents {
    let decoded = object.get(encoded).cloned().unwrap_or_default();
    let mut contents: Contents = match decoded {
        Value::Object(fields) => fields
            .into_iter()
            .filter_map(|(key, value)| Some((key, serde_json::from_value(value).ok()?)))
            .collect(),
        _ => Contents::new(),
    };
    for (key, value) in object.get(plain).and_then(Value::as_object).into_iter().flatten() {
        if let Some(text) = value.as_str() {
            contents.insert(key.clone(), ByteString(text.as_bytes().to_vec()));
        }
    }
    contents
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) }
}

/// A field that is null counts as not given, as for the API server.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let given = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(given.map(|(name, value)| (name, without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        scalar => scalar,
    }
}
