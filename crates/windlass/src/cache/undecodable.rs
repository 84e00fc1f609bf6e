//! Why an object cannot be decoded, and which of its fields is the cause.

use std::fmt;

/// Why an object cannot be decoded.
#[derive(Debug)]
pub(crate) struct Undecodable {
    /// The field, as a path; empty if it is not known.
    field: String,
    message: String,
}

impl Undecodable {
    /// The error of decoding this text, which is one line.
    pub(crate) fn of(text: &str, error: &serde_json::Error) -> Self {
        Self { field: field_at(text, error.column()), ..Self::from(error) }
    }
}

impl From<&serde_json::Error> for Undecodable {
    fn from(error: &serde_json::Error) -> Self {
        let message = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        Self { field: String::new(), message: message.strip_suffix(&place).unwrap_or(&message).to_owned() }
    }
}

impl fmt::Display for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => f.write_str(&self.message),
            field => write!(f, "{field}: {}", self.message),
        }
    }
}

impl std::error::Error for Undecodable {}

/// Where one is in a JSON text.
enum Step {
    /// In an object, at this key if there was one.
    Key(Option<String>),
    /// In a list, at this item.
    Item(usize),
}

/// The path of the field that ends at a column, counted from 1.
fn field_at(text: &str, column: usize) -> String {
    let until = column.saturating_sub(1);
    let mut steps: Vec<Step> = Vec::new();
    let mut letters = text.char_indices().take_while(|(at, _)| *at < until);
    // Whether the next string is a key.
    let mut key = false;
    while let Some((_, letter)) = letters.next() {
        match letter {
            '{' => {
                steps.push(Step::Key(None));
                key = true;
            }
            '[' => steps.push(Step::Item(0)),
            '}' | ']' => drop(steps.pop()),
            ',' => match steps.last_mut() {
                Some(Step::Item(at)) => *at += 1,
                _ => key = true,
            },
            '"' => {
                let mut string = String::new();
                while let Some((_, letter)) = letters.next() {
                    match letter {
                        '"' => break,
                        '\\' => string.extend(letters.next().map(|(_, letter)| letter)),
                        letter => string.push(letter),
                    }
                }
                if let (true, Some(Step::Key(now))) = (key, steps.last_mut()) {
                    *now = Some(string);
                    key = false;
                }
            }
            _ => {}
        }
    }
    steps.iter().fold(String::new(), |path, step| match step {
        Step::Item(at) => format!("{path}[{at}]"),
        Step::Key(None) => path,
        Step::Key(Some(key)) if path.is_empty() => key.clone(),
        Step::Key(Some(key)) => format!("{path}.{key}"),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Spec {
        #[serde(rename = "size")]
        _size: Option<String>,
        #[serde(rename = "hosts", default)]
        _hosts: Vec<Host>,
        #[serde(rename = "labels", default)]
        _labels: BTreeMap<String, String>,
    }

    #[derive(Debug, Deserialize)]
    struct Host {
        #[serde(rename = "name")]
        _name: String,
    }

    #[derive(Debug, Deserialize)]
    struct Object {
        #[serde(rename = "spec")]
        _spec: Spec,
    }

    fn error(text: &str) -> String {
        Undecodable::of(text, &serde_json::from_str::<Object>(text).unwrap_err()).to_string()
    }

    #[test]
    fn the_field_is_named() {
        for (text, field) in [
            (r#"{"a":[1,{"b":"}"}],"spec":{"x":1,"size":7,"y":2}}"#, "spec.size: invalid type: integer `7`"),
            (r#"{"spec":{"size":{"a":1}}}"#, "spec.size: invalid type: map"),
            (
                r#"{"spec":{"hosts":[{"name":"a"},{"name":true}]}}"#,
                "spec.hosts[1].name: invalid type: boolean",
            ),
            (r#"{"spec":{"labels":{"a\"b":"c","d":null}}}"#, "spec.labels.d: invalid type: null"),
            (r#"{"spec":[]}"#, "spec"),
        ] {
            let error = error(text);
            assert!(error.starts_with(field) && !error.contains("column"), "{error}, not {field}");
        }
        let error = error(r#"{"spec":{"hosts":[{"name":"a"},{"nom":"b"}]}}"#);
        assert!(error.starts_with("spec.hosts[1]") && error.ends_with("missing field `name`"), "{error}");
    }
}
