//! Where time, randomness, names and ids come from.
//!
//! Nothing in the workspace asks the machine for the time or for random bytes; it asks a [`Context`]. A live
//! context starts at the real time with a random seed; a seeded one starts at a fixed time, so that two runs
//! with one seed are equal, write for write. Time passes as tokio's clock does, so a paused runtime pauses it.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use tokio::time::Instant;

/// Letters and digits of generated names: no vowels and no look-alikes, as Kubernetes has it.
const NAME_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A source of time, randomness, names and ids. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Context {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    origin: Timestamp,
    started: Instant,
    random: Mutex<ChaCha8Rng>,
}

/// A context's time and randomness at one moment, for another to go on from.
#[derive(Clone, Debug)]
pub struct Moment {
    time: Timestamp,
    random: ChaCha8Rng,
}

impl Context {
    /// Real time and a random seed. Call it within a tokio runtime.
    #[must_use]
    pub fn live() -> Self {
        // The one place that asks the machine for the time.
        #[allow(clippy::disallowed_methods)]
        let now = Timestamp::now();
        // Keys come from here: the whole width of the generator's seed is random.
        Self::starting_at(now, ChaCha8Rng::from_rng(&mut rand::rng()))
    }

    /// A fixed start of time and a fixed seed. Call it within a tokio runtime.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        // 2026-01-01T00:00:00Z
        Self::starting_at(Timestamp::constant(1_767_225_600, 0), ChaCha8Rng::seed_from_u64(seed))
    }

    fn starting_at(origin: Timestamp, random: ChaCha8Rng) -> Self {
        Self { inner: Arc::new(Inner { origin, started: Instant::now(), random: Mutex::new(random) }) }
    }

    /// Time and randomness as they are now.
    #[must_use]
    pub fn moment(&self) -> Moment {
        let random = self.inner.random.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Moment { time: self.now(), random }
    }

    /// Goes on from a moment: two that do make the same ids. Call it within a tokio runtime.
    #[must_use]
    pub fn from_moment(moment: &Moment) -> Self {
        Self::starting_at(moment.time, moment.random.clone())
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.inner.started.elapsed()).unwrap_or(SignedDuration::MAX);
        self.inner.origin.checked_add(passed).unwrap_or(Timestamp::MAX)
    }

    /// The time now as the API writes it: RFC 3339 with whole seconds.
    #[must_use]
    pub fn now_text(&self) -> String {
        seconds_text(self.now())
    }

    /// A new object's uid: a version 4 UUID.
    #[must_use]
    pub fn uid(&self) -> String {
        let mut bytes: [u8; 16] = self.random();
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let mut text = String::with_capacity(36);
        for (i, byte) in bytes.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                text.push('-');
            }
            for digit in [byte >> 4, byte & 15] {
                text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
            }
        }
        text
    }

    /// Five characters for a generated name.
    #[must_use]
    pub fn name_suffix(&self) -> String {
        self.text_of(NAME_ALPHABET, 5)
    }

    /// `length` characters drawn evenly from `alphabet`.
    #[must_use]
    pub fn text_of(&self, alphabet: &[u8], length: usize) -> String {
        let mut random = self.inner.random.lock().unwrap_or_else(PoisonError::into_inner);
        (0..length).map(|_| char::from(alphabet[random.random_range(0..alphabet.len())])).collect()
    }

    /// A random number below `bound`, which is taken as at least 1.
    #[must_use]
    pub fn below(&self, bound: u64) -> u64 {
        self.inner.random.lock().unwrap_or_else(PoisonError::into_inner).random_range(0..bound.max(1))
    }

    /// Random bytes.
    #[must_use]
    pub fn random<const N: usize>(&self) -> [u8; N] {
        self.inner.random.lock().unwrap_or_else(PoisonError::into_inner).random()
    }
}

/// A time as the API writes it: RFC 3339 with whole seconds.
#[must_use]
pub fn seconds_text(time: Timestamp) -> String {
    let at = Offset::UTC.to_datetime(time);
    if at.year() < 0 {
        return time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    }
    let mut text = String::with_capacity(20);
    // Every write has times in it, and a format that is read anew each time takes ten times as long.
    let mut put = |number: i16, width: u32, end: char| {
        for place in (0..width).rev() {
            let digit = number.unsigned_abs() / 10u16.pow(place) % 10;
            text.push(char::from_digit(digit.into(), 10).unwrap_or('0'));
        }
        text.push(end);
    };
    put(at.year(), 4, '-');
    put(at.month().into(), 2, '-');
    put(at.day().into(), 2, 'T');
    put(at.hour().into(), 2, ':');
    put(at.minute().into(), 2, ':');
    put(at.second().into(), 2, 'Z');
    text
}

/// A time as the API writes it where it keeps microseconds (Leases, Events).
#[must_use]
pub fn micros_text(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_go_does() {
        for (second, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (951_827_696, "2000-02-29T12:34:56Z"),
            (-62_135_596_800, "0001-01-01T00:00:00Z"),
        ] {
            let time = Timestamp::from_second(second).unwrap();
            assert_eq!(seconds_text(time), text);
            assert_eq!(seconds_text(time), time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        }
    }

    #[tokio::test]
    async fn equal_seeds_give_equal_ids() {
        let (a, b) = (Context::seeded(7), Context::seeded(7));
        assert_eq!(a.uid(), b.uid());
        assert_eq!(a.name_suffix(), b.name_suffix());
        assert_ne!(a.uid(), a.uid());
    }

    #[tokio::test(start_paused = true)]
    async fn a_moment_is_gone_on_from_with_its_time_and_ids() {
        let first = Context::seeded(1);
        tokio::time::advance(std::time::Duration::from_secs(60)).await;
        let moment = first.moment();
        let next = first.uid();
        tokio::time::advance(std::time::Duration::from_secs(60)).await;
        let second = Context::from_moment(&moment);
        assert_eq!((second.now_text(), second.uid()), ("2026-01-01T00:01:00Z".to_owned(), next));
    }

    #[tokio::test(start_paused = true)]
    async fn time_passes_with_tokio() {
        let context = Context::seeded(1);
        assert_eq!(context.now_text(), "2026-01-01T00:00:00Z");
        tokio::time::advance(std::time::Duration::from_secs(86_400)).await;
        assert_eq!(context.now_text(), "2026-01-02T00:00:00Z");
        assert_eq!(micros_text(context.now()), "2026-01-02T00:00:00.000000Z");
    }
}
