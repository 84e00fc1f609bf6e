//! A CheckupSchedule and the Checkups that should exist for one.
//!
//! The rules are those of a CronJob: of several times that were missed only the last counts, and only within
//! `startingDeadlineSeconds`. A Checkup's name holds the time that it is for, so that no crash makes two of one time.

mod spec;

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::ResourceExt as _;
use windlass::{Halt, Kind, Plan, Primary, Query, Status, World};
use windlass_machinery::context::seconds_text;
use windlass_machinery::cron::Schedule;

pub use self::spec::{
    CheckupSchedule, CheckupScheduleSpec, CheckupScheduleStatus, CheckupTemplate, ConcurrencyPolicy,
    TemplateMetadata,
};
use crate::{Checkup, Phase};

/// On a Checkup: the schedule that made it.
pub const SCHEDULE: &str = "kiagnose.io/schedule";
/// On a Checkup: the time that it is for.
pub const SCHEDULED_AT: &str = "kiagnose.io/scheduled-at";

impl Primary for CheckupSchedule {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<Checkup>()]
    }

    fn plan(&self, world: &World, plan: &mut Plan) -> Result<(), Halt> {
        let times = self.times()?;
        let runs = Runs::of(self, world)?;
        let now = world.now();
        let due = if self.spec.suspend { None } else { times.due(self, runs.last(self), now) };
        // One of this time that is there already was made before this could be recorded.
        let due = due.filter(|due| !runs.all.iter().any(|run| run.name_any() == self.child(*due)));
        let due = due
            .filter(|_| self.spec.concurrency_policy != ConcurrencyPolicy::Forbid || runs.active.is_empty());
        if let Some(due) = due {
            plan.add(self.checkup(due)).once();
        }
        let running = match self.spec.concurrency_policy {
            // The newest takes the place of the others.
            ConcurrencyPolicy::Replace => usize::from(due.is_none()),
            ConcurrencyPolicy::Allow | ConcurrencyPolicy::Forbid => usize::MAX,
        };
        let active = runs.active.iter().rev().take(running);
        // What is not named here is deleted.
        active.chain(runs.kept(self)).for_each(|run| drop(plan.keep(run)));
        if let Some(next) = times.next(self, runs.last(self), now).filter(|_| !self.spec.suspend) {
            let left = next.duration_since(now).max(SignedDuration::ZERO);
            plan.look_again(Duration::try_from(left).unwrap_or_default() + Duration::from_millis(10));
        }
        Ok(())
    }

    fn own_status(&self, world: &World, _: &Status, status: &mut CheckupScheduleStatus) -> Result<(), Halt> {
        let runs = Runs::of(self, world)?;
        status.active = runs.active.iter().map(|run| run.name_any()).collect();
        status.last_schedule_time = runs.last(self).map(Time);
        let next = self.times()?.next(self, runs.last(self), world.now()).filter(|_| !self.spec.suspend);
        status.next_schedule_time = next.map(Time);
        let ended = |run: &&Checkup| run.status.as_ref().and_then(|status| status.completion_time.clone());
        if let Some(last) = runs.over.iter().max_by_key(|run| ended(run).map(|time| time.0)) {
            status.last_phase = phase(last).map(|phase| format!("{phase:?}"));
        }
        let successes = runs.over.iter().filter(|run| phase(run) == Some(Phase::Succeeded));
        let last = successes.filter_map(|run| ended(&run)).max_by_key(|time| time.0);
        status.last_successful_time = last.or_else(|| status.last_successful_time.clone());
        Ok(())
    }
}

impl CheckupSchedule {
    fn times(&self) -> Result<Times, Halt> {
        let invalid = |field: &str, why: String| Halt::failed("InvalidSpec", format!("spec.{field}: {why}"));
        let schedule = Schedule::parse(&self.spec.schedule).map_err(|why| invalid("schedule", why))?;
        let zone = match &self.spec.time_zone {
            None => TimeZone::UTC,
            Some(name) => {
                TimeZone::get(name).map_err(|_| invalid("timeZone", format!("unknown time zone {name}")))?
            }
        };
        Ok(Times { schedule, zone })
    }

    /// The name of the Checkup of a time: its minute, or where `@every` has others, its second.
    fn child(&self, time: Timestamp) -> String {
        let seconds = time.as_second();
        let number = if seconds % 60 == 0 { seconds / 60 } else { seconds };
        format!("{}-{number}", self.name_any())
    }

    fn checkup(&self, time: Timestamp) -> Checkup {
        let template = &self.spec.checkup_template;
        let mut labels = template.metadata.labels.clone();
        labels.insert(SCHEDULE.into(), self.name_any());
        let mut annotations = template.metadata.annotations.clone();
        annotations.insert(SCHEDULED_AT.into(), seconds_text(time));
        Checkup {
            metadata: ObjectMeta {
                name: Some(self.child(time)),
                labels: Some(labels),
                annotations: Some(annotations),
                ..ObjectMeta::default()
            },
            spec: template.spec.clone(),
            status: None,
        }
    }
}

/// When Checkups are due.
struct Times {
    schedule: Schedule,
    zone: TimeZone,
}

impl Times {
    /// The first time after now. It is counted from the last one that was, since `@every` has no times of its own.
    fn next(&self, schedule: &CheckupSchedule, last: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
        let made = schedule.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let since = last.or(made).unwrap_or(now);
        let before = self.schedule.latest(since, now, &self.zone).unwrap_or(since);
        self.schedule.next(before, &self.zone)
    }

    /// The last time that is due and not done.
    fn due(&self, schedule: &CheckupSchedule, last: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
        let made = schedule.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let mut since = last.or(made)?;
        if let Some(seconds) = schedule.spec.starting_deadline_seconds {
            let earliest =
                now.checked_sub(Duration::from_secs(u64::try_from(seconds).unwrap_or_default())).ok()?;
            since = since.max(earliest);
        }
        self.schedule.latest(since, now, &self.zone)
    }
}

/// The Checkups of a schedule.
struct Runs {
    all: Vec<Checkup>,
    active: Vec<Checkup>,
    over: Vec<Checkup>,
}

impl Runs {
    fn of(schedule: &CheckupSchedule, world: &World) -> Result<Self, Halt> {
        let mut all: Vec<Checkup> = world.select(&Query::labels([(SCHEDULE, schedule.name_any())]))?;
        all.retain(|run| {
            let owners = run.owner_references().iter();
            owners.into_iter().any(|owner| Some(&owner.uid) == schedule.metadata.uid.as_ref())
        });
        all.sort_by_key(scheduled_at);
        let (over, active) =
            all.iter().cloned().partition(|run| matches!(phase(run), Some(Phase::Succeeded | Phase::Failed)));
        Ok(Self { all, active, over })
    }

    /// The last time for which there is or was one.
    fn last(&self, schedule: &CheckupSchedule) -> Option<Timestamp> {
        let recorded = schedule.status.as_ref().and_then(|status| status.last_schedule_time.clone());
        self.all.iter().filter_map(scheduled_at).chain(recorded.map(|time| time.0)).max()
    }

    /// Those that are over and kept as history: the last ones.
    fn kept<'a>(&'a self, schedule: &CheckupSchedule) -> impl Iterator<Item = &'a Checkup> {
        let of = |wanted: Phase, limit: i64| {
            let matching = self.over.iter().rev().filter(move |run| phase(run) == Some(wanted));
            matching.take(usize::try_from(limit).unwrap_or_default())
        };
        of(Phase::Succeeded, schedule.spec.successful_checkups_history_limit)
            .chain(of(Phase::Failed, schedule.spec.failed_checkups_history_limit))
    }
}

fn phase(run: &Checkup) -> Option<Phase> {
    run.status.as_ref()?.phase
}

fn scheduled_at(run: &Checkup) -> Option<Timestamp> {
    run.annotations().get(SCHEDULED_AT)?.parse().ok()
}
