//! Writes YAML as the real server's library does: its order of keys, its quotes, its folding of long lines.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::super::write::yaml::plain;

/// After which column a line is broken at the next space.
const WIDTH: usize = 80;
/// How far a level is indented.
const STEP: usize = 2;

/// The YAML of a value.
pub(super) fn text(value: &Value) -> String {
    let mut writer = Writer { out: String::new(), column: 0 };
    match value {
        Value::Object(map) if !map.is_empty() => writer.map(map, 0, true),
        Value::Array(items) if !items.is_empty() => writer.list(items, 0, true),
        other => {
            writer.scalar(other, STEP, false);
            writer.line();
        }
    }
    writer.out
}

struct Writer {
    out: String,
    column: usize,
}

impl Writer {
    fn put(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }

    fn line(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }

    fn indent(&mut self, indent: usize) {
        if self.column > 0 {
            self.line();
        }
        self.put(&" ".repeat(indent));
    }

    /// A map; `first` where its first key goes on on the line that is being written.
    fn map(&mut self, map: &Map<String, Value>, indent: usize, first: bool) {
        let mut keys: Vec<(&String, &Value)> = map.iter().collect();
        keys.sort_by(|(one, _), (two, _)| order(one, two));
        for (index, (key, value)) in keys.into_iter().enumerate() {
            if index > 0 || !first {
                self.indent(indent);
            }
            self.string(key, indent + STEP, true);
            self.put(":");
            match value {
                Value::Object(map) if !map.is_empty() => self.map(map, indent + STEP, false),
                // The elements of a list stand below its key.
                Value::Array(items) if !items.is_empty() => self.list(items, indent, false),
                other => {
                    self.put(" ");
                    self.scalar(other, indent + STEP, false);
                }
            }
        }
        if indent == 0 && self.column > 0 {
            self.line();
        }
    }

    fn list(&mut self, items: &[Value], indent: usize, first: bool) {
        for (index, item) in items.iter().enumerate() {
            if index > 0 || !first {
                self.indent(indent);
            }
            self.put("- ");
            match item {
                Value::Object(map) if !map.is_empty() => self.map(map, indent + STEP, true),
                Value::Array(items) if !items.is_empty() => self.list(items, indent + STEP, true),
                other => self.scalar(other, indent + STEP, false),
            }
        }
    }

    fn scalar(&mut self, value: &Value, indent: usize, key: bool) {
        match value {
            Value::String(text) => self.string(text, indent, key),
            Value::Object(_) => self.put("{}"),
            Value::Array(_) => self.put("[]"),
            Value::Null => self.put("null"),
            Value::Bool(flag) => self.put(if *flag { "true" } else { "false" }),
            Value::Number(number) => self.put(&number.to_string()),
        }
    }

    fn string(&mut self, text: &str, indent: usize, key: bool) {
        let analysis = Analysis::of(text);
        let wanted = if text.contains('\n') {
            Style::Literal
        } else if is_text(text) {
            Style::Plain
        } else {
            Style::Double
        };
        let style = match wanted {
            _ if key && analysis.breaks => Style::Double,
            Style::Plain if analysis.plain => Style::Plain,
            Style::Plain if analysis.single => Style::Single,
            Style::Literal if analysis.block && !key => Style::Literal,
            _ => Style::Double,
        };
        match style {
            Style::Plain => self.folded(text, indent, !key, |char, out| out.push(char)),
            Style::Single => {
                self.put("'");
                self.folded(text, indent, !key, |char, out| match char {
                    '\'' => out.push_str("''"),
                    other => out.push(other),
                });
                self.put("'");
            }
            Style::Double => {
                self.put("\"");
                self.double(text, indent, !key);
                self.put("\"");
            }
            Style::Literal => self.literal(text, indent),
        }
    }

    fn folded(&mut self, text: &str, indent: usize, folds: bool, write: impl Fn(char, &mut String)) {
        let chars: Vec<char> = text.chars().collect();
        let mut spaces = false;
        for (index, char) in chars.iter().enumerate() {
            let next = chars.get(index + 1);
            let inner = index > 0 && next.is_some_and(|next| *next != ' ');
            if *char == ' ' && folds && !spaces && self.column > WIDTH && inner {
                self.indent(indent);
            } else {
                let before = self.out.chars().count();
                write(*char, &mut self.out);
                self.column += self.out.chars().count() - before;
            }
            spaces = *char == ' ';
        }
    }

    fn double(&mut self, text: &str, indent: usize, folds: bool) {
        let chars: Vec<char> = text.chars().collect();
        let mut spaces = false;
        for (index, char) in chars.iter().enumerate() {
            let next = chars.get(index + 1);
            if let Some(escaped) = escaped(*char) {
                self.put(&escaped);
            } else if *char == ' ' && folds && !spaces && self.column > WIDTH && index > 0 && next.is_some() {
                self.indent(indent);
                if next == Some(&' ') {
                    self.put("\\");
                }
            } else {
                self.put(char.encode_utf8(&mut [0; 4]));
            }
            spaces = *char == ' ';
        }
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.put("|");
        if text.starts_with([' ', '\n']) {
            self.put(&STEP.to_string());
        }
        let rest = text.strip_suffix('\n');
        match rest {
            None => self.put("-"),
            Some(rest) if rest.is_empty() || rest.ends_with('\n') => self.put("+"),
            Some(_) => {}
        }
        for line in rest.unwrap_or(text).split('\n') {
            self.line();
            if !line.is_empty() {
                self.put(&" ".repeat(indent));
                self.put(line);
            }
        }
        if rest.is_some() {
            self.line();
        }
    }
}

#[derive(Clone, Copy)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// In which styles a text can be written.
struct Analysis {
    plain: bool,
    single: bool,
    block: bool,
    breaks: bool,
}

impl Analysis {
    fn of(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let blank = |at: usize| chars.get(at).is_none_or(|char| matches!(char, ' ' | '\t'));
        let mut indicators = text.starts_with("---") || text.starts_with("...");
        let (mut breaks, mut special, mut break_space, mut space_break) = (false, false, false, false);
        let mut previous = '\0';
        for (index, char) in chars.iter().enumerate() {
            let before_blank = blank(index + 1);
            indicators |= match (index, char) {
                (
                    0,
                    '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
                    | '`',
                ) => true,
                (0, '?' | ':' | '-') | (_, ':') => before_blank,
                (_, '#') => matches!(previous, ' ' | '\t' | '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}'),
                _ => false,
            };
            special |= !is_printable(*char);
            let (space, is_break) = (*char == ' ', is_break(*char));
            break_space |= space && self::is_break(previous);
            space_break |= is_break && previous == ' ';
            breaks |= is_break;
            previous = *char;
        }
        let (leading, trailing) = (chars.first().copied(), chars.last().copied());
        let edge = |char: Option<char>| char.is_some_and(|char| char == ' ' || is_break(char));
        let bad = space_break || special;
        Self {
            plain: !(indicators || breaks || break_space || bad || edge(leading) || edge(trailing)),
            single: !(break_space || bad),
            block: !(trailing == Some(' ') || bad),
            breaks,
        }
    }
}

fn is_break(char: char) -> bool {
    matches!(char, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_printable(char: char) -> bool {
    matches!(char, '\n' | ' '..='~' | '\u{A0}'..='\u{D7FF}' | '\u{E000}'..='\u{FEFE}' | '\u{FF00}'..='\u{FFFD}')
}

fn escaped(char: char) -> Option<String> {
    if is_printable(char) && !is_break(char) && !matches!(char, '"' | '\\') {
        return None;
    }
    let short = match char {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{A0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        other => {
            let code = u32::from(other);
            return Some(match code {
                0..=0xFF => format!("\\x{code:02X}"),
                0x100..=0xFFFF => format!("\\u{code:04X}"),
                _ => format!("\\U{code:08X}"),
            });
        }
    };
    Some(format!("\\{short}"))
}

/// Whether a text without quotes is read as text again.
fn is_text(text: &str) -> bool {
    let is_word = matches!(
        text,
        "<<" | ".nan"
            | ".NaN"
            | ".NAN"
            | ".inf"
            | ".Inf"
            | ".INF"
            | "+.inf"
            | "+.Inf"
            | "+.INF"
            | "-.inf"
            | "-.Inf"
            | "-.INF"
    );
    plain(text).is_string() && !is_word && !is_time(text) && !is_sexagesimal(text)
}

/// `2006-1-2`, also with a time of day.
fn is_time(text: &str) -> bool {
    let (date, rest) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let numbers = |text: &str, lengths: &[(usize, usize)], separator: char| {
        let parts: Vec<&str> = text.split(separator).collect();
        parts.len() == lengths.len()
            && parts.iter().zip(lengths).all(|(part, (least, most))| {
                (*least..=*most).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
            })
    };
    if !numbers(date, &[(4, 4), (1, 2), (1, 2)], '-') {
        return false;
    }
    let Some(rest) = rest else { return true };
    let clock = rest.split(['.', 'Z', '+', '-']).next().unwrap_or_default();
    numbers(clock, &[(1, 2), (1, 2), (1, 2)], ':')
}

/// `1:30`, which older readers take for a number.
fn is_sexagesimal(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut parts = text.split(':');
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let first =
        parts.next().is_some_and(|part| part.starts_with(|c: char| c.is_ascii_digit()) && digits(part));
    let rest: Vec<&str> = parts.collect();
    first
        && !rest.is_empty()
        && rest.iter().enumerate().all(|(index, part)| {
            let whole =
                if index + 1 == rest.len() { part.split('.').next().unwrap_or_default() } else { part };
            let small = whole.len() == 1 || whole.len() == 2 && whole.as_bytes()[0] < b'6';
            small && whole.bytes().all(|byte| byte.is_ascii_digit())
        })
}

/// The order of keys: letters after everything else, numbers by their value.
fn order(one: &str, two: &str) -> Ordering {
    let (a, b): (Vec<char>, Vec<char>) = (one.chars().collect(), two.chars().collect());
    let mut digits = false;
    for index in 0..a.len().min(b.len()) {
        let (left, right) = (a[index], b[index]);
        if left == right {
            digits = left.is_ascii_digit();
            continue;
        }
        let first = |is: bool| if is { Ordering::Less } else { Ordering::Greater };
        match (left.is_alphabetic(), right.is_alphabetic()) {
            (true, true) => return left.cmp(&right),
            (true, false) => return first(digits),
            (false, true) => return first(!digits),
            (false, false) => {}
        }
        let zero = left == '0' || right == '0';
        let preceded = zero && a[..index].iter().rev().take_while(|c| c.is_ascii_digit()).any(|c| *c != '0');
        let number = |chars: &[char]| {
            let run = chars[index..].iter().take_while(|c| c.is_ascii_digit());
            let start = i64::from(preceded);
            run.fold((start, 0_usize), |(value, count), c| {
                let digit = i64::from(c.to_digit(10).unwrap_or_default());
                (value.wrapping_mul(10).wrapping_add(digit), count + 1)
            })
        };
        return number(&a).cmp(&number(&b)).then(left.cmp(&right));
    }
    a.len().cmp(&b.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_as_go_writes_them() {
        let value = json!({
            "a": {"f:data": {".": {}, "f:k": {}}}, "n": "1", "b": "true", "e": "", "l": ["x", {"k": 1, "j": []}],
            "m": "one\ntwo", "t": "2026-11-16T03:47:45Z", "q": "it's: so", "k10": 1, "k9": 2, "c": "a b: c",
        });
        let wanted = "a:\n  f:data:\n    .: {}\n    f:k: {}\nb: \"true\"\nc: 'a b: c'\ne: \"\"\nk9: 2\nk10: 1\nl:\n- x\n\
                      - j: []\n  k: 1\nm: |-\n  one\n  two\n\"n\": \"1\"\nq: 'it''s: so'\nt: \"2026-11-16T03:47:45Z\"\n";
        assert_eq!(text(&value), wanted);
    }

    #[test]
    fn long_lines_are_folded() {
        let long =
            "only the following media types are accepted: application/json;stream=watch, application/x";
        let wanted = "message: 'only the following media types are accepted: application/json;stream=watch,\n  application/x'\n";
        assert_eq!(text(&json!({"message": long})), wanted);
    }
}
