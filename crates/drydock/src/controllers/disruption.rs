//! `disruption-controller`: how many pods of a PodDisruptionBudget are healthy, and how many may go.
//!
//! How many pods there should be is what their controllers ask for: Deployments, ReplicaSets and StatefulSets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, OwnerReference, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::core::Selector;
use windlass_machinery::Context;

use super::events::Recorder;
use super::informer::{Informer, ObjectKey};
use super::informers::Handle;
use super::ownership::{controller_of, selects};
use super::queue::Queue;
use super::{Error, Reconciler, Setup, pods, queue_of, scaled};

#[cfg(test)]
mod tests;

/// How long after its eviction a pod may take until its deletion is seen.
const DELETION: SignedDuration = SignedDuration::from_secs(120);

pub(crate) fn start(setup: &mut Setup<'_>) {
    let budgets: Handle<PodDisruptionBudget> = setup.handle();
    let queue = queue_of(&budgets);
    let controller = Controller {
        budgets,
        pods: setup.informers.of(),
        deployments: setup.informers.of(),
        sets: setup.informers.of(),
        stateful: setup.informers.of(),
        recorder: setup.recorder("controllermanager", None),
        context: setup.context.clone(),
        queue: queue.clone(),
    };
    let (adds, budgets) = (queue.clone(), controller.budgets.informer.clone());
    controller.pods.on_change(move |change| {
        for pod in [&change.old, &change.new].into_iter().flatten() {
            let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
            for budget in budgets.in_namespace(namespace) {
                if selector_of(&budget).is_some_and(|selector| selects(&selector, &pod.metadata)) {
                    adds.add(ObjectKey::of(&budget.metadata));
                }
            }
        }
    });
    on_resize(&controller.deployments, &controller.budgets.informer, &queue, |one| {
        one.spec.as_ref()?.replicas
    });
    on_resize(&controller.sets, &controller.budgets.informer, &queue, |one| one.spec.as_ref()?.replicas);
    on_resize(&controller.stateful, &controller.budgets.informer, &queue, |one| one.spec.as_ref()?.replicas);
    setup.work(&queue, controller);
}

/// Looks at the budgets of a namespace again when something in it is to have another number of pods.
fn on_resize<K: super::informer::Kind>(
    informer: &Informer<K>,
    budgets: &Arc<Informer<PodDisruptionBudget>>,
    queue: &Queue<ObjectKey>,
    replicas: fn(&K) -> Option<i32>,
) {
    let (adds, budgets) = (queue.clone(), Arc::clone(budgets));
    informer.on_change(move |change| {
        let size = |object: &Option<Arc<K>>| object.as_ref().and_then(|object| replicas(object));
        if size(&change.old) != size(&change.new) {
            let namespace = change.latest().meta().namespace.clone().unwrap_or_default();
            budgets
                .in_namespace(&namespace)
                .iter()
                .for_each(|budget| adds.add(ObjectKey::of(&budget.metadata)));
        }
    });
}

struct Controller {
    budgets: Handle<PodDisruptionBudget>,
    pods: Arc<Informer<Pod>>,
    deployments: Arc<Informer<Deployment>>,
    sets: Arc<Informer<ReplicaSet>>,
    stateful: Arc<Informer<StatefulSet>>,
    recorder: Recorder,
    context: Context,
    queue: Queue<ObjectKey>,
}

impl Reconciler for Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<(), Error> {
        let Some(budget) = self.budgets.get(key) else {
            return Ok(());
        };
        let chosen: Vec<_> = match selector_of(&budget) {
            Some(selector) => self
                .pods
                .in_namespace(&key.namespace)
                .into_iter()
                .filter(|pod| selects(&selector, &pod.metadata))
                .collect(),
            None => Vec::new(),
        };
        if chosen.is_empty() {
            self.recorder.normal(&*budget, "NoPods", "No matching pods found".to_owned());
        }
        let mut status = budget.status.clone().unwrap_or_default();
        let wait = self.forget_disrupted(&mut status, &chosen);
        match self.expected(&budget, &chosen) {
            Ok((expected, desired)) => {
                let leaving = status.disrupted_pods.clone().unwrap_or_default();
                let healthy = chosen.iter().filter(|pod| {
                    let name = pod.metadata.name.as_deref().unwrap_or_default();
                    pods::is_ready(pod) && !pods::is_terminating(pod) && !leaving.contains_key(name)
                });
                let healthy = i32::try_from(healthy.count()).unwrap_or(i32::MAX);
                let spare = if expected > 0 { (healthy - desired).max(0) } else { 0 };
                status.current_healthy = Some(healthy);
                status.desired_healthy = Some(desired);
                status.expected_pods = Some(expected);
                status.disruptions_allowed = Some(spare);
                let (value, reason) =
                    if spare > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
                self.set(&budget, &mut status, value, reason, String::new());
            }
            Err(why) => {
                self.recorder.warning(
                    &*budget,
                    "CalculateExpectedPodCountFailed",
                    format!("Failed to calculate the number of expected pods: {why}"),
                );
                status.disruptions_allowed = Some(0);
                self.set(&budget, &mut status, "False", "SyncFailed", why);
            }
        }
        status.observed_generation = budget.metadata.generation;
        if budget.status.as_ref() != Some(&status) {
            let mut changed = (*budget).clone();
            changed.status = Some(status);
            self.budgets.update_status(&changed).await?;
        }
        if let Some(wait) = wait {
            self.queue.add_after(key.clone(), wait);
        }
        Ok(())
    }
}

impl Controller {
    /// Forgets evicted pods that are gone, or that were not deleted in time. Gives the time until the next may be.
    fn forget_disrupted(
        &self,
        status: &mut PodDisruptionBudgetStatus,
        chosen: &[Arc<Pod>],
    ) -> Option<Duration> {
        let now = self.context.now();
        let mut soonest = None;
        let left = status.disrupted_pods.take().unwrap_or_default().into_iter().filter(|(name, since)| {
            let there = chosen
                .iter()
                .any(|pod| pod.metadata.name.as_ref() == Some(name) && !pods::is_terminating(pod));
            let left = Duration::try_from(DELETION - now.duration_since(since.0)).unwrap_or_default();
            let kept = there && !left.is_zero();
            soonest = soonest.into_iter().chain(kept.then_some(left)).min();
            kept
        });
        let left: BTreeMap<_, _> = left.collect();
        status.disrupted_pods = Some(left).filter(|left| !left.is_empty());
        soonest
    }

    /// How many pods there should be, and how many of them have to be healthy.
    fn expected(&self, budget: &PodDisruptionBudget, chosen: &[Arc<Pod>]) -> Result<(i32, i32), String> {
        let spec = budget.spec.clone().unwrap_or_default();
        let PodDisruptionBudgetSpec { max_unavailable, min_available, .. } = spec;
        if let Some(most) = max_unavailable {
            let expected = self.scale(chosen)?;
            return Ok((expected, (expected - scaled(Some(&most), expected, true)).max(0)));
        }
        match min_available {
            Some(IntOrString::Int(least)) => Ok((i32::try_from(chosen.len()).unwrap_or(i32::MAX), least)),
            Some(share) => {
                let expected = self.scale(chosen)?;
                Ok((expected, scaled(Some(&share), expected, true)))
            }
            None => Ok((0, 0)),
        }
    }

    /// How many pods the controllers of these ask for.
    fn scale(&self, chosen: &[Arc<Pod>]) -> Result<i32, String> {
        let mut sizes: BTreeMap<String, i32> = BTreeMap::new();
        for pod in chosen {
            // What nobody controls does not count.
            let Some(owner) = controller_of(&pod.metadata) else { continue };
            let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
            let (uid, size) = self.size_of(namespace, owner).ok_or_else(|| {
                format!("found no controllers for pod {:?}", pod.metadata.name.as_deref().unwrap_or_default())
            })?;
            sizes.insert(uid, size);
        }
        Ok(sizes.into_values().sum())
    }

    fn size_of(&self, namespace: &str, owner: &OwnerReference) -> Option<(String, i32)> {
        let key = ObjectKey::new(namespace, &owner.name);
        match (owner.api_version.as_str(), owner.kind.as_str()) {
            ("apps/v1", "StatefulSet") => {
                let set =
                    self.stateful.get(&key).filter(|set| set.metadata.uid.as_ref() == Some(&owner.uid))?;
                Some((owner.uid.clone(), set.spec.as_ref()?.replicas?))
            }
            ("apps/v1", "ReplicaSet") => {
                let set = self.sets.get(&key).filter(|set| set.metadata.uid.as_ref() == Some(&owner.uid))?;
                let above = controller_of(&set.metadata).filter(|above| above.kind == "Deployment");
                let Some(above) = above else {
                    return Some((owner.uid.clone(), set.spec.as_ref()?.replicas?));
                };
                let deployment = self.deployments.get(&ObjectKey::new(namespace, &above.name))?;
                Some((above.uid.clone(), deployment.spec.as_ref()?.replicas?))
            }
            _ => None,
        }
    }

    fn set(
        &self,
        budget: &PodDisruptionBudget,
        status: &mut PodDisruptionBudgetStatus,
        value: &str,
        reason: &str,
        message: String,
    ) {
        let conditions = status.conditions.get_or_insert_default();
        let known = conditions.iter().position(|known| known.type_ == "DisruptionAllowed");
        let since = known
            .filter(|at| conditions[*at].status == value)
            .map(|at| conditions[at].last_transition_time.clone());
        let condition = Condition {
            type_: "DisruptionAllowed".to_owned(),
            status: value.to_owned(),
            reason: reason.to_owned(),
            message,
            observed_generation: budget.metadata.generation,
            last_transition_time: since.unwrap_or_else(|| Time(self.context.now())),
        };
        match known {
            Some(at) => conditions[at] = condition,
            None => conditions.push(condition),
        }
    }
}

/// Which pods a budget is for: none without a selector, all with an empty one.
fn selector_of(budget: &PodDisruptionBudget) -> Option<Selector> {
    Selector::try_from(budget.spec.as_ref()?.selector.clone()?).ok()
}
