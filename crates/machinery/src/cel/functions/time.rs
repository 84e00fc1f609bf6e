//! Times and spans.

use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};

use super::super::Error;
use super::super::value::Value;
use super::Found;
pub(in super::super) use crate::go::parse_duration;

const NANOS: i64 = 1_000_000_000;

/// A moment as `timestamp()` takes it.
pub(in super::super) fn parse_timestamp(text: &str) -> Option<Timestamp> {
    let shape = text.as_bytes();
    let dated = shape.len() >= 20 && shape[10] == b'T' && !text.contains(['[', ' ']);
    if !dated { None } else { text.parse().ok() }
}

/// A date or a moment, as schemas' formats write them.
pub(in super::super) fn parse_datetime(text: &str) -> Option<Timestamp> {
    if text.len() == 10 {
        let date: Date = text.parse().ok()?;
        return Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp());
    }
    text.replacen(['t', ' '], "T", 1).parse().ok()
}

/// RFC 3339, with as many digits of a second as there are.
pub(in super::super) fn timestamp_text(time: Timestamp) -> String {
    time.to_string()
}

/// A span as `string()` gives it: in seconds.
pub(in super::super) fn duration_text(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    let (whole, fraction) = (nanos / NANOS as u64, nanos % NANOS as u64);
    if fraction == 0 {
        return format!("{sign}{whole}s");
    }
    let fraction = format!("{fraction:09}");
    format!("{sign}{whole}.{}s", fraction.trim_end_matches('0'))
}

pub(super) fn call<'a>(function: &str, one: &Value<'a>, zone: Option<&Value<'a>>) -> Found<'a> {
    match one {
        Value::Duration(nanos) if zone.is_none() => {
            let value = match function {
                "getHours" => nanos / (3600 * NANOS),
                "getMinutes" => nanos / (60 * NANOS),
                "getSeconds" => nanos / NANOS,
                "getMilliseconds" => nanos / 1_000_000,
                _ => return None,
            };
            Some(Ok(Value::Int(value)))
        }
        Value::Timestamp(time) if function.starts_with("get") => {
            let zone = match zone {
                None => Ok(TimeZone::UTC),
                Some(name) => time_zone(name.as_str()?),
            };
            Some(zone.and_then(|zone| part(function, &time.to_zoned(zone)).ok_or_else(Error::overload)))
        }
        _ => None,
    }
}

fn time_zone(name: &str) -> Result<TimeZone, Error> {
    let unknown = || Error::new(format!("unknown time zone {name}"));
    let Some((hours, minutes)) = name.split_once(':') else {
        return TimeZone::get(if name.is_empty() { "UTC" } else { name }).map_err(|_| unknown());
    };
    let parse = |text: &str| text.parse::<i32>().map_err(|_| unknown());
    let (hours, minutes) = (parse(hours)?, parse(minutes)?);
    let seconds = (hours
        .checked_mul(60)
        .and_then(|h| h.checked_add(if name.starts_with('-') { -minutes } else { minutes })))
    .and_then(|minutes| minutes.checked_mul(60))
    .ok_or_else(unknown)?;
    Offset::from_seconds(seconds).map(TimeZone::fixed).map_err(|_| unknown())
}

fn part<'a>(function: &str, time: &Zoned) -> Option<Value<'a>> {
    Some(Value::Int(match function {
        "getFullYear" => i64::from(time.year()),
        "getMonth" => i64::from(time.month()) - 1,
        "getDayOfYear" => i64::from(time.day_of_year()) - 1,
        "getDayOfMonth" => i64::from(time.day()) - 1,
        "getDate" => i64::from(time.day()),
        "getDayOfWeek" => i64::from(time.weekday().to_sunday_zero_offset()),
        "getHours" => i64::from(time.hour()),
        "getMinutes" => i64::from(time.minute()),
        "getSeconds" => i64::from(time.second()),
        "getMilliseconds" => i64::from(time.millisecond()),
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans() {
        let cases = [
            ("1h30m", Some(5400 * NANOS)),
            ("-1.5s", Some(-1_500_000_000)),
            ("0", Some(0)),
            ("1", None),
            ("", None),
            ("1d", None),
        ];
        for (text, wanted) in cases {
            assert_eq!(parse_duration(text), wanted, "{text}");
        }
        assert_eq!(duration_text(1_500_000_000), "1.5s");
        assert_eq!(duration_text(-60 * NANOS), "-60s");
    }
}
