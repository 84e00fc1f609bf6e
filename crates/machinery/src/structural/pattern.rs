//! Regular expressions in Go's syntax, which is what schemas are written in.
//!
//! A pattern is read as Go reads it, with Go's words for what is wrong with it, and rewritten for the `regex`
//! crate, whose classes are Unicode's where Go's are ASCII's. Go's limits on the size of the compiled
//! program are not imitated.

use regex::{Regex, RegexBuilder};

/// A compiled pattern.
///
/// # Errors
/// What Go says about a pattern that it does not accept.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    let rewritten = rewrite(pattern)?;
    RegexBuilder::new(&rewritten).size_limit(64 << 20).build().map_err(|error| error.to_string())
}

fn rewrite(pattern: &str) -> Result<String, String> {
    let parser = Parser { whole: pattern, rest: pattern, out: String::new(), open: 0, repeatable: false };
    parser.parse().map_err(|(what, excerpt)| format!("error parsing regexp: {what}: `{excerpt}`"))
}

struct Parser<'a> {
    whole: &'a str,
    rest: &'a str,
    out: String,
    /// How many groups are open.
    open: usize,
    /// Whether there is something that an operator could repeat.
    repeatable: bool,
}

/// What is wrong, and where.
type Wrong = (&'static str, String);

const ESCAPE: &str = "invalid escape sequence";
const RANGE: &str = "invalid character class range";
const PERL: &str = "invalid or unsupported Perl syntax";
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];
const REPEAT: &str = "missing argument to repetition operator";

impl<'a> Parser<'a> {
    fn parse(mut self) -> Result<String, Wrong> {
        let mut last_repeat = "";
        while let Some(next) = self.rest.chars().next() {
            let before = self.rest;
            let mut repeated = false;
            match next {
                '(' if before.starts_with("(?") => self.flags()?,
                '(' => {
                    self.skip(1);
                    self.group();
                }
                '|' => {
                    self.skip(1);
                    self.out.push('|');
                    self.repeatable = false;
                }
                ')' => {
                    if self.open == 0 {
                        return Err(("unexpected )", self.whole.to_owned()));
                    }
                    self.skip(1);
                    self.open -= 1;
                    self.push(")");
                }
                '^' | '$' | '.' => {
                    self.skip(1);
                    self.push(next.encode_utf8(&mut [0; 4]));
                }
                '[' => self.class()?,
                '*' | '+' | '?' => {
                    self.skip(1);
                    self.repeat(before, last_repeat)?;
                    repeated = true;
                }
                '{' => match repeat_count(before) {
                    None => {
                        self.skip(1);
                        self.push("\\{");
                    }
                    Some((length, valid)) => {
                        if !valid {
                            return Err(("invalid repeat count", before[..length].to_owned()));
                        }
                        self.skip(length);
                        self.repeat(before, last_repeat)?;
                        repeated = true;
                    }
                },
                '\\' => self.backslash()?,
                other => {
                    self.skip(other.len_utf8());
                    self.literal(other);
                }
            }
            last_repeat = if repeated { before } else { "" };
        }
        if self.open > 0 {
            return Err(("missing closing )", self.whole.to_owned()));
        }
        Ok(self.out)
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    fn push(&mut self, text: &str) {
        self.out.push_str(text);
        self.repeatable = true;
    }

    fn literal(&mut self, c: char) {
        let text = regex::escape(c.encode_utf8(&mut [0; 4]));
        self.push(&text);
    }

    fn group(&mut self) {
        self.out.push_str("(?:");
        self.open += 1;
        self.repeatable = false;
    }

    /// An operator was read; `before` begins with it.
    fn repeat(&mut self, before: &str, last_repeat: &str) -> Result<(), Wrong> {
        if self.rest.starts_with('?') {
            self.skip(1);
        }
        let after = self.rest.len();
        if !last_repeat.is_empty() {
            let excerpt = &last_repeat[..last_repeat.len() - after];
            return Err(("invalid nested repetition operator", excerpt.to_owned()));
        }
        let operator = &before[..before.len() - after];
        if !self.repeatable {
            return Err((REPEAT, operator.to_owned()));
        }
        self.out.push_str(operator);
        Ok(())
    }

    /// `(?`: flags, a group with flags, or a named group.
    fn flags(&mut self) -> Result<(), Wrong> {
        let start = self.rest;
        let named = start.strip_prefix("(?P<").or_else(|| start.strip_prefix("(?<"));
        if let Some(rest) = named {
            let what = "invalid named capture";
            let Some((name, after)) = rest.split_once('>') else {
                return Err((what, start.to_owned()));
            };
            if name.is_empty() || !name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()) {
                return Err((what, start[..start.len() - after.len()].to_owned()));
            }
            self.rest = after;
            self.group();
            return Ok(());
        }
        let mut negative = false;
        let mut saw_flag = false;
        for (at, c) in start.char_indices().skip(2) {
            match c {
                'i' | 'm' | 's' | 'U' => saw_flag = true,
                '-' if !negative => {
                    negative = true;
                    saw_flag = false;
                }
                ':' | ')' if !negative || saw_flag => {
                    self.rest = &start[at + 1..];
                    if c == ':' {
                        self.out.push_str(&start[..=at]);
                        self.open += 1;
                        self.repeatable = false;
                    } else if at > 2 {
                        self.out.push_str(&start[..=at]);
                    }
                    return Ok(());
                }
                _ => {
                    let excerpt = start[..at + c.len_utf8()].to_owned();
                    return Err((PERL, excerpt));
                }
            }
        }
        Err((PERL, start.to_owned()))
    }

    fn backslash(&mut self) -> Result<(), Wrong> {
        let start = self.rest;
        match start.as_bytes().get(1) {
            Some(b'A' | b'z' | b'B') => {
                self.skip(2);
                self.push(&start[..2]);
            }
            Some(b'b') => {
                self.skip(2);
                self.push("(?-u:\\b)");
            }
            Some(b'C') => return Err((ESCAPE, start[..2].to_owned())),
            Some(b'Q') => {
                let quoted = &start[2..];
                let (text, after) = quoted.split_once("\\E").unwrap_or((quoted, ""));
                self.rest = after;
                text.chars().for_each(|c| self.literal(c));
            }
            _ => {
                if let Some(set) = self.set()? {
                    self.push(&set);
                } else {
                    let c = self.escape()?;
                    self.literal(c);
                }
            }
        }
        Ok(())
    }

    /// A set of characters that has a name: `\d`, `\pL`, `\p{Greek}`.
    fn set(&mut self) -> Result<Option<String>, Wrong> {
        let start = self.rest;
        let Some(letter) = start.strip_prefix('\\').and_then(|rest| rest.chars().next()) else {
            return Ok(None);
        };
        let ascii = match letter {
            'd' => "[0-9]",
            'D' => "[^0-9]",
            's' => "[\\t\\n\\x0C\\r ]",
            'S' => "[^\\t\\n\\x0C\\r ]",
            'w' => "[0-9A-Za-z_]",
            'W' => "[^0-9A-Za-z_]",
            'p' | 'P' => return self.unicode_set(letter == 'P').map(Some),
            _ => return Ok(None),
        };
        self.skip(2);
        Ok(Some(ascii.to_owned()))
    }

    fn unicode_set(&mut self, mut negative: bool) -> Result<String, Wrong> {
        let start = self.rest;
        let (name, length) = match start[2..].chars().next() {
            None => return Err((RANGE, start.to_owned())),
            Some('{') => match start.find('}') {
                None => return Err((RANGE, start.to_owned())),
                Some(end) => (&start[3..end], end + 1),
            },
            Some(c) => (&start[2..2 + c.len_utf8()], 2 + c.len_utf8()),
        };
        let plain = match name.strip_prefix('^') {
            Some(plain) => {
                negative = !negative;
                plain
            }
            None => name,
        };
        let known = plain.chars().all(|c| c.is_ascii_alphanumeric() || "_- ".contains(c))
            && Regex::new(&format!("\\p{{{plain}}}")).is_ok();
        if !known {
            return Err((RANGE, start[..length].to_owned()));
        }
        self.skip(length);
        Ok(format!("\\{}{{{plain}}}", if negative { 'P' } else { 'p' }))
    }

    /// One escaped character.
    fn escape(&mut self) -> Result<char, Wrong> {
        let start = self.rest;
        let mut chars = start.chars();
        chars.next();
        let Some(c) = chars.next() else {
            return Err(("trailing backslash at end of expression", String::new()));
        };
        let found = match c {
            'a' => Some('\u{7}'),
            'f' => Some('\u{c}'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'v' => Some('\u{b}'),
            'x' => hexadecimal(&mut chars),
            '0'..='7' => {
                let more = chars.clone().take_while(|c| matches!(c, '0'..='7')).take(2).count();
                let digits = &start[1..2 + more];
                (c == '0' || more > 0)
                    .then(|| {
                        chars.by_ref().take(more).for_each(drop);
                        u32::from_str_radix(digits, 8).ok().and_then(char::from_u32)
                    })
                    .flatten()
            }
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(c),
            _ => None,
        };
        let after = chars.as_str();
        match found {
            Some(found) => {
                self.rest = after;
                Ok(found)
            }
            None => Err((ESCAPE, start[..start.len() - after.len()].to_owned())),
        }
    }

    /// `[…]`.
    fn class(&mut self) -> Result<(), Wrong> {
        let whole = self.rest;
        let mut class = String::from("[");
        self.skip(1);
        if self.rest.starts_with('^') {
            self.skip(1);
            class.push('^');
        }
        let mut first = true;
        while first || !self.rest.starts_with(']') {
            first = false;
            if let Some(named) = self.rest.strip_prefix("[:").and_then(|rest| rest.split_once(":]")) {
                let name = &self.rest[..named.0.len() + 4];
                if !POSIX.contains(&named.0.strip_prefix('^').unwrap_or(named.0)) {
                    return Err((RANGE, name.to_owned()));
                }
                class.push_str(name);
                self.skip(name.len());
                continue;
            }
            if let Some(set) = self.set()? {
                class.push_str(&set);
                continue;
            }
            let range = self.rest;
            let low = self.class_character(whole)?;
            let mut high = low;
            if self.rest.starts_with('-') && self.rest.len() >= 2 && !self.rest.starts_with("-]") {
                self.skip(1);
                high = self.class_character(whole)?;
                if high < low {
                    return Err((RANGE, range[..range.len() - self.rest.len()].to_owned()));
                }
            }
            class.push_str(&format!("\\x{{{:X}}}-\\x{{{:X}}}", u32::from(low), u32::from(high)));
        }
        self.skip(1);
        class.push(']');
        self.push(&class);
        Ok(())
    }

    fn class_character(&mut self, whole: &str) -> Result<char, Wrong> {
        match self.rest.chars().next() {
            None => Err(("missing closing ]", whole.to_owned())),
            Some('\\') => self.escape(),
            Some(c) => {
                self.skip(c.len_utf8());
                Ok(c)
            }
        }
    }
}

/// The digits of `\x`: two, or any number in braces.
fn hexadecimal(chars: &mut std::str::Chars<'_>) -> Option<char> {
    let first = chars.next()?;
    if first != '{' {
        let second = chars.next()?;
        return char::from_u32(first.to_digit(16)? * 16 + second.to_digit(16)?);
    }
    let mut value: u32 = 0;
    let mut digits = 0;
    loop {
        match chars.next()? {
            '}' if digits > 0 => return char::from_u32(value),
            c => value = value.checked_mul(16)?.checked_add(c.to_digit(16)?).filter(|v| *v <= 0x10_ffff)?,
        }
        digits += 1;
    }
}

/// The length of `{n}`, `{n,}` or `{n,m}` and whether the numbers are allowed; nothing for a literal brace.
fn repeat_count(text: &str) -> Option<(usize, bool)> {
    let (inner, _) = text.strip_prefix('{')?.split_once('}')?;
    let number = |digits: &str| -> Option<u64> {
        let canonical = !digits.is_empty()
            && digits.bytes().all(|b| b.is_ascii_digit())
            && (digits == "0" || !digits.starts_with('0'));
        canonical.then(|| digits.parse().unwrap_or(u64::MAX))
    };
    let (least, most) = match inner.split_once(',') {
        None => (number(inner)?, None),
        Some((least, "")) => (number(least)?, None),
        Some((least, most)) => (number(least)?, Some(number(most)?)),
    };
    let valid = least <= 1000 && most.is_none_or(|most| most <= 1000 && least <= most);
    Some((inner.len() + 2, valid))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(pattern: &str) -> String {
        compile(pattern).err().unwrap_or_default().replace("error parsing regexp: ", "")
    }

    #[test]
    fn go_has_its_words_for_every_mistake() {
        for (pattern, words) in [
            ("(", "missing closing ): `(`"),
            ("a(b|(c)", "missing closing ): `a(b|(c)`"),
            ("a)", "unexpected ): `a)`"),
            ("[a", "missing closing ]: `[a`"),
            ("x[]a", "missing closing ]: `[]a`"),
            ("*", "missing argument to repetition operator: `*`"),
            ("(+a)", "missing argument to repetition operator: `+`"),
            ("a|*", "missing argument to repetition operator: `*`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("a*+?b", "invalid nested repetition operator: `*+?`"),
            ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("a{3,2}", "invalid repeat count: `{3,2}`"),
            ("[z-a]", "invalid character class range: `z-a`"),
            ("[[:bad:]]", "invalid character class range: `[:bad:]`"),
            ("\\p{Nonsense}", "invalid character class range: `\\p{Nonsense}`"),
            ("\\q", "invalid escape sequence: `\\q`"),
            ("\\1", "invalid escape sequence: `\\1`"),
            ("\\8", "invalid escape sequence: `\\8`"),
            ("a\\", "trailing backslash at end of expression: ``"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            ("(?!a)b", "invalid or unsupported Perl syntax: `(?!`"),
            ("(?<=a)b", "invalid named capture: `(?<=a)b`"),
            ("(?P<n-m>a)", "invalid named capture: `(?P<n-m>`"),
            ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
            ("(?i-)a", "invalid or unsupported Perl syntax: `(?i-)`"),
            ("(?P=a)", "invalid or unsupported Perl syntax: `(?P`"),
            ("[a-\\d]", "invalid escape sequence: `\\d`"),
        ] {
            assert_eq!(wrong(pattern), words, "{pattern}");
        }
    }

    #[test]
    fn patterns_mean_what_they_mean_in_go() {
        let matches = |pattern: &str, text: &str| compile(pattern).unwrap().is_match(text);
        assert!(matches("^[a-z]+$", "abc") && !matches("^[a-z]+$", "abC"));
        assert!(matches(r"^\d+$", "12") && !matches(r"^\d+$", "١"));
        assert!(!matches(r"^\w+$", "é") && matches(r"^[\w-]+$", "a-b"));
        assert!(matches("^a{,2}$", "a{,2}") && matches("^a{2}$", "aa"));
        assert!(matches(r"^\Qa.b\E$", "a.b") && !matches(r"^\Qa.b\E$", "axb"));
        assert!(matches(r"^[a&&b]+$", "&a") && matches(r"^[[a]$", "["));
        assert!(matches("(?i)^abc$", "ABC") && matches(r"^(?P<x>a)(?:b)$", "ab"));
        assert!(matches(r"^\x41\x{42}\103\_$", "ABC_") && matches(r"^[^\W]$", "a"));
    }

    #[test]
    fn no_text_is_too_strange() {
        let parts = [
            "(",
            "(?",
            "P",
            "<",
            ">",
            ")",
            "[",
            "]",
            "^",
            "-",
            "{",
            "}",
            ",",
            "1",
            "\\",
            "x",
            "p",
            "Q",
            "E",
            "*",
            "?",
            "|",
            "é",
            ":",
            "[:alpha:]",
            "i",
        ];
        for first in parts {
            for second in parts {
                for third in parts {
                    let pattern = [first, second, third].concat();
                    if let Ok(rewritten) = rewrite(&pattern) {
                        let compiled = Regex::new(&rewritten);
                        assert!(compiled.is_ok(), "{pattern} became {rewritten}");
                    }
                }
            }
        }
    }
}
