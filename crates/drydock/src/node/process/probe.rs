//! Probes, really executed: commands in the container, requests to its ports at its address.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::net::TcpStream;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::inside::Inside;

mod grpc;
pub(super) mod http;

/// What the probes of a container find.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It has come up.
    Started,
    /// Whether it is ready, from now on.
    Ready(bool),
    /// One probe failed.
    Failed(String),
    /// A probe failed too often: the container is to be killed.
    Dead {
        probe: &'static str,
        /// How long it has to end, where the probe says it.
        grace: Option<Duration>,
    },
}

/// Starts the probes of a container.
pub(super) fn start(
    container: &Container,
    inside: &Arc<Inside>,
    verdicts: UnboundedSender<Verdict>,
) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let probes = [&container.startup_probe, &container.readiness_probe, &container.liveness_probe];
    if probes.iter().all(|probe| probe.is_none()) {
        return tasks;
    }
    let prober = Prober { container: container.clone(), inside: Arc::clone(inside), verdicts };
    tasks.spawn(async move { prober.run().await });
    tasks
}

struct Prober {
    container: Container,
    inside: Arc<Inside>,
    verdicts: UnboundedSender<Verdict>,
}

impl Prober {
    async fn run(&self) {
        if let Some(probe) = &self.container.startup_probe {
            if !self.rounds(probe, "Startup", true).await {
                self.tell(Verdict::Dead { probe: "startup", grace: own_grace(probe) });
                return;
            }
            self.tell(Verdict::Started);
            if self.container.readiness_probe.is_none() {
                self.tell(Verdict::Ready(true));
            }
        }
        let readiness = async {
            if let Some(probe) = &self.container.readiness_probe {
                let mut ready = false;
                loop {
                    ready = self.until_changed(probe, "Readiness", ready).await;
                    self.tell(Verdict::Ready(ready));
                }
            }
        };
        let liveness = async {
            if let Some(probe) = &self.container.liveness_probe {
                self.rounds(probe, "Liveness", false).await;
                self.tell(Verdict::Dead { probe: "liveness", grace: own_grace(probe) });
            }
        };
        tokio::join!(readiness, liveness);
    }

    fn tell(&self, verdict: Verdict) {
        // Nobody listens any more when the container has ended.
        let _ = self.verdicts.send(verdict);
    }

    /// Probes until it has failed often enough, or, if `once`, succeeded often enough.
    async fn rounds(&self, probe: &Probe, kind: &str, once: bool) -> bool {
        tokio::time::sleep(seconds(probe.initial_delay_seconds, 0)).await;
        self.until(probe, kind, |success| !success || once).await
    }

    /// Probes until the outcome is another than `now`.
    async fn until_changed(&self, probe: &Probe, kind: &str, now: bool) -> bool {
        if !now {
            tokio::time::sleep(seconds(probe.initial_delay_seconds, 0)).await;
        }
        self.until(probe, kind, |success| success != now).await
    }

    /// Probes until an outcome that is wanted has come as often in a row as the probe says.
    async fn until(&self, probe: &Probe, kind: &str, wanted: impl Fn(bool) -> bool) -> bool {
        let mut last = None;
        let mut times = 0;
        loop {
            let begun = Instant::now();
            let outcome = self.check(probe).await;
            let success = outcome.is_ok();
            if let Err(why) = outcome {
                self.tell(Verdict::Failed(format!("{kind} probe failed: {why}")));
            }
            times = if last == Some(success) { times + 1 } else { 1 };
            last = Some(success);
            let enough = if success {
                probe.success_threshold.unwrap_or(1)
            } else {
                probe.failure_threshold.unwrap_or(3)
            };
            if times >= enough && wanted(success) {
                return success;
            }
            tokio::time::sleep_until(begun + seconds(probe.period_seconds, 10)).await;
        }
    }

    async fn check(&self, probe: &Probe) -> Result<(), String> {
        let limit = seconds(probe.timeout_seconds, 1);
        if let Some(exec) = &probe.exec {
            return self.inside.exec(exec.command.as_deref().unwrap_or_default(), limit).await;
        }
        let late = || Err("context deadline exceeded".to_owned());
        if let Some(get) = &probe.http_get {
            return tokio::time::timeout(limit, http::get(get, &self.container, &self.inside.address))
                .await
                .unwrap_or_else(|_| late());
        }
        if let Some(action) = &probe.grpc {
            let check = grpc::check(action, &self.inside.address);
            return tokio::time::timeout(limit, check).await.unwrap_or_else(|_| {
                let within = format!("{}s", limit.as_secs());
                Err(format!(
                    "timeout: failed to connect service \"{}:{}\" within {within}",
                    self.inside.address, action.port
                ))
            });
        }
        let Some(socket) = &probe.tcp_socket else { return Ok(()) };
        let host = socket.host.as_deref().filter(|host| !host.is_empty());
        let number = port(&socket.port, &self.container)?;
        let address = (host.unwrap_or(&self.inside.address), number);
        match tokio::time::timeout(limit, TcpStream::connect(address)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(format!("dial tcp {}:{number}: {}", address.0, said(&error))),
            Err(_) => late(),
        }
    }
}

/// Why there is no connection, as Go says it.
fn said(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        _ => error.to_string(),
    }
}

/// A port by its number, or by its name in the container.
fn port(port: &IntOrString, container: &Container) -> Result<u16, String> {
    let number = match port {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(name) => {
            let ports = container.ports.iter().flatten();
            let named = |port: &&k8s_openapi::api::core::v1::ContainerPort| port.name.as_ref() == Some(name);
            ports.clone().find(named).map(|port| port.container_port).or_else(|| name.parse().ok())
        }
    };
    let number = number.and_then(|number| u16::try_from(number).ok()).filter(|number| *number != 0);
    number.ok_or_else(|| format!("invalid port: {port:?}"))
}

fn own_grace(probe: &Probe) -> Option<Duration> {
    probe
        .termination_grace_period_seconds
        .and_then(|seconds| u64::try_from(seconds).ok())
        .map(Duration::from_secs)
}

/// A number of seconds; not given, or zero, is the default.
fn seconds(number: Option<i32>, default: u64) -> Duration {
    let number = number.and_then(|number| u64::try_from(number).ok()).filter(|number| *number != 0);
    Duration::from_secs(number.unwrap_or(default))
}
