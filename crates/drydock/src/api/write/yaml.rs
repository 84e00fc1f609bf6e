//! YAML as Go reads it: plain words as YAML 1.1 has them, keys given twice noted, complaints in Go's words.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};
use serde_saphyr::granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, Tag};
use windlass_machinery::go;

/// How deep a document may be nested.
const DEPTH: usize = 1000;
/// How many values the aliases of a document may stand for.
const COPIES: usize = 100_000;

/// A document, and the keys that it gives twice.
#[derive(Debug, Default)]
pub struct Document {
    /// What it says; of keys given twice, the last.
    pub value: Value,
    /// `line 6: key "a" already set in map`.
    pub duplicates: Vec<String>,
}

/// Reads the first document of a text.
///
/// # Errors
/// Go's words for what is wrong with it.
pub fn read(text: &[u8]) -> Result<Document, String> {
    let text = std::str::from_utf8(text).map_err(|_| "yaml: invalid leading UTF-8 octet".to_owned())?;
    // Go indents by nothing but spaces.
    if text.trim_start_matches([' ', '\n']).starts_with('\t') {
        return Err("yaml: found character that cannot start any token".to_owned());
    }
    let mut reader = Reader {
        text,
        events: Parser::new_from_str(text),
        anchors: HashMap::new(),
        duplicates: Vec::new(),
        copies: 0,
    };
    let value = reader.document()?;
    Ok(Document { value, duplicates: reader.duplicates })
}

struct Reader<'t, I> {
    text: &'t str,
    events: I,
    anchors: HashMap<usize, (Value, usize)>,
    duplicates: Vec<String>,
    copies: usize,
}

impl<'t, I: Iterator<Item = Result<(Event<'t>, Span), ScanError>>> Reader<'t, I> {
    fn next(&mut self) -> Result<(Event<'t>, Span), String> {
        match self.events.next() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(complaint(self.text, &error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn document(&mut self) -> Result<Value, String> {
        loop {
            match self.next()? {
                (Event::StreamEnd | Event::DocumentEnd, _) => return Ok(Value::Null),
                (Event::StreamStart | Event::DocumentStart(..), _) => {}
                (event, span) => return self.node(event, span, 0).map(|(value, _)| value),
            }
        }
    }

    /// A value, and how many values it is made of.
    fn node(&mut self, event: Event<'t>, _: Span, depth: usize) -> Result<(Value, usize), String> {
        if depth > DEPTH {
            return Err("yaml: exceeded max depth of 10000".to_owned());
        }
        let (anchor, value, size) = match event {
            Event::Alias(anchor) => {
                let Some((value, size)) = self.anchors.get(&anchor).cloned() else {
                    return Err("yaml: unknown anchor referenced".to_owned());
                };
                self.copies += size;
                if self.copies > COPIES {
                    return Err("yaml: document contains excessive aliasing".to_owned());
                }
                return Ok((value, size));
            }
            Event::Scalar(text, style, anchor, tag) => (anchor, scalar(&text, style, tag.as_deref()), 1),
            Event::SequenceStart(_, anchor, _) => {
                let mut list = Vec::new();
                let mut size = 1;
                loop {
                    let (event, span) = self.next()?;
                    if matches!(event, Event::SequenceEnd | Event::StreamEnd) {
                        break;
                    }
                    let (value, inner) = self.node(event, span, depth + 1)?;
                    size += inner;
                    list.push(value);
                }
                (anchor, Value::Array(list), size)
            }
            Event::MappingStart(_, anchor, _) => {
                let (map, size) = self.mapping(depth)?;
                (anchor, Value::Object(map), size)
            }
            _ => return Ok((Value::Null, 1)),
        };
        if anchor != 0 {
            self.anchors.insert(anchor, (value.clone(), size));
        }
        Ok((value, size))
    }

    fn mapping(&mut self, depth: usize) -> Result<(Map<String, Value>, usize), String> {
        let mut map = Map::new();
        let mut merged = Map::new();
        let mut size = 1;
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd | Event::StreamEnd) {
                break;
            }
            let merges = matches!(&event, Event::Scalar(text, ScalarStyle::Plain, ..) if text == "<<");
            let (key, _) = self.node(event, span, depth + 1)?;
            let (event, at) = self.next()?;
            let (value, inner) = self.node(event, at, depth + 1)?;
            size += inner;
            if merges {
                merge(&mut merged, value)?;
                continue;
            }
            let (name, shown) = name(key, &value)?;
            if map.insert(name, value).is_some() {
                self.duplicates
                    .push(format!("line {}: key {shown} already set in map", line(&span.start) + 1));
            }
        }
        for (name, value) in merged {
            map.entry(name).or_insert(value);
        }
        Ok((map, size))
    }
}

/// Takes over the entries of what stands behind `<<`.
fn merge(map: &mut Map<String, Value>, value: Value) -> Result<(), String> {
    let wrong = || "yaml: map merge requires map or sequence of maps as the value".to_owned();
    match value {
        Value::Object(entries) => map.extend(entries),
        Value::Array(list) => {
            for entries in list.into_iter().rev() {
                map.extend(entries.as_object().cloned().ok_or_else(wrong)?);
            }
        }
        _ => return Err(wrong()),
    }
    Ok(())
}

/// The name of a key as JSON has it, and as Go shows the key.
fn name(key: Value, value: &Value) -> Result<(String, String), String> {
    match key {
        Value::String(text) => {
            let shown = go::quote(&text);
            Ok((text, shown))
        }
        Value::Number(number) => Ok((number.to_string(), number.to_string())),
        Value::Bool(flag) => Ok((flag.to_string(), flag.to_string())),
        Value::Null => {
            Err(format!("unsupported map key of type: %!s(<nil>), key: <nil>, value: {}", shown(value)))
        }
        other => Err(format!("yaml: invalid map key: {}", shown(&other))),
    }
}

/// A value as Go's `%#v` shows it.
fn shown(value: &Value) -> String {
    let all = |values: Vec<String>| values.join(", ");
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => go::quote(text),
        Value::Array(list) => format!("[]interface {{}}{{{}}}", all(list.iter().map(shown).collect())),
        Value::Object(map) => {
            let entries = map.iter().map(|(name, value)| format!("{}:{}", go::quote(name), shown(value)));
            format!("map[interface {{}}]interface {{}}{{{}}}", all(entries.collect()))
        }
        other => other.to_string(),
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let tag = tag.map(|tag| tag.suffix());
    match tag {
        Some("str" | "!") => return text.into(),
        Some("binary") => {
            let clean: String = text.split_whitespace().collect();
            let bytes = STANDARD.decode(clean).unwrap_or_default();
            return String::from_utf8_lossy(&bytes).into_owned().into();
        }
        _ => {}
    }
    if style == ScalarStyle::Plain || matches!(tag, Some("int" | "float" | "bool" | "null")) {
        plain(text)
    } else {
        text.into()
    }
}

/// What a word without quotes stands for.
pub fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "true" | "True" | "TRUE" => {
            return true.into();
        }
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "false" | "False" | "FALSE" => {
            return false.into();
        }
        _ => {}
    }
    if !text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '.')) {
        return text.into();
    }
    integer(&text.replace('_', "")).or_else(|| float(text)).unwrap_or_else(|| text.into())
}

fn integer(text: &str) -> Option<Value> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lead = |lead: &str| digits.strip_prefix(lead);
    let (radix, digits) = match digits {
        "0" => (10, "0"),
        _ => match (
            lead("0x").or_else(|| lead("0X")),
            lead("0b").or_else(|| lead("0B")),
            lead("0o"),
            lead("0"),
        ) {
            (Some(hex), ..) => (16, hex),
            (_, Some(bits), ..) => (2, bits),
            (_, _, Some(octal), _) | (_, _, None, Some(octal)) => (8, octal),
            _ => (10, digits),
        },
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let number = i128::from_str_radix(digits, radix).ok()?;
    let number = if negative { -number } else { number };
    match (i64::try_from(number), u64::try_from(number)) {
        (Ok(number), _) => Some(number.into()),
        (_, Ok(number)) => Some(number.into()),
        _ => None,
    }
}

fn float(text: &str) -> Option<Value> {
    let body = text.trim_start_matches(['+', '-']);
    if text.len() - body.len() > 1 || !body.starts_with(|first: char| first.is_ascii_digit() || first == '.')
    {
        return None;
    }
    if !body.chars().all(|char| char.is_ascii_digit() || matches!(char, '.' | 'e' | 'E' | '+' | '-')) {
        return None;
    }
    let number: f64 = text.parse().ok()?;
    // Go writes whole numbers without a point.
    if number.fract() == 0.0 && number.abs() < 1e15 {
        #[allow(clippy::cast_possible_truncation, reason = "it is whole and small")]
        return Some((number as i64).into());
    }
    Number::from_f64(number).map(Value::Number)
}

/// The line of a place, counted from nought.
fn line(at: &Marker) -> usize {
    at.line().saturating_sub(1)
}

/// What is wrong with a text, in the words of Go's reader.
fn complaint(text: &str, error: &ScanError) -> String {
    const OF_THE_PARSER: [&str; 5] = [
        "did not find expected node content",
        "did not find expected key",
        "did not find expected ',' or '}'",
        "did not find expected ',' or ']'",
        "did not find expected '-' indicator",
    ];
    let said = error.info();
    let at = error.marker();
    let known = OF_THE_PARSER.iter().find(|known| said.contains(**known));
    if let Some(message) = unclosed(text) {
        return format!("yaml: line {}: {message}", text.lines().count());
    }
    let mut line = line(at);
    let message = match known {
        Some(known) => {
            // The end of a text is on a line of its own.
            let lines = text.lines().count();
            if at.index() >= text.chars().count() && line < lines {
                line += 1;
            }
            *known
        }
        None if said.contains("mapping values are not allowed") => {
            line += usize::from(line > 0);
            "mapping values are not allowed in this context"
        }
        None => {
            line += usize::from(line > 0);
            match said.rsplit(", ").next() {
                Some(words) if words.starts_with("found ") || words.starts_with("could not find") => words,
                _ => "found character that cannot start any token",
            }
        }
    };
    match line {
        0 => format!("yaml: {message}"),
        line => format!("yaml: line {line}: {message}"),
    }
}

/// What Go misses where a text ends within brackets.
fn unclosed(text: &str) -> Option<&'static str> {
    let mut open = Vec::new();
    for char in text.chars() {
        match char {
            '[' | '{' => open.push(char),
            ']' | '}' => drop(open.pop()),
            _ => {}
        }
    }
    let last = open.last()?;
    Some(match (text.trim_end().ends_with(['[', '{', ',', ':']), last) {
        (true, _) => "did not find expected node content",
        (false, '[') => "did not find expected ',' or ']'",
        (false, _) => "did not find expected ',' or '}'",
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_are_those_of_the_old_yaml() {
        let read =
            read(b"a: yes\nb: 0x1F\nc: 012\nd: 1e3\ne: .5\nf: ~\ng: 2020-01-01\nh: '1'\n1: x\ntrue: y\n");
        let expected = json!({
            "a": true, "b": 31, "c": 10, "d": 1000, "e": 0.5, "f": null, "g": "2020-01-01", "h": "1", "1": "x",
            "true": true,
        });
        assert_eq!(read.unwrap().value, expected);
    }

    #[test]
    fn keys_given_twice_are_noted_and_the_last_one_stays() {
        let read = read(b"a: 1\nb: {c: 1, c: 2}\na: 3\n").unwrap();
        assert_eq!(read.value, json!({"a": 3, "b": {"c": 2}}));
        assert_eq!(
            read.duplicates,
            ["line 2: key \"c\" already set in map", "line 3: key \"a\" already set in map"]
        );
    }

    #[test]
    fn aliases_are_read_but_not_without_bound() {
        assert_eq!(read(b"a: &x {b: 1}\nc: *x\n").unwrap().value["c"], json!({"b": 1}));
        let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for level in 1..9 {
            let before = format!("*a{}", level - 1);
            bomb += &format!("a{level}: &a{level} [{}]\n", vec![before; 10].join(","));
        }
        assert!(read(bomb.as_bytes()).unwrap_err().contains("excessive aliasing"));
    }

    #[test]
    fn complaints_are_worded_as_go_words_them() {
        let complaint = |text: &str| read(text.as_bytes()).unwrap_err();
        assert_eq!(complaint("a: b: c"), "yaml: mapping values are not allowed in this context");
        assert_eq!(complaint("{"), "yaml: line 1: did not find expected node content");
        assert_eq!(complaint("a: 1\nb:\n  c: 2\n d: 3\n"), "yaml: line 3: did not find expected key");
    }
}
