//! Makes, deletes and replaces the pods of a StatefulSet, in order.

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::super::ownership::controller_ref;
use super::super::{Error, nonzero, pods, scaled};
use super::revisions::apply;
use super::{
    Controller, INDEX_LABEL, NAME_LABEL, REVISION_LABEL, claims, name_of, ordinal, revision_label, spec_of,
};

/// What is left to do in this round: go on, or wait for the world to change.
#[derive(PartialEq)]
enum Next {
    GoOn,
    Wait,
}

impl Controller {
    /// One round: brings pods closer to what is wanted. The status holds also where a step failed.
    pub(super) async fn replicate(
        &self,
        set: &StatefulSet,
        current: &ControllerRevision,
        update: &ControllerRevision,
        pods: Vec<Pod>,
    ) -> (StatefulSetStatus, Result<(), Error>) {
        let mut round = match Round::new(self, set, current, update, pods) {
            Ok(round) => round,
            Err(error) => return (set.status.clone().unwrap_or_default(), Err(error)),
        };
        let outcome = match set.metadata.deletion_timestamp {
            Some(_) => Ok(()),
            None => round.work().await,
        };
        (round.status(), outcome)
    }
}

struct Round<'a> {
    controller: &'a Controller,
    set: &'a StatefulSet,
    update_set: StatefulSet,
    current: &'a str,
    update: &'a str,
    /// One for each wanted ordinal; those not made yet have no uid.
    replicas: Vec<Pod>,
    /// Those beyond, highest ordinal first.
    condemned: Vec<Pod>,
    /// How many of the current revision were deleted for the update in this round.
    replaced: i32,
}

impl<'a> Round<'a> {
    fn new(
        controller: &'a Controller,
        set: &'a StatefulSet,
        current: &'a ControllerRevision,
        update: &'a ControllerRevision,
        pods: Vec<Pod>,
    ) -> Result<Self, Error> {
        let (current_set, update_set) = (apply(set, current)?, apply(set, update)?);
        let names = |revision: &'a ControllerRevision| revision.metadata.name.as_deref().unwrap_or_default();
        let (current, update) = (names(current), names(update));
        let start = start(set);
        let end = start + spec_of(set).replicas.unwrap_or(1);
        let (mut kept, mut condemned): (Vec<_>, Vec<_>) = pods
            .into_iter()
            .filter(|pod| ordinal(pod) >= 0)
            .partition(|pod| (start..end).contains(&ordinal(pod)));
        condemned.sort_by_key(|pod| -ordinal(pod));
        let replicas = (start..end)
            .map(|number| match kept.iter().position(|pod| ordinal(pod) == number) {
                Some(at) => kept.swap_remove(at),
                None if keeps_current(set, number) => new_pod(&current_set, number, current),
                None => new_pod(&update_set, number, update),
            })
            .collect();
        Ok(Self { controller, set, update_set, current, update, replicas, condemned, replaced: 0 })
    }

    async fn work(&mut self) -> Result<(), Error> {
        let ordered = spec_of(self.set).pod_management_policy.as_deref() != Some("Parallel");
        for at in 0..self.replicas.len() {
            if self.replica(at).await? == Next::Wait && ordered {
                return Ok(());
            }
        }
        for pod in &self.condemned {
            self.controller.keep_claims(&self.update_set, pod).await?;
        }
        let first_unhealthy = self.first_unhealthy();
        for at in 0..self.condemned.len() {
            if self.remove(at, ordered, first_unhealthy.as_deref()).await? == Next::Wait && ordered {
                return Ok(());
            }
        }
        self.roll().await
    }

    async fn replica(&mut self, at: usize) -> Result<Next, Error> {
        let pod = &self.replicas[at];
        if pods::is_finished(pod) {
            if !pods::is_terminating(pod) {
                self.delete(pod.clone()).await?;
            }
            return Ok(Next::Wait);
        }
        if pod.metadata.uid.is_none() {
            let made = self.create(pod.clone()).await?;
            self.replicas[at] = made;
            return Ok(Next::Wait);
        }
        if pods::phase(pod) == "Pending" {
            self.controller.make_claims(self.set, pod).await?;
            self.controller.keep_claims(&self.update_set, pod).await?;
        }
        if pods::is_terminating(pod) || !self.is_available(pod) {
            return Ok(Next::Wait);
        }
        self.controller.keep_claims(&self.update_set, pod).await?;
        let name = pod.metadata.name.clone();
        let named = pod.metadata.labels.as_ref().and_then(|labels| labels.get(NAME_LABEL)) == name.as_ref();
        if !named {
            let mut changed = pod.clone();
            identify(&mut changed);
            let updated = self.controller.pods.update(&changed).await?;
            let message = format!(
                "Update Pod {} in StatefulSet {} successful",
                name.unwrap_or_default(),
                name_of(self.set)
            );
            self.controller.recorder.normal(self.set, "SuccessfulUpdate", message);
            self.replicas[at] = updated;
        }
        Ok(Next::GoOn)
    }

    async fn remove(
        &mut self,
        at: usize,
        ordered: bool,
        first_unhealthy: Option<&str>,
    ) -> Result<Next, Error> {
        let pod = self.condemned[at].clone();
        if pods::is_terminating(&pod) {
            return Ok(Next::Wait);
        }
        if ordered && !self.is_available(&pod) && pod.metadata.name.as_deref() != first_unhealthy {
            return Ok(Next::Wait);
        }
        self.delete(pod).await?;
        Ok(Next::Wait)
    }

    /// Replaces pods of older revisions, highest ordinal first, as many as may be missing at once.
    async fn roll(&mut self) -> Result<(), Error> {
        let strategy = spec_of(self.set).update_strategy.clone().unwrap_or_default();
        if strategy.type_.as_deref() == Some("OnDelete") {
            return Ok(());
        }
        let rolling = strategy.rolling_update.unwrap_or_default();
        let count = i32::try_from(self.replicas.len()).unwrap_or(i32::MAX);
        let one = IntOrString::Int(1);
        let most = scaled(Some(rolling.max_unavailable.as_ref().unwrap_or(&one)), count, false).max(1);
        let missing =
            self.replicas.iter().filter(|pod| pods::is_terminating(pod) || !self.is_available(pod)).count();
        let mut may_delete = usize::try_from(most).unwrap_or(1).saturating_sub(missing);
        let partition = usize::try_from(rolling.partition.unwrap_or_default()).unwrap_or_default();
        for at in (partition..self.replicas.len()).rev() {
            let pod = &self.replicas[at];
            if may_delete == 0 {
                break;
            }
            if revision_label(pod) != self.update && !pods::is_terminating(pod) {
                self.delete(pod.clone()).await?;
                self.replaced += 1;
                may_delete -= 1;
            }
        }
        Ok(())
    }

    async fn create(&self, pod: Pod) -> Result<Pod, Error> {
        let name = pod.metadata.name.clone().unwrap_or_default();
        let made = match self.controller.make_claims(self.set, &pod).await {
            Ok(()) => self.controller.pods.create(&pod).await,
            Err(error) => Err(error),
        };
        match made {
            Ok(made) => {
                self.controller.keep_claims(&self.update_set, &made).await?;
                self.tell(
                    "Normal",
                    "SuccessfulCreate",
                    format!("Create Pod {name} in StatefulSet {} successful", name_of(self.set)),
                );
                Ok(made)
            }
            Err(error) => {
                if !error.has_reason("AlreadyExists") && !error.namespace_terminating() {
                    let message = format!(
                        "Create Pod {name} in StatefulSet {} failed error: {}",
                        name_of(self.set),
                        error.message()
                    );
                    self.tell("Warning", "FailedCreate", message);
                }
                Err(error)
            }
        }
    }

    async fn delete(&self, pod: Pod) -> Result<(), Error> {
        let name = pod.metadata.name.clone().unwrap_or_default();
        if let Err(error) = self.controller.pods.delete(&pod).await {
            let message = format!(
                "Delete Pod {name} in StatefulSet {} failed error: {}",
                name_of(self.set),
                error.message()
            );
            self.tell("Warning", "FailedDelete", message);
            return Err(error);
        }
        self.tell(
            "Normal",
            "SuccessfulDelete",
            format!("Delete Pod {name} in StatefulSet {} successful", name_of(self.set)),
        );
        Ok(())
    }

    fn tell(&self, kind: &'static str, reason: &'static str, message: String) {
        let about = super::super::events::reference(self.set);
        self.controller.recorder.note(about, kind, reason, message);
    }

    fn is_available(&self, pod: &Pod) -> bool {
        let min_ready = spec_of(self.set).min_ready_seconds.unwrap_or_default();
        pods::is_available(pod, min_ready, self.controller.context.now())
    }

    fn first_unhealthy(&self) -> Option<String> {
        let all = self.replicas.iter().chain(self.condemned.iter().rev());
        let mut unhealthy = all.filter(|pod| pods::is_terminating(pod) || !self.is_available(pod));
        unhealthy.next().and_then(|pod| pod.metadata.name.clone())
    }

    fn status(&self) -> StatefulSetStatus {
        let made = || self.replicas.iter().chain(&self.condemned).filter(|pod| pod.metadata.uid.is_some());
        let count = |wanted: &dyn Fn(&Pod) -> bool| {
            i32::try_from(made().filter(|pod| wanted(pod)).count()).unwrap_or(0)
        };
        let ready = |pod: &Pod| pods::phase(pod) == "Running" && pods::is_ready(pod);
        let of = |revision: &str| count(&|pod| !pods::is_terminating(pod) && revision_label(pod) == revision);
        StatefulSetStatus {
            observed_generation: self.set.metadata.generation,
            replicas: count(&|_| true),
            ready_replicas: nonzero(count(&ready)),
            available_replicas: Some(count(&|pod| ready(pod) && self.is_available(pod))),
            current_replicas: nonzero(of(self.current) - self.replaced),
            updated_replicas: nonzero(of(self.update)),
            current_revision: Some(self.current.to_owned()),
            update_revision: Some(self.update.to_owned()),
            collision_count: Some(
                self.set.status.as_ref().and_then(|status| status.collision_count).unwrap_or_default(),
            ),
            conditions: self.set.status.as_ref().and_then(|status| status.conditions.clone()),
        }
    }
}

pub(super) fn start(set: &StatefulSet) -> i32 {
    spec_of(set).ordinals.as_ref().and_then(|ordinals| ordinals.start).unwrap_or_default()
}

/// Whether a pod of this ordinal is still made from the current revision, not from the update.
fn keeps_current(set: &StatefulSet, number: i32) -> bool {
    let strategy = spec_of(set).update_strategy.clone().unwrap_or_default();
    let partition = strategy.rolling_update.as_ref().map(|rolling| rolling.partition.unwrap_or_default());
    let current = set.status.as_ref().and_then(|status| status.current_replicas).unwrap_or_default();
    match partition {
        Some(partition) => number < start(set) + partition,
        None => strategy.type_.as_deref() != Some("OnDelete") && number < start(set) + current,
    }
}

fn new_pod(set: &StatefulSet, number: i32, revision: &str) -> Pod {
    let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
    let mut pod = pods::from_template(&spec_of(set).template, namespace, controller_ref(set));
    pod.metadata.name = Some(format!("{}-{number}", name_of(set)));
    identify(&mut pod);
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(REVISION_LABEL.to_owned(), revision.to_owned());
    let spec = pod.spec.get_or_insert_default();
    spec.hostname = pod.metadata.name.clone();
    spec.subdomain = spec_of(set).service_name.clone().filter(|name| !name.is_empty());
    claims::mount(set, &mut pod, number);
    pod
}

fn identify(pod: &mut Pod) {
    let number = ordinal(pod).to_string();
    let name = pod.metadata.name.clone().unwrap_or_default();
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(NAME_LABEL.to_owned(), name);
    labels.insert(INDEX_LABEL.to_owned(), number);
}
