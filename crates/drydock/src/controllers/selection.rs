//! Which controllers run: the `--controllers` list as kube-controller-manager takes it.

use std::collections::BTreeSet;

/// The name of the entry that binds pods to the node.
pub(crate) const SCHEDULER: &str = "scheduler";
/// The name of the entry that is the simulated node.
pub(crate) const NODE: &str = "node";

/// Every entry of the list, in the order in which they are started.
pub const NAMES: &[&str] = &[
    "namespace-controller",
    "clusterrole-aggregation-controller",
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "daemonset-controller",
    "job-controller",
    "cronjob-controller",
    "ttl-after-finished-controller",
    "disruption-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "persistentvolume-binder-controller",
    "persistentvolumeclaim-protection-controller",
    "persistentvolume-protection-controller",
    "resourcequota-controller",
    "garbage-collector-controller",
    SCHEDULER,
    NODE,
];

/// A wrong entry of a list of controllers.
#[derive(Debug, thiserror::Error)]
#[error("{name:?} is not in the list of known controllers: {}", NAMES.join(", "))]
pub struct UnknownController {
    name: String,
}

/// The controllers to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    names: BTreeSet<&'static str>,
}

impl Selection {
    /// All of them.
    #[must_use]
    pub fn all() -> Self {
        Self { names: NAMES.iter().copied().collect() }
    }

    /// None of them.
    #[must_use]
    pub fn none() -> Self {
        Self { names: BTreeSet::new() }
    }

    /// Reads a comma-separated list: `*` is all that are on by default, `foo` enables one, `-foo` disables one;
    /// the first entry that names a controller decides; the empty list is none.
    ///
    /// # Errors
    /// An entry that names no controller.
    pub fn parse(list: &str) -> Result<Self, UnknownController> {
        let entries: Vec<&str> = list.split(',').map(str::trim).filter(|entry| !entry.is_empty()).collect();
        for entry in &entries {
            let name = entry.strip_prefix('-').unwrap_or(entry);
            if name != "*" && !NAMES.contains(&name) {
                return Err(UnknownController { name: name.to_owned() });
            }
        }
        let enabled = |name: &str| {
            let named = entries.iter().find(|entry| entry.strip_prefix('-').unwrap_or(entry) == name);
            match named {
                Some(entry) => !entry.starts_with('-'),
                None => entries.contains(&"*"),
            }
        };
        Ok(Self { names: NAMES.iter().copied().filter(|name| enabled(name)).collect() })
    }

    /// Whether a controller is among them.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }
}

impl Default for Selection {
    fn default() -> Self {
        Self::all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_kube_controller_manager_reads_them() {
        assert_eq!(Selection::parse("*").unwrap(), Selection::all());
        assert_eq!(Selection::parse("").unwrap(), Selection::none());
        let but_node = Selection::parse("*,-node").unwrap();
        assert!(!but_node.contains("node") && but_node.contains("job-controller"));
        let one = Selection::parse("job-controller").unwrap();
        assert!(one.contains("job-controller") && !one.contains("node"));
        assert!(Selection::parse("node,-node,*").unwrap().contains("node"));
        assert!(!Selection::parse("-node,node").unwrap().contains("node"));
        let error = Selection::parse("*,-nodes").unwrap_err().to_string();
        assert!(
            error.starts_with("\"nodes\" is not in the list of known controllers: namespace-controller,"),
            "{error}"
        );
    }
}
