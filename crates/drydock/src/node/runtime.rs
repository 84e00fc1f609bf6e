//! The seam below the node: what pulls images and runs containers.

use std::fmt;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::{Container, Pod};
use tokio::sync::watch;

use crate::logs::Log;

mod simulated;

pub use simulated::Simulated;

/// Runs containers for the node.
pub trait Runtime: fmt::Debug + Send + Sync + 'static {
    /// Makes an image present; the error is the message of the registry.
    fn pull(&self, image: &str) -> BoxFuture<'static, Result<(), String>>;

    /// Creates and starts a container.
    fn start(&self, launch: Launch<'_>) -> BoxFuture<'static, Result<Running, LaunchError>>;

    /// Whether a pod is really run, so that everything it refers to must be there first.
    fn is_real(&self, _pod: &Pod) -> bool {
        false
    }

    /// Tells of a pod's new labels and annotations.
    fn changed(&self, _pod: &Arc<Pod>) {}

    /// Tells that a pod is gone: nothing of it is needed any more.
    fn gone(&self, _uid: &str) {}

    /// Ends everything that runs and takes away what it left.
    fn end(&self) -> BoxFuture<'static, ()> {
        futures::future::ready(()).boxed()
    }
}

/// A container to start.
#[derive(Debug)]
pub struct Launch<'a> {
    /// Its pod.
    pub pod: &'a Arc<Pod>,
    /// The container.
    pub container: &'a Container,
    /// What it is for.
    pub purpose: Purpose,
    /// Where its output goes.
    pub log: Log,
}

/// Why a container could not be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// A volume could not be set up.
    #[error("{0}")]
    Mount(String),
    /// It could not be made.
    #[error("{0}")]
    Create(String),
}

/// What a container is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It is to run until it is stopped.
    Serve,
    /// It is to end, so that the pod's other containers can start.
    Initialize,
    /// It is to end, and the pod with it, as those of Jobs do.
    Complete,
}

/// A running container.
pub struct Running {
    /// What happens to it; dropping this kills it.
    pub news: BoxStream<'static, News>,
    /// Asks it to end.
    pub signal: watch::Sender<Signal>,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}

/// What happens to a running container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// It has come up: its startup probe succeeded, or it has none.
    Started,
    /// Whether it is ready, from now on.
    Ready(bool),
    /// Something that the pod's events tell.
    Event {
        /// `Normal` or `Warning`.
        kind: &'static str,
        /// The reason.
        reason: &'static str,
        /// The message.
        message: String,
    },
    /// It ended. The last news of a container.
    Exited(Exit),
}

/// How a container ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code; 128 and more for a signal.
    pub code: i32,
    /// Why, where the code does not say it.
    pub reason: Option<&'static str>,
    /// Its last words.
    pub message: Option<String>,
}

/// What a container was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// To go on.
    None,
    /// To end (SIGTERM).
    Terminate,
    /// To be gone (SIGKILL).
    Kill,
}
