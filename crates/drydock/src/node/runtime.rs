//! The seam below the node: what pulls images and runs containers. The simulated one runs nothing.

use std::fmt;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use k8s_openapi::api::core::v1::{Container, Pod};
use tokio::sync::watch;

use super::behaviour::{Behaviour, Behaviours};

/// Runs containers for the node.
pub trait Runtime: fmt::Debug + Send + Sync + 'static {
    /// Makes an image present; the error is the message of the registry.
    fn pull(&self, image: &str) -> BoxFuture<'static, Result<(), String>>;

    /// Creates and starts a container.
    fn start(
        &self,
        pod: &Pod,
        container: &Container,
        purpose: Purpose,
    ) -> BoxFuture<'static, Result<Running, String>>;
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
    /// Resolves when it is ready.
    pub ready: BoxFuture<'static, ()>,
    /// Resolves with its exit code when it ends.
    pub exit: BoxFuture<'static, i32>,
    /// Asks it to end.
    pub signal: watch::Sender<Signal>,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
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

/// Containers that only seem to run, as the table of behaviours has it.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// The table; images that are not in it serve.
    pub behaviours: Behaviours,
    /// How long containers take to be ready.
    pub ready_after: Duration,
    /// How long containers run that are to end.
    pub completes_after: Duration,
}

impl Runtime for Simulated {
    fn pull(&self, image: &str) -> BoxFuture<'static, Result<(), String>> {
        let behaviour = self.behaviours.of(image);
        let image = image.to_owned();
        async move {
            match behaviour {
                Some(Behaviour::Unpullable) => {
                    Err(format!("failed to pull and unpack image {image:?}: not found"))
                }
                Some(Behaviour::Hang) => std::future::pending().await,
                _ => Ok(()),
            }
        }
        .boxed()
    }

    fn start(
        &self,
        _: &Pod,
        container: &Container,
        purpose: Purpose,
    ) -> BoxFuture<'static, Result<Running, String>> {
        let image = container.image.as_deref().unwrap_or_default();
        let set = self.behaviours.of(image);
        let (ready_after, ends) = match (set, purpose) {
            (Some(Behaviour::Exit { after, code }), _) => (Some(Duration::ZERO), Some((after, code))),
            (Some(Behaviour::Unready | Behaviour::Hang | Behaviour::Unpullable), _) => (None, None),
            (Some(Behaviour::Serve { ready_after }), Purpose::Serve) => (Some(ready_after), None),
            (None, Purpose::Serve) => (Some(self.ready_after), None),
            (_, Purpose::Initialize) => (Some(Duration::ZERO), Some((Duration::ZERO, 0))),
            (_, Purpose::Complete) => (Some(Duration::ZERO), Some((self.completes_after, 0))),
        };
        let (signal, mut asked) = watch::channel(Signal::None);
        let exit = async move {
            let by_itself = async {
                match ends {
                    Some((after, code)) => {
                        wait(after).await;
                        code
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                _ = asked.wait_for(|signal| *signal != Signal::None) => 143,
                code = by_itself => code,
            }
        };
        let ready = async move {
            match ready_after {
                Some(after) => wait(after).await,
                None => std::future::pending().await,
            }
        };
        futures::future::ready(Ok(Running {
            ready: ready.boxed(),
            exit: exit.boxed(),
            signal,
        }))
        .boxed()
    }
}

/// Sleeps, except for no time at all: then it is ready at once, and one status write tells of it all.
async fn wait(duration: Duration) {
    if !duration.is_zero() {
        tokio::time::sleep(duration).await;
    }
}
