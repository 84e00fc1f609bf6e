//! Semantic versions.

use std::cmp::Ordering;
use std::sync::Arc;

use super::super::Error;
use super::super::value::Value;
use super::Found;

/// A semantic version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Semver {
    numbers: [u64; 3],
    /// What comes after `-`, split at the dots.
    before: Vec<Box<str>>,
}

impl Semver {
    /// # Errors
    /// What Go's parser says.
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (rest, build) = rest.split_once('+').map_or((rest, None), |(rest, build)| (rest, Some(build)));
        let (patch, before) =
            rest.split_once('-').map_or((rest, None), |(patch, before)| (patch, Some(before)));
        let number = |name: &str, text: &str| {
            if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(format!(
                    "Invalid character(s) found in {name} number {}",
                    crate::go::quote(text)
                ));
            }
            if text.len() > 1 && text.starts_with('0') {
                return Err(format!(
                    "{} number must not contain leading zeroes {}",
                    capital(name),
                    crate::go::quote(text)
                ));
            }
            text.parse().map_err(|_| {
                format!("strconv.ParseUint: parsing {}: value out of range", crate::go::quote(text))
            })
        };
        let numbers = [number("major", major)?, number("minor", minor)?, number("patch", patch)?];
        let before: Vec<Box<str>> =
            before.map(|before| before.split('.').map(Into::into).collect()).unwrap_or_default();
        for part in &before {
            if part.is_empty() {
                return Err("Prerelease is empty".to_owned());
            }
            if !plain(part) {
                return Err(format!("Invalid character(s) found in prerelease {}", crate::go::quote(part)));
            }
            if part.bytes().all(|byte| byte.is_ascii_digit()) && part.len() > 1 && part.starts_with('0') {
                return Err(format!(
                    "Numeric PreRelease version must not contain leading zeroes {}",
                    crate::go::quote(part)
                ));
            }
        }
        for part in build.into_iter().flat_map(|build| build.split('.')) {
            if part.is_empty() {
                return Err("Build meta data is empty".to_owned());
            }
            if !plain(part) {
                return Err(format!(
                    "Invalid character(s) found in build meta data {}",
                    crate::go::quote(part)
                ));
            }
        }
        Ok(Self { numbers, before })
    }

    /// Without a leading `v`, with the numbers that are missing, without leading zeroes.
    fn tolerant(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(ToOwned::to_owned).collect();
        for part in &mut parts {
            if part.len() > 1 {
                let trimmed = part.trim_start_matches('0');
                let digit = trimmed.starts_with(|first: char| first.is_ascii_digit());
                *part = if digit { trimmed.to_owned() } else { format!("0{trimmed}") };
            }
        }
        if parts.len() < 3 {
            if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
                return Err("Short version cannot contain PreRelease/Build meta data".to_owned());
            }
            parts.resize(3, "0".to_owned());
        }
        Self::parse(&parts.join("."))
    }

    pub(in super::super) fn compare(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| {
            match (self.before.is_empty(), other.before.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => self
                    .before
                    .iter()
                    .zip(&other.before)
                    .map(|(one, two)| compare_parts(one, two))
                    .find(|order| order.is_ne())
                    .unwrap_or_else(|| self.before.len().cmp(&other.before.len())),
            }
        })
    }
}

fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
}

fn plain(part: &str) -> bool {
    part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn compare_parts(one: &str, two: &str) -> Ordering {
    match (one.parse::<u64>(), two.parse::<u64>()) {
        (Ok(one), Ok(two)) => one.cmp(&two),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        _ => one.cmp(two),
    }
}

pub(super) fn call<'a>(function: &str, args: &[Value<'a>]) -> Found<'a> {
    let parse = |text: &str, tolerant: bool| {
        if tolerant { Semver::tolerant(text) } else { Semver::parse(text) }
    };
    let number =
        |version: &Semver, at: usize| Ok(Value::Int(i64::try_from(version.numbers[at]).unwrap_or(i64::MAX)));
    let made = |version: Semver| Value::Semver(Arc::new(version));
    let result = match (function, args) {
        ("semver", [Value::String(text)]) => parse(text, false).map(made).map_err(Error::new),
        ("semver", [Value::String(text), Value::Bool(tolerant)]) => {
            parse(text, *tolerant).map(made).map_err(Error::new)
        }
        ("isSemver", [Value::String(text)]) => Ok(parse(text, false).is_ok().into()),
        ("isSemver", [Value::String(text), Value::Bool(tolerant)]) => {
            Ok(parse(text, *tolerant).is_ok().into())
        }
        ("major", [Value::Semver(one)]) => number(one, 0),
        ("minor", [Value::Semver(one)]) => number(one, 1),
        ("patch", [Value::Semver(one)]) => number(one, 2),
        ("isGreaterThan", [Value::Semver(one), Value::Semver(two)]) => Ok(one.compare(two).is_gt().into()),
        ("isLessThan", [Value::Semver(one), Value::Semver(two)]) => Ok(one.compare(two).is_lt().into()),
        ("compareTo", [Value::Semver(one), Value::Semver(two)]) => Ok(Value::Int(one.compare(two) as i64)),
        _ => return None,
    };
    Some(result)
}
