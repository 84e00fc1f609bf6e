//! The operators that this program holds.

use anyhow::{Result, bail};
use windlass::Operator;
use windlass::olm::Listing;
use windlass_grafana_agent::kubelet::{KubeletService, with_kubelet_service};

use crate::kiagnose;

/// An operator and what to try it with.
pub(crate) struct Entry {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// Makes it.
    pub(crate) operator: fn() -> Operator,
    /// Has it keep a Service of all kubelets, if it can.
    pub(crate) kubelet_service: Option<fn(Operator, KubeletService) -> Operator>,
    /// Manifests of what has to be there before it starts.
    pub(crate) preparation: &'static [&'static str],
    /// Manifests to try it with.
    pub(crate) samples: &'static [&'static str],
    /// What to try with them.
    pub(crate) tries: &'static [Try],
    /// What catalogs of operators show of it.
    pub(crate) listing: &'static Listing,
    /// Manifests of kinds that the samples have none of, for catalogs to show.
    pub(crate) examples: &'static [&'static str],
    /// Makes the operator that manages its kinds: itself, or another one that it installs.
    pub(crate) kinds: fn() -> Operator,
    /// Makes it as it runs when its definitions came with a bundle, where that is another.
    pub(crate) bundled: Option<fn() -> Operator>,
    /// The image that it is in, if not one of this program.
    pub(crate) image: Option<fn() -> String>,
    /// What this program is called there.
    pub(crate) program: Option<&'static str>,
    /// The variable that tells it its own image, if it deploys a part of itself.
    pub(crate) image_variable: Option<&'static str>,
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
        kubelet_service: None,
        preparation: &[],
        samples: &[windlass_monocle::SAMPLE],
        tries: &[
            both("get monocle", "how it is"),
            both("get statefulset,deployment,replicaset,service,configmap,secret", "what it consists of"),
            kubectl("edit secret monocle-sample-api", "one rollout of API and crawler"),
            kubectl("edit configmap monocle-sample-api", "one update-idents Job"),
            both("delete monocle monocle-sample", "nothing is left"),
        ],
        listing: &windlass_monocle::LISTING,
        examples: &[],
        kinds: windlass_monocle::operator,
        bundled: None,
        image: None,
        program: None,
        image_variable: None,
    },
    Entry {
        name: "grafana-agent",
        operator: windlass_grafana_agent::operator,
        kubelet_service: Some(with_kubelet_service),
        preparation: &[],
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
        listing: &windlass_grafana_agent::LISTING,
        examples: &[],
        kinds: windlass_grafana_agent::operator,
        bundled: None,
        image: None,
        program: None,
        image_variable: None,
    },
    Entry {
        name: "kiagnose",
        operator: kiagnose::installer,
        kubelet_service: None,
        preparation: &[windlass_kiagnose::PREPARATION],
        samples: &[windlass_kiagnose::SAMPLE],
        tries: &[
            both("get checkup", "its verdict"),
            kubectl("get checkup echo -o 'jsonpath={.status.results}'", "what it found out"),
            kubectl("annotate checkup echo kiagnose.io/rerun=1 --overwrite", "another run"),
            both("get deployment,pod -n kiagnose", "the checkup controller, a process of its own"),
            kubectl("delete deployment kiagnose-checkup-controller -n kiagnose", "it is back at once"),
            both("delete checkup echo", "nothing is left"),
        ],
        listing: &windlass_kiagnose::LISTING,
        examples: &[windlass_kiagnose::SCHEDULE_SAMPLE],
        kinds: windlass_kiagnose::controller,
        bundled: Some(kiagnose::bundled),
        image: Some(kiagnose::image),
        program: Some("kiagnose"),
        image_variable: Some(kiagnose::IMAGE_VARIABLE),
    },
];

/// Images that this program stands for by itself, and the arguments with which it does.
pub(crate) const IMAGES: &[(&str, &[&str])] = &[
    ("quay.io/kiagnose/kiagnose-operator", &["run", "kiagnose"]),
    ("quay.io/kiagnose/echo-checkup", &["echo-checkup"]),
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
