//! Cron schedules, as Kubernetes reads them: the five usual fields, `@daily` and its like, `@every 1h30m`.
//!
//! The grammar, its errors and the times it finds are those of the library that Kubernetes uses (robfig/cron's standard
//! parser). A time zone is given next to a schedule, never in it.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};

use crate::go;

/// Set beside the values of a field that was left open (`*`, `?`): then the other day field alone decides.
const OPEN: u64 = 1 << 63;
/// A schedule that has no time within so many years has none.
const YEARS: i16 = 5;

/// When something is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule(Rule);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    /// One bit for each value of minute, hour, day of the month, month and day of the week.
    Fields([u64; 5]),
    /// So many seconds apart.
    Every(i64),
}

/// A field of a schedule: its bounds and the names of its values, from the first.
struct Bounds {
    least: u64,
    most: u64,
    names: &'static [&'static str],
}

const FIELDS: [Bounds; 5] = [
    Bounds { least: 0, most: 59, names: &[] },
    Bounds { least: 0, most: 23, names: &[] },
    Bounds { least: 1, most: 31, names: &[] },
    Bounds {
        least: 1,
        most: 12,
        names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    },
    Bounds { least: 0, most: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] },
];

impl Schedule {
    /// Reads a schedule.
    ///
    /// # Errors
    /// Says why it cannot be read, in Kubernetes' words.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("empty spec string".into());
        }
        if text.starts_with("TZ=") || text.starts_with("CRON_TZ=") {
            return Err("cannot use TZ or CRON_TZ in schedule, use timeZone field instead".into());
        }
        if let Some(span) = text.strip_prefix("@every ") {
            let nanos = go::parse_duration(span).ok_or_else(|| {
                format!("failed to parse duration {text}: time: invalid duration {}", go::quote(span))
            })?;
            return Ok(Self(Rule::Every((nanos / 1_000_000_000).max(1))));
        }
        let standard = match text {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            _ if text.starts_with('@') => return Err(format!("unrecognized descriptor: {text}")),
            _ => text,
        };
        let fields: Vec<&str> = standard.split_whitespace().collect();
        if fields.len() != FIELDS.len() {
            let (found, shown) = (fields.len(), fields.join(" "));
            return Err(format!("expected exactly 5 fields, found {found}: [{shown}]"));
        }
        let mut bits = [0; 5];
        for ((bits, field), bounds) in bits.iter_mut().zip(fields).zip(&FIELDS) {
            for range in field.split(',').filter(|range| !range.is_empty()) {
                *bits |= values(range, bounds)?;
            }
        }
        Ok(Self(Rule::Fields(bits)))
    }

    /// The first time that is later than `after`, on a whole second. None if there is none within five years: the
    /// 31st of February never comes.
    #[must_use]
    pub fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match &self.0 {
            Rule::Every(seconds) => Timestamp::from_second(after.as_second().checked_add(*seconds)?).ok(),
            Rule::Fields(bits) => Search { bits, zone }.next(after),
        }
    }

    /// The times later than `after` up to and including `until`, from the first.
    pub fn between<'a>(
        &'a self,
        after: Timestamp,
        until: Timestamp,
        zone: &'a TimeZone,
    ) -> impl Iterator<Item = Timestamp> + 'a {
        let within = move |time: &Timestamp| *time <= until;
        std::iter::successors(self.next(after, zone).filter(within), move |time| {
            self.next(*time, zone).filter(within)
        })
    }

    /// The last of the times later than `after` up to and including `until`, found without walking all of them.
    #[must_use]
    pub fn latest(&self, after: Timestamp, until: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        if let Rule::Every(seconds) = &self.0 {
            let times = until.as_second().saturating_sub(after.as_second()) / seconds;
            let last = after.as_second().checked_add(times.checked_mul(*seconds)?)?;
            return (times > 0).then(|| Timestamp::from_second(last).ok())?;
        }
        let mut span: i64 = 3600;
        loop {
            let start = until.as_second().saturating_sub(span);
            let whole = start <= after.as_second();
            let from = if whole { after } else { Timestamp::from_second(start).ok()? };
            if let Some(last) = self.between(from, until, zone).last() {
                return Some(last);
            }
            if whole {
                return None;
            }
            span = span.saturating_mul(2);
        }
    }
}

/// The search for the next time: field by field from the largest, each moved on until it matches.
struct Search<'a> {
    bits: &'a [u64; 5],
    zone: &'a TimeZone,
}

impl Search<'_> {
    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let [minutes, hours, _, months, _] = *self.bits;
        let mut time = Timestamp::from_second(after.as_second() + 1).ok()?;
        // Seconds always start over: the resolution is a minute.
        let past = time.as_second().rem_euclid(60);
        if past > 0 {
            time = later(time, 60 - past)?;
        }
        let limit = self.local(time).year() + YEARS;
        'again: loop {
            let mut local = self.local(time);
            if local.year() > limit {
                return None;
            }
            while !has(months, local.month()) {
                let (year, month) = if local.month() == 12 {
                    (local.year() + 1, 1)
                } else {
                    (local.year(), local.month() + 1)
                };
                time = self.moment(DateTime::new(year, month, 1, 0, 0, 0, 0).ok()?)?;
                local = self.local(time);
                if local.month() == 1 {
                    continue 'again;
                }
            }
            while !self.day(local) {
                let tomorrow = local.date().tomorrow().ok()?;
                time = self.moment(tomorrow.at(0, 0, 0, 0))?;
                // Where clocks change at midnight there may be none, or two.
                local = self.local(time);
                if local.hour() > 12 {
                    time = later(time, 3600 * i64::from(24 - local.hour()))?;
                } else if local.hour() > 0 {
                    time = later(time, -3600 * i64::from(local.hour()))?;
                }
                local = self.local(time);
                if local.day() == 1 {
                    continue 'again;
                }
            }
            let mut whole = local.minute() == 0;
            while !has(hours, local.hour()) {
                if !whole {
                    time = self.moment(local.date().at(local.hour(), 0, 0, 0))?;
                    whole = true;
                }
                time = later(time, 3600)?;
                local = self.local(time);
                if local.hour() == 0 {
                    continue 'again;
                }
            }
            while !has(minutes, local.minute()) {
                time = later(time, 60)?;
                local = self.local(time);
                if local.minute() == 0 {
                    continue 'again;
                }
            }
            return Some(time);
        }
    }

    fn day(&self, local: DateTime) -> bool {
        let [_, _, days, _, weekdays] = *self.bits;
        let day = has(days, local.day());
        let weekday = has(weekdays, local.weekday().to_sunday_zero_offset());
        if (days | weekdays) & OPEN != 0 { day && weekday } else { day || weekday }
    }

    fn local(&self, time: Timestamp) -> DateTime {
        self.zone.to_datetime(time)
    }

    /// What Go's `time.Date` makes of a local time, also of one that does not exist or exists twice.
    fn moment(&self, local: DateTime) -> Option<Timestamp> {
        let plain = Offset::UTC.to_timestamp(local).ok()?;
        let near = self.zone.to_offset(plain);
        let offset = self.zone.to_offset(near.to_timestamp(local).ok()?);
        offset.to_timestamp(local).ok()
    }
}

fn later(time: Timestamp, seconds: i64) -> Option<Timestamp> {
    Timestamp::from_second(time.as_second().checked_add(seconds)?).ok()
}

fn has(bits: u64, value: i8) -> bool {
    bits & (1 << value) != 0
}

/// The values of one range of a field: `*`, `5`, `1-5`, `*/10`, `mon-fri`.
fn values(text: &str, bounds: &Bounds) -> Result<u64, String> {
    let (least, most) = (bounds.least, bounds.most);
    let parts: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = parts[0].split('-').collect();
    let open = matches!(ends[0], "*" | "?");
    let (start, mut end) = if open {
        (least, most)
    } else {
        let start = value(ends[0], bounds)?;
        match ends.as_slice() {
            [_] => (start, start),
            [_, end] => (start, value(end, bounds)?),
            _ => return Err(format!("too many hyphens: {text}")),
        }
    };
    let step = match parts.as_slice() {
        [_] => 1,
        [_, step] => {
            if ends.len() == 1 {
                end = most;
            }
            whole(step)?
        }
        _ => return Err(format!("too many slashes: {text}")),
    };
    if start < least {
        return Err(format!("beginning of range ({start}) below minimum ({least}): {text}"));
    }
    if end > most {
        return Err(format!("end of range ({end}) above maximum ({most}): {text}"));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
    }
    let stride = usize::try_from(step)
        .ok()
        .filter(|step| *step > 0)
        .ok_or_else(|| format!("step of range should be a positive number: {text}"))?;
    let bits = (start..=end).step_by(stride).fold(0, |bits, value| bits | 1 << value);
    Ok(if open && step == 1 { bits | OPEN } else { bits })
}

fn value(text: &str, bounds: &Bounds) -> Result<u64, String> {
    let lower = text.to_lowercase();
    match bounds.names.iter().position(|name| *name == lower) {
        Some(index) => Ok(bounds.least + index as u64),
        None => whole(text),
    }
}

fn whole(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.chars().all(|c| c.is_ascii_digit()) {
        return Err(format!(
            "failed to parse int from {text}: strconv.Atoi: parsing {}: invalid syntax",
            go::quote(text)
        ));
    }
    let number: i64 = text.parse().map_err(|_| {
        format!(
            "failed to parse int from {text}: strconv.Atoi: parsing {}: value out of range",
            go::quote(text)
        )
    })?;
    u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
}

#[cfg(test)]
mod tests;
