//! A picture of the cluster, filled by single requests as a plan asks for things.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use kube::api::{DynamicObject, ListParams};
use kube::{Client, ResourceExt as _};
use serde_json::Value;
use windlass_machinery::Context;

use super::{NEW, PreviewError};
use crate::cache::{Lookup, Read, Shares, Stored};
use crate::external::{self, Externals};
use crate::world::Source;
use crate::{Kind, ObjectName, Operator};

pub(super) struct Snapshot<'a> {
    client: &'a Client,
    shares: Shares,
    externals: Externals,
    picture: Picture,
}

#[derive(Clone)]
struct Picture {
    inner: Arc<Mutex<Inner>>,
    context: Context,
}

#[derive(Default)]
struct Inner {
    objects: BTreeMap<(Kind, ObjectName), Lookup>,
    /// The selections that were read.
    selected: BTreeSet<Read>,
    /// What a plan asked for and is not here yet.
    missing: BTreeSet<Read>,
}

impl<'a> Snapshot<'a> {
    pub(super) fn new(client: &'a Client, context: &Context, operator: &Operator) -> Self {
        let externals = operator.connected(client).into_iter();
        Self {
            client,
            shares: Shares::new([operator.name().to_owned()].into()),
            externals: externals.map(|external| (external.kind(), external)).collect(),
            picture: Picture { inner: Arc::default(), context: context.clone() },
        }
    }

    pub(super) fn source(&self) -> Box<dyn Source> {
        Box::new(self.picture.clone())
    }

    pub(super) fn look(&self, kind: &Kind, name: &ObjectName) -> Lookup {
        self.picture.named(kind, name)
    }

    /// Puts an object as it would be into the picture.
    pub(super) fn put(&self, kind: &Kind, object: &Value) {
        let stored = Arc::new(Stored::made(&object, &self.shares));
        let key = (kind.clone(), stored.name.clone());
        self.picture.lock().objects.insert(key, Lookup::Present(stored));
    }

    pub(super) fn differs(&self, kind: &Kind, desired: &Value, now: &Value) -> bool {
        let external = self.externals.get(kind);
        external.is_some_and(|external| external.differs(desired, now).unwrap_or(true))
    }

    /// Reads what was asked for; true if there was anything.
    pub(super) async fn load_missing(&mut self) -> Result<bool, PreviewError> {
        let missing = std::mem::take(&mut self.picture.lock().missing);
        for read in &missing {
            match read {
                Read::Named { kind, name } => {
                    let found = self.read(kind, name).await?;
                    let key = (kind.clone(), name.clone());
                    self.picture.lock().objects.insert(key, found);
                }
                Read::Selected(selection) => {
                    let params = ListParams::default().labels(&selection.text);
                    let found = self.list(&selection.kind, selection.namespace.as_deref(), &params).await?;
                    let mut inner = self.picture.lock();
                    for stored in found {
                        let key = (selection.kind.clone(), stored.name.clone());
                        // What would be made or changed stays as it would be.
                        inner.objects.entry(key).or_insert_with(|| Lookup::Present(Arc::new(stored)));
                    }
                    inner.selected.insert(read.clone());
                }
            }
        }
        Ok(!missing.is_empty())
    }

    async fn read(&self, kind: &Kind, name: &ObjectName) -> Result<Lookup, PreviewError> {
        if kind.is_external() {
            let Some(external) = self.externals.get(kind) else {
                return Ok(Lookup::Failed("the operator was given no code for it".into()));
            };
            return Ok(match external.observe(&name.name).await {
                Ok(Some(value)) => Lookup::Present(Arc::new(external::stored(&name.name, value))),
                Ok(None) => Lookup::Absent,
                Err(error) => Lookup::Failed(error),
            });
        }
        let found = kind.api(self.client, name).get_opt(&name.name).await;
        let found = found.map_err(|error| failed(format!("{kind} {name}"), &error))?;
        Ok(found
            .map_or(Lookup::Absent, |object| Lookup::Present(Arc::new(Stored::new(&object, &self.shares)))))
    }

    /// All objects of a kind; none where the cluster does not know the kind.
    pub(super) async fn list(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        params: &ListParams,
    ) -> Result<Vec<Stored>, PreviewError> {
        match kind.within(self.client, namespace).list(params).await {
            Ok(list) => {
                let kept = list.items.into_iter();
                Ok(kept.map(|object| Stored::new(&object, &self.shares)).collect())
            }
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
            Err(error) => Err(failed(kind.plural().to_owned(), &error)),
        }
    }

    /// A primary as it would be after this manifest was applied.
    pub(super) async fn as_applied(
        &self,
        kind: &Kind,
        object: &DynamicObject,
    ) -> Result<Stored, PreviewError> {
        let mut object = object.clone();
        if kind.namespaced() {
            object.metadata.namespace.get_or_insert_with(|| "default".into());
        }
        let name = ObjectName::new(object.namespace().unwrap_or_default(), object.name_any());
        let found = kind.api(self.client, &name).get_opt(&name.name).await;
        let found = found.map_err(|error| failed(format!("{kind} {name}"), &error))?;
        match found {
            None => object.metadata.uid = Some(NEW.into()),
            Some(live) => {
                let live: DynamicObject = live
                    .decode()
                    .map_err(|error| failed(format!("{kind} {name}"), &kube::Error::SerdeError(error)))?;
                let given = std::mem::replace(&mut object.metadata, live.metadata);
                let annotations = given.annotations.unwrap_or_default();
                object.metadata.annotations.get_or_insert_default().extend(annotations);
                object.data["status"] = live.data["status"].clone();
            }
        }
        Ok(Stored::made(&object, &self.shares))
    }
}

impl Picture {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source for Picture {
    fn named(&self, kind: &Kind, name: &ObjectName) -> Lookup {
        let mut inner = self.lock();
        let found = inner.objects.get(&(kind.clone(), name.clone())).cloned();
        found.unwrap_or_else(|| {
            inner.missing.insert(Read::named(kind.clone(), name.clone()));
            Lookup::Loading
        })
    }

    fn selected(&self, read: &Read) -> Option<Vec<Arc<Stored>>> {
        let mut inner = self.lock();
        if !inner.selected.contains(read) {
            inner.missing.insert(read.clone());
            return None;
        }
        let of_kind = inner.objects.iter().filter(|((kind, _), _)| kind == read.kind());
        let matching = of_kind.filter_map(|(_, lookup)| match lookup {
            Lookup::Present(stored) if read.matches(stored) => Some(Arc::clone(stored)),
            _ => None,
        });
        Some(matching.collect())
    }

    fn now(&self) -> Timestamp {
        self.context.now()
    }

    fn random(&self, key: &str, length: usize) -> String {
        // It is only ever shown masked, and drawn anew when it is really made.
        let _ = key;
        "x".repeat(length)
    }
}

fn failed(what: String, error: &kube::Error) -> PreviewError {
    PreviewError::Read { what, message: error.to_string() }
}
