//! Field selectors: equality and inequality of named fields.

use std::fmt;

use super::ParseError;

/// A field selector: all its requirements hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    requirements: Vec<FieldRequirement>,
}

/// One condition on one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRequirement {
    /// The field (`metadata.name`).
    pub field: String,
    /// The value it is compared with.
    pub value: String,
    /// Whether it must have that value, or must not.
    pub equal: bool,
}

impl Fields {
    /// Reads the text form (`metadata.name=a,status.phase!=Running`).
    ///
    /// # Errors
    /// When the text is not a selector.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut terms = split(text);
        terms.sort_unstable();
        let mut requirements = Vec::new();
        for term in terms.into_iter().filter(|term| !term.is_empty()) {
            let Some((field, equal, value)) = operator(term) else {
                return Err(ParseError(format!("invalid selector: '{text}'; can't understand '{term}'")));
            };
            requirements.push(FieldRequirement { field: field.to_owned(), value: unescape(value)?, equal });
        }
        Ok(Self { requirements })
    }

    /// Whether fields, looked up one at a time, satisfy the selector; an unknown field is empty.
    pub fn matches<'v>(&self, field: impl Fn(&str) -> Option<&'v str>) -> bool {
        self.requirements
            .iter()
            .all(|requirement| requirement.matches(field(&requirement.field).unwrap_or_default()))
    }

    /// The requirements.
    #[must_use]
    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.requirements
    }

    /// The value the selector demands of a field, if it does.
    #[must_use]
    pub fn exact(&self, field: &str) -> Option<&str> {
        let mut demands = self.requirements.iter().filter(|requirement| requirement.equal);
        demands.find(|requirement| requirement.field == field).map(|requirement| requirement.value.as_str())
    }

    /// Whether it selects everything.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }
}

impl FieldRequirement {
    /// Whether a field of this value satisfies the requirement.
    #[must_use]
    pub fn matches(&self, value: &str) -> bool {
        (self.value == value) == self.equal
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let operator = if requirement.equal { "=" } else { "!=" };
            write!(out, "{comma}{}{operator}", requirement.field)?;
            for character in requirement.value.chars() {
                if matches!(character, '\\' | ',' | '=') {
                    out.write_str("\\")?;
                }
                write!(out, "{character}")?;
            }
        }
        Ok(())
    }
}

fn split(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (index, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn operator(term: &str) -> Option<(&str, bool, &str)> {
    for (index, _) in term.char_indices() {
        let rest = &term[index..];
        for (operator, equal) in [("!=", false), ("==", true), ("=", true)] {
            if let Some(value) = rest.strip_prefix(operator) {
                return Some((&term[..index], equal, value));
            }
        }
    }
    None
}

fn unescape(text: &str) -> Result<String, ParseError> {
    let mut value = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => value.push(escaped),
                other => {
                    let other = other.map(String::from).unwrap_or_default();
                    return Err(ParseError(format!(
                        "invalid field selector: invalid escape sequence: \\{other}"
                    )));
                }
            },
            ',' | '=' => {
                return Err(ParseError(format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from(character)
                )));
            }
            other => value.push(other),
        }
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_and_match() {
        let fields = Fields::parse("metadata.name!=a1,metadata.namespace==n").unwrap();
        assert_eq!(fields.to_string(), "metadata.name!=a1,metadata.namespace=n");
        assert!(fields.matches(|field| Some(if field == "metadata.name" { "a2" } else { "n" })));
        assert!(!fields.matches(|field| Some(if field == "metadata.name" { "a1" } else { "n" })));
        assert_eq!(fields.exact("metadata.namespace"), Some("n"));
        assert_eq!(fields.exact("metadata.name"), None);
        assert_eq!(Fields::parse(r"a=b\,c\=d").unwrap().requirements()[0].value, "b,c=d");
        assert!(Fields::parse("").unwrap().is_everything());
    }

    #[test]
    fn messages() {
        let error = |text| Fields::parse(text).unwrap_err().to_string();
        assert_eq!(
            error("metadata.name"),
            "invalid selector: 'metadata.name'; can't understand 'metadata.name'"
        );
        assert_eq!(error(r"a=b\c"), r"invalid field selector: invalid escape sequence: \c");
        assert_eq!(error("a=b=c"), "invalid field selector: unescaped character in value: 61");
    }
}
