//! `resourcequota-controller`, narrow: what a namespace uses of its quotas.
//!
//! Counts pods (with their requests and limits), claims, services, ConfigMaps, Secrets and the workload kinds. What
//! a quota names beyond that is taken as unused. Scopes are not done.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    ConfigMap, PersistentVolumeClaim, Pod, ResourceQuota, ResourceQuotaStatus, Secret, Service,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Amount;
use windlass_machinery::quantity::{Format, Quantity};

use super::informer::{Informer, Kind, ObjectKey, Outline};
use super::informers::Handle;
use super::queue::Queue;
use super::{Error, Reconciler, Setup, pods, queue_of};

pub(crate) fn start(setup: &mut Setup<'_>) {
    let controller = Controller {
        quotas: setup.handle(),
        pods: setup.informers.of(),
        claims: setup.informers.of(),
        services: setup.informers.of(),
        config_maps: setup.informers.outlines(),
        secrets: setup.informers.outlines(),
        jobs: setup.informers.of(),
        deployments: setup.informers.of(),
        replica_sets: setup.informers.of(),
        stateful_sets: setup.informers.of(),
    };
    let (queue, quotas) = (queue_of(&controller.quotas), &controller.quotas.informer);
    follow(&controller.pods, quotas, &queue);
    follow(&controller.claims, quotas, &queue);
    follow(&controller.services, quotas, &queue);
    follow(&controller.config_maps, quotas, &queue);
    follow(&controller.secrets, quotas, &queue);
    follow(&controller.jobs, quotas, &queue);
    follow(&controller.deployments, quotas, &queue);
    follow(&controller.replica_sets, quotas, &queue);
    follow(&controller.stateful_sets, quotas, &queue);
    setup.work(&queue, controller);
}

/// Adds the quotas of a namespace when something in it comes or goes, or a pod ends.
fn follow<K: Kind>(informer: &Informer<K>, quotas: &Arc<Informer<ResourceQuota>>, queue: &Queue<ObjectKey>) {
    let (quotas, queue) = (quotas.clone(), queue.clone());
    informer.on_change(move |change| {
        let is_pod = K::kind(&()) == "Pod";
        if change.old.is_some() && change.new.is_some() && !is_pod {
            return;
        }
        let namespace = change.latest().meta().namespace.as_deref().unwrap_or_default();
        for quota in quotas.in_namespace(namespace) {
            queue.add(ObjectKey::of(&quota.metadata));
        }
    });
}

struct Controller {
    quotas: Handle<ResourceQuota>,
    pods: Arc<Informer<Pod>>,
    claims: Arc<Informer<PersistentVolumeClaim>>,
    services: Arc<Informer<Service>>,
    config_maps: Arc<Informer<Outline<ConfigMap>>>,
    secrets: Arc<Informer<Outline<Secret>>>,
    jobs: Arc<Informer<Job>>,
    deployments: Arc<Informer<Deployment>>,
    replica_sets: Arc<Informer<ReplicaSet>>,
    stateful_sets: Arc<Informer<StatefulSet>>,
}

impl Reconciler for Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<(), Error> {
        let Some(quota) = self.quotas.get(key) else {
            return Ok(());
        };
        let hard = quota.spec.as_ref().and_then(|spec| spec.hard.clone()).unwrap_or_default();
        let used = hard
            .keys()
            .map(|name| (name.clone(), Amount(self.used(&key.namespace, name).to_string())))
            .collect();
        let status = ResourceQuotaStatus { hard: Some(hard), used: Some(used) };
        let had = quota.status.clone().unwrap_or_default();
        let same = |a: &Option<BTreeMap<String, Amount>>, b: &Option<BTreeMap<String, Amount>>| {
            let (a, b) = (a.as_ref(), b.as_ref());
            let (a, b) = (a.into_iter().flatten(), b.into_iter().flatten());
            a.map(|(name, amount)| (name, parsed(amount))).eq(b.map(|(name, amount)| (name, parsed(amount))))
        };
        if same(&had.hard, &status.hard) && same(&had.used, &status.used) {
            return Ok(());
        }
        let mut changed = (*quota).clone();
        changed.status = Some(status);
        self.quotas.update_status(&changed).await.map(|_| ())
    }
}

impl Controller {
    fn used(&self, namespace: &str, name: &str) -> Quantity {
        let count = |number: usize| Quantity::new(i64::try_from(number).unwrap_or(i64::MAX), Format::Decimal);
        let counted = name.strip_prefix("count/").unwrap_or(name);
        match counted {
            "pods" if name == "count/pods" => count(self.pods.in_namespace(namespace).len()),
            "pods" => count(self.living(namespace).count()),
            "persistentvolumeclaims" => count(self.claims.in_namespace(namespace).len()),
            "services" => count(self.services.in_namespace(namespace).len()),
            "configmaps" => count(self.config_maps.in_namespace(namespace).len()),
            "secrets" => count(self.secrets.in_namespace(namespace).len()),
            "jobs.batch" => count(self.jobs.in_namespace(namespace).len()),
            "deployments.apps" => count(self.deployments.in_namespace(namespace).len()),
            "replicasets.apps" => count(self.replica_sets.in_namespace(namespace).len()),
            "statefulsets.apps" => count(self.stateful_sets.in_namespace(namespace).len()),
            "requests.storage" => {
                let claims = self.claims.in_namespace(namespace);
                let requests = claims.iter().filter_map(|claim| {
                    let resources = claim.spec.as_ref()?.resources.as_ref()?;
                    Some(parsed(resources.requests.as_ref()?.get("storage")?))
                });
                sum(requests)
            }
            _ => self.compute(namespace, name),
        }
    }

    /// The sum of what pods request or are limited to.
    fn compute(&self, namespace: &str, name: &str) -> Quantity {
        let (limits, resource) = match name.split_once('.') {
            Some(("limits", resource)) => (true, resource),
            Some(("requests", resource)) => (false, resource),
            _ => (false, name),
        };
        let of_container = |container: &k8s_openapi::api::core::v1::Container| {
            let resources = container.resources.as_ref()?;
            let list = if limits { resources.limits.as_ref() } else { resources.requests.as_ref() };
            list?.get(resource).map(parsed)
        };
        sum(self.living(namespace).map(|pod| {
            let spec = pod.spec.clone().unwrap_or_default();
            let main = sum(spec.containers.iter().filter_map(of_container));
            // Init containers run one after the other: the largest counts, if it is more than the others together.
            let init = spec.init_containers.iter().flatten().filter_map(of_container).max();
            match init {
                Some(init) if init > main => init,
                _ => main,
            }
        }))
    }

    fn living(&self, namespace: &str) -> impl Iterator<Item = Arc<Pod>> {
        self.pods.in_namespace(namespace).into_iter().filter(|pod| !pods::is_finished(pod))
    }
}

fn parsed(amount: &Amount) -> Quantity {
    Quantity::parse(&amount.0).unwrap_or_else(|_| Quantity::new(0, Format::Decimal))
}

/// A sum, in the format of its first part.
fn sum(amounts: impl Iterator<Item = Quantity>) -> Quantity {
    amounts.reduce(|a, b| a.add(&b)).unwrap_or_else(|| Quantity::new(0, Format::Decimal))
}
