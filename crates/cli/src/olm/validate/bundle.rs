//! A bundle as rules look at it: files, and the objects in them.

use std::collections::BTreeMap;
use std::io::Write as _;

use serde_json::{Map, Value};

use super::{Finding, finding};

pub(super) const MANIFESTS: &str = "manifests/";
pub(super) const METADATA: &str = "metadata/";

/// An object, and the file it is in.
pub(super) struct Manifest {
    pub(super) file: String,
    pub(super) tree: Value,
}

/// A kind of one version.
pub(super) type GroupVersionKind = (String, String, String);

/// A bundle.
pub(super) struct Bundle {
    pub(super) files: BTreeMap<String, Vec<u8>>,
    pub(super) manifests: Vec<Manifest>,
    /// Files among the manifests that hold no object, and why.
    pub(super) unreadable: Vec<Finding>,
    /// The annotations, and the file they are in.
    pub(super) annotations: Option<(String, Map<String, Value>)>,
    /// What an API server refuses.
    pub(super) refusals: Vec<Refusal>,
}

/// An object that an API server refuses.
pub(super) struct Refusal {
    pub(super) of: Refused,
    pub(super) finding: Finding,
}

/// What was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Definition,
    Example,
    Deployment,
    Other,
}

impl Manifest {
    /// The text at a pointer, or nothing.
    pub(super) fn text(&self, pointer: &str) -> &str {
        text_at(&self.tree, pointer)
    }

    /// The list at a pointer; empty if there is none.
    pub(super) fn list(&self, pointer: &str) -> &[Value] {
        self.tree.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub(super) fn kind(&self) -> &str {
        self.text("/kind")
    }

    /// An annotation of the object.
    pub(super) fn annotation(&self, name: &str) -> Option<&str> {
        self.tree["metadata"]["annotations"][name].as_str()
    }

    pub(super) fn finding(&self, field: impl Into<String>, message: impl Into<String>) -> Finding {
        finding(&self.file, field, message)
    }
}

impl Bundle {
    pub(super) fn new(files: BTreeMap<String, Vec<u8>>) -> Self {
        let mut bundle = Self {
            files,
            manifests: Vec::new(),
            unreadable: Vec::new(),
            annotations: None,
            refusals: Vec::new(),
        };
        for (file, content) in &bundle.files {
            if let Some(name) = file.strip_prefix(MANIFESTS) {
                match object(name, content) {
                    Ok(tree) => bundle.manifests.push(Manifest { file: file.clone(), tree }),
                    Err(message) => bundle.unreadable.push(finding(file, "", message)),
                }
            } else if file.starts_with(METADATA)
                && let Some(Value::Object(annotations)) = annotations(content)
            {
                bundle.annotations.get_or_insert((file.clone(), annotations));
            }
        }
        bundle
    }

    /// The ClusterServiceVersion.
    pub(super) fn csv(&self) -> Option<&Manifest> {
        self.of_kind("ClusterServiceVersion").next()
    }

    pub(super) fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Manifest> {
        self.manifests.iter().filter(move |manifest| manifest.kind() == kind)
    }

    /// An annotation of the bundle.
    pub(super) fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.as_ref().and_then(|(_, annotations)| annotations.get(name)?.as_str())
    }

    /// The channels and the default one.
    pub(super) fn channels(&self) -> Vec<&str> {
        let channels = self.annotation(super::layout::CHANNELS).unwrap_or_default().split(',').map(str::trim);
        channels.filter(|channel| !channel.is_empty()).collect()
    }

    /// The versions of all definitions, with their files.
    pub(super) fn defined(&self) -> Vec<(GroupVersionKind, &Manifest)> {
        let mut defined = Vec::new();
        for manifest in self.of_kind("CustomResourceDefinition") {
            for version in manifest.list("/spec/versions") {
                let group = manifest.text("/spec/group").to_owned();
                let kind = manifest.text("/spec/names/kind").to_owned();
                defined.push(((group, text_at(version, "/name").to_owned(), kind), manifest));
            }
        }
        defined
    }

    /// What the ClusterServiceVersion says it owns.
    pub(super) fn owned(&self) -> Vec<GroupVersionKind> {
        let owned = self.csv().map_or(&[][..], |csv| csv.list("/spec/customresourcedefinitions/owned"));
        let of = |one: &Value| {
            let name = text_at(one, "/name");
            let group = name.split_once('.').map_or(name, |(_, group)| group);
            (group.to_owned(), text_at(one, "/version").to_owned(), text_at(one, "/kind").to_owned())
        };
        owned.iter().map(of).collect()
    }

    /// The deployments with the pointers to them.
    pub(super) fn deployments(&self) -> &[Value] {
        self.csv().map_or(&[], |csv| csv.list("/spec/install/spec/deployments"))
    }

    /// The size that counts: that of the files as OLM stores them, compressed and then written as text.
    pub(super) fn stored_size(&self) -> usize {
        let stored = |content: &Vec<u8>| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            let compressed = encoder.write_all(content).and_then(|()| encoder.finish());
            compressed.map_or(content.len(), |compressed| compressed.len()).div_ceil(3) * 4
        };
        self.files.values().map(stored).sum()
    }
}

pub(super) fn text_at<'a>(tree: &'a Value, pointer: &str) -> &'a str {
    tree.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The one object of a file among the manifests.
fn object(name: &str, content: &[u8]) -> Result<Value, String> {
    if name.contains('/') {
        return Err("OLM reads no directories below manifests/; move it up".into());
    }
    if name.starts_with('.') {
        return Err("hidden files are not allowed among the manifests; remove it".into());
    }
    let text = std::str::from_utf8(content).map_err(|_| "it is no text; remove it")?;
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(text).map_err(|error| format!("it is neither YAML nor JSON: {error}"))?;
    let mut objects = documents.into_iter().filter(|document| !document.is_null());
    let (first, more) = (objects.next(), objects.next());
    if more.is_some() {
        return Err(
            "it holds several objects, and OLM reads only the first; give each a file of its own".into()
        );
    }
    match first {
        Some(object) if object["apiVersion"].is_string() && object["kind"].is_string() => Ok(object),
        _ => Err("it is no object with an apiVersion and a kind; remove it or complete it".into()),
    }
}

fn annotations(content: &[u8]) -> Option<Value> {
    let tree: Value = serde_saphyr::from_str(std::str::from_utf8(content).ok()?).ok()?;
    tree.get("annotations").cloned()
}
