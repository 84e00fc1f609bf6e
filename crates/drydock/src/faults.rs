//! Faults that tests switch on: errors, delays, lost answers, broken watches, stale reads, crash points.
//!
//! A [`Fault`] says whose requests it hits ([`Target`]), how often, and what happens to them ([`Effect`]). Nothing
//! is hit until one is added; then each request is looked at once, before the server sees it.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use http::StatusCode;
use tokio::sync::watch;
use windlass_machinery::Context;

use crate::store::Revision;

/// Which requests a fault hits. What is not said does not matter.
#[derive(Clone, Debug, Default)]
pub struct Target {
    client: Option<String>,
    verb: Option<String>,
    resource: Option<String>,
    name: Option<String>,
}

impl Target {
    /// Every request.
    #[must_use]
    pub fn any() -> Self {
        Self::default()
    }

    /// Requests of this client, by its user agent.
    #[must_use]
    pub fn client(self, client: &str) -> Self {
        Self { client: Some(client.to_owned()), ..self }
    }

    /// Requests of this verb (`get`, `patch`, …); `write` is every verb that changes something.
    #[must_use]
    pub fn verb(self, verb: &str) -> Self {
        Self { verb: Some(verb.to_owned()), ..self }
    }

    /// Requests for this resource, by its plural name, a subresource after a slash (`deployments/status`).
    #[must_use]
    pub fn resource(self, resource: &str) -> Self {
        Self { resource: Some(resource.to_owned()), ..self }
    }

    /// Requests for the object of this name.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    fn hits(&self, asked: &Asked<'_>) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        let verb = match self.verb.as_deref() {
            Some("write") => asked.is_write(),
            Some(verb) => verb == asked.verb,
            None => true,
        };
        verb && is(&self.client, asked.client)
            && is(&self.resource, &asked.resource)
            && is(&self.name, asked.name.unwrap_or_default())
    }
}

/// What happens to a request that is hit.
#[derive(Clone, Debug)]
pub enum Effect {
    /// It is answered with this status and reason, and not carried out.
    Refuse(StatusCode, &'static str),
    /// It is carried out this much later.
    Delay(Duration),
    /// It is carried out, and its answer is lost: the client sees a server error.
    LoseAnswer,
    /// It is neither carried out nor answered.
    Hang,
    /// A watch ends after so many events.
    CutWatch(usize),
    /// A watch delivers nothing any more, and stays open.
    StallWatch,
    /// A watch delivers every event twice.
    DuplicateWatch,
    /// A watch is told that its history is gone.
    ExpireWatch,
}

/// A fault: whom it hits, how often, and with what.
#[derive(Clone, Debug)]
pub struct Fault {
    target: Target,
    effect: Effect,
    times: Option<u64>,
    skip: u64,
    chance: Option<(u64, u64)>,
}

impl Fault {
    /// A fault that hits every request of the target.
    #[must_use]
    pub fn new(target: Target, effect: Effect) -> Self {
        Self { target, effect, times: None, skip: 0, chance: None }
    }

    /// It hits only so many requests.
    #[must_use]
    pub fn times(self, times: u64) -> Self {
        Self { times: Some(times), ..self }
    }

    /// It lets so many requests of the target pass first.
    #[must_use]
    pub fn after(self, skip: u64) -> Self {
        Self { skip, ..self }
    }

    /// It hits `hits` of `of` requests, at random (from the drydock's seed).
    #[must_use]
    pub fn chance(self, hits: u64, of: u64) -> Self {
        Self { chance: Some((hits, of)), ..self }
    }
}

/// The faults of a drydock. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Whether anything is switched on; all that a request costs otherwise.
    active: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    faults: Vec<Armed>,
    frozen: Vec<Frozen>,
    crash: Option<CrashPoint>,
}

#[derive(Debug)]
struct Armed {
    fault: Fault,
    seen: u64,
    hit: u64,
}

#[derive(Debug)]
struct Frozen {
    client: String,
    revision: Revision,
    thawed: watch::Sender<bool>,
}

#[derive(Debug)]
struct CrashPoint {
    client: String,
    left: u64,
    dead: bool,
}

/// What a request asks for, as far as faults look at it.
#[derive(Clone, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) client: &'a str,
    pub(crate) verb: &'a str,
    pub(crate) resource: Cow<'a, str>,
    pub(crate) name: Option<&'a str>,
}

impl Asked<'_> {
    fn is_write(&self) -> bool {
        matches!(self.verb, "create" | "update" | "patch" | "delete" | "deletecollection")
    }
}

/// What is to become of a request.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) effect: Option<Effect>,
    /// Reads see the cluster as it was then.
    pub(crate) frozen: Option<Revision>,
    /// It is the last write before a crash: carried out, never answered.
    pub(crate) last: bool,
}

impl Faults {
    /// Switches a fault on.
    pub fn add(&self, fault: Fault) {
        self.lock().faults.push(Armed { fault, seen: 0, hit: 0 });
        self.inner.active.store(true, Ordering::Release);
    }

    /// Switches all faults off and thaws every client.
    pub fn clear(&self) {
        let mut state = self.lock();
        for frozen in &state.frozen {
            frozen.thawed.send_replace(true);
        }
        *state = State::default();
        self.inner.active.store(false, Ordering::Release);
    }

    /// From now on the client reads the cluster as it is now, and its watches stand still.
    pub fn freeze(&self, client: &str, at: Revision) {
        let mut state = self.lock();
        state.frozen.retain(|frozen| frozen.client != client);
        let thawed = watch::Sender::new(false);
        state.frozen.push(Frozen { client: client.to_owned(), revision: at, thawed });
        self.inner.active.store(true, Ordering::Release);
    }

    /// The client reads the present again; its watches deliver what they held back.
    pub fn thaw(&self, client: &str) {
        let mut state = self.lock();
        for frozen in state.frozen.iter().filter(|frozen| frozen.client == client) {
            frozen.thawed.send_replace(true);
        }
        state.frozen.retain(|frozen| frozen.client != client);
    }

    /// The client's `n`-th write from now is carried out and never answered, nor is anything after it: the client
    /// has crashed there.
    pub fn crash_after(&self, client: &str, n: u64) {
        self.lock().crash = Some(CrashPoint { client: client.to_owned(), left: n, dead: n == 0 });
        self.inner.active.store(true, Ordering::Release);
    }

    /// Whether the crash point was reached.
    #[must_use]
    pub fn crashed(&self) -> bool {
        self.lock().crash.as_ref().is_some_and(|crash| crash.dead)
    }

    pub(crate) fn verdict(&self, asked: &Asked<'_>, context: &Context) -> Verdict {
        if !self.inner.active.load(Ordering::Acquire) {
            return Verdict::default();
        }
        let mut state = self.lock();
        let mut verdict = Verdict::default();
        if let Some(crash) = state.crash.as_mut().filter(|crash| crash.client == asked.client) {
            if crash.dead {
                verdict.effect = Some(Effect::Hang);
                return verdict;
            }
            if asked.is_write() {
                crash.left -= 1;
                crash.dead = crash.left == 0;
                verdict.last = crash.dead;
            }
        }
        for armed in &mut state.faults {
            if !armed.fault.target.hits(asked) {
                continue;
            }
            armed.seen += 1;
            let due =
                armed.seen > armed.fault.skip && armed.fault.times.is_none_or(|times| armed.hit < times);
            let lucky = armed.fault.chance.is_none_or(|(hits, of)| context.below(of) < hits);
            if due && lucky {
                armed.hit += 1;
                verdict.effect = Some(armed.fault.effect.clone());
                break;
            }
        }
        if !asked.is_write() {
            let frozen = state.frozen.iter().find(|frozen| frozen.client == asked.client);
            verdict.frozen = frozen.map(|frozen| frozen.revision);
        }
        verdict
    }

    /// What tells when the client is thawed, where it is frozen.
    pub(crate) fn hold(&self, client: &str) -> Option<watch::Receiver<bool>> {
        if !self.inner.active.load(Ordering::Acquire) {
            return None;
        }
        let state = self.lock();
        let frozen = state.frozen.iter().find(|frozen| frozen.client == client);
        frozen.map(|frozen| frozen.thawed.subscribe())
    }

    /// Whether the client has crashed: then its watches deliver nothing more.
    pub(crate) fn is_dead(&self, client: &str) -> bool {
        self.inner.active.load(Ordering::Acquire)
            && self.lock().crash.as_ref().is_some_and(|crash| crash.dead && crash.client == client)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream of watch events.
type Events = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// A client's watch as its faults leave it.
pub(crate) fn spoil(events: Events, effect: Option<&Effect>, faults: Faults, client: String) -> Events {
    let held = events.then(move |event| {
        let (faults, client) = (faults.clone(), client.clone());
        async move {
            if faults.is_dead(&client) {
                std::future::pending::<()>().await;
            }
            while let Some(mut thawed) = faults.hold(&client) {
                // A freeze that was lifted is over.
                if thawed.wait_for(|thawed| *thawed).await.is_err() {
                    break;
                }
            }
            event
        }
    });
    match effect {
        Some(Effect::CutWatch(events)) => held.take(*events).boxed(),
        Some(Effect::StallWatch) => futures::stream::pending().boxed(),
        Some(Effect::DuplicateWatch) => {
            held.flat_map(|event| futures::stream::iter([event.clone(), event])).boxed()
        }
        _ => held.boxed(),
    }
}
