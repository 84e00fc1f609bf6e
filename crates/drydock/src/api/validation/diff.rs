//! The difference of two texts, line by line, as Python's `difflib` (and Go's port of it) finds and writes it.

use std::collections::HashMap;
use std::fmt::Write;

/// Lines around a change.
const CONTEXT: usize = 3;
/// In longer texts, lines that are common everywhere do not anchor a match.
const LONG: usize = 200;

/// A unified diff without file names.
pub(super) fn unified(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let mut out = String::new();
    for group in groups(&Matcher::new(&old, &new).edits()) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let _ =
            writeln!(out, "@@ -{} +{} @@", range(first.old.0, last.old.1), range(first.new.0, last.new.1));
        for edit in &group {
            let mut lines = |sign: char, lines: &[&str]| {
                for line in lines {
                    let _ = writeln!(out, "{sign}{line}");
                }
            };
            if edit.equal {
                lines(' ', &old[edit.old.0..edit.old.1]);
            } else {
                lines('-', &old[edit.old.0..edit.old.1]);
                lines('+', &new[edit.new.0..edit.new.1]);
            }
        }
    }
    out
}

fn range(start: usize, end: usize) -> String {
    match end - start {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        length => format!("{},{length}", start + 1),
    }
}

#[derive(Clone, Copy)]
struct Edit {
    equal: bool,
    old: (usize, usize),
    new: (usize, usize),
}

/// Edits with the lines around them; distant ones apart.
fn groups(edits: &[Edit]) -> Vec<Vec<Edit>> {
    let mut edits = edits.to_vec();
    if let Some(first) = edits.first_mut().filter(|edit| edit.equal) {
        first.old.0 = first.old.0.max(first.old.1.saturating_sub(CONTEXT));
        first.new.0 = first.new.0.max(first.new.1.saturating_sub(CONTEXT));
    }
    if let Some(last) = edits.last_mut().filter(|edit| edit.equal) {
        last.old.1 = last.old.1.min(last.old.0 + CONTEXT);
        last.new.1 = last.new.1.min(last.new.0 + CONTEXT);
    }
    let mut groups = Vec::new();
    let mut group = Vec::new();
    for edit in edits {
        let mut edit = edit;
        if edit.equal && edit.old.1 - edit.old.0 > 2 * CONTEXT {
            let (old, new) = (edit.old.0 + CONTEXT, edit.new.0 + CONTEXT);
            group.push(Edit { equal: true, old: (edit.old.0, old), new: (edit.new.0, new) });
            groups.push(std::mem::take(&mut group));
            edit.old.0 = edit.old.1 - CONTEXT;
            edit.new.0 = edit.new.1 - CONTEXT;
        }
        group.push(edit);
    }
    groups.push(group);
    groups.retain(|group| group.iter().any(|edit| !edit.equal));
    groups
}

struct Matcher<'t> {
    old: &'t [&'t str],
    new: &'t [&'t str],
    /// Where each line of the new text is.
    places: HashMap<&'t str, Vec<usize>>,
}

impl<'t> Matcher<'t> {
    fn new(old: &'t [&'t str], new: &'t [&'t str]) -> Self {
        let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, line) in new.iter().enumerate() {
            places.entry(line).or_default().push(index);
        }
        if new.len() >= LONG {
            let most = new.len() / 100 + 1;
            places.retain(|_, indices| indices.len() <= most);
        }
        Self { old, new, places }
    }

    fn edits(&self) -> Vec<Edit> {
        let mut blocks = Vec::new();
        self.blocks((0, self.old.len()), (0, self.new.len()), &mut blocks);
        blocks.push((self.old.len(), self.new.len(), 0));
        let mut edits: Vec<Edit> = Vec::new();
        let (mut old, mut new) = (0, 0);
        for (old_start, new_start, size) in blocks {
            if old < old_start || new < new_start {
                edits.push(Edit { equal: false, old: (old, old_start), new: (new, new_start) });
            }
            (old, new) = (old_start + size, new_start + size);
            if size > 0 {
                match edits
                    .last_mut()
                    .filter(|last| last.equal && last.old.1 == old_start && last.new.1 == new_start)
                {
                    Some(last) => (last.old.1, last.new.1) = (old, new),
                    None => edits.push(Edit { equal: true, old: (old_start, old), new: (new_start, new) }),
                }
            }
        }
        edits
    }

    fn blocks(&self, old: (usize, usize), new: (usize, usize), out: &mut Vec<(usize, usize, usize)>) {
        let (old_start, new_start, size) = self.longest(old, new);
        if size == 0 {
            return;
        }
        self.blocks((old.0, old_start), (new.0, new_start), out);
        out.push((old_start, new_start, size));
        self.blocks((old_start + size, old.1), (new_start + size, new.1), out);
    }

    /// The longest run of equal lines; of several the first.
    fn longest(&self, old: (usize, usize), new: (usize, usize)) -> (usize, usize, usize) {
        let (mut old_start, mut new_start, mut size) = (old.0, new.0, 0);
        let mut runs: HashMap<usize, usize> = HashMap::new();
        for index in old.0..old.1 {
            let mut next = HashMap::new();
            for &place in self.places.get(self.old[index]).into_iter().flatten() {
                if place < new.0 {
                    continue;
                }
                if place >= new.1 {
                    break;
                }
                let run = 1 + place.checked_sub(1).and_then(|before| runs.get(&before)).copied().unwrap_or(0);
                next.insert(place, run);
                if run > size {
                    (old_start, new_start, size) = (index + 1 - run, place + 1 - run, run);
                }
            }
            runs = next;
        }
        while old_start > old.0 && new_start > new.0 && self.old[old_start - 1] == self.new[new_start - 1] {
            (old_start, new_start, size) = (old_start - 1, new_start - 1, size + 1);
        }
        while old_start + size < old.1
            && new_start + size < new.1
            && self.old[old_start + size] == self.new[new_start + size]
        {
            size += 1;
        }
        (old_start, new_start, size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_come_with_three_lines_around_them() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh";
        let new = "a\nb\nc\nd\nE\nf\ng\nh";
        assert_eq!(unified(old, new), "@@ -2,7 +2,7 @@\n b\n c\n d\n-e\n+E\n f\n g\n h\n");
        assert_eq!(unified(old, old), "");
        assert_eq!(unified("a", "a\nb"), "@@ -1 +1,2 @@\n a\n+b\n");
    }
}
