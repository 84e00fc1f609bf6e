//! The grammar of label selectors, with the messages of the original parser.

use super::{Operator, ParseError, Requirement};
use crate::go::quote;
use crate::names::{label_value, qualified_name};

const BINARY: &str = "in, notin, =, ==, !=, gt, lt";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    Error,
    End,
    Close,
    Comma,
    Not,
    DoubleEquals,
    Equals,
    Greater,
    Identifier,
    In,
    Less,
    NotEquals,
    NotIn,
    Open,
}

pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, ParseError> {
    let mut parser = Parser { items: scan(text), position: 0 };
    let mut requirements = Vec::new();
    loop {
        match parser.peek() {
            (Token::Identifier | Token::Not, _) => {
                let requirement = parser
                    .requirement()
                    .map_err(|error| ParseError(format!("unable to parse requirement: {error}")))?;
                requirements.push(requirement);
                match parser.next() {
                    (Token::End, _) => return Ok(requirements),
                    (Token::Comma, _) => {
                        let (token, literal) = parser.peek();
                        if !matches!(token, Token::Identifier | Token::Not) {
                            return Err(ParseError(format!(
                                "found '{literal}', expected: identifier after ','"
                            )));
                        }
                    }
                    (_, literal) => {
                        return Err(ParseError(format!(
                            "found '{literal}', expected: ',' or 'end of string'"
                        )));
                    }
                }
            }
            (Token::End, _) => return Ok(requirements),
            (_, literal) => {
                return Err(ParseError(format!(
                    "found '{literal}', expected: !, identifier, or 'end of string'"
                )));
            }
        }
    }
}

/// Everything that is wrong with a requirement.
pub(super) fn validate(key: &str, operator: Operator, values: &[String]) -> Vec<String> {
    let mut errors = Vec::new();
    let wrong = qualified_name(key);
    if !wrong.is_empty() {
        errors.push(format!("key: Invalid value: {}: {}", quote(key), wrong.join("; ")));
    }
    let listed = || {
        let quoted: Vec<_> = values.iter().map(|value| quote(value)).collect();
        format!("values: Invalid value: [{}]", quoted.join(","))
    };
    match operator {
        Operator::In | Operator::NotIn if values.is_empty() => {
            errors.push(format!("{}: for 'in', 'notin' operators, values set can't be empty", listed()));
        }
        Operator::Equals | Operator::DoubleEquals | Operator::NotEquals if values.len() != 1 => {
            errors.push(format!("{}: exact-match compatibility requires one single value", listed()));
        }
        Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
            errors.push(format!("{}: values set must be empty for exists and does not exist", listed()));
        }
        Operator::GreaterThan | Operator::LessThan => {
            if values.len() != 1 {
                errors.push(format!("{}: for 'Gt', 'Lt' operators, exactly one value is required", listed()));
            }
            for (index, value) in values.iter().enumerate() {
                if value.parse::<i64>().is_err() {
                    errors.push(format!(
                        "values[{index}]: Invalid value: {}: for 'Gt', 'Lt' operators, the value must be an integer",
                        quote(value)
                    ));
                }
            }
        }
        _ => {}
    }
    for (index, value) in values.iter().enumerate() {
        let wrong = label_value(value);
        if !wrong.is_empty() {
            errors.push(format!(
                "values[{index}][{key}]: Invalid value: {}: {}",
                quote(value),
                wrong.join("; ")
            ));
        }
    }
    errors
}

struct Parser<'t> {
    items: Vec<(Token, std::borrow::Cow<'t, str>)>,
    position: usize,
}

impl Parser<'_> {
    /// The next token where keywords are no keywords.
    fn peek(&self) -> (Token, &str) {
        let (token, literal) = self.raw();
        match token {
            Token::In | Token::NotIn => (Token::Identifier, literal),
            other => (other, literal),
        }
    }

    fn next(&mut self) -> (Token, String) {
        let (token, literal) = self.peek();
        let item = (token, literal.to_owned());
        self.position += 1;
        item
    }

    fn raw(&self) -> (Token, &str) {
        self.items.get(self.position).map_or((Token::End, ""), |(token, literal)| (*token, literal))
    }

    fn requirement(&mut self) -> Result<Requirement, ParseError> {
        let (mut token, mut key) = self.next();
        let absent = token == Token::Not;
        if absent {
            (token, key) = self.next();
        }
        if token != Token::Identifier {
            return Err(ParseError(format!("found '{key}', expected: identifier")));
        }
        let wrong = qualified_name(&key);
        if !wrong.is_empty() {
            return Err(ParseError(format!("<nil>: Invalid value: {}: {}", quote(&key), wrong.join("; "))));
        }
        if absent {
            return Requirement::new(key, Operator::DoesNotExist, Vec::new());
        }
        if matches!(self.peek().0, Token::End | Token::Comma) {
            return Requirement::new(key, Operator::Exists, Vec::new());
        }
        let (token, literal) = self.raw();
        let operator = match token {
            Token::In => Operator::In,
            Token::NotIn => Operator::NotIn,
            Token::Equals => Operator::Equals,
            Token::DoubleEquals => Operator::DoubleEquals,
            Token::NotEquals => Operator::NotEquals,
            Token::Greater => Operator::GreaterThan,
            Token::Less => Operator::LessThan,
            _ => return Err(ParseError(format!("found '{literal}', expected: {BINARY}"))),
        };
        self.position += 1;
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => self.exact_value()?,
        };
        Requirement::new(key, operator, values)
    }

    fn values(&mut self) -> Result<Vec<String>, ParseError> {
        let (token, literal) = self.next();
        if token != Token::Open {
            return Err(ParseError(format!("found '{literal}' expected: '('")));
        }
        match self.peek() {
            (Token::Identifier | Token::Comma, first) => {
                let first = first.to_owned();
                let mut values = self.identifiers()?;
                if self.next().0 != Token::Close {
                    return Err(ParseError(format!("found '{first}', expected: ')'")));
                }
                values.sort_unstable();
                values.dedup();
                Ok(values)
            }
            (Token::Close, _) => {
                self.position += 1;
                Ok(vec![String::new()])
            }
            (_, literal) => Err(ParseError(format!("found '{literal}', expected: ',', ')' or identifier"))),
        }
    }

    fn identifiers(&mut self) -> Result<Vec<String>, ParseError> {
        let mut values = Vec::new();
        loop {
            match self.next() {
                (Token::Identifier, literal) => {
                    values.push(literal);
                    match self.peek() {
                        (Token::Comma, _) => {}
                        (Token::Close, _) => return Ok(values),
                        (_, literal) => {
                            return Err(ParseError(format!("found '{literal}', expected: ',' or ')'")));
                        }
                    }
                }
                (Token::Comma, _) => {
                    if values.is_empty() {
                        values.push(String::new());
                    }
                    match self.peek().0 {
                        Token::Close => {
                            values.push(String::new());
                            return Ok(values);
                        }
                        Token::Comma => values.push(String::new()),
                        _ => {}
                    }
                }
                (_, literal) => {
                    return Err(ParseError(format!("found '{literal}', expected: ',', or identifier")));
                }
            }
        }
    }

    fn exact_value(&mut self) -> Result<Vec<String>, ParseError> {
        if matches!(self.peek().0, Token::End | Token::Comma) {
            return Ok(vec![String::new()]);
        }
        match self.next() {
            (Token::Identifier, literal) => Ok(vec![literal]),
            (_, literal) => Err(ParseError(format!("found '{literal}', expected: identifier"))),
        }
    }
}

fn scan(text: &str) -> Vec<(Token, std::borrow::Cow<'_, str>)> {
    // A zero byte ends the text, as it does for the original.
    let text = text.split('\0').next().unwrap_or_default();
    let special = |c: char| matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<');
    let space = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
    let mut items = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(space);
        let Some(first) = rest.chars().next() else { break };
        if special(first) {
            let run = rest.find(|c| !special(c)).unwrap_or(rest.len());
            let mut known = None;
            let mut length = 0;
            for end in 1..=run {
                match symbol(&rest[..end]) {
                    Some(token) => (known, length) = (Some(token), end),
                    None if known.is_some() => break,
                    None => {}
                }
            }
            match known {
                Some(token) => {
                    items.push((token, rest[..length].into()));
                    rest = &rest[length..];
                }
                None => {
                    items.push((
                        Token::Error,
                        format!("error expected: keyword found '{}'", &rest[..run]).into(),
                    ));
                    rest = &rest[run..];
                }
            }
        } else {
            let end = rest.find(|c| special(c) || space(c)).unwrap_or(rest.len());
            let token = match &rest[..end] {
                "in" => Token::In,
                "notin" => Token::NotIn,
                _ => Token::Identifier,
            };
            items.push((token, rest[..end].into()));
            rest = &rest[end..];
        }
    }
    items.push((Token::End, "".into()));
    items
}

fn symbol(text: &str) -> Option<Token> {
    Some(match text {
        ")" => Token::Close,
        "," => Token::Comma,
        "!" => Token::Not,
        "==" => Token::DoubleEquals,
        "=" => Token::Equals,
        ">" => Token::Greater,
        "<" => Token::Less,
        "!=" => Token::NotEquals,
        "(" => Token::Open,
        _ => return None,
    })
}
