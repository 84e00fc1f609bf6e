//! Pods that really run: a pod all of whose images are mapped to programs of this machine is run as processes.
//!
//! There are no containers: a process runs as whoever runs the drydock, on this machine's network, and sees this
//! machine's files. What a pod's containers would have of their own is given to them in a private directory; the
//! rules are those of [`root`] for paths, of [`environment`] for variables and of [`inside`] for the program.
//! Every other pod is simulated.
//!
//! * `$WINDLASS_ROOT` is the container's root: a volume mounted at `/etc/app` is at `$WINDLASS_ROOT/etc/app`, and
//!   mount paths in the pod's own text are rewritten to that. It is also `HOME` and, unless the pod says
//!   otherwise, the working directory; `TMPDIR` is within it.
//! * `KUBERNETES_SERVICE_HOST` and `_PORT` are where the drydock is served on loopback. Clients that take the
//!   service account's files from their fixed path cannot find them; `KUBECONFIG` names a kubeconfig with that
//!   token, which clients look at first.
//! * Ports are this machine's. To its processes, a pod's `status.podIP` is an address of this machine that no other
//!   pod has (on Linux; elsewhere it is 127.0.0.1): two pods that listen on one port of all addresses are in each
//!   other's way, two that listen on their own are not.
//! * Users, capabilities, resource limits and read-only mounts are not enforced.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Container, Pod, Secret};
use kube::Client;
use tokio::sync::watch;
use windlass_machinery::Context;

use super::images::Images;
use super::runtime::{Launch, LaunchError, Running, Runtime, Simulated};
use crate::controllers::informer::{Informer, ObjectKey, Outline};
use crate::logs::Log;

mod atomic;
mod environment;
mod expansion;
mod fields;
mod guard;
mod inside;
mod kubeconfig;
mod objects;
mod probe;
mod root;
mod supervisor;
#[cfg(test)]
mod tests;
mod volumes;

use atomic::make_directory;
use guard::Guard;
use inside::Inside;
use objects::Objects;
use root::Root;
use supervisor::{Aborting, Plan};
use volumes::Volumes;

/// How long to wait before volumes that could not be brought up to date are tried again.
const RETRY: Duration = Duration::from_secs(5);

/// Where the API is served, once it is. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct ApiAddress {
    address: Arc<Mutex<Option<SocketAddr>>>,
}

impl ApiAddress {
    /// Says where.
    pub fn set(&self, address: SocketAddr) {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner) = Some(address);
    }

    /// Where, if anywhere.
    #[must_use]
    pub fn get(&self) -> Option<SocketAddr> {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the runtime is made of.
pub(super) struct Parts {
    pub(super) simulated: Simulated,
    pub(super) images: Images,
    pub(super) client: Client,
    pub(super) api: ApiAddress,
    pub(super) config_maps: Arc<Informer<Outline<ConfigMap>>>,
    pub(super) secrets: Arc<Informer<Outline<Secret>>>,
    /// Counts changes of ConfigMaps and Secrets.
    pub(super) references: watch::Receiver<u64>,
    pub(super) context: Context,
}

/// Runs pods as processes, and simulates those that it cannot run.
pub(super) struct Processes {
    shared: Arc<Shared>,
}

struct Shared {
    parts: Parts,
    objects: Objects,
    guard: Mutex<State>,
    sandboxes: Mutex<BTreeMap<String, Arc<Sandbox>>>,
}

/// The guard is started with the first process.
enum State {
    Idle,
    Guarded(Arc<Guard>),
    Ended,
}

/// What a pod has on this machine.
struct Sandbox {
    directory: PathBuf,
    pod: watch::Sender<Arc<Pod>>,
    volumes: tokio::sync::Mutex<Volumes>,
    follower: Mutex<Option<Aborting>>,
}

impl Processes {
    pub(super) fn new(parts: Parts) -> Self {
        let objects = Objects::new(parts.client.clone());
        let (guard, sandboxes) = (Mutex::new(State::Idle), Mutex::default());
        Self { shared: Arc::new(Shared { parts, objects, guard, sandboxes }) }
    }
}

impl fmt::Debug for Processes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Processes").field("images", &self.shared.parts.images).finish_non_exhaustive()
    }
}

impl Runtime for Processes {
    fn pull(&self, image: &str) -> BoxFuture<'static, Result<(), String>> {
        self.shared.parts.simulated.pull(image)
    }

    fn start(&self, launch: Launch<'_>) -> BoxFuture<'static, Result<Running, LaunchError>> {
        if !self.is_real(launch.pod) {
            return self.shared.parts.simulated.start(launch);
        }
        let shared = Arc::clone(&self.shared);
        let (pod, container, log) = (Arc::clone(launch.pod), launch.container.clone(), launch.log);
        async move { shared.start(&pod, container, log).await }.boxed()
    }

    fn is_real(&self, pod: &Pod) -> bool {
        let parts = &self.shared.parts;
        let spec = pod.spec.as_ref();
        let containers = spec
            .into_iter()
            .flat_map(|spec| spec.containers.iter().chain(spec.init_containers.iter().flatten()));
        let mut images = containers.map(|container| container.image.as_deref().unwrap_or_default());
        // A behaviour that was set for an image wins: a test wants it to fail.
        images.all(|image| parts.images.of(image).is_some() && parts.simulated.behaviours.of(image).is_none())
    }

    fn changed(&self, pod: &Arc<Pod>) {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let sandboxes = self.shared.sandboxes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sandbox) = sandboxes.get(uid) {
            sandbox.pod.send_replace(Arc::clone(pod));
        }
    }

    fn gone(&self, uid: &str) {
        let sandbox = self.shared.sandboxes.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
        if let Some(sandbox) = sandbox {
            sandbox.stop_following();
            let directory = sandbox.directory.clone();
            if let State::Guarded(guard) = &*self.shared.guard.lock().unwrap_or_else(PoisonError::into_inner)
            {
                guard.sweep(&directory);
            }
            tokio::task::spawn_blocking(move || {
                if let Err(error) = std::fs::remove_dir_all(&directory) {
                    tracing::debug!(%error, "failed to remove a pod's directory; it goes with the drydock");
                }
            });
        }
    }

    fn end(&self) -> BoxFuture<'static, ()> {
        let sandboxes =
            std::mem::take(&mut *self.shared.sandboxes.lock().unwrap_or_else(PoisonError::into_inner));
        for sandbox in sandboxes.values() {
            sandbox.stop_following();
        }
        let state = std::mem::replace(
            &mut *self.shared.guard.lock().unwrap_or_else(PoisonError::into_inner),
            State::Ended,
        );
        async move {
            let State::Guarded(guard) = state else { return };
            if let Err(error) = tokio::task::spawn_blocking(move || guard.end()).await {
                tracing::warn!(%error, "failed to end the guard of the pods' processes");
            }
        }
        .boxed()
    }
}

impl Shared {
    async fn start(
        self: Arc<Self>,
        pod: &Arc<Pod>,
        container: Container,
        log: Log,
    ) -> Result<Running, LaunchError> {
        let create = |error: String| LaunchError::Create(error);
        let failed = |error: std::io::Error| LaunchError::Create(error.to_string());
        let image = container.image.as_deref().unwrap_or_default();
        let program = self.parts.images.of(image);
        let program = program.ok_or_else(|| create(format!("image {image:?} is not mapped any more")))?;
        let guard = self.guard().map_err(|error| create(format!("failed to start the guard: {error}")))?;
        let sandbox = self.sandbox(&guard, pod);
        let volumes = self.write_volumes(&sandbox).await.map_err(LaunchError::Mount)?;
        self.follow(&sandbox);

        let root = Root::new(sandbox.directory.join("root").join(&container.name), &container);
        let api = self.parts.api.get();
        let mut variables =
            environment::build(&self.objects, pod, &container, &root, api).await.map_err(create)?;
        root.make(&container, &volumes, &variables).map_err(failed)?;
        if let Some(file) = kubeconfig::write(pod, &container, &root, api).map_err(failed)? {
            variables.entry("KUBECONFIG".to_owned()).or_insert(file.to_string_lossy().into_owned());
        }
        let directory = root.place(container.working_dir.as_deref().unwrap_or_default());
        make_directory(&directory).map_err(failed)?;
        let grace = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds).unwrap_or(30);
        let grace = Duration::from_secs(u64::try_from(grace).unwrap_or_default());
        let address = fields::address(pod);
        let inside = Inside { guard, program, root, variables, directory, address };
        Ok(supervisor::start(Plan { inside, container, grace, log, context: self.parts.context.clone() }))
    }

    fn guard(&self) -> std::io::Result<Arc<Guard>> {
        let mut state = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
        match &*state {
            State::Guarded(guard) => Ok(Arc::clone(guard)),
            State::Ended => Err(std::io::Error::other("the drydock is stopping")),
            State::Idle => {
                let guard = Arc::new(Guard::start()?);
                *state = State::Guarded(Arc::clone(&guard));
                Ok(guard)
            }
        }
    }

    fn sandbox(&self, guard: &Guard, pod: &Arc<Pod>) -> Arc<Sandbox> {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let directory = guard.directory().join("pods").join(&uid);
        let claims = guard.directory().join("claims");
        let mut sandboxes = self.sandboxes.lock().unwrap_or_else(PoisonError::into_inner);
        let sandbox = sandboxes.entry(uid).or_insert_with(|| {
            let volumes = Volumes::new(self.objects.clone(), directory.join("volumes"), claims);
            Arc::new(Sandbox {
                directory,
                pod: watch::channel(Arc::clone(pod)).0,
                volumes: tokio::sync::Mutex::new(volumes),
                follower: Mutex::default(),
            })
        });
        Arc::clone(sandbox)
    }

    /// Brings a pod's volumes up to date; they are in the directory returned.
    async fn write_volumes(&self, sandbox: &Sandbox) -> Result<PathBuf, String> {
        let pod = sandbox.pod.borrow().clone();
        let mut volumes = sandbox.volumes.lock().await;
        volumes.write(&pod, self.parts.context.now()).await?;
        Ok(volumes.path().to_owned())
    }

    /// Keeps a pod's volumes up to date from now on.
    fn follow(self: &Arc<Self>, sandbox: &Arc<Sandbox>) {
        let mut follower = sandbox.follower.lock().unwrap_or_else(PoisonError::into_inner);
        if follower.is_none() {
            let (shared, sandbox) = (Arc::clone(self), Arc::clone(sandbox));
            *follower = Some(Aborting(tokio::spawn(async move { shared.follow_changes(&sandbox).await })));
        }
    }

    async fn follow_changes(&self, sandbox: &Sandbox) {
        let mut references = self.parts.references.clone();
        let mut pods = sandbox.pod.subscribe();
        let mut seen = None;
        loop {
            references.borrow_and_update();
            let pod = pods.borrow_and_update().clone();
            let now = self.parts.context.now();
            let renewal = sandbox.volumes.lock().await.renewal();
            let versions =
                (self.versions(&pod), pod.metadata.labels.clone(), pod.metadata.annotations.clone());
            let mut wait =
                renewal.map(|time| Duration::try_from(time.duration_since(now)).unwrap_or_default());
            if seen.as_ref() != Some(&versions) || wait.is_some_and(|wait| wait.is_zero()) {
                match self.write_volumes(sandbox).await {
                    Ok(_) => {
                        seen = Some(versions);
                        continue;
                    }
                    // What is there stays until it can be replaced.
                    Err(error) => {
                        tracing::debug!(%error, "failed to bring volumes up to date, will try again");
                        wait = Some(RETRY);
                    }
                }
            }
            let waited = async {
                match wait {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Ok(()) = references.changed() => {}
                Ok(()) = pods.changed() => {}
                () = waited => {}
            }
        }
    }

    /// The versions of what a pod's volumes show.
    fn versions(&self, pod: &Pod) -> Vec<Option<String>> {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let (maps, secrets) = volumes::shown(pod);
        let maps = maps.iter().map(|name| {
            let map = self.parts.config_maps.get(&ObjectKey::new(namespace, name))?;
            map.metadata.resource_version.clone()
        });
        let secrets = secrets.iter().map(|name| {
            let secret = self.parts.secrets.get(&ObjectKey::new(namespace, name))?;
            secret.metadata.resource_version.clone()
        });
        maps.chain(secrets).collect()
    }
}

impl Sandbox {
    fn stop_following(&self) {
        drop(self.follower.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}
