//! A set of few things. There are many such sets, mostly of one: a tree's node has room for eleven.

/// A set of few things, in order.
#[derive(Clone, Debug)]
pub(super) struct Few<T>(Vec<T>);

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Ord> Few<T> {
    /// Adds one; false if it is there already.
    pub(super) fn insert(&mut self, one: T) -> bool {
        let Err(place) = self.0.binary_search(&one) else {
            return false;
        };
        // Most sets never grow beyond one or two.
        if self.0.len() < 4 {
            self.0.reserve_exact(1);
        }
        self.0.insert(place, one);
        true
    }

    pub(super) fn remove(&mut self, one: &T) {
        if let Ok(place) = self.0.binary_search(one) {
            self.0.remove(place);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }
}

impl<'a, T> IntoIterator for &'a Few<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_in_it_once_and_in_order() {
        let mut few = Few::default();
        assert!(few.insert("b") && few.insert("c") && few.insert("a") && !few.insert("b"));
        few.remove(&"c");
        few.remove(&"d");
        assert_eq!(few.iter().collect::<Vec<_>>(), [&"a", &"b"]);
        few.remove(&"a");
        few.remove(&"b");
        assert!(few.is_empty());
    }
}
