//! Containers that only seem to run, as the table of behaviours has it.

use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{self, StreamExt as _};
use tokio::sync::watch;

use super::super::behaviour::{Behaviour, Behaviours};
use super::{Exit, Launch, LaunchError, News, Purpose, Running, Runtime, Signal};

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

    fn start(&self, launch: Launch<'_>) -> BoxFuture<'static, Result<Running, LaunchError>> {
        let image = launch.container.image.as_deref().unwrap_or_default();
        let set = self.behaviours.of(image);
        let (ready_after, ends) = match (set, launch.purpose) {
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
            let code = tokio::select! {
                biased;
                _ = asked.wait_for(|signal| *signal != Signal::None) => 143,
                code = by_itself => code,
            };
            News::Exited(Exit { code, ..Exit::default() })
        };
        let ready = async move {
            match ready_after {
                Some(after) => wait(after).await,
                None => std::future::pending().await,
            }
            News::Ready(true)
        };
        let started = stream::once(futures::future::ready(News::Started));
        let news = started.chain(stream::select(stream::once(ready), stream::once(exit)));
        futures::future::ready(Ok(Running { news: news.boxed(), signal })).boxed()
    }
}

/// Sleeps, except for no time at all: then it is ready at once, and one status write tells of it all.
async fn wait(duration: Duration) {
    if !duration.is_zero() {
        tokio::time::sleep(duration).await;
    }
}
