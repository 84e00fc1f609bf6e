//! The life of one pod on the node: from bound to running, through crashes, to its deletion.
//!
//! Everything that can happen at once is done at once and told in one status write; only then does a worker wait.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{FuturesUnordered, StreamExt as _};
use k8s_openapi::api::core::v1::{ObjectReference, Pod, PodStatus};
use kube::api::{DeleteParams, Patch};
use tokio::sync::watch;

use super::Kubelet;
use super::container::{Machine, State};
use super::runtime::{Purpose, Running, Signal};
use super::status::{pod_status, status_patch};
use crate::controllers::events::reference;
use crate::controllers::informer::ObjectKey;
use crate::controllers::{Error, pods};

const RETRY: Duration = Duration::from_secs(1);
const ID_LETTERS: &[u8] = b"0123456789abcdef";

/// Lives a pod until it is gone from the API.
pub(super) async fn run(kubelet: Arc<Kubelet>, mut updates: watch::Receiver<Arc<Pod>>) {
    let pod = updates.borrow_and_update().clone();
    let known = pod.status.as_ref().and_then(|status| status.pod_ip.clone());
    let address = kubelet.take_address(known.as_deref());
    let mut worker = Worker::new(kubelet.clone(), pod, address.clone());
    worker.live(&mut updates).await;
    kubelet.give_back_address(&address);
}

pub(super) struct Worker {
    kubelet: Arc<Kubelet>,
    pub(super) pod: Arc<Pod>,
    pub(super) address: String,
    pub(super) init: Vec<Machine>,
    pub(super) main: Vec<Machine>,
    steps: FuturesUnordered<BoxFuture<'static, Step>>,
    /// The status as it was last written.
    pub(super) written: PodStatus,
    /// Why volumes cannot be mounted.
    mount_failure: Option<String>,
    /// Whether a container waits for a ConfigMap or Secret.
    awaits_reference: bool,
    stopping: bool,
    buried: bool,
}

/// Which container: of the init ones or of the others, by position.
#[derive(Clone, Copy)]
struct Which {
    init: bool,
    at: usize,
    life: u32,
}

struct Step {
    which: Which,
    what: What,
}

enum What {
    Pulled(Result<(), String>),
    Started(Result<Running, String>),
    Ready,
    Exited(i32),
    Retry,
    BackOffPull(String),
    KillNow,
}

impl Worker {
    fn new(kubelet: Arc<Kubelet>, pod: Arc<Pod>, address: String) -> Self {
        let status = pod.status.clone().unwrap_or_default();
        let spec = pod.spec.clone().unwrap_or_default();
        let known = |statuses: &Option<Vec<_>>, name: &str| {
            statuses
                .iter()
                .flatten()
                .find(|s: &&k8s_openapi::api::core::v1::ContainerStatus| s.name == name)
                .cloned()
        };
        let inits = spec.init_containers.unwrap_or_default();
        let waiting = if inits.is_empty() {
            "ContainerCreating"
        } else {
            "PodInitializing"
        };
        let init = inits.iter().map(|c| {
            Machine::new(
                c,
                known(&status.init_container_statuses, &c.name).as_ref(),
                "PodInitializing",
            )
        });
        let main = spec
            .containers
            .iter()
            .map(|c| Machine::new(c, known(&status.container_statuses, &c.name).as_ref(), waiting));
        Self {
            kubelet,
            address,
            init: init.collect(),
            main: main.collect(),
            steps: FuturesUnordered::new(),
            written: status,
            mount_failure: None,
            awaits_reference: false,
            stopping: false,
            buried: false,
            pod,
        }
    }

    async fn live(&mut self, updates: &mut watch::Receiver<Arc<Pod>>) {
        let mut references = self.kubelet.references.subscribe();
        self.resume();
        loop {
            if pods::is_terminating(&self.pod) && !self.stopping {
                self.stop();
            }
            if !self.stopping && !pods::is_finished(&self.pod) {
                self.advance();
            }
            // What is done at once is told at once.
            while let Some(Some(step)) = self.steps.next().now_or_never() {
                self.take(step);
                if !self.stopping {
                    self.advance();
                }
            }
            let gone = self.stopping && !self.main.iter().chain(&self.init).any(Machine::is_running);
            let told = if gone {
                self.bury().await
            } else {
                self.tell().await
            };
            if let Err(error) = &told {
                tracing::debug!(pod = %ObjectKey::of(&self.pod.metadata), %error, "failed, will try again");
            }
            let waits = self.awaits_reference || self.mount_failure.is_some();
            tokio::select! {
                biased;
                changed = updates.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    self.pod = updates.borrow_and_update().clone();
                }
                _ = references.changed(), if waits => {
                    references.borrow_and_update();
                    self.retry_references();
                }
                Some(step) = self.steps.next(), if !self.steps.is_empty() => self.take(step),
                () = tokio::time::sleep(RETRY), if told.is_err() => {}
            }
        }
    }

    /// Takes up what ran before this process did.
    fn resume(&mut self) {
        if pods::is_finished(&self.pod) {
            return;
        }
        for init in [true, false] {
            for at in 0..self.machines(init).len() {
                if self.machines(init)[at].is_running() {
                    self.start(Which { init, at, life: 0 });
                }
            }
        }
    }

    fn machines(&mut self, init: bool) -> &mut Vec<Machine> {
        if init { &mut self.init } else { &mut self.main }
    }

    /// Begins whatever can begin now.
    fn advance(&mut self) {
        match self.kubelet.missing_volume(&self.pod) {
            Some((volume, why))
                if self
                    .main
                    .iter()
                    .chain(&self.init)
                    .all(|machine| machine.id.is_none()) =>
            {
                let message = format!("MountVolume.SetUp failed for volume {volume:?} : {why}");
                if self.mount_failure.as_ref() != Some(&message) {
                    self.kubelet
                        .recorder
                        .warning(&*self.pod, "FailedMount", message.clone());
                    self.mount_failure = Some(message);
                }
                return;
            }
            _ => self.mount_failure = None,
        }
        for at in 0..self.init.len() {
            let machine = &self.init[at];
            if machine.has_succeeded() || (machine.is_running() && is_sidecar(machine)) {
                continue;
            }
            self.begin(true, at);
            return;
        }
        for at in 0..self.main.len() {
            self.begin(false, at);
        }
    }

    fn begin(&mut self, init: bool, at: usize) {
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

    fn start(&mut self, which: Which) {
        let never_restarted = self.restart_policy() != "Always";
        let machine = &self.machines(which.init)[which.at];
        let spec = machine.spec.clone();
        let ends = never_restarted || (which.init && !is_sidecar(machine));
        let purpose = if ends { Purpose::Complete } else { Purpose::Serve };
        let started = self.kubelet.runtime.start(&self.pod, &spec, purpose);
        self.push(which, started.map(What::Started));
    }

    fn push(&mut self, which: Which, future: impl Future<Output = What> + Send + 'static) {
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

    fn take(&mut self, Step { which, what }: Step) {
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

    fn retry_references(&mut self) {
        self.awaits_reference = false;
    }

    /// Asks every container to end, and kills them when the grace period is over.
    fn stop(&mut self) {
        self.stopping = true;
        let grace = self.pod.metadata.deletion_grace_period_seconds.unwrap_or(30);
        let grace = Duration::from_secs(u64::try_from(grace).unwrap_or_default());
        let now = self.kubelet.now();
        for init in [true, false] {
            for at in 0..self.machines(init).len() {
                let machine = &mut self.machines(init)[at];
                let (name, life) = (machine.spec.name.clone(), machine.life);
                let Some(signal) = machine.signal.as_ref().filter(|_| machine.is_running()) else {
                    if let State::Running { .. } = machine.state {
                        machine.end(143, now);
                    }
                    continue;
                };
                signal.send_replace(Signal::Terminate);
                self.event(
                    &name,
                    init,
                    "Normal",
                    "Killing",
                    format!("Stopping container {name}"),
                );
                self.push(
                    Which { init, at, life },
                    tokio::time::sleep(grace).map(|()| What::KillNow),
                );
            }
        }
    }

    /// The pod's last words and its removal.
    async fn bury(&mut self) -> Result<(), Error> {
        // Whoever holds a finalizer on the pod wants to know how it ended; nobody else sees it again.
        if self
            .pod
            .metadata
            .finalizers
            .as_ref()
            .is_some_and(|finalizers| !finalizers.is_empty())
        {
            self.tell().await?;
        }
        if self.buried || self.pod.metadata.deletion_grace_period_seconds == Some(0) {
            return Ok(());
        }
        self.kubelet
            .pods
            .delete_with(&self.pod, DeleteParams::default().grace_period(0))
            .await?;
        self.buried = true;
        Ok(())
    }

    /// Writes the status, if it is not what was last written.
    async fn tell(&mut self) -> Result<(), Error> {
        if pods::is_finished(&self.pod) && !self.stopping {
            return Ok(());
        }
        let status = pod_status(self, self.kubelet.now());
        if status == self.written {
            return Ok(());
        }
        let patch = Patch::Strategic(status_patch(&self.pod, &status));
        match self
            .kubelet
            .pods
            .patch_status(&ObjectKey::of(&self.pod.metadata), &patch)
            .await
        {
            Ok(_) => self.written = status,
            Err(error) if error.has_reason("NotFound") => self.written = status,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    pub(super) fn restart_policy(&self) -> &str {
        self.pod
            .spec
            .as_ref()
            .and_then(|spec| spec.restart_policy.as_deref())
            .unwrap_or("Always")
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping
    }

    fn event(&self, container: &str, init: bool, kind: &'static str, reason: &'static str, message: String) {
        let list = if init { "initContainers" } else { "containers" };
        let about = ObjectReference {
            field_path: Some(format!("spec.{list}{{{container}}}")),
            ..reference(&*self.pod)
        };
        self.kubelet.recorder.note(about, kind, reason, message);
    }
}

/// An init container that goes on running next to the others.
pub(super) fn is_sidecar(machine: &Machine) -> bool {
    machine.spec.restart_policy.as_deref() == Some("Always")
}

/// A duration as Go prints it, in whole seconds: `10s`, `1m20s`, `5m0s`.
fn go_seconds(duration: Duration) -> String {
    match (duration.as_secs() / 60, duration.as_secs() % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    }
}
