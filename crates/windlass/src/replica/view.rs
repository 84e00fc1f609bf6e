//! Which member of a group a key belongs to: rendezvous hashing, so that a member that comes or goes moves only its
//! own keys.

use std::collections::BTreeSet;
use std::fmt;

use sha2::{Digest as _, Sha256};

/// The members of a group, as one of them sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct View(BTreeSet<String>);

impl View {
    /// Whether a key belongs to `member`. To nobody, where the view is empty.
    pub(super) fn gives(&self, key: &str, member: &str) -> bool {
        let heaviest = self.0.iter().max_by_key(|member| (weight(member, key), *member));
        heaviest.is_some_and(|heaviest| heaviest == member)
    }

    pub(super) fn parse(text: &str) -> Self {
        text.split(',').filter(|member| !member.is_empty()).map(str::to_owned).collect()
    }
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members: Vec<_> = self.0.iter().map(String::as_str).collect();
        f.write_str(&members.join(","))
    }
}

impl FromIterator<String> for View {
    fn from_iter<T: IntoIterator<Item = String>>(members: T) -> Self {
        Self(members.into_iter().collect())
    }
}

/// The same in every process and every release: replicas of two releases must agree while one replaces the other.
fn weight(member: &str, key: &str) -> [u8; 8] {
    let mut digest = Sha256::new();
    digest.update(member.as_bytes());
    digest.update([0]);
    digest.update(key.as_bytes());
    let digest = digest.finalize();
    std::array::from_fn(|index| digest[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner<'a>(view: &View, members: &[&'a str], key: &str) -> &'a str {
        let owners: Vec<_> = members.iter().filter(|member| view.gives(key, member)).collect();
        assert_eq!(owners.len(), 1, "{key} has one owner");
        owners[0]
    }

    #[test]
    fn keys_are_spread_and_move_only_with_their_member() {
        let three = View::parse("a,b,c");
        let two = View::parse("a,c");
        let mut counts = [0; 3];
        for number in 0..3000 {
            let key = format!("monocles/default/m{number}");
            let before = owner(&three, &["a", "b", "c"], &key);
            let after = owner(&two, &["a", "c"], &key);
            counts[usize::from(before.as_bytes()[0] - b'a')] += 1;
            assert!(before == after || before == "b", "{key} moved from {before} to {after}");
        }
        assert!(counts.iter().all(|count| (800..1200).contains(count)), "{counts:?}");
    }

    #[test]
    fn written_and_read_again_it_is_the_same() {
        let view = View::parse("b,a");
        assert_eq!(View::parse(&view.to_string()), view);
        assert_eq!(View::parse(""), View::default());
        assert!(!View::default().gives("key", "a"));
    }
}
