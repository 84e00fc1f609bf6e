//! A container's process from its start to its end: signals, hooks, probes, output, exit code, last words.

use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{self, StreamExt as _};
use k8s_openapi::api::core::v1::{Container, LifecycleHandler};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::Child;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use windlass_machinery::Context;

use super::super::runtime::{Exit, News, Running, Signal};
use super::guard::Group;
use super::inside::Inside;
use super::probe::{self, Verdict};
use crate::logs::Log;

/// A line longer than this is written in pieces, as container runtimes do.
const LINE: usize = 16 * 1024;
/// The most that a hook may take; the container's end ends it too.
const HOOK: Duration = Duration::from_secs(24 * 3600);
/// How long output may come after the end, from what the process left behind.
const LAST_OUTPUT: Duration = Duration::from_secs(1);
/// The most that is kept of a container's last words, from its file and from its log.
const MESSAGE: u64 = 4096;
const LOG_MESSAGE: usize = 2048;
const LOG_LINES: usize = 80;

/// A container's process to start.
pub(super) struct Plan {
    pub(super) inside: Inside,
    pub(super) container: Container,
    /// How long it has to end when a probe of it failed.
    pub(super) grace: Duration,
    pub(super) log: Log,
    pub(super) context: Context,
}

/// Starts the process. One that cannot be started has ended with 128, as container runtimes have it.
pub(super) fn start(plan: Plan) -> Running {
    let (signal, asked) = watch::channel(Signal::None);
    let words = plan.inside.words(&plan.container);
    let (mut child, group) = match plan.inside.spawn(&words) {
        Ok(spawned) => spawned,
        Err(error) => {
            let program = words.first().map(String::as_str).unwrap_or_default();
            let message =
                format!("failed to start container {:?}: exec {program}: {error}", plan.container.name);
            let event =
                News::Event { kind: "Warning", reason: "Failed", message: format!("Error: {message}") };
            let exit = Exit { code: 128, reason: Some("StartError"), message: Some(message) };
            return Running { news: stream::iter([event, News::Exited(exit)]).boxed(), signal };
        }
    };
    let mut pumps = JoinSet::new();
    if let Some(output) = child.stdout.take() {
        pumps.spawn(pump(output, plan.log.clone(), plan.context.clone()));
    }
    if let Some(output) = child.stderr.take() {
        pumps.spawn(pump(output, plan.log.clone(), plan.context.clone()));
    }
    let (news, heard) = mpsc::unbounded_channel();
    // What needs no probe is told with the start.
    if plan.container.startup_probe.is_none() {
        let _ = news.send(News::Started);
        if plan.container.readiness_probe.is_none() {
            let _ = news.send(News::Ready(true));
        }
    }
    let life = Life { child, group, asked, news, pumps, log: plan.log };
    let task = Aborting(tokio::spawn(life.live(Arc::new(plan.inside), plan.container, plan.grace)));
    let news = stream::unfold((heard, task), |(mut heard, task)| async move {
        heard.recv().await.map(|news| (news, (heard, task)))
    });
    Running { news: news.boxed(), signal }
}

/// A task that ends when it is dropped.
#[derive(Debug)]
pub(super) struct Aborting(pub(super) JoinHandle<()>);

impl Drop for Aborting {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Life {
    child: Child,
    group: Group,
    asked: watch::Receiver<Signal>,
    news: mpsc::UnboundedSender<News>,
    pumps: JoinSet<()>,
    log: Log,
}

impl Life {
    async fn live(mut self, inside: Arc<Inside>, container: Container, grace: Duration) {
        let (told, mut verdicts) = mpsc::unbounded_channel();
        let mut probes = probe::start(&container, &inside, told);
        let hooks = container.lifecycle.as_ref();
        let pre_stop = hooks.and_then(|hooks| hooks.pre_stop.as_ref());
        let post_start = hooks.and_then(|hooks| hooks.post_start.as_ref());
        let mut starting = run_hook(post_start, &inside, &container).boxed();
        let mut is_starting = post_start.is_some();
        let mut ending: BoxFuture<'_, ()> = std::future::pending().boxed();
        let mut is_ending = false;
        let status = loop {
            tokio::select! {
                biased;
                status = self.child.wait() => break status,
                Ok(()) = self.asked.changed() => match *self.asked.borrow_and_update() {
                    Signal::None => {}
                    Signal::Terminate if is_ending => {}
                    Signal::Terminate => {
                        is_ending = true;
                        probes.abort_all();
                        // Whoever asked kills it when its time is over.
                        ending = end(&self.group, &inside, &container, pre_stop, None).boxed();
                    }
                    Signal::Kill => self.group.kill(),
                },
                Some(verdict) = verdicts.recv(), if !is_ending => {
                    for news in news_of(&verdict, &container.name) {
                        let _ = self.news.send(news);
                    }
                    if let Verdict::Dead { grace: own, .. } = verdict {
                        is_ending = true;
                        probes.abort_all();
                        let grace = own.unwrap_or(grace);
                        ending = end(&self.group, &inside, &container, pre_stop, Some(grace)).boxed();
                    }
                }
                outcome = &mut starting, if is_starting => {
                    is_starting = false;
                    if let Err(why) = outcome {
                        let message = format!("PostStartHook failed: {why}");
                        let reason = "FailedPostStartHook";
                        let _ = self.news.send(News::Event { kind: "Warning", reason, message });
                        self.group.kill();
                    }
                }
                () = &mut ending => ending = std::future::pending().boxed(),
            }
        };
        drop((starting, ending, probes));
        // A container ends with its first process.
        drop(self.group);
        let last = async { while self.pumps.join_next().await.is_some() {} };
        if tokio::time::timeout(LAST_OUTPUT, last).await.is_err() {
            tracing::debug!(container = %container.name, "what left the process group holds the output");
        }
        let code = status.as_ref().map_or(137, code_of);
        let message = last_words(&inside.root.termination_log(), &container, code, &self.log);
        let _ = self.news.send(News::Exited(Exit { code, reason: None, message }));
    }
}

/// Runs the hook, asks the process to end and, if a time is given, kills it after that.
async fn end(
    group: &Group,
    inside: &Inside,
    container: &Container,
    pre_stop: Option<&LifecycleHandler>,
    grace: Option<Duration>,
) {
    let asking = async {
        if let Err(error) = run_hook(pre_stop, inside, container).await {
            tracing::debug!(container = %container.name, %error, "a preStop hook failed");
        }
        group.terminate();
        std::future::pending::<()>().await;
    };
    match grace {
        Some(grace) => {
            let _ = tokio::time::timeout(grace, asking).await;
            group.kill();
        }
        None => asking.await,
    }
}

async fn run_hook(
    hook: Option<&LifecycleHandler>,
    inside: &Inside,
    container: &Container,
) -> Result<(), String> {
    let Some(hook) = hook else { return Ok(()) };
    if let Some(exec) = &hook.exec {
        return inside.exec(exec.command.as_deref().unwrap_or_default(), HOOK).await;
    }
    if let Some(get) = &hook.http_get {
        return probe::http::get(get, container, &inside.address).await;
    }
    if let Some(sleep) = &hook.sleep {
        tokio::time::sleep(Duration::from_secs(u64::try_from(sleep.seconds).unwrap_or_default())).await;
    }
    Ok(())
}

fn news_of(verdict: &Verdict, container: &str) -> Vec<News> {
    let event = |kind, reason, message| News::Event { kind, reason, message };
    match verdict {
        Verdict::Started => vec![News::Started],
        Verdict::Ready(ready) => vec![News::Ready(*ready)],
        Verdict::Failed(message) => vec![event("Warning", "Unhealthy", message.clone())],
        Verdict::Dead { probe, .. } => {
            let message = format!("Container {container} failed {probe} probe, will be restarted");
            vec![event("Normal", "Killing", message)]
        }
    }
}

/// Copies output to the log, line by line.
async fn pump(output: impl AsyncRead + Unpin, log: Log, context: Context) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    loop {
        let read = match output.fill_buf().await {
            Ok([]) | Err(_) => break,
            Ok(read) => read,
        };
        let (taken, whole) = match read.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (read.len(), false),
        };
        line.extend_from_slice(&read[..taken]);
        output.consume(taken);
        if whole || line.len() >= LINE {
            log.write(context.now(), Bytes::from(std::mem::take(&mut line)));
        }
    }
    if !line.is_empty() {
        log.write(context.now(), Bytes::from(line));
    }
}

fn code_of(status: &ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(137)
}

/// What a container leaves in its file or, if it asks for that and failed, the end of its log.
fn last_words(file: &Path, container: &Container, code: i32, log: &Log) -> Option<String> {
    let mut text = Vec::new();
    let read = std::fs::File::open(file).and_then(|file| file.take(MESSAGE).read_to_end(&mut text));
    if let Err(error) = read {
        tracing::debug!(container = %container.name, %error, "failed to read the termination message");
    }
    let fallback = container.termination_message_policy.as_deref() == Some("FallbackToLogsOnError");
    let text = match (text.is_empty(), fallback && code != 0) {
        (true, true) => log.tail(LOG_LINES, LOG_MESSAGE),
        _ => String::from_utf8_lossy(&text).into_owned(),
    };
    Some(text).filter(|text| !text.is_empty())
}
