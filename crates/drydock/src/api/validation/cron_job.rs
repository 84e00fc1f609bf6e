//! CronJobs.

use serde_json::Value;
use windlass_machinery::cron::Schedule;
use windlass_machinery::invalid::FieldError;

use super::field::{At, Errors, choice, has, is, not_negative, text};
use super::job;

const SPEC: At<'static> = At::new("spec");

/// A new cron job.
pub(super) fn create(out: &mut Errors, job: &Value) {
    whole_spec(out, &job["spec"], None);
    let name = text(&job["metadata"], "name");
    if name.len() > 52 {
        let at = At::new("metadata");
        out.push(FieldError::invalid(at.child("name"), name, "must be no more than 52 characters"));
    }
}

/// A changed cron job.
pub(super) fn update(out: &mut Errors, new: &Value, old: &Value) {
    whole_spec(out, &new["spec"], Some(&old["spec"]));
}

fn whole_spec(out: &mut Errors, spec: &Value, was: Option<&Value>) {
    let (schedule, at) = (text(spec, "schedule"), &SPEC.child("schedule"));
    if schedule.is_empty() {
        out.push(FieldError::required(at, ""));
    } else {
        let unread = Schedule::parse(without_zone(schedule)).err();
        out.extend(unread.map(|why| FieldError::invalid(at, schedule, why)));
        let had = was.is_some_and(|was| text(was, "schedule").contains("TZ"));
        let why = match (schedule.contains("TZ"), had, has(spec, "timeZone")) {
            (true, true, true) => Some("cannot use both timeZone field and TZ or CRON_TZ in schedule"),
            (true, false, _) => Some("cannot use TZ or CRON_TZ in schedule, use timeZone field instead"),
            _ => None,
        };
        out.extend(why.map(|why| FieldError::invalid(at, schedule, why)));
    }
    not_negative(out, spec, &["startingDeadlineSeconds"], &SPEC);
    if was.is_none_or(|was| was["timeZone"] != spec["timeZone"]) {
        time_zone(out, spec);
    }
    choice(out, spec, "concurrencyPolicy", &SPEC, &["Allow", "Forbid", "Replace"]);
    let at = &SPEC.child("jobTemplate");
    let (inner, at) = (&spec["jobTemplate"]["spec"], &at.child("spec"));
    job::spec(out, inner, at);
    if has(inner, "selector") {
        let why = "`selector` will be auto-generated";
        out.push(FieldError::invalid(at.child("selector"), &inner["selector"], why));
    }
    if is(inner, "manualSelector") {
        out.push(FieldError::not_supported(at.child("manualSelector"), true, ["nil", "false"]));
    }
    not_negative(out, spec, &["successfulJobsHistoryLimit", "failedJobsHistoryLimit"], &SPEC);
}

/// A schedule without the time zone that some are written with: whether it may have one is asked apart.
fn without_zone(schedule: &str) -> &str {
    let zoned = ["TZ=", "CRON_TZ="].iter().any(|prefix| schedule.starts_with(prefix));
    if zoned { schedule.split_once(' ').map_or("", |(_, rest)| rest).trim() } else { schedule }
}

fn time_zone(out: &mut Errors, spec: &Value) {
    let Some(zone) = spec["timeZone"].as_str() else {
        return;
    };
    let at = SPEC.child("timeZone");
    let good = |part: &str| {
        (1..=14).contains(&part.len())
            && !matches!(part, "." | "..")
            && !part.starts_with('-')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || ".-_+".contains(c))
    };
    if zone.is_empty() {
        out.push(FieldError::invalid(at, zone, "timeZone must be nil or non-empty string"));
    } else if !zone.split('/').all(good) {
        out.push(FieldError::invalid(at, zone, format!("unknown time zone {zone}")));
    } else if zone.eq_ignore_ascii_case("local") {
        let why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        out.push(FieldError::invalid(at, zone, why));
    } else if jiff::tz::db().available().next().is_some() && jiff::tz::TimeZone::get(zone).is_err() {
        out.push(FieldError::invalid(at, zone, format!("unknown time zone {zone}")));
    }
}
