//! All resources the server knows: the built-in ones from a table, custom ones from their definitions.
//!
//! A [`Registry`] never changes; a new or changed CustomResourceDefinition makes a new one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use windlass_machinery::schema::{NodeId, Schemas, Type};

use super::definitions::conversion::Conversion;
use super::view;
use crate::store::{Store, TableId};

const TYPES: &str = include_str!("../../data/types.json");
const RESOURCES: &str = include_str!("../../data/resources.json");
/// The definition of every object's metadata.
pub const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// One resource in one version.
#[derive(Debug)]
pub struct Resource {
    /// The API group; empty for the core.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural name, as in paths.
    pub plural: String,
    /// The singular name.
    pub singular: String,
    /// The kind of its objects.
    pub kind: String,
    /// The kind of its lists.
    pub list_kind: String,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// Other names that clients take for it.
    pub short_names: Vec<String>,
    /// The groups of resources it is in (`all`).
    pub categories: Vec<String>,
    /// What can be done with it.
    pub verbs: Vec<String>,
    /// Its subresources.
    pub subresources: BTreeMap<String, Subresource>,
    /// The columns of its table.
    pub columns: Vec<Column>,
    /// Where its objects are stored; shared by all versions.
    pub table: TableId,
    /// The name of its type.
    pub definition: String,
    schemas: Arc<Schemas>,
    root: NodeId,
    /// What a custom resource has beyond a built-in one.
    pub custom: Option<CustomResource>,
    prefix: Bytes,
}

/// A part of an object with a path of its own.
#[derive(Clone, Debug)]
pub struct Subresource {
    /// The group of its kind.
    pub group: String,
    /// The version of its kind.
    pub version: String,
    /// Its kind.
    pub kind: String,
    /// What can be done with it.
    pub verbs: Vec<String>,
    /// Its type, where it is not the object's own.
    pub node: Option<NodeId>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its title.
    pub name: String,
    /// Its type (`string`, `integer`, `date`).
    pub kind: String,
    /// Its format (`name`).
    pub format: String,
    /// Shown only in wide output where it is above 0.
    pub priority: i64,
    /// What it is for.
    pub description: String,
    /// Where a custom resource's value is.
    pub json_path: Option<String>,
}

/// What a custom resource has beyond a built-in one.
#[derive(Clone, Debug)]
pub struct CustomResource {
    /// The name of its definition.
    pub definition: String,
    /// Where its replicas and selector are, where it can be scaled.
    pub scale: Option<ScalePaths>,
    /// Fields that field selectors may name.
    pub selectable: Vec<String>,
    /// Its schema as written, for OpenAPI.
    pub schema: Arc<Value>,
    /// Whether its definition is being deleted.
    pub terminating: bool,
    /// What clients of a version on its way out are told.
    pub deprecation: Option<String>,
    /// What converts its objects between versions, where that is not a matter of names.
    pub conversion: Option<Arc<Conversion>>,
}

/// Where the numbers of a scale subresource are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// The wanted replicas.
    pub spec: String,
    /// The observed replicas.
    pub status: String,
    /// The selector as text.
    pub selector: Option<String>,
}

/// Everything [`Resource::new`] needs for a custom resource.
#[derive(Debug)]
pub struct CustomParts {
    /// Its names and abilities; `table`, types and prefix are filled in.
    pub group: String,
    /// The version.
    pub version: String,
    /// `spec.names` of the definition, accepted.
    pub names: Names,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// Its types.
    pub schemas: Arc<Schemas>,
    /// The type of an object.
    pub root: NodeId,
    /// Whether it has a status subresource.
    pub status: bool,
    /// The columns of its table.
    pub columns: Vec<Column>,
    /// The rest.
    pub custom: CustomResource,
}

/// The names of a custom resource.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct Names {
    /// The plural name.
    pub plural: String,
    /// The singular name.
    pub singular: String,
    /// Short names.
    pub short_names: Vec<String>,
    /// The kind.
    pub kind: String,
    /// The kind of lists.
    pub list_kind: String,
    /// Categories.
    pub categories: Vec<String>,
}

impl Resource {
    /// `deployments.apps`, or `pods`.
    #[must_use]
    pub fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// `apps/v1`, or `v1`.
    #[must_use]
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// The type of its objects.
    #[must_use]
    pub fn ty(&self) -> Type<'_> {
        self.schemas.at(self.root)
    }

    /// A type of the same arena.
    #[must_use]
    pub fn type_at(&self, node: NodeId) -> Type<'_> {
        self.schemas.at(node)
    }

    /// The start of an object's JSON, up to where its stored form goes on after `{`.
    #[must_use]
    pub fn prefix(&self) -> &Bytes {
        &self.prefix
    }

    /// The real server's own type of its objects, or with `List` of its lists.
    #[must_use]
    pub fn go_type(&self, suffix: &str) -> String {
        if self.custom.is_some() {
            return format!("*unstructured.Unstructured{suffix}");
        }
        let group = self.group.split('.').next().unwrap_or_default();
        format!("*{}.{}{suffix}", if group.is_empty() { "core" } else { group }, self.kind)
    }

    /// Whether it can do that.
    #[must_use]
    pub fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }

    /// A subresource as a resource of its own, where its objects are of a type of their own.
    #[must_use]
    pub fn part(&self, name: &str) -> Option<Self> {
        let sub = self.subresources.get(name)?;
        Some(Self {
            group: sub.group.clone(),
            version: sub.version.clone(),
            plural: self.plural.clone(),
            singular: self.singular.clone(),
            kind: sub.kind.clone(),
            list_kind: format!("{}List", sub.kind),
            namespaced: self.namespaced,
            short_names: Vec::new(),
            categories: Vec::new(),
            verbs: sub.verbs.clone(),
            subresources: BTreeMap::new(),
            columns: Vec::new(),
            table: self.table,
            definition: String::new(),
            schemas: Arc::clone(&self.schemas),
            root: sub.node?,
            custom: None,
            prefix: prefix(&api_version(&sub.group, &sub.version), &sub.kind),
        })
    }

    /// A custom resource in one version.
    #[must_use]
    pub fn custom(parts: CustomParts, store: &Store) -> Self {
        let all = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
        let mut verbs = all.to_vec();
        if parts.custom.terminating {
            verbs.retain(|verb| !matches!(*verb, "patch" | "create" | "update"));
        }
        let own = |verbs: &[&str]| verbs.iter().map(|verb| (*verb).to_owned()).collect::<Vec<_>>();
        let mut subresources = BTreeMap::new();
        if parts.status {
            let status = Subresource {
                group: parts.group.clone(),
                version: parts.version.clone(),
                kind: parts.names.kind.clone(),
                verbs: own(&["get", "patch", "update"]),
                node: None,
            };
            subresources.insert("status".to_owned(), status);
        }
        if parts.custom.scale.is_some() {
            let scale = Subresource {
                group: "autoscaling".into(),
                version: "v1".into(),
                kind: "Scale".into(),
                verbs: own(&["get", "patch", "update"]),
                node: None,
            };
            subresources.insert("scale".to_owned(), scale);
        }
        let table = store.table(&format!("{}/{}", parts.group, parts.names.plural));
        Self {
            prefix: prefix(&api_version(&parts.group, &parts.version), &parts.names.kind),
            group: parts.group,
            version: parts.version,
            plural: parts.names.plural,
            singular: parts.names.singular,
            kind: parts.names.kind,
            list_kind: parts.names.list_kind,
            namespaced: parts.namespaced,
            short_names: parts.names.short_names,
            categories: parts.names.categories,
            verbs: own(&verbs),
            subresources,
            columns: parts.columns,
            table,
            definition: String::new(),
            schemas: parts.schemas,
            root: parts.root,
            custom: Some(parts.custom),
        }
    }
}

/// `group/version`, or the version alone for the core.
#[must_use]
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

fn prefix(api_version: &str, kind: &str) -> Bytes {
    Bytes::from(format!("{{\"kind\":{},\"apiVersion\":{}", Value::from(kind), Value::from(api_version)))
}

/// The built-in resources: read once, shared by all registries.
#[derive(Debug)]
pub struct BuiltIn {
    /// The types of all built-in kinds.
    pub schemas: Arc<Schemas>,
    /// The type of `metadata`.
    pub object_meta: NodeId,
    /// The type of `DeleteOptions`.
    pub delete_options: NodeId,
    roots: BTreeMap<String, NodeId>,
    resources: Vec<Arc<Resource>>,
}

impl BuiltIn {
    /// Reads the tables.
    ///
    /// # Errors
    /// When a table does not fit the code, which a build of the crate never has.
    pub fn load(store: &Store) -> Result<Self, LoadError> {
        let mut schemas = Schemas::from_table(TYPES)?;
        let rows: Vec<Row> = serde_json::from_str(RESOURCES)?;
        let mut node =
            |definition: &str| schemas.root(definition).ok_or_else(|| LoadError::Type(definition.to_owned()));
        let object_meta = node(OBJECT_META)?;
        let delete_options = node("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions")?;
        let mut parts = Vec::with_capacity(rows.len());
        for row in rows {
            let root = node(&row.definition)?;
            let mut subresources = BTreeMap::new();
            for sub in &row.subresources {
                let own = sub.definition.as_ref().is_none_or(|name| *name == row.definition);
                let node =
                    if own { None } else { Some(node(sub.definition.as_deref().unwrap_or_default())?) };
                subresources.insert(
                    sub.name.clone(),
                    Subresource {
                        group: sub.group.clone().unwrap_or_else(|| row.group.clone()),
                        version: sub.version.clone().unwrap_or_else(|| row.version.clone()),
                        kind: sub.kind.clone(),
                        verbs: sub.verbs.clone(),
                        node,
                    },
                );
            }
            parts.push((row, root, subresources));
        }
        let all: Vec<String> = schemas.definitions().map(|structure| structure.name.to_string()).collect();
        let roots = all.into_iter().filter_map(|name| Some((name.clone(), schemas.root(&name)?))).collect();
        let schemas = Arc::new(schemas);
        let resources = parts
            .into_iter()
            .map(|(row, root, subresources)| Arc::new(row.resource(root, subresources, &schemas, store)))
            .collect();
        Ok(Self { schemas, object_meta, delete_options, roots, resources })
    }

    /// The type of a definition.
    #[must_use]
    pub fn definition(&self, name: &str) -> Option<Type<'_>> {
        self.roots.get(name).map(|root| self.schemas.at(*root))
    }

    /// The type of `metadata`.
    #[must_use]
    pub fn metadata(&self) -> Type<'_> {
        self.schemas.at(self.object_meta)
    }
}

/// Why the tables could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The types.
    #[error(transparent)]
    Types(#[from] windlass_machinery::schema::TableError),
    /// The resources.
    #[error("failed to read the table of resources: {0}")]
    Resources(#[from] serde_json::Error),
    /// The key for tokens.
    #[error(transparent)]
    Key(#[from] super::auth::token::KeyError),
    /// A resource of a type that is not in the table of types.
    #[error("failed to read the table of resources: there is no type {0}")]
    Type(String),
}

#[derive(Deserialize)]
struct Row {
    group: String,
    version: String,
    resource: String,
    kind: String,
    singular: String,
    namespaced: bool,
    verbs: Vec<String>,
    #[serde(default, rename = "shortNames")]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
    #[serde(rename = "type")]
    definition: String,
    #[serde(default)]
    subresources: Vec<SubRow>,
    #[serde(default)]
    columns: Vec<(String, String, String, i64)>,
}

#[derive(Deserialize)]
struct SubRow {
    name: String,
    kind: String,
    verbs: Vec<String>,
    group: Option<String>,
    version: Option<String>,
    #[serde(rename = "type")]
    definition: Option<String>,
}

impl Row {
    fn resource(
        self,
        root: NodeId,
        subresources: BTreeMap<String, Subresource>,
        schemas: &Arc<Schemas>,
        store: &Store,
    ) -> Resource {
        let columns = self
            .columns
            .into_iter()
            .map(|(name, kind, format, priority)| Column {
                name,
                kind,
                format,
                priority,
                description: String::new(),
                json_path: None,
            })
            .collect();
        Resource {
            prefix: prefix(&api_version(&self.group, &self.version), &self.kind),
            table: store.table(&format!(
                "{}/{}",
                view::storage_group(&self.group, &self.resource),
                self.resource
            )),
            list_kind: format!("{}List", self.kind),
            group: self.group,
            version: self.version,
            plural: self.resource,
            singular: self.singular,
            kind: self.kind,
            namespaced: self.namespaced,
            short_names: self.short_names,
            categories: self.categories,
            verbs: self.verbs,
            subresources,
            columns,
            definition: self.definition,
            schemas: Arc::clone(schemas),
            root,
            custom: None,
        }
    }
}

/// All resources at one moment.
#[derive(Debug)]
pub struct Registry {
    resources: Vec<Arc<Resource>>,
    /// By group, version and plural name.
    index: HashMap<String, HashMap<String, HashMap<String, Arc<Resource>>>>,
}

impl Registry {
    /// The built-in resources and these custom ones.
    #[must_use]
    pub fn new(built_in: &BuiltIn, custom: Vec<Arc<Resource>>) -> Self {
        let mut resources = built_in.resources.clone();
        resources.extend(custom);
        let mut index: HashMap<String, HashMap<String, HashMap<String, Arc<Resource>>>> = HashMap::new();
        for resource in &resources {
            index
                .entry(resource.group.clone())
                .or_default()
                .entry(resource.version.clone())
                .or_default()
                .insert(resource.plural.clone(), Arc::clone(resource));
        }
        Self { resources, index }
    }

    /// The resource of that name.
    #[must_use]
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.index.get(group)?.get(version)?.get(plural)
    }

    /// Whether the group is known, and whether the version of it is.
    #[must_use]
    pub fn knows(&self, group: &str, version: &str) -> (bool, bool) {
        (
            self.resources.iter().any(|resource| resource.group == group),
            self.index.get(group).is_some_and(|versions| versions.contains_key(version)),
        )
    }

    /// Whether a group has custom resources only.
    #[must_use]
    pub fn is_custom(&self, group: &str) -> bool {
        self.resources.iter().find(|resource| resource.group == group).is_some_and(|one| one.custom.is_some())
    }

    /// The built-in or custom resource of a kind, in its first version.
    #[must_use]
    pub fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.resources.iter().find(|resource| resource.kind == kind && resource.api_version() == api_version)
    }

    /// The core resource of that name.
    #[must_use]
    pub fn core(&self, plural: &str) -> Option<&Arc<Resource>> {
        self.find("", "v1", plural)
    }

    /// All resources, in the order of discovery.
    #[must_use]
    pub fn all(&self) -> &[Arc<Resource>] {
        &self.resources
    }
}
