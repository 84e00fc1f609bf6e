//! Lengths of time, as Prometheus writes them.

use crate::fault::Fault;

/// How often Prometheus scrapes if nobody says anything.
const DEFAULT_INTERVAL: &str = "1m";

/// Whether a scrape would take longer than the time until the next one: the agent refuses that.
pub(super) fn check(
    interval: &Option<String>,
    timeout: &Option<String>,
    overall: &Option<String>,
) -> Result<(), Fault> {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let own = given(interval).map(|text| read("interval", &text)).transpose()?;
    let Some(timeout) = given(timeout) else { return Ok(()) };
    let longest = read("scrapeTimeout", &timeout)?;
    let overall = given(overall).unwrap_or_else(|| DEFAULT_INTERVAL.into());
    let (interval, name) = match own {
        Some(own) => (own, interval.clone().unwrap_or_default()),
        // What the agent itself has wrong is told of the agent.
        None => (milliseconds(&overall).unwrap_or(u64::MAX), overall),
    };
    if longest > interval {
        let message = format!("scrapeTimeout {timeout} is longer than the interval {name}");
        return Err(Fault::new("TimeoutTooLong", message));
    }
    Ok(())
}

fn read(field: &str, text: &str) -> Result<u64, Fault> {
    milliseconds(text).ok_or_else(|| {
        let message = format!("{field}: {text:?} is no length of time; write it like 30s or 1m30s");
        Fault::new("BadDuration", message)
    })
}

/// The length of a time such as `1h30m`.
pub(super) fn milliseconds(text: &str) -> Option<u64> {
    if text == "0" {
        return Some(0);
    }
    const UNITS: [(&str, u64); 7] = [
        ("ms", 1),
        ("s", 1_000),
        ("m", 60_000),
        ("h", 3_600_000),
        ("d", 86_400_000),
        ("w", 604_800_000),
        ("y", 31_536_000_000),
    ];
    let mut rest = text;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let count: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let (unit, length) = UNITS.into_iter().find(|(unit, _)| rest.starts_with(unit))?;
        rest = &rest[unit.len()..];
        total = total.checked_add(count.checked_mul(length)?)?;
    }
    (!text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_as_prometheus_reads_them() {
        assert_eq!(milliseconds("1h30m"), Some(5_400_000));
        assert_eq!(milliseconds("500ms"), Some(500));
        assert_eq!(milliseconds("0"), Some(0));
        assert_eq!(milliseconds(""), None);
        assert_eq!(milliseconds("5"), None);
        assert_eq!(milliseconds("1.5s"), None);
    }

    #[test]
    fn a_timeout_may_not_exceed_the_interval() {
        let text = |text: &str| Some(text.to_owned());
        assert!(check(&text("30s"), &text("30s"), &None).is_ok());
        assert!(check(&text("30s"), &text("31s"), &None).is_err());
        assert!(check(&None, &text("61s"), &None).is_err());
        assert!(check(&None, &text("61s"), &text("2m")).is_ok());
        assert!(check(&text("soon"), &None, &None).is_err());
    }
}
