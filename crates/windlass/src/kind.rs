//! Kinds and names of Kubernetes objects, without their types.

use std::any::TypeId;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, PoisonError, RwLock};

use kube::core::{ApiResource, NamespaceResourceScope};
use kube::{Api, Client, Resource};
use serde::{Serialize, de::DeserializeOwned};

use crate::cache::Delivered;

/// A Rust type of a Kubernetes object: every type of `k8s-openapi`, and every derived custom resource.
pub trait Object:
    Resource<DynamicType = ()> + Clone + fmt::Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// The kind that this type stands for.
    #[must_use]
    fn kind_of() -> Kind;
}

impl<K> Object for K
where
    K: Resource<DynamicType = ()> + Clone + fmt::Debug + Serialize + DeserializeOwned + Send + Sync + 'static,
    K::Scope: 'static,
{
    fn kind_of() -> Kind {
        Kind(Arc::new(Fields {
            group: K::group(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            version: K::version(&()).into_owned(),
            plural: K::plural(&()).into_owned(),
            namespaced: TypeId::of::<K::Scope>() == TypeId::of::<NamespaceResourceScope>(),
        }))
    }
}

/// Stands in the place of a group for things outside Kubernetes; no API group is written like it.
const EXTERNAL: &str = "(external)";

/// A kind of object: group, version, kind, plural and whether it lives in namespaces. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Kind(Arc<Fields>);

impl Ord for Kind {
    fn cmp(&self, other: &Self) -> Ordering {
        // Mostly they are one and the same.
        if Arc::ptr_eq(&self.0, &other.0) { Ordering::Equal } else { self.0.cmp(&other.0) }
    }
}

impl PartialOrd for Kind {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Fields {
    group: String,
    kind: String,
    version: String,
    plural: String,
    namespaced: bool,
}

impl Kind {
    /// The kind that `K` stands for.
    #[must_use]
    pub fn of<K: Object>() -> Self {
        static KNOWN: RwLock<BTreeMap<TypeId, Kind>> = RwLock::new(BTreeMap::new());
        let type_id = TypeId::of::<K>();
        if let Some(kind) = KNOWN.read().unwrap_or_else(PoisonError::into_inner).get(&type_id) {
            return kind.clone();
        }
        let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
        known.entry(type_id).or_insert_with(K::kind_of).clone()
    }

    /// The kind of external things of one type.
    pub(crate) fn external(type_name: &str) -> Self {
        Self(Arc::new(Fields {
            group: EXTERNAL.into(),
            kind: type_name.into(),
            version: String::new(),
            plural: type_name.into(),
            namespaced: false,
        }))
    }

    /// Whether it stands for things outside Kubernetes.
    pub(crate) fn is_external(&self) -> bool {
        self.0.group == EXTERNAL
    }

    /// The API group; empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.0.group
    }

    /// The API version without its group, such as `v1`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.0.version
    }

    /// The kind's own name, such as `Deployment`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.kind
    }

    /// The resource's name in URLs and roles, such as `deployments`.
    #[must_use]
    pub fn plural(&self) -> &str {
        &self.0.plural
    }

    /// Whether objects of this kind live in namespaces.
    #[must_use]
    pub fn namespaced(&self) -> bool {
        self.0.namespaced
    }

    /// Group and version as objects carry them.
    #[must_use]
    pub fn api_version(&self) -> String {
        match self.0.group.as_str() {
            "" => self.0.version.clone(),
            group => format!("{group}/{}", self.0.version),
        }
    }

    pub(crate) fn resource(&self) -> ApiResource {
        ApiResource {
            group: self.0.group.clone(),
            version: self.0.version.clone(),
            api_version: self.api_version(),
            kind: self.0.kind.clone(),
            plural: self.0.plural.clone(),
        }
    }

    /// Requests for one object of this kind.
    pub(crate) fn api(&self, client: &Client, name: &ObjectName) -> Api<Delivered> {
        if self.0.namespaced {
            Api::namespaced_with(client.clone(), &name.namespace, &self.resource())
        } else {
            Api::all_with(client.clone(), &self.resource())
        }
    }

    /// Lists and watches of this kind in a namespace, or over the whole cluster.
    pub(crate) fn within(&self, client: &Client, namespace: Option<&str>) -> Api<Delivered> {
        match namespace.filter(|_| self.0.namespaced) {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &self.resource()),
            None => Api::all_with(client.clone(), &self.resource()),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.kind)
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0.plural, self.api_version())
    }
}

/// Namespace and name of an object; the namespace is empty for kinds that live in none. Cheap to clone.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct ObjectName(Arc<Names>);

/// What an [`ObjectName`] is made up of.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Names {
    /// The namespace, or nothing.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Deref for ObjectName {
    type Target = Names;

    fn deref(&self) -> &Names {
        &self.0
    }
}

impl Ord for ObjectName {
    fn cmp(&self, other: &Self) -> Ordering {
        if Arc::ptr_eq(&self.0, &other.0) { Ordering::Equal } else { self.0.cmp(&other.0) }
    }
}

impl PartialOrd for ObjectName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ObjectName {
    /// A name in a namespace.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self(Arc::new(Names { namespace: namespace.into(), name: name.into() }))
    }

    /// What an object is called.
    #[must_use]
    pub fn of<K: Object>(object: &K) -> Self {
        let meta = object.meta();
        Self::new(meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => f.write_str(&self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}
