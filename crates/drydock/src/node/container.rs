//! One container of a pod: what state it is in, and what the API is told of it.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus, VolumeMountStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::sync::watch;

use super::runtime::{Exit, Signal};
use crate::logs::Log;

/// First and longest wait before a crashed container is started again or an image is pulled again.
pub(super) const FIRST_BACKOFF: Duration = Duration::from_secs(10);
const LONGEST_BACKOFF: Duration = Duration::from_secs(300);
/// A container that ran this long starts with a short wait again.
const FORGIVEN_AFTER: i64 = 600;

/// A container's state.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// Not started (again) yet.
    Waiting {
        reason: &'static str,
        message: Option<String>,
    },
    Running {
        since: Timestamp,
    },
    Terminated(ContainerStateTerminated),
}

/// What the node knows of a container.
pub(super) struct Machine {
    pub(super) spec: Container,
    pub(super) state: State,
    /// Whether it has come up, by its startup probe if it has one.
    pub(super) started: bool,
    pub(super) ready: bool,
    pub(super) restarts: i32,
    pub(super) last: Option<ContainerStateTerminated>,
    pub(super) id: Option<String>,
    /// The id it has once it is started.
    pub(super) next_id: Option<String>,
    pub(super) signal: Option<watch::Sender<Signal>>,
    pub(super) log: Option<Log>,
    /// Whether something is under way that will move it.
    pub(super) busy: bool,
    /// How often it was begun: news of earlier lives is ignored.
    pub(super) life: u32,
    pub(super) backoff: Duration,
}

impl Machine {
    /// A container as the API last knew it, or a new one.
    pub(super) fn new(spec: &Container, known: Option<&ContainerStatus>, waiting: &'static str) -> Self {
        let state = known.and_then(|status| status.state.clone()).unwrap_or_default();
        let state = match (state.running, state.terminated) {
            (Some(running), _) => match running.started_at {
                Some(since) => State::Running { since: since.0 },
                None => State::Waiting { reason: waiting, message: None },
            },
            (None, Some(terminated)) => State::Terminated(terminated),
            (None, None) => State::Waiting { reason: waiting, message: None },
        };
        Self {
            spec: spec.clone(),
            state,
            started: known.is_some_and(|status| status.started == Some(true)),
            ready: known.is_some_and(|status| status.ready),
            restarts: known.map(|status| status.restart_count).unwrap_or_default(),
            last: known.and_then(|status| status.last_state.clone()).and_then(|state| state.terminated),
            id: known.and_then(|status| status.container_id.clone()).filter(|id| !id.is_empty()),
            next_id: None,
            signal: None,
            log: None,
            busy: false,
            life: 0,
            backoff: Duration::ZERO,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    pub(super) fn has_succeeded(&self) -> bool {
        matches!(&self.state, State::Terminated(ended) if ended.exit_code == 0)
    }

    /// Whether, as an init container, it no longer holds the others up.
    pub(super) fn is_initialized(&self) -> bool {
        // A sidecar that is not started again has done its part.
        let part_done = self.is_sidecar() && (self.is_terminated() || (self.is_running() && self.started));
        self.has_succeeded() || part_done
    }

    /// An init container that goes on running next to the others.
    pub(super) fn is_sidecar(&self) -> bool {
        self.spec.restart_policy.as_deref() == Some("Always")
    }

    pub(super) fn is_terminated(&self) -> bool {
        matches!(self.state, State::Terminated(_))
    }

    pub(super) fn wait_for(&mut self, reason: &'static str, message: Option<String>) {
        self.state = State::Waiting { reason, message };
        self.ready = false;
        self.started = false;
    }

    pub(super) fn end(&mut self, exit: Exit, now: Timestamp) {
        let reason = if exit.code == 0 { "Completed" } else { "Error" };
        let since = match self.state {
            State::Running { since } => Some(since),
            _ => None,
        };
        if since.is_some_and(|since| now.duration_since(since).as_secs() >= FORGIVEN_AFTER) {
            self.backoff = Duration::ZERO;
        }
        self.state = State::Terminated(ContainerStateTerminated {
            container_id: self.id.clone(),
            exit_code: exit.code,
            reason: Some(exit.reason.unwrap_or(reason).to_owned()),
            message: exit.message,
            started_at: since.map(Time),
            finished_at: Some(Time(now)),
            ..ContainerStateTerminated::default()
        });
        self.ready = false;
        self.started = false;
        self.signal = None;
        self.busy = false;
        if let Some(log) = self.log.take() {
            log.close();
        }
    }

    /// The wait before the next try; each is twice the one before.
    pub(super) fn next_backoff(&mut self) -> Duration {
        self.backoff = (self.backoff * 2).clamp(FIRST_BACKOFF, LONGEST_BACKOFF);
        self.backoff
    }

    /// The container as the API is told of it.
    pub(super) fn status(&self, is_init: bool) -> ContainerStatus {
        let image = self.spec.image.clone().unwrap_or_default();
        let begun = self.id.is_some();
        let state = match &self.state {
            State::Waiting { reason, message } => ContainerState {
                waiting: Some(ContainerStateWaiting {
                    reason: Some((*reason).to_owned()),
                    message: message.clone(),
                }),
                ..ContainerState::default()
            },
            State::Running { since } => ContainerState {
                running: Some(ContainerStateRunning { started_at: Some(Time(*since)) }),
                ..ContainerState::default()
            },
            State::Terminated(ended) => {
                ContainerState { terminated: Some(ended.clone()), ..ContainerState::default() }
            }
        };
        let mounts = self.spec.volume_mounts.iter().flatten().map(|mount| VolumeMountStatus {
            name: mount.name.clone(),
            mount_path: mount.mount_path.clone(),
            read_only: mount.read_only.filter(|read_only| *read_only),
            recursive_read_only: (mount.read_only == Some(true)).then(|| "Disabled".to_owned()),
            volume_status: None,
        });
        let resources = self.spec.resources.clone().filter(|_| begun && self.is_running());
        ContainerStatus {
            name: self.spec.name.clone(),
            image_id: if begun { format!("drydock://{image}") } else { String::new() },
            image,
            container_id: self.id.clone(),
            ready: if is_init && !self.is_sidecar() { self.has_succeeded() } else { self.ready },
            started: Some(self.is_running() && self.started),
            restart_count: self.restarts,
            state: Some(state),
            last_state: Some(ContainerState { terminated: self.last.clone(), ..ContainerState::default() }),
            allocated_resources: resources.as_ref().and_then(|resources| resources.requests.clone()),
            resources,
            volume_mounts: Some(mounts.collect::<Vec<_>>()).filter(|mounts| !mounts.is_empty()),
            ..ContainerStatus::default()
        }
    }
}
