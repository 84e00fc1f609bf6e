//! A Deployment's status: counts, and the conditions Available, Progressing and ReplicaFailure.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::super::{Error, ObjectKey, nonzero};
use super::scaling::max_unavailable;
use super::{Controller, Sets, replicas, size, spec_of};

impl Controller {
    /// Writes counts, without judging progress.
    pub(super) async fn sync_status(&self, deployment: &Deployment, sets: &Sets) -> Result<(), Error> {
        let status = counts(deployment, sets, self.context.now());
        self.write(deployment, status).await.map(|_| ())
    }

    /// Writes counts and how the rollout goes.
    pub(super) async fn sync_rollout_status(
        &self,
        deployment: &Deployment,
        sets: &Sets,
    ) -> Result<(), Error> {
        let now = self.context.now();
        let mut status = counts(deployment, sets, now);
        if has_deadline(deployment) {
            judge(deployment, sets, &mut status, now);
        } else {
            remove_condition(&mut status, "Progressing");
        }
        match replica_failure(sets) {
            Some(failure) => put_condition(&mut status, failure),
            None => remove_condition(&mut status, "ReplicaFailure"),
        }
        if !self.write(deployment, status.clone()).await? {
            self.come_back(deployment, &status, now);
        }
        Ok(())
    }

    /// Tells of pausing and resuming, so that a resumed rollout does not time out at once.
    pub(super) async fn note_pause(&self, deployment: &mut Deployment) -> Result<(), Error> {
        if !has_deadline(deployment) {
            return Ok(());
        }
        let reason = progressing(deployment).and_then(|condition| condition.reason.as_deref());
        if reason == Some("ProgressDeadlineExceeded") {
            return Ok(());
        }
        let (paused, said) = (spec_of(deployment).paused == Some(true), reason == Some("DeploymentPaused"));
        let (reason, message) = match (paused, said) {
            (true, false) => ("DeploymentPaused", "Deployment is paused"),
            (false, true) => ("DeploymentResumed", "Deployment is resumed"),
            _ => return Ok(()),
        };
        let status = deployment.status.get_or_insert_default();
        set_condition(status, self.context.now(), "Progressing", "Unknown", reason, message.to_owned());
        *deployment = self.deployments.update_status(deployment).await?;
        Ok(())
    }

    async fn write(&self, deployment: &Deployment, status: DeploymentStatus) -> Result<bool, Error> {
        if deployment.status.as_ref() == Some(&status) {
            return Ok(false);
        }
        let mut changed = deployment.clone();
        changed.status = Some(status);
        self.deployments.update_status(&changed).await?;
        Ok(true)
    }

    /// Looks again when the progress deadline will have passed.
    fn come_back(&self, deployment: &Deployment, status: &DeploymentStatus, now: Timestamp) {
        let Some(condition) = progressing(deployment).filter(|_| has_deadline(deployment)) else {
            return;
        };
        let timed_out = condition.reason.as_deref() == Some("ProgressDeadlineExceeded");
        if is_complete(deployment, Some(status)) || timed_out {
            return;
        }
        let key = ObjectKey::of(&deployment.metadata);
        let left = deadline_of(deployment, condition).map(|deadline| deadline.duration_since(now));
        match left
            .and_then(|left| Duration::try_from(left).ok())
            .filter(|left| *left >= Duration::from_secs(1))
        {
            Some(left) => self.queue.add_after(key, left + Duration::from_secs(1)),
            None => self.queue.add_failed(key),
        }
    }
}

fn counts(deployment: &Deployment, sets: &Sets, now: Timestamp) -> DeploymentStatus {
    let sum = |of: fn(&k8s_openapi::api::apps::v1::ReplicaSetStatus) -> i32| -> i32 {
        sets.all().filter_map(|set| set.status.as_ref()).map(of).sum()
    };
    let available = sum(|status| status.available_replicas.unwrap_or_default());
    let total: i32 = sets.all().map(size).sum();
    let terminating = sets.all().filter_map(|set| set.status.as_ref()?.terminating_replicas);
    let old = deployment.status.clone().unwrap_or_default();
    let mut status = DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: nonzero(sum(|status| status.replicas)),
        updated_replicas: nonzero(
            sets.new
                .as_ref()
                .and_then(|set| set.status.as_ref())
                .map(|status| status.replicas)
                .unwrap_or_default(),
        ),
        ready_replicas: nonzero(sum(|status| status.ready_replicas.unwrap_or_default())),
        available_replicas: nonzero(available),
        unavailable_replicas: nonzero((total - available).max(0)),
        terminating_replicas: Some(terminating.sum()),
        collision_count: old.collision_count,
        conditions: old.conditions,
    };
    let (value, reason, message) = if available >= replicas(deployment) - max_unavailable(deployment) {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    set_condition(&mut status, now, "Available", value, reason, message.to_owned());
    status
}

/// Sets the Progressing condition, unless the rollout was complete already.
fn judge(deployment: &Deployment, sets: &Sets, status: &mut DeploymentStatus, now: Timestamp) {
    let current = progressing(deployment).cloned();
    let was_complete = current.as_ref().and_then(|c| c.reason.as_deref()) == Some("NewReplicaSetAvailable");
    if was_complete && status.replicas == status.updated_replicas {
        return;
    }
    let subject = match sets.new.as_ref() {
        Some(set) => format!("ReplicaSet {:?}", set.metadata.name.as_deref().unwrap_or_default()),
        None => format!("Deployment {:?}", deployment.metadata.name.as_deref().unwrap_or_default()),
    };
    if is_complete(deployment, Some(status)) {
        let message = format!("{subject} has successfully progressed.");
        set_condition(status, now, "Progressing", "True", "NewReplicaSetAvailable", message);
    } else if has_progressed(deployment, status) {
        // Each progress renews lastUpdateTime, even with an equal reason: the deadline counts from there.
        let since = current.filter(|c| c.status == "True").and_then(|c| c.last_transition_time);
        remove_condition(status, "Progressing");
        let mut condition = new_condition(
            now,
            "Progressing",
            "True",
            "ReplicaSetUpdated",
            format!("{subject} is progressing."),
        );
        condition.last_transition_time = since.or(condition.last_transition_time);
        put_condition(status, condition);
    } else if has_timed_out(deployment, status, now) {
        let message = format!("{subject} has timed out progressing.");
        set_condition(status, now, "Progressing", "False", "ProgressDeadlineExceeded", message);
    }
}

pub(super) fn is_complete(deployment: &Deployment, status: Option<&DeploymentStatus>) -> bool {
    let Some(status) = status else { return false };
    let wanted = replicas(deployment);
    status.updated_replicas.unwrap_or_default() == wanted
        && status.replicas.unwrap_or_default() == wanted
        && status.available_replicas.unwrap_or_default() == wanted
        && status.observed_generation >= deployment.metadata.generation
}

fn has_progressed(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let old = deployment.status.clone().unwrap_or_default();
    let number = |value: Option<i32>| value.unwrap_or_default();
    let retired = |status: &DeploymentStatus| number(status.replicas) - number(status.updated_replicas);
    number(status.updated_replicas) > number(old.updated_replicas)
        || retired(status) < retired(&old)
        || number(status.ready_replicas) > number(old.ready_replicas)
        || number(status.available_replicas) > number(old.available_replicas)
}

fn has_timed_out(deployment: &Deployment, status: &DeploymentStatus, now: Timestamp) -> bool {
    let Some(condition) = status.conditions.iter().flatten().find(|c| c.type_ == "Progressing") else {
        return false;
    };
    match condition.reason.as_deref() {
        Some("NewReplicaSetAvailable") => false,
        Some("ProgressDeadlineExceeded") => true,
        _ => deadline_of(deployment, condition).is_some_and(|deadline| deadline < now),
    }
}

fn deadline_of(deployment: &Deployment, condition: &DeploymentCondition) -> Option<Timestamp> {
    let seconds = i64::from(spec_of(deployment).progress_deadline_seconds?);
    let from = condition.last_update_time.as_ref().or(condition.last_transition_time.as_ref())?;
    from.0.checked_add(SignedDuration::from_secs(seconds)).ok()
}

pub(super) fn has_deadline(deployment: &Deployment) -> bool {
    spec_of(deployment).progress_deadline_seconds.is_some_and(|seconds| seconds != i32::MAX)
}

pub(super) fn progressing(deployment: &Deployment) -> Option<&DeploymentCondition> {
    let conditions = deployment.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == "Progressing")
}

fn replica_failure(sets: &Sets) -> Option<DeploymentCondition> {
    let newest_first = sets.new.iter().chain(&sets.old);
    let mut conditions = newest_first.filter_map(|set| set.status.as_ref()?.conditions.as_ref()).flatten();
    let failure = conditions.find(|condition| condition.type_ == "ReplicaFailure")?;
    Some(DeploymentCondition {
        type_: failure.type_.clone(),
        status: failure.status.clone(),
        last_transition_time: failure.last_transition_time.clone(),
        last_update_time: failure.last_transition_time.clone(),
        reason: failure.reason.clone(),
        message: failure.message.clone(),
    })
}

/// Sets a condition unless its status and reason are what they were; the transition time is kept with the status.
pub(super) fn set_condition(
    status: &mut DeploymentStatus,
    now: Timestamp,
    kind: &str,
    value: &str,
    reason: &str,
    message: String,
) {
    put_condition(status, new_condition(now, kind, value, reason, message));
}

fn put_condition(status: &mut DeploymentStatus, mut condition: DeploymentCondition) {
    let conditions = status.conditions.get_or_insert_default();
    if let Some(current) = conditions.iter().find(|current| current.type_ == condition.type_) {
        if current.status == condition.status && current.reason == condition.reason {
            return;
        }
        if current.status == condition.status {
            condition.last_transition_time = current.last_transition_time.clone();
        }
    }
    conditions.retain(|current| current.type_ != condition.type_);
    conditions.push(condition);
}

fn remove_condition(status: &mut DeploymentStatus, kind: &str) {
    if let Some(conditions) = status.conditions.as_mut() {
        conditions.retain(|condition| condition.type_ != kind);
    }
}

fn new_condition(
    now: Timestamp,
    kind: &str,
    value: &str,
    reason: &str,
    message: String,
) -> DeploymentCondition {
    DeploymentCondition {
        type_: kind.to_owned(),
        status: value.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message),
        last_transition_time: Some(Time(now)),
        last_update_time: Some(Time(now)),
    }
}
