//! What a checkup wrote, as it may be shown: it is untrusted.

use std::collections::BTreeMap;

/// Keys of results begin with this.
const RESULT: &str = "status.result.";
/// So many results,
const MOST: usize = 256;
/// of so many letters each,
const LONGEST: usize = 4096;
/// and of so many bytes together, names included.
const MOST_BYTES: usize = 128 * 1024;

/// Results that may be shown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Results {
    pub(super) shown: BTreeMap<String, String>,
    /// How many were left out.
    pub(super) left_out: usize,
    /// How many were cut short.
    pub(super) cut: usize,
}

impl Results {
    /// Those among a ConfigMap's data.
    pub(super) fn of(data: &BTreeMap<String, String>) -> Self {
        let mut results = Self::default();
        let mut bytes = 0;
        for (key, value) in data {
            let Some(name) = key.strip_prefix(RESULT).filter(|name| !name.is_empty()) else {
                continue;
            };
            let (value, cut) = text(value);
            bytes += name.len() + value.len();
            if results.shown.len() == MOST || bytes > MOST_BYTES {
                results.left_out += 1;
                continue;
            }
            results.cut += usize::from(cut);
            results.shown.insert(name.to_owned(), value);
        }
        results
    }

    /// What was left out, in words.
    pub(super) fn lack(&self) -> Option<String> {
        let lack = match (self.left_out, self.cut) {
            (0, 0) => return None,
            (0, cut) => format!("{cut} results are cut short"),
            (left_out, 0) => format!("{left_out} results are left out"),
            (left_out, cut) => format!("{left_out} results are left out, {cut} are cut short"),
        };
        Some(format!("{lack}; the whole is in the results ConfigMap"))
    }
}

/// A text as it may be shown, and whether it was cut.
pub(super) fn text(text: &str) -> (String, bool) {
    let cut = text.chars().nth(LONGEST).is_some();
    (printable(&text.chars().take(LONGEST).collect::<String>()), cut)
}

/// The same without control characters, other than tabs and new lines, and without what turns the direction of text.
pub(super) fn printable(text: &str) -> String {
    let hidden = |letter: char| {
        letter.is_control() && !matches!(letter, '\n' | '\t')
            || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|letter| if hidden(letter) { '\u{fffd}' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(pairs: impl IntoIterator<Item = (String, String)>) -> BTreeMap<String, String> {
        pairs.into_iter().collect()
    }

    #[test]
    fn only_results_are_taken() {
        let pairs =
            [("status.result.a", "1"), ("status.conditions", "x"), ("status.result.", "y"), ("spec.z", "")];
        let results = Results::of(&data(pairs.map(|(key, value)| (key.into(), value.into()))));
        assert_eq!(results.shown, data([("a".into(), "1".into())]));
        assert_eq!(results.lack(), None);
    }

    #[test]
    fn too_much_is_cut_and_said() {
        let many = (0..300).map(|n| (format!("status.result.{n:03}"), "x".repeat(5000)));
        let results = Results::of(&data(many));
        let bytes: usize = results.shown.iter().map(|(key, value)| key.len() + value.len()).sum();
        assert!(bytes <= MOST_BYTES && !results.shown.is_empty());
        assert_eq!(results.left_out + results.shown.len(), 300);
        assert!(results.lack().is_some());
    }

    #[test]
    fn control_characters_do_not_reach_a_terminal() {
        assert_eq!(text("a\u{1b}[2J\u{0}b\nc\u{202e}").0, "a\u{fffd}[2J\u{fffd}b\nc\u{fffd}");
    }
}
