//! Versions as semver.org has them, and ranges of them as OLM has them.

use std::cmp::Ordering;
use std::fmt;

/// A version. What follows a `+` does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    numbers: [u64; 3],
    pre: Vec<String>,
    build: String,
}

impl Version {
    /// Reads exactly `MAJOR.MINOR.PATCH[-PRE][+BUILD]`; the error says what is wrong.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong =
            |what: &str| Err(format!("{text:?} is no version: {what}; write it as 1.2.3 or 1.2.3-rc.1"));
        let (rest, build) = text.split_once('+').unwrap_or((text, ""));
        let (core, pre) = rest.split_once('-').map_or((rest, None), |(core, pre)| (core, Some(pre)));
        let parts: Vec<&str> = core.split('.').collect();
        let Ok(parts) = <[&str; 3]>::try_from(parts) else {
            return wrong("it has to have three numbers");
        };
        let mut numbers = [0; 3];
        for (number, part) in numbers.iter_mut().zip(parts) {
            if !is_number(part) {
                return wrong("the three parts have to be numbers without leading zeros");
            }
            let Ok(parsed) = part.parse() else { return wrong("a number is too large") };
            *number = parsed;
        }
        let pre: Vec<String> = pre.into_iter().flat_map(|pre| pre.split('.')).map(str::to_owned).collect();
        let odd = |part: &str| {
            part.is_empty() || !part.chars().all(|one| one.is_ascii_alphanumeric() || one == '-')
        };
        let zeros = |part: &String| part.chars().all(|one| one.is_ascii_digit()) && !is_number(part);
        if pre.iter().any(|part| odd(part) || zeros(part)) {
            return wrong("what follows the - has to be letters, digits and hyphens between dots");
        }
        if text.contains('+') && build.split('.').any(odd) {
            return wrong("what follows the + has to be letters, digits and hyphens between dots");
        }
        Ok(Self { numbers, pre, build: build.to_owned() })
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_part = |one: &String, other: &String| match (one.parse::<u64>(), other.parse::<u64>()) {
            (Ok(one), Ok(other)) => one.cmp(&other),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Err(_), Err(_)) => one.cmp(other),
        };
        // A version comes after all that lead to it.
        let finished = self.pre.is_empty().cmp(&other.pre.is_empty());
        let parts = || {
            let differing = self.pre.iter().zip(&other.pre).map(|(one, other)| by_part(one, other));
            differing.fold(Ordering::Equal, Ordering::then).then(self.pre.len().cmp(&other.pre.len()))
        };
        self.numbers.cmp(&other.numbers).then(finished).then_with(parts)
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        if !self.pre.is_empty() {
            write!(f, "-{}", self.pre.join("."))?;
        }
        if !self.build.is_empty() {
            write!(f, "+{}", self.build)?;
        }
        Ok(())
    }
}

/// Whether a text is a range such as `>=1.0.0 <1.2.3 || 2.0.0`; the error says what is wrong.
pub(super) fn check_range(text: &str) -> Result<(), String> {
    for alternative in text.split("||") {
        if alternative.trim().is_empty() {
            return Err(format!("{text:?} is no range of versions; write it as \">=1.0.0 <1.2.3\""));
        }
        for comparison in alternative.split_whitespace() {
            Version::parse(comparison.trim_start_matches(['>', '<', '=', '!']))?;
        }
    }
    Ok(())
}

fn is_number(text: &str) -> bool {
    let digits = !text.is_empty() && text.chars().all(|one| one.is_ascii_digit());
    digits && (text.len() == 1 || !text.starts_with('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_semver_says() {
        let ordered =
            ["0.9.0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0"];
        let versions: Vec<_> = ordered.iter().map(|text| Version::parse(text).unwrap()).collect();
        assert!(versions.is_sorted(), "{versions:?}");
        assert_eq!(versions[2].to_string(), "1.0.0-alpha.1");
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for text in [
            "",
            "1",
            "1.2",
            "1.2.3.4",
            "v1.2.3",
            "01.2.3",
            "1.2.x",
            "1.2.3-",
            "1.2.3-01",
            "1.2.3+",
            "1.2.3-a_b",
        ] {
            assert!(Version::parse(text).is_err(), "{text}");
        }
        assert!(Version::parse("1.2.3-x-y.4+exp.5").is_ok());
        assert!(check_range(">=1.0.0 <1.2.3 || 2.0.0").is_ok());
        assert!(check_range(">=1.0 <2").is_err() && check_range("1.0.0 ||").is_err());
    }
}
