//! The cases of robfig/cron's own tests, by their meaning.

use super::*;

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn next(schedule: &str, after: &str, zone: &str) -> Option<String> {
    let zone = if zone == "UTC" { TimeZone::UTC } else { TimeZone::get(zone).unwrap() };
    Schedule::parse(schedule).unwrap().next(time(after), &zone).map(|time| time.to_string())
}

#[test]
fn what_can_be_read() {
    for good in ["* * * * *", "*/5 0-6 1,15 jan-mar MON", "@daily", "0 0 ? * 0/2", "@every 1h30m", "@hourly"]
    {
        Schedule::parse(good).unwrap();
    }
    for (bad, why) in [
        ("", "empty spec string"),
        ("every day", "expected exactly 5 fields, found 2: [every day]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("-1 * * * *", "failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax"),
        ("@often", "unrecognized descriptor: @often"),
        ("@every soon", "failed to parse duration @every soon: time: invalid duration \"soon\""),
        ("TZ=UTC * * * * *", "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"),
    ] {
        assert_eq!(Schedule::parse(bad).unwrap_err(), why, "{bad}");
    }
}

#[test]
fn the_next_time() {
    for (schedule, after, wanted) in [
        ("0/15 * * * *", "2012-07-09T14:45:00Z", "2012-07-09T15:00:00Z"),
        ("0/15 * * * *", "2012-07-09T14:59:59Z", "2012-07-09T15:00:00Z"),
        ("0/15 * * * *", "2012-07-09T14:59:59.123Z", "2012-07-09T15:00:00Z"),
        ("20-35/15 * * * *", "2012-07-09T15:45:00Z", "2012-07-09T16:20:00Z"),
        ("*/15 * * * *", "2012-12-31T23:45:00Z", "2013-01-01T00:00:00Z"),
        ("0 0 * Feb Mon", "2012-07-09T23:35:00Z", "2013-02-04T00:00:00Z"),
        ("0 0 * Feb Mon/2", "2012-07-09T23:35:00Z", "2013-02-01T00:00:00Z"),
        ("0 0 29 Feb ?", "2012-07-09T23:35:00Z", "2016-02-29T00:00:00Z"),
        // Both day fields given: either will do.
        ("0 0 13 * fri", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
        // A step makes a star a restriction.
        ("0 0 */10 * sun", "2012-07-09T00:00:00Z", "2012-07-11T00:00:00Z"),
        ("@hourly", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"),
        ("@weekly", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"),
        ("@every 90s", "2026-01-01T00:00:00.5Z", "2026-01-01T00:01:30Z"),
        ("@every 5ms", "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"),
    ] {
        assert_eq!(next(schedule, after, "UTC").as_deref(), Some(wanted), "{schedule} after {after}");
    }
    for never in ["0 0 30 Feb ?", "0 0 31 Apr ?"] {
        assert_eq!(next(never, "2012-07-09T23:35:00Z", "UTC"), None, "{never}");
    }
}

#[test]
fn clocks_that_change() {
    if TimeZone::get("America/New_York").is_err() {
        return;
    }
    for (schedule, after, zone, wanted) in [
        // New York springs forward at 2012-03-11 02:00: that day has no 02:30.
        ("30 2 11 Mar ?", "2012-03-11T05:00:00Z", "America/New_York", "2013-03-11T06:30:00Z"),
        ("0 * * * ?", "2012-03-11T06:00:00Z", "America/New_York", "2012-03-11T07:00:00Z"),
        ("0 3 * * ?", "2012-03-11T06:00:00Z", "America/New_York", "2012-03-11T07:00:00Z"),
        // It falls back at 2012-11-04 02:00: that day has 01:00 twice.
        ("0 1 4 Nov ?", "2012-11-04T04:00:00Z", "America/New_York", "2012-11-04T05:00:00Z"),
        ("0 1 4 Nov ?", "2012-11-04T05:00:00Z", "America/New_York", "2012-11-04T06:00:00Z"),
        ("0 3 * * ?", "2012-11-04T04:00:00Z", "America/New_York", "2012-11-04T08:00:00Z"),
        // São Paulo had no midnight on 2018-11-04.
        ("0 9 10 Nov ?", "2018-11-03T05:09:59Z", "America/Sao_Paulo", "2018-11-10T11:00:00Z"),
    ] {
        assert_eq!(next(schedule, after, zone).as_deref(), Some(wanted), "{schedule} after {after}");
    }
}

#[test]
fn the_latest_of_many() {
    let (after, until) = (time("2020-01-01T00:00:00Z"), time("2026-03-10T12:34:56Z"));
    for (schedule, wanted) in [
        ("* * * * *", Some("2026-03-10T12:34:00Z")),
        ("0 0 1 * *", Some("2026-03-01T00:00:00Z")),
        ("@yearly", Some("2026-01-01T00:00:00Z")),
        ("@every 1h", Some("2026-03-10T12:00:00Z")),
        ("0 0 31 2 *", None),
    ] {
        let found = Schedule::parse(schedule).unwrap().latest(after, until, &TimeZone::UTC);
        assert_eq!(found.map(|time| time.to_string()).as_deref(), wanted, "{schedule}");
    }
    let hourly = Schedule::parse("@hourly").unwrap();
    let zone = TimeZone::UTC;
    assert_eq!(hourly.between(time("2026-03-10T10:00:00Z"), until, &zone).count(), 2);
    assert_eq!(hourly.latest(time("2026-03-10T12:00:00Z"), until, &zone), None);
}
