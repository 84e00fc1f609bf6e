//! Label and field selectors: their text form, their object form, and what they match.
//!
//! Messages are the ones a Kubernetes API server answers with. Which fields a kind lets clients select by is
//! not decided here.

mod fields;
mod parser;

use std::fmt;

use serde_json::{Map, Value};

pub use fields::{FieldRequirement, Fields};

/// Why a selector is not one; the text is the API server's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(pub(crate) String);

/// A label selector: all its requirements hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    requirements: Vec<Requirement>,
    nothing: bool,
}

/// One condition on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The label's key.
    pub key: String,
    /// What must hold.
    pub operator: Operator,
    /// The values it is about.
    pub values: Vec<String>,
}

/// What a [`Requirement`] asks of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `=`
    Equals,
    /// `==`
    DoubleEquals,
    /// `!=`
    NotEquals,
    /// `in`
    In,
    /// `notin`
    NotIn,
    /// The label is there.
    Exists,
    /// The label is not there.
    DoesNotExist,
    /// `>`, as whole numbers
    GreaterThan,
    /// `<`, as whole numbers
    LessThan,
}

impl Labels {
    /// The selector that everything matches.
    #[must_use]
    pub fn everything() -> Self {
        Self::default()
    }

    /// The selector that nothing matches.
    #[must_use]
    pub fn nothing() -> Self {
        Self { requirements: Vec::new(), nothing: true }
    }

    /// Reads the text form (`env in (a,b),!old,n>3`).
    ///
    /// # Errors
    /// When the text is not a selector.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut requirements = parser::parse(text)?;
        requirements.sort_by(|left, right| left.key.cmp(&right.key));
        Ok(Self { requirements, nothing: false })
    }

    /// Reads a `LabelSelector`; none at all selects nothing, an empty one everything.
    ///
    /// # Errors
    /// When a requirement is not a valid one.
    pub fn from_object(selector: Option<&Value>) -> Result<Self, ParseError> {
        let Some(Value::Object(selector)) = selector else {
            return Ok(Self::nothing());
        };
        let mut requirements = Vec::new();
        if let Some(Value::Object(labels)) = selector.get("matchLabels") {
            for (key, value) in labels {
                let value = value.as_str().unwrap_or_default().to_owned();
                requirements.push(Requirement::new(key.clone(), Operator::Equals, vec![value])?);
            }
        }
        if let Some(Value::Array(expressions)) = selector.get("matchExpressions") {
            for expression in expressions {
                let text = |name: &str| expression.get(name).and_then(Value::as_str).unwrap_or_default();
                let operator = match text("operator") {
                    "In" => Operator::In,
                    "NotIn" => Operator::NotIn,
                    "Exists" => Operator::Exists,
                    "DoesNotExist" => Operator::DoesNotExist,
                    other => {
                        let other = crate::go::quote(other);
                        return Err(ParseError(format!("{other} is not a valid label selector operator")));
                    }
                };
                let values = expression.get("values").and_then(Value::as_array);
                let values = values.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
                requirements.push(Requirement::new(text("key").to_owned(), operator, values.collect())?);
            }
        }
        requirements.sort_by(|left, right| left.key.cmp(&right.key));
        Ok(Self { requirements, nothing: false })
    }

    /// The selector for objects that carry all of these labels; nothing is validated.
    pub fn from_labels<K: Into<String>, V: Into<String>>(labels: impl IntoIterator<Item = (K, V)>) -> Self {
        let mut requirements: Vec<_> = labels
            .into_iter()
            .map(|(key, value)| Requirement {
                key: key.into(),
                operator: Operator::Equals,
                values: vec![value.into()],
            })
            .collect();
        requirements.sort_by(|left, right| left.key.cmp(&right.key));
        Self { requirements, nothing: false }
    }

    /// Whether labels, looked up one at a time, satisfy the selector.
    pub fn matches<'l>(&self, label: impl Fn(&str) -> Option<&'l str>) -> bool {
        !self.nothing
            && self.requirements.iter().all(|requirement| requirement.matches(label(&requirement.key)))
    }

    /// Whether an object's `metadata.labels` satisfy the selector.
    #[must_use]
    pub fn matches_map(&self, labels: Option<&Map<String, Value>>) -> bool {
        self.matches(|key| labels?.get(key)?.as_str())
    }

    /// Whether it selects everything.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        !self.nothing && self.requirements.is_empty()
    }

    /// Whether it selects nothing.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.nothing
    }

    /// The requirements, by key.
    #[must_use]
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// The one value the selector demands of a label, if it does.
    #[must_use]
    pub fn exact(&self, key: &str) -> Option<&str> {
        let requirement = self.requirements.iter().find(|requirement| requirement.key == key)?;
        match (requirement.operator, requirement.values.as_slice()) {
            (Operator::Equals | Operator::DoubleEquals | Operator::In, [value]) => Some(value),
            _ => None,
        }
    }
}

impl Requirement {
    /// A requirement that is known to make sense.
    ///
    /// # Errors
    /// When key, operator and values do not fit together.
    pub fn new(key: String, operator: Operator, values: Vec<String>) -> Result<Self, ParseError> {
        let mut errors = parser::validate(&key, operator, &values);
        match errors.len() {
            0 => Ok(Self { key, operator, values }),
            1 => Err(ParseError(errors.remove(0))),
            _ => Err(ParseError(format!("[{}]", errors.join(", ")))),
        }
    }

    /// Whether a label of this value, or its absence, satisfies the requirement.
    #[must_use]
    pub fn matches(&self, label: Option<&str>) -> bool {
        let listed = |value: &str| self.values.iter().any(|wanted| wanted == value);
        let number = |text: &str| text.parse::<i64>().ok();
        let bound = || self.values.first().and_then(|value| number(value));
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => label.is_some_and(listed),
            Operator::NotIn | Operator::NotEquals => !label.is_some_and(listed),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => {
                label.and_then(number).zip(bound()).is_some_and(|(have, want)| have > want)
            }
            Operator::LessThan => label.and_then(number).zip(bound()).is_some_and(|(have, want)| have < want),
        }
    }
}

impl fmt::Display for Labels {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            if index > 0 {
                out.write_str(",")?;
            }
            requirement.fmt(out)?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted: Vec<&str> = self.values.iter().map(String::as_str).collect();
        sorted.sort_unstable();
        let (key, values) = (&self.key, sorted.join(","));
        match self.operator {
            Operator::Equals => write!(out, "{key}={values}"),
            Operator::DoubleEquals => write!(out, "{key}=={values}"),
            Operator::NotEquals => write!(out, "{key}!={values}"),
            Operator::In => write!(out, "{key} in ({values})"),
            Operator::NotIn => write!(out, "{key} notin ({values})"),
            Operator::Exists => write!(out, "{key}"),
            Operator::DoesNotExist => write!(out, "!{key}"),
            Operator::GreaterThan => write!(out, "{key}>{values}"),
            Operator::LessThan => write!(out, "{key}<{values}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn matches(selector: &str, labels: &Value) -> bool {
        Labels::parse(selector).unwrap().matches_map(labels.as_object())
    }

    fn error(selector: &str) -> String {
        Labels::parse(selector).unwrap_err().to_string()
    }

    #[test]
    fn text_form() {
        let prod = json!({"env": "prod", "n": "3"});
        let dev = json!({"env": "dev", "n": "0"});
        for (selector, on_prod, on_dev) in [
            ("env=prod", true, false),
            ("env!=prod", false, true),
            ("env notin (dev),n", true, false),
            ("!n", false, false),
            ("n>1", true, false),
            ("n<1", false, true),
            ("env in ()", false, false),
            ("env in (dev, prod)", true, true),
            ("", true, true),
            ("env=", false, false),
        ] {
            assert_eq!(matches(selector, &prod), on_prod, "{selector}");
            assert_eq!(matches(selector, &dev), on_dev, "{selector}");
        }
        let text = Labels::parse("n , env in (b,a),!x , y!=z").unwrap().to_string();
        assert_eq!(text, "env in (a,b),n,!x,y!=z");
    }

    #[test]
    fn messages() {
        assert_eq!(
            error("a b"),
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"
        );
        assert_eq!(error("a,"), "found '', expected: identifier after ','");
        assert_eq!(error("a in b"), "unable to parse requirement: found 'b' expected: '('");
        assert_eq!(error("=a"), "found '=', expected: !, identifier, or 'end of string'");
        assert_eq!(error("!"), "unable to parse requirement: found '', expected: identifier");
        assert_eq!(
            error("n>x"),
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer"
        );
        assert!(error("-a").starts_with(
            "unable to parse requirement: <nil>: Invalid value: \"-a\": name part must consist of"
        ));
        assert!(error("a=-").starts_with("unable to parse requirement: values[0][a]: Invalid value: \"-\": a valid label must be an empty string"));
    }

    #[test]
    fn object_form() {
        let selector = json!({
            "matchLabels": {"b": "1"},
            "matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["y", "x"]}, {"key": "c", "operator": "Exists"}]
        });
        let labels = Labels::from_object(Some(&selector)).unwrap();
        assert_eq!(labels.to_string(), "a notin (x,y),b=1,c");
        assert_eq!(labels.exact("b"), Some("1"));
        assert!(Labels::from_object(None).unwrap().is_nothing());
        assert!(Labels::from_object(Some(&json!({}))).unwrap().is_everything());
        assert!(!Labels::nothing().matches(|_| None));
    }
}
