//! The formats of strings that schemas can ask for.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use regex::Regex;

use crate::names;

/// Whether the API server knows a format; it ignores all others. Dashes in its name do not count.
#[must_use]
pub(super) fn is_known(format: &str) -> bool {
    CHECKS.iter().any(|(name, _)| *name == plain(format))
}

/// Whether a string has a format. Unknown formats have every string.
#[must_use]
pub(crate) fn holds(format: &str, text: &str) -> bool {
    let format = plain(format);
    CHECKS.iter().find(|(name, _)| *name == format).is_none_or(|(_, check)| check(text))
}

type Check = fn(&str) -> bool;

const CHECKS: [(&str, Check); 26] = [
    ("bsonobjectid", |text| text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit())),
    ("uri", uri),
    ("email", email),
    ("hostname", hostname),
    ("ipv4", |text| text.contains('.') && (ipv4(text) || text.parse::<Ipv6Addr>().is_ok())),
    ("ipv6", |text| text.parse::<Ipv6Addr>().is_ok()),
    ("cidr", cidr),
    ("mac", mac),
    ("uuid", |text| uuid(text, None)),
    ("uuid3", |text| uuid(text, Some('3'))),
    ("uuid4", |text| uuid(text, Some('4'))),
    ("uuid5", |text| uuid(text, Some('5'))),
    ("isbn", |text| isbn10(text) || isbn13(text)),
    ("isbn10", isbn10),
    ("isbn13", isbn13),
    ("creditcard", credit_card),
    ("ssn", |text| text.len() == 11 && matches(&SSN, text)),
    ("hexcolor", |text| {
        let digits = text.strip_prefix('#').unwrap_or(text);
        matches!(digits.len(), 3 | 6) && digits.bytes().all(|b| b.is_ascii_hexdigit())
    }),
    ("rgbcolor", |text| matches(&RGB, text)),
    ("byte", |text| matches(&BASE64, text)),
    ("password", |_| true),
    ("date", date),
    ("duration", duration),
    ("datetime", date_time),
    ("k8sshortname", |text| names::dns1123_label(text).is_empty()),
    ("k8slongname", |text| names::dns1123_subdomain(text).is_empty()),
];

type Pattern = LazyLock<Option<Regex>>;

static HOSTNAME: Pattern = LazyLock::new(|| {
    Regex::new(r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$").ok()
});
static SSN: Pattern = LazyLock::new(|| Regex::new("^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$").ok());
static RGB: Pattern = LazyLock::new(|| {
    let part = "(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])";
    Regex::new(&format!(r"^rgb\([\t\n\x0C\r ]*{part}[\t\n\x0C\r ]*,[\t\n\x0C\r ]*{part}[\t\n\x0C\r ]*,[\t\n\x0C\r ]*{part}[\t\n\x0C\r ]*\)$")).ok()
});
static BASE64: Pattern = LazyLock::new(|| {
    Regex::new("^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$").ok()
});
static CREDIT_CARD: Pattern = LazyLock::new(|| {
    Regex::new("^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$").ok()
});
static DURATION: Pattern = LazyLock::new(|| Regex::new(r"([0-9]+)[\t\n\x0C\r ]*([A-Za-zµ]+)").ok());

fn plain(format: &str) -> String {
    format.replace('-', "")
}

fn matches(pattern: &Pattern, text: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

/// What Go's `url.ParseRequestURI` takes: an absolute URL or an absolute path.
fn uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b < 0x20 || b == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let escaped = |part: &str| {
        let bytes = part.as_bytes();
        (0..bytes.len()).filter(|at| bytes[*at] == b'%').all(|at| {
            bytes.get(at + 1..at + 3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
        })
    };
    let scheme = text
        .split_once(':')
        .filter(|(scheme, _)| scheme.starts_with(|c: char| c.is_ascii_alphabetic()))
        .filter(|(scheme, _)| scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)));
    let rest = scheme.map_or(text, |(_, rest)| rest);
    let rest = rest.split('?').next().unwrap_or_default();
    if !rest.starts_with('/') {
        return scheme.is_some();
    }
    let Some(authority) = rest.strip_prefix("//").filter(|_| scheme.is_some()) else {
        return escaped(rest);
    };
    let (authority, path) = authority.split_at(authority.find('/').unwrap_or(authority.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    let (name, port) = match host.strip_prefix('[') {
        Some(host) => match host.split_once(']') {
            Some((name, port)) => (name, port),
            None => return false,
        },
        None => host.split_at(host.rfind(':').unwrap_or(host.len())),
    };
    let port_good =
        port.is_empty() || port.strip_prefix(':').is_some_and(|p| p.bytes().all(|b| b.is_ascii_digit()));
    port_good && !name.contains([' ', '<', '>', '"', '\\', '^', '`', '{', '|', '}']) && escaped(path)
}

/// An address as mail has them: `a@b` or `Name <a@b>`.
fn email(text: &str) -> bool {
    let text = text.trim();
    let address = match text.strip_suffix('>') {
        Some(inner) => match inner.rsplit_once('<') {
            Some((_, address)) => address,
            None => return false,
        },
        None => text,
    };
    let Some((local, domain)) = address.rsplit_once('@') else {
        return false;
    };
    let atom = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c) || !c.is_ascii();
    let dotted = |text: &str| text.split('.').all(|part| !part.is_empty() && part.chars().all(atom));
    let quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    let literal = domain.starts_with('[') && domain.ends_with(']');
    (quoted || dotted(local)) && (literal || dotted(domain))
}

fn hostname(text: &str) -> bool {
    text.len() <= 255 && text.split('.').all(|part| part.len() <= 63) && matches(&HOSTNAME, text)
}

/// With leading zeros, which Go's older parser took as decimal.
fn ipv4(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    parts.len() == 4
        && parts.iter().all(|part| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) && part.parse::<u8>().is_ok()
        })
}

fn cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let most = if ipv4(address) || address.parse::<Ipv4Addr>().is_ok() {
        32
    } else if address.parse::<Ipv6Addr>().is_ok() {
        128
    } else {
        return false;
    };
    !bits.is_empty()
        && bits.bytes().all(|b| b.is_ascii_digit())
        && bits.parse::<u32>().is_ok_and(|n| n <= most)
}

fn mac(text: &str) -> bool {
    let groups = |separator: char, width: usize, counts: [usize; 3]| {
        let parts: Vec<&str> = text.split(separator).collect();
        counts.contains(&parts.len())
            && parts.iter().all(|part| part.len() == width && part.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    groups(':', 2, [6, 8, 20]) || groups('-', 2, [6, 8, 20]) || groups('.', 4, [3, 4, 10])
}

fn uuid(text: &str, version: Option<char>) -> bool {
    let mut digits = String::with_capacity(32);
    for (at, c) in text.char_indices() {
        // Each dash is optional on its own, but has one place.
        if c == '-' && matches!(digits.len(), 8 | 12 | 16 | 20) && !text[..at].ends_with('-') {
            continue;
        }
        if !c.is_ascii_hexdigit() {
            return false;
        }
        digits.push(c.to_ascii_lowercase());
    }
    let at = |index: usize| digits.chars().nth(index);
    let variant = || matches!(at(16), Some('8' | '9' | 'a' | 'b'));
    digits.len() == 32
        && !text.ends_with('-')
        && version.is_none_or(|version| at(12) == Some(version) && (version == '3' || variant()))
}

fn isbn_digits(text: &str) -> Option<Vec<u32>> {
    // Longer texts can hold no such number, whatever separates its digits.
    if text.len() > 64 {
        return None;
    }
    let kept = text.chars().filter(|c| *c != '-' && !c.is_whitespace());
    kept.map(|c| if c == 'X' { Some(10) } else { c.to_digit(10) }).collect()
}

fn isbn10(text: &str) -> bool {
    let Some(digits) = isbn_digits(text) else {
        return false;
    };
    let sum: u32 = digits.iter().zip(1..).map(|(digit, place)| digit * place).sum();
    digits.len() == 10 && !digits[..9].contains(&10) && sum.is_multiple_of(11)
}

fn isbn13(text: &str) -> bool {
    let Some(digits) = isbn_digits(text) else {
        return false;
    };
    let sum: u32 = digits.iter().zip([1, 3].iter().cycle()).map(|(digit, factor)| digit * factor).sum();
    digits.len() == 13 && !digits.contains(&10) && sum.is_multiple_of(10)
}

fn credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let luhn: u32 = digits
        .chars()
        .rev()
        .filter_map(|c| c.to_digit(10))
        .enumerate()
        .map(|(at, digit)| if at % 2 == 1 { digit * 2 / 10 + digit * 2 % 10 } else { digit })
        .sum();
    matches(&CREDIT_CARD, &digits) && luhn.is_multiple_of(10)
}

fn date(text: &str) -> bool {
    let shape = text.len() == 10
        && text.bytes().enumerate().all(
            |(at, b)| {
                if matches!(at, 4 | 7) { b == b'-' } else { b.is_ascii_digit() }
            },
        );
    shape && text.parse::<jiff::civil::Date>().is_ok()
}

fn date_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(day), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    let two = |from: usize, most: &str| {
        time.get(from..from + 2).is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()) && n <= most)
    };
    let clock = two(0, "23") && two(3, "59") && two(6, "59");
    let colons = time.get(2..3) == Some(":") && time.get(5..6) == Some(":");
    if !(date(day) && clock && colons) {
        return false;
    }
    let rest = &time[8..];
    let zone = rest.find(['z', '+', '-']).map(|at| rest.split_at(at));
    // The fraction's separator may be any character; the server's pattern forgot to escape the dot.
    let Some((fraction, zone)) = zone else {
        return false;
    };
    let mut digits = fraction.chars();
    let fraction_good =
        digits.next().is_none() || (fraction.chars().count() > 1 && digits.all(|c| c.is_ascii_digit()));
    let offset = |zone: &str| {
        zone.len() == 5
            && zone.bytes().enumerate().all(|(at, b)| if at == 2 { b == b':' } else { b.is_ascii_digit() })
    };
    fraction_good && (zone == "z" || zone.strip_prefix(['+', '-']).is_some_and(offset))
}

/// Go's durations, and Scala's.
fn duration(text: &str) -> bool {
    const UNITS: [&[&str]; 8] = [
        &["ns", "nano"],
        &["us", "µs", "micro"],
        &["ms", "milli"],
        &["s", "sec"],
        &["m", "min"],
        &["h", "hr", "hour"],
        &["d", "day"],
        &["w", "wk", "week"],
    ];
    let known = |unit: &str| {
        let unit = unit.to_lowercase();
        UNITS.iter().any(|names| {
            names.contains(&unit.as_str()) || names.last().is_some_and(|long| unit.starts_with(long))
        })
    };
    let Some(pattern) = DURATION.as_ref() else {
        return false;
    };
    text.strip_prefix(['-', '+']).unwrap_or(text) == "0"
        || pattern.captures_iter(text).any(|found| found.get(2).is_some_and(|unit| known(unit.as_str())))
}

#[cfg(test)]
mod tests {
    use super::holds;

    #[test]
    fn formats_hold_as_the_server_has_them() {
        for (format, good, bad) in [
            ("date-time", "2024-01-02T03:04:05.6Z", "yesterday"),
            ("date-time", "2024-01-02t03:04:05+01:00", "2024-02-30T03:04:05Z"),
            ("date", "2024-02-29", "2023-02-29"),
            ("duration", "1h30m", "soon"),
            ("duration", "3 days", "3 moons"),
            ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567-e89b-12d3-a456"),
            ("uuid4", "123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"),
            ("ipv4", "010.0.0.1", "10.0.0"),
            ("ipv6", "::1", "10.0.0.1"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("uri", "https://example.com/x?y", "example.com"),
            ("uri", "mailto:me", "me"),
            ("email", "Me <me@example.com>", "me"),
            ("hostname", "example.com", "-example"),
            ("byte", "aGk=", "a"),
            ("mac", "01:23:45:67:89:ab", "01:23"),
            ("k8s-short-name", "my-name", "My.Name"),
            ("isbn13", "978-0321751041", "978-0321751042"),
            ("isbn10", "0321751043", "0321751044"),
            ("creditcard", "4111-1111-1111-1111", "4111-1111-1111-1112"),
            ("rgbcolor", "rgb(1, 2, 255)", "rgb(1, 2, 256)"),
            ("unheard-of", "x", ""),
        ] {
            assert!(holds(format, good), "{format} {good}");
            assert!(bad.is_empty() || !holds(format, bad), "{format} {bad}");
        }
    }
}
