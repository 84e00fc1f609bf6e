//! When an object of a usual kind is ready. One closure on the [handle](crate::Handle::condition) replaces these.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::cache::Stored;
use crate::{Condition, Kind};

/// The condition of an observed object by the rule for its kind.
pub(crate) fn of(kind: &Kind, stored: &Stored) -> Condition {
    // A custom resource need not have fields of these forms.
    let object = stored.decode::<Judged>().map_or_else(|_| stored.value(), Judged::tree);
    if stored.deleting {
        return Condition::pending("Deleting", "being deleted");
    }
    let view = View(&object);
    match (kind.group(), kind.name()) {
        ("", "Pod") => pod(view),
        ("", "PersistentVolumeClaim") => claim(view),
        ("", "Service") => service(view),
        ("apps", "Deployment") => deployment(view),
        ("apps", "StatefulSet") => stateful_set(view),
        ("apps", "DaemonSet") => daemon_set(view),
        ("batch", "Job") => job(view),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => view.says("Established"),
        _ => view.by_standard_conditions(),
    }
}

/// The part of an object that these rules look at.
#[derive(Deserialize)]
struct Judged {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Value,
}

#[derive(Default, Deserialize)]
struct Metadata {
    generation: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    replicas: Value,
    r#type: Value,
    update_strategy: Value,
}

impl Judged {
    fn tree(self) -> Value {
        let Self { metadata, spec, status } = self;
        json!({
            "metadata": {"generation": metadata.generation},
            "spec": {"replicas": spec.replicas, "type": spec.r#type, "updateStrategy": spec.update_strategy},
            "status": status,
        })
    }
}

fn pod(pod: View<'_>) -> Condition {
    match pod.text("/status/phase") {
        "Succeeded" => Condition::ready(),
        "Failed" => Condition::failed("PodFailed", pod.text("/status/message")),
        _ => pod.says("Ready"),
    }
}

fn claim(claim: View<'_>) -> Condition {
    match claim.text("/status/phase") {
        "Bound" => Condition::ready(),
        "Lost" => Condition::failed("VolumeLost", "the volume is lost"),
        _ => Condition::pending("Unbound", "no volume is bound yet"),
    }
}

fn service(service: View<'_>) -> Condition {
    let addresses = service.0.pointer("/status/loadBalancer/ingress").and_then(Value::as_array);
    match service.text("/spec/type") {
        "LoadBalancer" if addresses.is_none_or(Vec::is_empty) => {
            Condition::pending("NoAddress", "no load balancer address yet")
        }
        _ => Condition::ready(),
    }
}

fn deployment(deployment: View<'_>) -> Condition {
    if let Some(condition) = deployment.condition("Progressing")
        && condition.text("/reason") == "ProgressDeadlineExceeded"
        && deployment.is_observed()
    {
        return Condition::failed("ProgressDeadlineExceeded", condition.text("/message"));
    }
    let wanted = deployment.number("/spec/replicas").unwrap_or(1);
    let updated = deployment.count("/status/updatedReplicas");
    let available = deployment.count("/status/availableReplicas");
    if !deployment.is_observed() || updated < wanted {
        return Condition::pending("RollingOut", format!("{updated} of {wanted} updated"));
    }
    if deployment.count("/status/replicas") > updated {
        return Condition::pending("RollingOut", "old replicas are still there");
    }
    if available < wanted {
        return Condition::pending("Unavailable", format!("{available} of {wanted} available"));
    }
    Condition::ready()
}

fn stateful_set(set: View<'_>) -> Condition {
    let wanted = set.number("/spec/replicas").unwrap_or(1);
    let ready = set.count("/status/readyReplicas");
    let rolling = set.text("/spec/updateStrategy/type") != "OnDelete";
    if !set.is_observed() || (rolling && set.count("/status/updatedReplicas") < wanted) {
        let updated = if set.is_observed() { set.count("/status/updatedReplicas") } else { 0 };
        return Condition::pending("RollingOut", format!("{updated} of {wanted} updated"));
    }
    if ready < wanted {
        return Condition::pending("Unavailable", format!("{ready} of {wanted} ready"));
    }
    Condition::ready()
}

fn daemon_set(set: View<'_>) -> Condition {
    let wanted = set.count("/status/desiredNumberScheduled");
    let updated = set.count("/status/updatedNumberScheduled");
    let available = set.count("/status/numberAvailable");
    if !set.is_observed() || updated < wanted {
        return Condition::pending("RollingOut", format!("{updated} of {wanted} updated"));
    }
    if available < wanted {
        return Condition::pending("Unavailable", format!("{available} of {wanted} available"));
    }
    Condition::ready()
}

fn job(job: View<'_>) -> Condition {
    match job.condition("Failed") {
        Some(failed) if failed.text("/status") == "True" => {
            Condition::failed("JobFailed", failed.text("/message"))
        }
        _ => job.says("Complete"),
    }
}

#[derive(Clone, Copy)]
struct View<'a>(&'a Value);

impl<'a> View<'a> {
    fn text(self, pointer: &str) -> &'a str {
        self.0.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    fn number(self, pointer: &str) -> Option<i64> {
        self.0.pointer(pointer).and_then(Value::as_i64)
    }

    fn count(self, pointer: &str) -> i64 {
        self.number(pointer).unwrap_or(0)
    }

    /// Whether the controller of this kind has seen the object as it is.
    fn is_observed(self) -> bool {
        self.count("/status/observedGeneration") >= self.count("/metadata/generation")
    }

    fn condition(self, kind: &str) -> Option<View<'a>> {
        let conditions = self.0.pointer("/status/conditions")?.as_array()?;
        conditions.iter().map(View).find(|condition| condition.text("/type") == kind)
    }

    /// Ready when this condition is true.
    fn says(self, kind: &str) -> Condition {
        match self.condition(kind) {
            Some(condition) if condition.text("/status") == "True" => Condition::ready(),
            Some(condition) => {
                let reason = match condition.text("/reason") {
                    "" => "Pending",
                    reason => reason,
                };
                Condition::pending(reason, condition.text("/message"))
            }
            None => Condition::pending("Pending", format!("not {kind} yet")),
        }
    }

    /// For any other kind: the condition `Ready` or `Available` if it has one, `Degraded` or `Failed` if it says
    /// so; what has no conditions is ready because it exists.
    fn by_standard_conditions(self) -> Condition {
        for kind in ["Degraded", "Failed", "Stalled"] {
            if let Some(condition) = self.condition(kind)
                && condition.text("/status") == "True"
            {
                return Condition::failed(condition.text("/reason"), condition.text("/message"));
            }
        }
        if self.number("/status/observedGeneration").is_some() && !self.is_observed() {
            return Condition::pending("NotObserved", "its controller has not seen its last change yet");
        }
        match ["Ready", "Available"].into_iter().find(|kind| self.condition(kind).is_some()) {
            Some(kind) => self.says(kind),
            None => Condition::ready(),
        }
    }
}

#[cfg(test)]
mod tests;
