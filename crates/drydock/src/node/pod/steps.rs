//! The steps of a pod's containers: pulled, started, ready, ended, and what follows each.

use std::time::Duration;

use futures::future::FutureExt as _;

use super::super::container::State;
use super::super::runtime::{Purpose, Running, Signal};
use super::{ID_LETTERS, RETRY, Worker, is_sidecar};
use crate::controllers::informer::ObjectKey;

/// Which container: of the init ones or of the others, by position.
#[derive(Clone, Copy)]
pub(super) struct Which {
    pub(super) init: bool,
    pub(super) at: usize,
    pub(super) life: u32,
}

pub(super) struct Step {
    pub(super) which: Which,
    pub(super) what: What,
}

pub(super) enum What {
    Pulled(Result<(), String>),
    Started(Result<Running, String>),
    Ready,
    Exited(i32),
    Retry,
    BackOffPull(String),
    KillNow,
}

impl Worker {
    pub(super) fn begin(&mut self, init: bool, at: usize) {
        let machine = &mut self.machines(init)[at];
        if machine.busy || machine.is_running() || machine.is_terminated() {
            return;
        }
        let spec = machine.spec.clone();
        if let Some(missing) = self.kubelet.missing_env(&self.pod, &spec) {
            let machine = &mut self.machines(init)[at];
            let first = !matches!(
                machine.state,
                State::Waiting {
                    reason: "CreateContainerConfigError",
                    ..
                }
            );
            machine.wait_for("CreateContainerConfigError", Some(missing.clone()));
            self.awaits_reference = true;
            if first {
                self.event(&spec.name, init, "Warning", "Failed", format!("Error: {missing}"));
            }
            return;
        }
        let machine = &mut self.machines(init)[at];
        machine.busy = true;
        machine.life += 1;
        let which = Which {
            init,
            at,
            life: machine.life,
        };
        let pull = self
            .kubelet
            .runtime
            .pull(spec.image.as_deref().unwrap_or_default());
        self.push(which, pull.map(What::Pulled));
    }

    pub(super) fn start(&mut self, which: Which) {
        let never_restarted = self.restart_policy() != "Always";
        let machine = &self.machines(which.init)[which.at];
        let spec = machine.spec.clone();
        let purpose = match (which.init && !is_sidecar(machine), never_restarted && !which.init) {
            (true, _) => Purpose::Initialize,
            (false, true) => Purpose::Complete,
            (false, false) => Purpose::Serve,
        };
        let started = self.kubelet.runtime.start(&self.pod, &spec, purpose);
        self.push(which, started.map(What::Started));
    }

    pub(super) fn push(&mut self, which: Which, future: impl Future<Output = What> + Send + 'static) {
        self.steps.push(
            async move {
                Step {
                    which,
                    what: future.await,
                }
            }
            .boxed(),
        );
    }

    pub(super) fn take(&mut self, Step { which, what }: Step) {
        let now = self.kubelet.now();
        let machine = &mut self.machines(which.init)[which.at];
        if machine.life != which.life {
            return;
        }
        let spec = machine.spec.clone();
        let image = spec.image.clone().unwrap_or_default();
        match what {
            What::Pulled(Ok(())) => {
                let message = format!(
                    "Container image {image:?} already present on machine and can be accessed by the pod"
                );
                self.event(&spec.name, which.init, "Normal", "Pulled", message);
                self.start(which);
            }
            What::Pulled(Err(why)) => {
                let first = !matches!(
                    machine.state,
                    State::Waiting {
                        reason: "ImagePullBackOff",
                        ..
                    }
                );
                let delay = machine.next_backoff();
                if first {
                    machine.wait_for("ErrImagePull", Some(why.clone()));
                }
                let event = |message| (spec.name.clone(), "Failed", message);
                let events = [
                    event(format!("Failed to pull image {image:?}: {why}")),
                    event("Error: ErrImagePull".into()),
                ];
                for (name, reason, message) in events {
                    self.event(&name, which.init, "Warning", reason, message);
                }
                if first {
                    self.push(
                        which,
                        tokio::time::sleep(RETRY).map(move |()| What::BackOffPull(why)),
                    );
                }
                self.push(which, tokio::time::sleep(delay).map(|()| What::Retry));
            }
            What::BackOffPull(why) => {
                machine.wait_for(
                    "ImagePullBackOff",
                    Some(format!("Back-off pulling image {image:?}: ErrImagePull: {why}")),
                );
                self.event(
                    &spec.name,
                    which.init,
                    "Normal",
                    "BackOff",
                    format!("Back-off pulling image {image:?}"),
                );
                self.event(
                    &spec.name,
                    which.init,
                    "Warning",
                    "Failed",
                    "Error: ImagePullBackOff".into(),
                );
            }
            What::Started(Ok(running)) => self.started(which, running),
            What::Started(Err(why)) => {
                let delay = machine.next_backoff();
                machine.wait_for("RunContainerError", Some(why.clone()));
                self.event(
                    &spec.name,
                    which.init,
                    "Warning",
                    "Failed",
                    format!("Error: {why}"),
                );
                self.push(which, tokio::time::sleep(delay).map(|()| What::Retry));
            }
            What::Ready => machine.ready = machine.is_running(),
            What::Exited(code) => {
                machine.end(code, now);
                if !self.stopping {
                    self.restart(which, code);
                }
            }
            What::Retry => machine.busy = false,
            What::KillNow => {
                if let Some(signal) = &machine.signal {
                    signal.send_replace(Signal::Kill);
                }
            }
        }
    }

    fn started(&mut self, which: Which, running: Running) {
        let now = self.kubelet.now();
        let id = format!("drydock://{}", self.kubelet.context.text_of(ID_LETTERS, 64));
        let machine = &mut self.machines(which.init)[which.at];
        machine.signal = Some(running.signal);
        machine.busy = true;
        // One that ran before this process did keeps what is known of it.
        if !machine.is_running() {
            machine.id = Some(id);
            machine.state = State::Running { since: now };
            let name = machine.spec.name.clone();
            self.event(&name, which.init, "Normal", "Created", "Container created".into());
            self.event(&name, which.init, "Normal", "Started", "Container started".into());
        }
        self.push(which, running.ready.map(|()| What::Ready));
        self.push(which, running.exit.map(What::Exited));
    }

    /// Decides what follows a container's end: nothing, another start, or a wait before it.
    fn restart(&mut self, which: Which, code: i32) {
        let policy = self.restart_policy().to_owned();
        let key = ObjectKey::of(&self.pod.metadata);
        let uid = self.pod.metadata.uid.clone().unwrap_or_default();
        let machine = &mut self.machines(which.init)[which.at];
        let again = match policy.as_str() {
            "Never" => is_sidecar(machine),
            "OnFailure" => code != 0 || is_sidecar(machine),
            _ => code != 0 || !which.init || is_sidecar(machine),
        };
        if !again {
            return;
        }
        if let State::Terminated(ended) = &machine.state {
            machine.last = Some(ended.clone());
        }
        machine.restarts += 1;
        let name = machine.spec.name.clone();
        let first = machine.backoff.is_zero();
        let delay = if first { Duration::ZERO } else { machine.backoff };
        machine.next_backoff();
        let place = format!("{}_{}({uid})", key.name, key.namespace);
        let message = format!(
            "back-off {} restarting failed container={name} pod={place}",
            go_seconds(delay)
        );
        machine.wait_for("CrashLoopBackOff", Some(message));
        if first {
            return;
        }
        // It is counted as restarted when it is, not while it waits.
        machine.restarts -= 1;
        machine.busy = true;
        machine.life += 1;
        let which = Which {
            life: machine.life,
            ..which
        };
        let message = format!("Back-off restarting failed container {name} in pod {place}");
        self.event(&name, which.init, "Warning", "BackOff", message);
        self.push(which, tokio::time::sleep(delay).map(|()| What::Retry));
    }
}

/// A duration as Go prints it, in whole seconds: `10s`, `1m20s`, `5m0s`.
fn go_seconds(duration: Duration) -> String {
    match (duration.as_secs() / 60, duration.as_secs() % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    }
}
