//! The configurations: from an agent and all that it selects to documents, with no I/O.
//!
//! Nothing here fails as a whole. What cannot be rendered is left out alone, and the [`Scene`] remembers why.

mod access;
mod integrations;
mod logs;
mod metrics;
mod monitor;
mod piece;
mod pod_logs;
mod pod_monitor;
mod probe;
mod relabel;
mod remote_write;
mod scrape;
mod service_monitor;
mod stages;
mod timing;

use std::cell::RefCell;
use std::sync::Arc;

use windlass::{Kind, Object};

use crate::assets::Assets;
use crate::discovery::Discovery;
use crate::document::{Document, Fields, Variables};
use crate::fault::Fault;
use crate::kinds::{GrafanaAgent, LeftOut, Named};
use crate::text::{Part, Text};

pub use self::integrations::Runs;
pub(crate) use self::integrations::usable as usable_integrations;
pub(crate) use self::monitor::{check_logs_instance, check_metrics_instance, check_one};
pub use self::piece::{Collected, Common, Piece};

/// Where the agent keeps its data.
const DATA: &str = "/var/lib/grafana-agent/data";

/// What a configuration is rendered from, and what was left out of it.
pub struct Scene<'a> {
    /// The agent.
    pub agent: &'a GrafanaAgent,
    /// The Secrets and ConfigMaps.
    pub assets: &'a Assets<'a>,
    /// What `kubernetes_sd_configs` say of the API server.
    api_server: Fields,
    /// The variables that configurations may name.
    variables: Variables,
    left_out: RefCell<Vec<LeftOut>>,
    complaints: RefCell<Vec<LeftOut>>,
    included: RefCell<usize>,
}

impl<'a> Scene<'a> {
    /// With nothing left out yet.
    #[must_use]
    pub fn new(agent: &'a GrafanaAgent, assets: &'a Assets<'a>) -> Self {
        let mut scene = Self::empty(agent, assets, Fields::new(), variables(agent));
        scene.api_server = access::api_server(&scene);
        scene
    }

    /// For one object alone.
    fn of_one(common: &'a Common, assets: &'a Assets<'a>) -> Self {
        Self::empty(&common.agent, assets, common.api_server.clone(), common.variables.clone())
    }

    fn empty(
        agent: &'a GrafanaAgent,
        assets: &'a Assets<'a>,
        api_server: Fields,
        variables: Variables,
    ) -> Self {
        let (left_out, complaints, included) = Default::default();
        Self { agent, assets, api_server, variables, left_out, complaints, included }
    }

    /// The configuration of metrics.
    #[must_use]
    pub fn metrics(&self, found: &Discovery) -> Document {
        let metrics = metrics::render(self, &found.metrics);
        Fields::new().with("server", self.server()).with("metrics", metrics).into()
    }

    /// The configuration of logs.
    #[must_use]
    pub fn logs(&self, found: &Discovery) -> Document {
        let logs = logs::render(self, &found.logs);
        Fields::new().with("server", self.server()).with("logs", logs).into()
    }

    /// The configuration of the integrations that run in such a way.
    #[must_use]
    pub fn integrations(&self, found: &Discovery, runs: Runs) -> Document {
        Fields::new()
            .with("server", self.server())
            .with("metrics", metrics::for_integrations(self, &found.metrics))
            .with("logs", logs::for_integrations(self, &found.logs))
            .with("integrations", integrations::render(self, &found.integrations, runs))
            .into()
    }

    /// What was left out, and what is wrong with what is in nevertheless.
    #[must_use]
    pub fn into_findings(self) -> Findings {
        let sorted = |list: RefCell<Vec<LeftOut>>| {
            let mut list = list.into_inner();
            list.sort();
            list.dedup();
            list
        };
        Findings {
            included: self.included.into_inner(),
            left_out: sorted(self.left_out),
            complaints: sorted(self.complaints),
        }
    }

    /// The text of a document.
    #[must_use]
    pub fn text_of(&self, document: &Document) -> Text {
        document.to_text(&self.variables)
    }

    fn server(&self) -> Fields {
        Fields::new()
            .text("log_level", &self.agent.spec.log_level)
            .text("log_format", &self.agent.spec.log_format)
    }

    /// What one object comes to; it is left out if that fails.
    fn include<T: Clone>(&self, rendered: &Result<T, LeftOut>) -> Option<T> {
        match rendered {
            Ok(rendered) => {
                *self.included.borrow_mut() += 1;
                Some(rendered.clone())
            }
            Err(left_out) => {
                self.left_out.borrow_mut().push(left_out.clone());
                None
            }
        }
    }

    /// The scrape configurations of these objects, and then those of the user's own.
    fn scrapes(&self, pieces: &[Arc<Piece>], more: Vec<Document>) -> Document {
        let mut parts: Vec<Part> = Vec::with_capacity(pieces.len() + 1);
        for piece in pieces {
            self.assets.absorb(piece.used());
            parts.extend(piece.0.as_ref().and_then(|written| self.include(written)));
        }
        parts.push(Document::items(more, piece::INDENT, &self.variables));
        Document::Written(parts)
    }

    /// What a part of an object comes to; the object is in nevertheless.
    fn part<K: Object, T>(&self, object: &K, rendered: Result<T, Fault>) -> Option<T> {
        rendered.map_err(|fault| self.complaints.borrow_mut().push(entry(object, fault))).ok()
    }
}

/// What came of rendering, other than the documents.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// How many objects are in.
    pub included: usize,
    /// What was left out.
    pub left_out: Vec<LeftOut>,
    /// What is wrong with what is in nevertheless.
    pub complaints: Vec<LeftOut>,
}

/// The variables that configurations may name: those of the pods, and those that the user's containers add.
fn variables(agent: &GrafanaAgent) -> Variables {
    const OWN: [&str; 6] =
        ["POD_NAME", "SHARD", "SHARDS", "STATEFULSET_ORDINAL_NUMBER", "HOSTNAME", "AGENT_DEPLOY_MODE"];
    let added = agent.spec.containers.iter().flat_map(|container| container.env.iter().flatten());
    Variables::new(OWN.map(str::to_owned).into_iter().chain(added.map(|variable| variable.name.clone())))
}

fn entry<K: Object>(object: &K, fault: Fault) -> LeftOut {
    LeftOut {
        kind: Kind::of::<K>().name().to_owned(),
        namespace: object.space().to_owned(),
        name: object.title().to_owned(),
        reason: fault.reason.into_owned(),
        message: fault.message,
    }
}
