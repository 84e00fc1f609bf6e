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
use tokio::time::Instant;

use super::Kubelet;
use super::container::{Machine, State};
use super::runtime::{Exit, Signal};
use super::status::{pod_status, status_patch};
use crate::controllers::events::reference;
use crate::controllers::informer::ObjectKey;
use crate::controllers::{Error, pods};

mod steps;

use steps::{Step, What, Which};

const RETRY: Duration = Duration::from_secs(1);
/// What a sidecar has to end, in seconds, if the others took all the time.
const LEAST_GRACE: i64 = 2;
const ID_LETTERS: &[u8] = b"0123456789abcdef";

/// Lives a pod until it is gone from the API.
pub(super) async fn run(kubelet: Arc<Kubelet>, mut updates: watch::Receiver<Arc<Pod>>) {
    let pod = updates.borrow_and_update().clone();
    let known = pod.status.as_ref().and_then(|status| status.pod_ip.clone());
    let address = kubelet.take_address(known.as_deref());
    let mut worker = Worker::new(kubelet.clone(), pod, address.clone());
    worker.live(&mut updates).await;
    worker.forget();
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
    /// When the time is over that its containers have to end.
    ends_at: Option<Instant>,
    /// Why the pod was made to fail: the reason and the message.
    pub(super) failure: Option<(&'static str, &'static str)>,
    buried: bool,
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
        let waiting = if inits.is_empty() { "ContainerCreating" } else { "PodInitializing" };
        let init = inits.iter().map(|c| {
            Machine::new(c, known(&status.init_container_statuses, &c.name).as_ref(), "PodInitializing")
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
            ends_at: None,
            failure: None,
            buried: false,
            pod,
        }
    }

    async fn live(&mut self, updates: &mut watch::Receiver<Arc<Pod>>) {
        let mut references = self.kubelet.references.subscribe();
        self.resume();
        loop {
            if pods::is_terminating(&self.pod) && !self.stopping {
                self.stop(self.pod.metadata.deletion_grace_period_seconds);
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
            if self.stopping && !self.main.iter().any(Machine::is_running) {
                self.stop_last_sidecar();
            }
            let over = self.stopping && !self.main.iter().chain(&self.init).any(Machine::is_running);
            let told =
                if over && pods::is_terminating(&self.pod) { self.bury().await } else { self.tell().await };
            if let Err(error) = &told {
                tracing::debug!(pod = %ObjectKey::of(&self.pod.metadata), %error, "failed, will try again");
            }
            let waits = self.awaits_reference || self.mount_failure.is_some();
            let deadline = self.deadline();
            tokio::select! {
                biased;
                changed = updates.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    self.pod = updates.borrow_and_update().clone();
                    self.kubelet.runtime.changed(&self.pod);
                    self.take_images();
                }
                _ = references.changed(), if waits => {
                    references.borrow_and_update();
                    self.retry_references();
                }
                Some(step) = self.steps.next(), if !self.steps.is_empty() => self.take(step),
                () = tokio::time::sleep(RETRY), if told.is_err() => {}
                () = tokio::time::sleep(deadline.unwrap_or_default()), if deadline.is_some() => {
                    self.exceed_deadline();
                }
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
        let real = self.kubelet.runtime.is_real(&self.pod);
        match self.kubelet.missing_volume(&self.pod, real) {
            Some((volume, why)) if self.main.iter().chain(&self.init).all(|machine| machine.id.is_none()) => {
                let message = format!("MountVolume.SetUp failed for volume {volume:?} : {why}");
                if self.mount_failure.as_ref() != Some(&message) {
                    self.kubelet.recorder.warning(&*self.pod, "FailedMount", message.clone());
                    self.mount_failure = Some(message);
                }
                return;
            }
            _ => self.mount_failure = None,
        }
        if self.is_complete() {
            self.stop_sidecars();
            return;
        }
        let begun = self.main.iter().any(|machine| machine.id.is_some());
        for at in 0..self.init.len() {
            if !self.init[at].is_initialized() {
                self.begin(true, at);
                if !begun {
                    return;
                }
            }
        }
        for at in 0..self.main.len() {
            self.begin(false, at);
        }
    }

    fn retry_references(&mut self) {
        self.awaits_reference = false;
    }

    /// Asks every container to end, and kills them when the grace period is over. Sidecars serve the others to their
    /// end: they are asked after them.
    fn stop(&mut self, grace: Option<i64>) {
        self.stopping = true;
        self.ends_at = Some(Instant::now() + self.grace(grace));
        let waits = |machine: &Machine| machine.is_sidecar() && machine.signal.is_some();
        for init in [true, false] {
            for at in 0..self.machines(init).len() {
                if !(init && waits(&self.init[at])) {
                    self.stop_container(init, at, grace);
                }
            }
        }
    }

    /// Asks the last sidecar that runs to end: they go in the opposite order to that in which they came.
    fn stop_last_sidecar(&mut self) {
        if let Some(at) = self.init.iter().rposition(Machine::is_running) {
            let left = self.ends_at.map(|end| end.saturating_duration_since(Instant::now()));
            let left = left.map(|left| i64::try_from(left.as_secs()).unwrap_or(i64::MAX).max(LEAST_GRACE));
            self.stop_container(true, at, left);
        }
    }

    fn stop_container(&mut self, init: bool, at: usize, grace: Option<i64>) {
        let machine = &self.machines(init)[at];
        let asked = machine.signal.as_ref().is_some_and(|signal| *signal.borrow() != Signal::None);
        if machine.is_running() && machine.signal.is_some() && !asked {
            let name = machine.spec.name.clone();
            self.event(&name, init, "Normal", "Killing", format!("Stopping container {name}"));
        }
        self.end_container(init, at, grace);
    }

    /// How long containers have to end: so many seconds, or as the pod says.
    fn grace(&self, grace: Option<i64>) -> Duration {
        let own = || self.pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
        let grace = grace.or_else(own).unwrap_or(30);
        Duration::from_secs(u64::try_from(grace).unwrap_or_default())
    }

    fn end_container(&mut self, init: bool, at: usize, grace: Option<i64>) {
        let now = self.kubelet.now();
        let grace = self.grace(grace);
        let machine = &mut self.machines(init)[at];
        let life = machine.life;
        let Some(signal) = machine.signal.as_ref().filter(|_| machine.is_running()) else {
            if let State::Running { .. } = machine.state {
                machine.end(Exit { code: 143, ..Exit::default() }, now);
            }
            return;
        };
        if *signal.borrow() != Signal::None {
            return;
        }
        signal.send_replace(Signal::Terminate);
        self.push(Which { init, at, life }, tokio::time::sleep(grace).map(|()| What::KillNow));
    }

    /// Whether the pod's work is done: no container but its sidecars will run again.
    fn is_complete(&self) -> bool {
        let policy = self.restart_policy();
        policy != "Always"
            && self
                .main
                .iter()
                .all(|machine| machine.has_succeeded() || (machine.is_terminated() && policy == "Never"))
    }

    fn stop_sidecars(&mut self) {
        for at in 0..self.init.len() {
            if self.init[at].is_running() {
                self.stop_container(true, at, None);
            }
        }
    }

    /// How long the pod may still be active, where its spec limits it.
    fn deadline(&self) -> Option<Duration> {
        if self.stopping || pods::is_finished(&self.pod) {
            return None;
        }
        let seconds = self.pod.spec.as_ref()?.active_deadline_seconds?;
        let start = self.written.start_time.as_ref()?.0;
        let passed = self.kubelet.context.now().duration_since(start);
        let left = jiff::SignedDuration::from_secs(seconds).checked_sub(passed)?;
        Some(Duration::try_from(left).unwrap_or_default())
    }

    fn exceed_deadline(&mut self) {
        let (reason, message) =
            ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline");
        self.failure = Some((reason, message));
        self.kubelet.recorder.normal(&*self.pod, reason, message.to_owned());
        self.stop(None);
    }

    /// Gives up what is kept for a pod that is gone.
    fn forget(&mut self) {
        // The containers go first: nothing may use what is taken away.
        self.steps.clear();
        for machine in self.init.iter().chain(&self.main) {
            let last = machine.last.as_ref().and_then(|last| last.container_id.as_ref());
            for id in machine.id.iter().chain(last) {
                self.kubelet.logs.forget(id);
            }
        }
        self.kubelet.runtime.gone(self.pod.metadata.uid.as_deref().unwrap_or_default());
    }

    /// The pod's last words and its removal.
    async fn bury(&mut self) -> Result<(), Error> {
        // Whoever holds a finalizer on the pod wants to know how it ended; nobody else sees it again.
        if self.pod.metadata.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty()) {
            self.tell().await?;
        }
        if self.buried || self.pod.metadata.deletion_grace_period_seconds == Some(0) {
            return Ok(());
        }
        self.kubelet.pods.delete_with(&self.pod, DeleteParams::default().grace_period(0)).await?;
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
        match self.kubelet.pods.patch_status(&ObjectKey::of(&self.pod.metadata), &patch).await {
            Ok(_) => self.written = status,
            Err(error) if error.has_reason("NotFound") => self.written = status,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    pub(super) fn restart_policy(&self) -> &str {
        self.pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()).unwrap_or("Always")
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
