//! Why a rollout does not get on, from its pods: long before its own deadline, and in words.
//!
//! Pods are looked at only while a rollout has stood still for a while, so that in ordinary life none is watched; and
//! rollouts only while the Monocle has not been ready for a while, so that in ordinary life no step of one plans again.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ContainerStateWaiting, Pod};
use kube::ResourceExt as _;
use windlass::{Halt, Plan, World};

use super::{Monocle, pod};

/// How long a rollout may stand still before its pods are looked at.
const GRACE: Duration = Duration::from_secs(45);

/// Waits of a container that do not end by themselves.
const STUCK: [&str; 7] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerConfigError",
    "CreateContainerError",
    "CrashLoopBackOff",
];

/// Looks at all components that should be there.
pub(super) fn look(monocle: &Monocle, world: &World, plan: &mut Plan) -> Result<(), Halt> {
    let Some(unready) = unready_since(monocle) else { return Ok(()) };
    if let Some(left) = grace_left(unready, world) {
        plan.look_again(left);
        return Ok(());
    }
    for component in ["api", "crawler"] {
        if let Some(since) = world.view(&monocle.child(component), standing_since)? {
            look_at(monocle, component, since, world, plan)?;
        }
    }
    if world.view(&monocle.child("elastic"), is_down)? {
        look_at(monocle, "elastic", unready, world, plan)?;
    }
    Ok(())
}

/// What is left of the time that something unready since then is given.
fn grace_left(since: Timestamp, world: &World) -> Option<Duration> {
    let stood = Duration::try_from(world.now().duration_since(since)).unwrap_or_default();
    GRACE.checked_sub(stood).filter(|left| !left.is_zero())
}

fn look_at(
    monocle: &Monocle,
    component: &str,
    since: Timestamp,
    world: &World,
    plan: &mut Plan,
) -> Result<(), Halt> {
    if let Some(left) = grace_left(since, world) {
        plan.look_again(left);
        return Ok(());
    }
    for pod in world.select::<Pod>(&pod::made_for(monocle, component))? {
        if let Some(waiting) = stuck(&pod) {
            let message = waiting.message.clone().unwrap_or_default();
            plan.fail(
                waiting.reason.clone().unwrap_or_default(),
                format!("Pod {}: {message}", pod.name_any()),
            );
        }
    }
    Ok(())
}

/// Since when a rollout has made no progress, if it is not done.
fn standing_since(deployment: Option<&Deployment>) -> Option<Timestamp> {
    let deployment = deployment?;
    let wanted = deployment.spec.as_ref()?.replicas.unwrap_or(1);
    let status = deployment.status.as_ref()?;
    let all = [status.replicas, status.updated_replicas, status.available_replicas];
    if all.iter().all(|count| count.unwrap_or(0) == wanted) {
        return None;
    }
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let progressing = conditions.iter().find(|condition| condition.type_ == "Progressing")?;
    progressing.last_update_time.as_ref().map(|time| time.0)
}

/// Whether it is there, and nothing of it is ready.
fn is_down(set: Option<&StatefulSet>) -> bool {
    let ready = |set: &StatefulSet| set.status.as_ref().and_then(|status| status.ready_replicas);
    set.is_some_and(|set| ready(set).unwrap_or(0) < 1)
}

fn unready_since(monocle: &Monocle) -> Option<Timestamp> {
    let conditions = &monocle.status.as_ref()?.common.conditions;
    let unready =
        conditions.iter().find(|condition| condition.type_ == "Ready" && condition.status == "False");
    unready.map(|condition| condition.last_transition_time.0)
}

fn stuck(pod: &Pod) -> Option<&ContainerStateWaiting> {
    let statuses = pod.status.as_ref()?.container_statuses.as_deref()?;
    let mut waits = statuses.iter().filter_map(|status| status.state.as_ref()?.waiting.as_ref());
    waits.find(|waiting| waiting.reason.as_deref().is_some_and(|reason| STUCK.contains(&reason)))
}
