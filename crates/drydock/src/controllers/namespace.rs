//! `namespace-controller`: empties a namespace that is being deleted, then lets it go.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, NamespaceCondition, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Client;
use kube::api::{DeleteParams, ListParams, Preconditions};
use kube::core::{ObjectList, PartialObjectMeta, Request};
use serde_json::Value;
use windlass_machinery::Context;

use super::discovery::{Kind, discover};
use super::informer::ObjectKey;
use super::informers::Handle;
use super::queue::Queue;
use super::{Error, Reconciler, Setup};

const FINALIZER: &str = "kubernetes";
/// Between looks at a namespace whose content takes time to go.
const AGAIN: Duration = Duration::from_secs(1);

pub(crate) fn start(setup: &mut Setup<'_>) {
    let controller = Controller {
        namespaces: setup.handle(),
        pods: setup.handle(),
        client: setup.client.clone(),
        context: setup.context.clone(),
        queue: Queue::new(),
    };
    let queue = controller.queue.clone();
    controller.namespaces.on_change(move |change| {
        if change.new.as_ref().is_some_and(|namespace| needs_work(namespace)) {
            queue.add(ObjectKey::of(&change.latest().metadata));
        }
    });
    // The last pod's end is what most namespaces wait for.
    let (queue, namespaces) = (controller.queue.clone(), controller.namespaces.informer.clone());
    controller.pods.on_change(move |change| {
        let Some(pod) = change.old.as_ref().filter(|_| change.new.is_none()) else {
            return;
        };
        let key = ObjectKey::new("", pod.metadata.namespace.as_deref().unwrap_or_default());
        if namespaces.get(&key).is_some_and(|namespace| needs_work(&namespace)) {
            queue.add(key);
        }
    });
    setup.work(&controller.queue.clone(), controller);
}

struct Controller {
    namespaces: Handle<Namespace>,
    pods: Handle<Pod>,
    client: Client,
    context: Context,
    queue: Queue<ObjectKey>,
}

fn needs_work(namespace: &Namespace) -> bool {
    let finalizers = namespace.spec.as_ref().and_then(|spec| spec.finalizers.as_ref());
    namespace.metadata.deletion_timestamp.is_some()
        && finalizers.is_some_and(|finalizers| !finalizers.is_empty())
}

/// What is still there.
#[derive(Default)]
struct Remaining {
    kinds: BTreeMap<String, usize>,
    finalizers: BTreeMap<String, usize>,
    failures: Vec<String>,
}

impl Reconciler for Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<(), Error> {
        let Some(namespace) = self.namespaces.get(key).filter(|namespace| needs_work(namespace)) else {
            return Ok(());
        };
        let mut kinds = discover(&self.client).await?;
        kinds.retain(|kind| kind.namespaced && kind.supports(&["list", "delete"]));
        kinds.sort_by_key(|kind| !is_pods(kind));
        let mut remaining = Remaining::default();
        for kind in &kinds {
            if let Err(error) = self.empty(kind, &key.name, &mut remaining).await {
                remaining.failures.push(error.message());
            }
            // What runs goes before what it needs.
            if is_pods(kind) && !remaining.kinds.is_empty() {
                break;
            }
        }
        let mut changed = (*namespace).clone();
        let empty = remaining.kinds.is_empty() && remaining.failures.is_empty();
        // Conditions of a namespace that is gone in a moment are not worth a write.
        if !empty && set_conditions(&mut changed, &remaining, self.context.now()) {
            self.namespaces.update_status(&changed).await?;
        }
        if !empty {
            self.queue.add_after(key.clone(), AGAIN);
            return Ok(());
        }
        if let Some(spec) = changed.spec.as_mut() {
            spec.finalizers.get_or_insert_default().retain(|finalizer| finalizer != FINALIZER);
        }
        match self.namespaces.replace_part(&changed, "finalize").await {
            Err(error) if !error.has_reason("NotFound") => Err(error),
            _ => Ok(()),
        }
    }
}

fn is_pods(kind: &Kind) -> bool {
    kind.resource.plural == "pods" && kind.resource.group.is_empty()
}

impl Controller {
    /// Deletes all of a kind and counts what is left.
    async fn empty(&self, kind: &Kind, namespace: &str, remaining: &mut Remaining) -> Result<(), Error> {
        let mut found = self.list(kind, namespace).await?;
        if found.is_empty() {
            return Ok(());
        }
        let request = Request::new(kind.path(Some(namespace)));
        if found.iter().any(|object| object.metadata.deletion_timestamp.is_none()) {
            if kind.supports(&["deletecollection"]) {
                let params = DeleteParams::background();
                let request =
                    request.delete_collection(&params, &ListParams::default()).map_err(Error::build)?;
                self.client.request::<Value>(request).await?;
            } else {
                for object in &found {
                    self.delete(&request, object).await?;
                }
            }
            found = self.list(kind, namespace).await?;
        }
        if !found.is_empty() {
            let name = format!("{}.{}", kind.resource.plural, kind.resource.group);
            remaining.kinds.insert(name, found.len());
        }
        for finalizer in found.iter().filter_map(|object| object.metadata.finalizers.as_ref()).flatten() {
            *remaining.finalizers.entry(finalizer.clone()).or_default() += 1;
        }
        Ok(())
    }

    async fn list(&self, kind: &Kind, namespace: &str) -> Result<Vec<PartialObjectMeta>, Error> {
        let request = Request::new(kind.path(Some(namespace)));
        let request = request.list_metadata(&ListParams::default()).map_err(Error::build)?;
        match self.client.request::<ObjectList<PartialObjectMeta>>(request).await {
            Ok(list) => Ok(list.items),
            // The kind went away with its definition, or cannot be listed.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 405) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    async fn delete(&self, request: &Request, object: &PartialObjectMeta) -> Result<(), Error> {
        let mut params = DeleteParams::background();
        params.preconditions =
            Some(Preconditions { uid: object.metadata.uid.clone(), resource_version: None });
        let name = object.metadata.name.as_deref().unwrap_or_default();
        match self.client.request::<Value>(request.delete(name, &params).map_err(Error::build)?).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            answer => answer.map(|_| ()).map_err(Error::from),
        }
    }
}

/// Sets the five conditions of a deletion. Returns whether one changed.
fn set_conditions(namespace: &mut Namespace, remaining: &Remaining, now: jiff::Timestamp) -> bool {
    let list = |counts: &BTreeMap<String, usize>, word: &str| -> String {
        counts
            .iter()
            .map(|(name, count)| format!("{name} {word} {count} resource instances"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let content = (!remaining.kinds.is_empty()).then(|| {
        ("SomeResourcesRemain", format!("Some resources are remaining: {}", list(&remaining.kinds, "has")))
    });
    let finalizers = (!remaining.finalizers.is_empty()).then(|| {
        let list = list(&remaining.finalizers, "in");
        ("SomeFinalizersRemain", format!("Some content in the namespace has finalizers remaining: {list}"))
    });
    let failures = (!remaining.failures.is_empty()).then(|| {
        let (count, list) = (remaining.failures.len(), remaining.failures.join(", "));
        ("ContentDeletionFailed", format!("Failed to delete all resource types, {count} remaining: {list}"))
    });
    let rows = [
        (
            "NamespaceDeletionDiscoveryFailure",
            None,
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            None,
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "NamespaceDeletionContentFailure",
            failures,
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        ("NamespaceContentRemaining", content, "ContentRemoved", "All content successfully removed"),
        (
            "NamespaceFinalizersRemaining",
            finalizers,
            "ContentHasNoFinalizers",
            "All content-preserving finalizers finished",
        ),
    ];
    let conditions = namespace.status.get_or_insert_default().conditions.get_or_insert_default();
    let mut changed = false;
    for (kind, trouble, fine, all_well) in rows {
        let (status, reason, message) = match trouble {
            Some((reason, message)) => ("True", reason, message),
            None => ("False", fine, all_well.to_owned()),
        };
        let mut condition = NamespaceCondition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message),
            last_transition_time: Some(Time(now)),
        };
        match conditions.iter_mut().find(|known| known.type_ == kind) {
            None => conditions.push(condition),
            Some(known) => {
                if known.status == condition.status {
                    condition.last_transition_time = known.last_transition_time.clone();
                }
                if *known == condition {
                    continue;
                }
                *known = condition;
            }
        }
        changed = true;
    }
    changed
}
