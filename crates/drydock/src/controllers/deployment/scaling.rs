//! Sizes of ReplicaSets: surge and unavailability, proportional scaling, and the annotations that remember sizes.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::super::{Error, scaled};
use super::revisions::annotation;
use super::{Controller, Sets, is_recreate, replicas, size, spec_of};

pub(super) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
pub(super) const MAX: &str = "deployment.kubernetes.io/max-replicas";

impl Controller {
    /// Gives one ReplicaSet a size, unless it has it.
    pub(super) async fn resize(
        &self,
        deployment: &Deployment,
        set: &mut ReplicaSet,
        wanted: i32,
        annotations_too: bool,
    ) -> Result<bool, Error> {
        let had = size(set);
        let mut changed = set.clone();
        let annotated = annotate_sizes(deployment, &mut changed);
        if had == wanted && !(annotations_too && annotated) {
            return Ok(false);
        }
        if let Some(spec) = changed.spec.as_mut() {
            spec.replicas = Some(wanted);
        }
        *set = self.sets.update(&changed).await?;
        if had == wanted {
            return Ok(false);
        }
        let direction = if had < wanted { "up" } else { "down" };
        let name = set.metadata.name.as_deref().unwrap_or_default();
        let message = format!("Scaled {direction} replica set {name} from {had} to {wanted}");
        self.recorder.normal(deployment, "ScalingReplicaSet", message);
        Ok(true)
    }

    /// Follows a change of `replicas` outside of a rollout step, in proportion where several sets have pods.
    pub(super) async fn scale(&self, deployment: &Deployment, sets: &mut Sets) -> Result<(), Error> {
        let wanted = replicas(deployment);
        let active = sets.all().filter(|set| size(set) > 0).count();
        if active <= 1 {
            let only = match active {
                1 => sets.old.iter_mut().chain(&mut sets.new).find(|set| size(set) > 0),
                _ if sets.new.is_some() => sets.new.as_mut(),
                _ => sets.old.last_mut(),
            };
            if let Some(set) = only.filter(|set| size(set) != wanted) {
                self.resize(deployment, set, wanted, false).await?;
            }
            return Ok(());
        }
        if is_saturated(deployment, sets.new.as_ref()) {
            for set in sets.old.iter_mut().filter(|set| size(set) > 0) {
                self.resize(deployment, set, 0, false).await?;
            }
            return Ok(());
        }
        if is_recreate(deployment) {
            return Ok(());
        }
        let mut active: Vec<&mut ReplicaSet> =
            sets.old.iter_mut().chain(&mut sets.new).filter(|set| size(set) > 0).collect();
        let total: i32 = active.iter().map(|set| size(set)).sum();
        let allowed = if wanted > 0 { wanted + max_surge(deployment) } else { 0 };
        let add = allowed - total;
        // Larger ones first; of equal ones the newer when growing, the older when shrinking.
        active.sort_by(|a, b| {
            let age = a.metadata.creation_timestamp.cmp(&b.metadata.creation_timestamp);
            size(b).cmp(&size(a)).then(if add > 0 { age.reverse() } else { age })
        });
        let mut added = 0;
        let mut sizes = Vec::with_capacity(active.len());
        for set in &active {
            let share = proportion(deployment, set, add, added);
            added += share;
            sizes.push(size(set) + share);
        }
        if let Some(largest) = sizes.first_mut() {
            *largest = (*largest + add - added).max(0);
        }
        for (set, wanted) in active.into_iter().zip(sizes) {
            self.resize(deployment, set, wanted, true).await?;
        }
        Ok(())
    }
}

/// The size that the new ReplicaSet may have now, next to the others.
pub(super) fn new_size<'a>(
    deployment: &Deployment,
    others: impl Iterator<Item = &'a ReplicaSet>,
    has: i32,
) -> i32 {
    let wanted = replicas(deployment);
    if is_recreate(deployment) {
        return wanted;
    }
    let total = others.map(size).sum::<i32>() + has;
    let most = wanted + max_surge(deployment);
    if total >= most {
        return has;
    }
    has + (most - total).min(wanted - has)
}

/// Writes the sizes into a ReplicaSet's annotations. Returns whether that changed them.
pub(super) fn annotate_sizes(deployment: &Deployment, set: &mut ReplicaSet) -> bool {
    let desired = replicas(deployment);
    let annotations = set.metadata.annotations.get_or_insert_default();
    let mut changed = false;
    for (key, value) in [(DESIRED, desired), (MAX, desired + max_surge(deployment))] {
        changed |= annotations.insert(key.to_owned(), value.to_string()) != Some(value.to_string());
    }
    changed
}

/// The `replicas` that a ReplicaSet was last sized for.
pub(super) fn desired(set: &ReplicaSet) -> Option<&str> {
    annotation(&set.metadata, DESIRED).filter(|text| text.parse::<i32>().is_ok_and(|number| number >= 0))
}

pub(super) fn max_surge(deployment: &Deployment) -> i32 {
    if is_recreate(deployment) { 0 } else { fenceposts(deployment).0 }
}

pub(super) fn max_unavailable(deployment: &Deployment) -> i32 {
    if is_recreate(deployment) || replicas(deployment) == 0 {
        return 0;
    }
    fenceposts(deployment).1.min(replicas(deployment))
}

/// Surge (rounded up) and unavailability (rounded down); both zero would never end, so then one may be missing.
fn fenceposts(deployment: &Deployment) -> (i32, i32) {
    let rolling = spec_of(deployment).strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref());
    let of = |part: Option<&IntOrString>, up: bool| scaled(part, replicas(deployment), up);
    let surge = of(rolling.and_then(|rolling| rolling.max_surge.as_ref()), true);
    let unavailable = of(rolling.and_then(|rolling| rolling.max_unavailable.as_ref()), false);
    if surge == 0 && unavailable == 0 { (0, 1) } else { (surge, unavailable) }
}

fn is_saturated(deployment: &Deployment, new: Option<&ReplicaSet>) -> bool {
    new.is_some_and(|set| {
        let wanted = replicas(deployment);
        let available = set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or_default();
        size(set) == wanted && desired(set) == Some(wanted.to_string().as_str()) && available == wanted
    })
}

/// A ReplicaSet's share of what is to be added (or removed).
fn proportion(deployment: &Deployment, set: &ReplicaSet, add: i32, added: i32) -> i32 {
    if add == 0 || add == added || size(set) == 0 {
        return 0;
    }
    let share = fraction(deployment, set);
    if add > 0 { share.min(add - added) } else { share.max(add - added) }
}

fn fraction(deployment: &Deployment, set: &ReplicaSet) -> i32 {
    if replicas(deployment) == 0 {
        return -size(set);
    }
    let most = replicas(deployment) + max_surge(deployment);
    let before: Option<i32> = annotation(&set.metadata, MAX).and_then(|text| text.parse().ok());
    let before = before
        .filter(|number| *number != 0)
        .unwrap_or_else(|| deployment.status.as_ref().and_then(|status| status.replicas).unwrap_or_default());
    if before == 0 {
        return 0;
    }
    #[allow(clippy::cast_possible_truncation)]
    let rounded = (f64::from(size(set) * most) / f64::from(before)).round() as i32;
    rounded - size(set)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::{DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment};

    use super::*;

    fn deployment(replicas: i32, surge: &str, unavailable: &str) -> Deployment {
        let part = |text: &str| Some(IntOrString::String(text.to_owned()));
        Deployment {
            spec: Some(DeploymentSpec {
                replicas: Some(replicas),
                strategy: Some(DeploymentStrategy {
                    type_: Some("RollingUpdate".to_owned()),
                    rolling_update: Some(RollingUpdateDeployment {
                        max_surge: part(surge),
                        max_unavailable: part(unavailable),
                    }),
                }),
                ..DeploymentSpec::default()
            }),
            ..Deployment::default()
        }
    }

    #[test]
    fn surge_is_rounded_up_and_unavailability_down() {
        let three = deployment(3, "25%", "25%");
        assert_eq!((max_surge(&three), max_unavailable(&three)), (1, 0));
        let ten = deployment(10, "25%", "25%");
        assert_eq!((max_surge(&ten), max_unavailable(&ten)), (3, 2));
        // Neither would never end.
        let none = deployment(4, "0%", "0%");
        assert_eq!((max_surge(&none), max_unavailable(&none)), (0, 1));
    }

    #[test]
    fn a_new_set_grows_within_the_surge() {
        let old = ReplicaSet {
            spec: Some(k8s_openapi::api::apps::v1::ReplicaSetSpec {
                replicas: Some(10),
                ..Default::default()
            }),
            ..ReplicaSet::default()
        };
        assert_eq!(new_size(&deployment(10, "25%", "25%"), std::iter::once(&old), 0), 3);
        assert_eq!(new_size(&deployment(10, "25%", "25%"), std::iter::empty(), 0), 10);
    }
}
