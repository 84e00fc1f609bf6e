//! The steps of a pod's containers: pulled, started, ready, ended, and what follows each.

use std::time::Duration;

use futures::future::FutureExt as _;
use futures::stream::{BoxStream, StreamExt as _};

use super::super::container::State;
use super::super::image_name;
use super::super::runtime::{Exit, Launch, LaunchError, News, Purpose, Running, Signal};
use super::{ID_LETTERS, RETRY, Worker};
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
    Started(Result<Running, LaunchError>),
    News(News, BoxStream<'static, News>),
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
        if let Some(fault) = image_name::fault(spec.image.as_deref().unwrap_or_default()) {
            // Only another name helps.
            if !matches!(machine.state, State::Waiting { reason: "InvalidImageName", .. }) {
                machine.wait_for("InvalidImageName", Some(fault.clone()));
                self.event(&spec.name, init, "Warning", "InspectFailed", fault);
                self.event(&spec.name, init, "Warning", "Failed", "Error: InvalidImageName".into());
            }
            return;
        }
        if let Some(missing) = self.kubelet.missing_env(&self.pod, &spec) {
            let machine = &mut self.machines(init)[at];
            let first = !matches!(machine.state, State::Waiting { reason: "CreateContainerConfigError", .. });
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
        let which = Which { init, at, life: machine.life };
        let pull = self.kubelet.runtime.pull(spec.image.as_deref().unwrap_or_default());
        self.push(which, pull.map(What::Pulled));
    }

    /// Takes up images that were changed: what waits for one tries the new one, what runs is ended and started again.
    pub(super) fn take_images(&mut self) {
        let spec = self.pod.spec.clone().unwrap_or_default();
        let (inits, mains) = (spec.init_containers.unwrap_or_default(), spec.containers);
        for (init, containers) in [(true, inits), (false, mains)] {
            for (at, container) in containers.into_iter().enumerate() {
                let Some(machine) = self.machines(init).get_mut(at) else { continue };
                if machine.spec.image == container.image {
                    continue;
                }
                machine.spec.image = container.image;
                if machine.is_running() {
                    let name = machine.spec.name.clone();
                    let message = format!("Container {name} definition changed, will be restarted");
                    self.event(&name, init, "Normal", "Killing", message);
                    self.end_container(init, at, None);
                } else if !machine.is_terminated() {
                    // News of the old one are of an earlier life.
                    machine.life += 1;
                    machine.busy = false;
                    machine.backoff = Duration::ZERO;
                }
            }
        }
    }

    pub(super) fn start(&mut self, which: Which) {
        let never_restarted = self.restart_policy() != "Always";
        let machine = &self.machines(which.init)[which.at];
        let spec = machine.spec.clone();
        let purpose = match (which.init && !machine.is_sidecar(), never_restarted && !which.init) {
            (true, _) => Purpose::Initialize,
            (false, true) => Purpose::Complete,
            (false, false) => Purpose::Serve,
        };
        let id = format!("drydock://{}", self.kubelet.context.text_of(ID_LETTERS, 64));
        let machine = &mut self.machines(which.init)[which.at];
        // One that ran before this process did keeps what is known of it.
        let id = machine.id.clone().filter(|_| machine.is_running()).unwrap_or(id);
        machine.next_id = Some(id.clone());
        let log = self.kubelet.logs.open(&id);
        self.machines(which.init)[which.at].log = Some(log.clone());
        let launch = Launch { pod: &self.pod, container: &spec, purpose, log };
        let started = self.kubelet.runtime.start(launch);
        self.push(which, started.map(What::Started));
    }

    pub(super) fn push(&mut self, which: Which, future: impl Future<Output = What> + Send + 'static) {
        self.steps.push(async move { Step { which, what: future.await } }.boxed());
    }

    pub(super) fn take(&mut self, Step { which, what }: Step) {
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
                let first = !matches!(machine.state, State::Waiting { reason: "ImagePullBackOff", .. });
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
                    self.push(which, tokio::time::sleep(RETRY).map(move |()| What::BackOffPull(why)));
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
                self.event(&spec.name, which.init, "Warning", "Failed", "Error: ImagePullBackOff".into());
            }
            What::Started(Ok(running)) => self.started(which, running),
            What::Started(Err(LaunchError::Mount(why))) => {
                self.kubelet.recorder.warning(&*self.pod, "FailedMount", why);
                self.push(which, tokio::time::sleep(RETRY).map(|()| What::Retry));
            }
            What::Started(Err(LaunchError::Create(why))) => {
                let delay = machine.next_backoff();
                machine.wait_for("CreateContainerError", Some(why.clone()));
                self.event(&spec.name, which.init, "Warning", "Failed", format!("Error: {why}"));
                self.push(which, tokio::time::sleep(delay).map(|()| What::Retry));
            }
            What::News(news, rest) => self.hear(which, news, rest),
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
        let machine = &mut self.machines(which.init)[which.at];
        machine.signal = Some(running.signal);
        machine.busy = true;
        // One that ran before this process did keeps what is known of it.
        if !machine.is_running() {
            machine.id = machine.next_id.take();
            if machine.last.is_some() {
                machine.restarts += 1;
            }
            machine.state = State::Running { since: now };
            let name = machine.spec.name.clone();
            self.event(&name, which.init, "Normal", "Created", "Container created".into());
            self.event(&name, which.init, "Normal", "Started", "Container started".into());
        }
        self.listen(which, running.news);
        // A pod that was told to end while its container was being made.
        if self.stopping {
            let grace = self.pod.metadata.deletion_grace_period_seconds;
            self.stop_container(which.init, which.at, grace);
        }
    }

    fn listen(&mut self, which: Which, mut news: BoxStream<'static, News>) {
        let next = async move {
            // A runtime that says nothing more has lost the container.
            let lost = || News::Exited(Exit { code: 137, ..Exit::default() });
            let heard = news.next().await.unwrap_or_else(lost);
            What::News(heard, news)
        };
        self.push(which, next);
    }

    fn hear(&mut self, which: Which, news: News, rest: BoxStream<'static, News>) {
        let now = self.kubelet.now();
        let machine = &mut self.machines(which.init)[which.at];
        match news {
            News::Started => machine.started = machine.is_running(),
            News::Ready(ready) => machine.ready = ready && machine.is_running(),
            News::Event { kind, reason, message } => {
                let name = machine.spec.name.clone();
                self.event(&name, which.init, kind, reason, message);
            }
            News::Exited(exit) => {
                let code = exit.code;
                machine.end(exit, now);
                let is_last = which.init && self.is_complete();
                if !self.stopping && !is_last {
                    self.restart(which, code);
                }
                return;
            }
        }
        self.listen(which, rest);
    }

    /// Decides what follows a container's end: nothing, another start, or a wait before it.
    fn restart(&mut self, which: Which, code: i32) {
        let policy = self.restart_policy().to_owned();
        let key = ObjectKey::of(&self.pod.metadata);
        let uid = self.pod.metadata.uid.clone().unwrap_or_default();
        let logs = self.kubelet.logs.clone();
        let machine = &mut self.machines(which.init)[which.at];
        let again = match policy.as_str() {
            "Never" => machine.is_sidecar(),
            "OnFailure" => code != 0 || machine.is_sidecar(),
            _ => code != 0 || !which.init || machine.is_sidecar(),
        };
        if !again {
            return;
        }
        if let State::Terminated(ended) = &machine.state {
            let forgotten = machine.last.replace(ended.clone()).and_then(|last| last.container_id);
            if let Some(id) = forgotten {
                logs.forget(&id);
            }
        }
        let name = machine.spec.name.clone();
        let first = machine.backoff.is_zero();
        let delay = if first { Duration::ZERO } else { machine.backoff };
        machine.next_backoff();
        let place = format!("{}_{}({uid})", key.name, key.namespace);
        let message =
            format!("back-off {} restarting failed container={name} pod={place}", go_seconds(delay));
        machine.wait_for("CrashLoopBackOff", Some(message));
        if first {
            return;
        }
        machine.busy = true;
        machine.life += 1;
        let which = Which { life: machine.life, ..which };
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
