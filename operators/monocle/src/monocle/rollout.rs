//! Why a rollout does not get on, from its pods: long before its own deadline, and in words.
//!
//! Pods are looked at only while a rollout has stood still for a while, so that in ordinary life none is watched.

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
    for component in ["api", "crawler"] {
        let deployment = world.get::<Deployment>(&monocle.child(component))?;
        if let Some(since) = deployment.as_ref().and_then(standing_since) {
            look_at(monocle, component, since, world, plan)?;
        }
    }
    let set = world.get::<StatefulSet>(&monocle.child("elastic"))?;
    if let Some(since) = set.filter(|set| !is_up(set)).and_then(|_| unready_since(monocle)) {
        look_at(monocle, "elastic", since, world, plan)?;
    }
    Ok(())
}

fn look_at(
    monocle: &Monocle,
    component: &str,
    since: Timestamp,
    world: &World,
    plan: &mut Plan,
) -> Result<(), Halt> {
    let stood = Duration::try_from(world.now().duration_since(since)).unwrap_or_default();
    if stood < GRACE {
        plan.look_again(GRACE - stood);
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
fn standing_since(deployment: &Deployment) -> Option<Timestamp> {
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

fn is_up(set: &StatefulSet) -> bool {
    let status = set.status.as_ref();
    status.is_some_and(|status| status.ready_replicas.unwrap_or(0) >= 1)
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
