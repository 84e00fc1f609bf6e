//! The times of a CronJob's schedule: which one is due, and which comes next.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::CronJob;
use windlass_machinery::cron::Schedule;
use windlass_machinery::go::quote;

/// From this many missed times on, something is wrong with a clock or a schedule.
const MANY: i64 = 100;

pub(super) struct Times {
    schedule: Schedule,
    zone: TimeZone,
    /// The last time a Job was made for, or when the CronJob was made.
    since: Timestamp,
    deadline: Option<SignedDuration>,
}

/// Why a schedule has no times: the reason and message of an Event.
pub(super) struct Unreadable {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Times {
    pub(super) fn of(cron: &CronJob) -> Result<Self, Unreadable> {
        let spec = cron.spec.clone();
        let zone = match spec.time_zone.as_deref() {
            None => TimeZone::UTC,
            Some(name) => TimeZone::get(name).map_err(|_| Unreadable {
                reason: "UnknownTimeZone",
                message: format!("invalid timeZone: {}: unknown time zone {name}", quote(name)),
            })?,
        };
        let schedule = Schedule::parse(&spec.schedule).map_err(|why| Unreadable {
            reason: "UnparseableSchedule",
            message: format!("unparseable schedule: {} : {why}", quote(&spec.schedule)),
        })?;
        let last = cron.status.as_ref().and_then(|status| status.last_schedule_time.as_ref());
        let since = last.or(cron.metadata.creation_timestamp.as_ref()).map_or(Timestamp::MIN, |time| time.0);
        Ok(Self {
            schedule,
            zone,
            since,
            deadline: spec.starting_deadline_seconds.map(SignedDuration::from_secs),
        })
    }

    /// The latest time that has come and for which no Job was made, and whether too many such times were missed.
    pub(super) fn due(&self, now: Timestamp) -> Option<(Timestamp, bool)> {
        let earliest = self.deadline.and_then(|deadline| now.checked_sub(deadline).ok());
        let since = earliest.map_or(self.since, |earliest| earliest.max(self.since));
        let first = self.schedule.next(since, &self.zone).filter(|first| *first <= now)?;
        let second = self.schedule.next(first, &self.zone).filter(|second| *second <= now);
        let Some(second) = second else {
            return Some((first, false));
        };
        let apart = second.duration_since(first).as_secs().max(1);
        let missed = now.duration_since(first).as_secs() / apart + 1;
        Some((self.schedule.latest(since, now, &self.zone).unwrap_or(first), missed > MANY))
    }

    /// The time after those that have come.
    pub(super) fn next(&self, now: Timestamp) -> Option<Timestamp> {
        let last = self.schedule.latest(self.since, now, &self.zone).unwrap_or(self.since);
        self.schedule.next(last, &self.zone)
    }

    /// A time as its Job tells it: in the schedule's time zone.
    pub(super) fn text(&self, time: Timestamp) -> String {
        let text = time.to_zoned(self.zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
        match text.strip_suffix("+00:00") {
            Some(utc) => format!("{utc}Z"),
            None => text,
        }
    }
}
