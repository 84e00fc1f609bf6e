//! The operators that this program holds.

use anyhow::{Result, bail};
use windlass::Operator;

/// An operator and what to try it with.
pub(crate) struct Entry {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// Makes it.
    pub(crate) operator: fn() -> Operator,
    /// Manifests to try it with.
    pub(crate) samples: &'static [&'static str],
    /// What to try with them.
    pub(crate) tries: &'static [Try],
}

/// A command worth trying.
pub(crate) struct Try {
    /// The arguments, the same for kubectl and windlass.
    pub(crate) command: &'static str,
    /// What is to be seen.
    pub(crate) shows: &'static str,
    /// Whether only kubectl has it.
    pub(crate) kubectl: bool,
}

const fn both(command: &'static str, shows: &'static str) -> Try {
    Try { command, shows, kubectl: false }
}

const fn kubectl(command: &'static str, shows: &'static str) -> Try {
    Try { command, shows, kubectl: true }
}

/// All of them.
pub(crate) const OPERATORS: &[Entry] = &[
    Entry {
        name: "monocle",
        operator: windlass_monocle::operator,
        samples: &[windlass_monocle::SAMPLE],
        tries: &[
            both("get monocle", "how it is"),
            both("get statefulset,deployment,replicaset,service,configmap,secret", "what it consists of"),
            kubectl("edit secret monocle-sample-api", "one rollout of API and crawler"),
            kubectl("edit configmap monocle-sample-api", "one update-idents Job"),
            both("delete monocle monocle-sample", "nothing is left"),
        ],
    },
    Entry {
        name: "grafana-agent",
        operator: windlass_grafana_agent::operator,
        samples: &[windlass_grafana_agent::SAMPLE],
        tries: &[
            both("get grafanaagent", "what is in"),
            both("get statefulset,daemonset,service,secret", "what it consists of"),
            kubectl(
                "get secret agent-sample-config -o 'jsonpath={.data.agent\\.yml}'",
                "the configuration of metrics, in base64",
            ),
            both(
                "delete secret agent-sample-shop",
                "one ServiceMonitor is left out, alone; get servicemonitor says why",
            ),
            both("delete grafanaagent agent-sample", "nothing is left"),
        ],
    },
];

/// The operators of these names; all of them where there is none.
pub(crate) fn select(names: &[String]) -> Result<Vec<&'static Entry>> {
    if names.is_empty() {
        return Ok(OPERATORS.iter().collect());
    }
    let mut found = Vec::new();
    for name in names {
        match OPERATORS.iter().find(|entry| entry.name == name) {
            Some(entry) => found.push(entry),
            None => {
                let known: Vec<&str> = OPERATORS.iter().map(|entry| entry.name).collect();
                bail!("there is no operator {name:?}; choose from: {}", known.join(", "));
            }
        }
    }
    Ok(found)
}
