//! From the text of an expression to its tree, and what is wrong with it in the words of the real server.

use std::fmt::Write;

use cel::parser::Parser;

use super::expr::{Builder, Expr};

/// How long an expression may be, in characters.
const MAX_LENGTH: usize = 100_000;
/// How deep an expression may nest.
const MAX_DEPTH: usize = 250;
/// How many errors of one expression are told.
const MAX_ERRORS: usize = 100;
/// The parser recurses on each level, and on each operator of a chain; it gets the stack for that.
const STACK: usize = 32 << 20;
const STACK_PER_BYTE: usize = 6 << 10;

/// A parsed expression.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) root: Expr,
    /// Where expressions stand, by their ids.
    pub(super) places: Vec<u32>,
}

/// What is wrong with an expression.
#[derive(Debug)]
pub(super) struct Issues<'a> {
    source: &'a str,
    found: Vec<Issue>,
}

#[derive(Debug)]
struct Issue {
    line: i64,
    /// From 0.
    column: i64,
    message: String,
}

impl<'a> Issues<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        Self { source, found: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Something that is wrong at an offset in the source, in bytes.
    pub(super) fn add(&mut self, offset: u32, message: String) {
        let (mut line, mut column) = (1, 0);
        for (_, character) in self.source.char_indices().take_while(|(at, _)| *at < offset as usize) {
            if character == '\n' {
                line += 1;
                column = 0;
            } else {
                column += 1;
            }
        }
        self.found.push(Issue { line, column, message });
    }

    fn general(&mut self, message: impl Into<String>) {
        self.found.push(Issue { line: -1, column: 0, message: message.into() });
    }

    /// All of it, as the server shows it.
    pub(super) fn text(mut self) -> String {
        self.found.sort_by_key(|issue| (issue.line, issue.column));
        let mut out = String::new();
        for issue in self.found.iter().take(MAX_ERRORS) {
            if !out.is_empty() {
                out.push('\n');
            }
            issue.write(self.source, &mut out);
        }
        if self.found.len() > MAX_ERRORS {
            let _ = write!(out, "\n{} more errors were truncated", self.found.len() - MAX_ERRORS);
        }
        out
    }
}

impl Issue {
    fn write(&self, source: &str, out: &mut String) {
        let _ = write!(out, "ERROR: <input>:{}:{}: {}", self.line, self.column + 1, self.message);
        let line = usize::try_from(self.line - 1).ok().and_then(|index| source.split('\n').nth(index));
        let Some(line) = line.filter(|line| line.len() <= 16384) else {
            return;
        };
        let line = line.replace('\t', " ");
        let _ = write!(out, "\n | {line}\n | ");
        let mut rest = line.chars();
        for _ in 0..self.column {
            let Some(character) = rest.next() else { break };
            out.push(if character.len_utf8() > 1 { '．' } else { '.' });
        }
        let wide = rest.next().is_some_and(|character| character.len_utf8() > 1);
        out.push(if wide { '＾' } else { '^' });
    }
}

/// Parses an expression.
///
/// # Errors
/// What is wrong with it.
pub(super) fn parse(source: &str) -> Result<Parsed, Issues<'_>> {
    let mut issues = Issues::new(source);
    let length = source.chars().count();
    if length > MAX_LENGTH {
        issues
            .general(format!("expression code point size exceeds limit: size: {length}, limit {MAX_LENGTH}"));
        return Err(issues);
    }
    if nesting(source) > MAX_DEPTH {
        issues.general(format!("expression recursion limit exceeded: {MAX_DEPTH}"));
        return Err(issues);
    }
    // On a thread of its own the parser has all the stack it could need, and cannot take anything with it.
    let result = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK + STACK_PER_BYTE * source.len());
        thread.spawn_scoped(scope, || parse_here(source)).map(|running| running.join())
    });
    match result {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => {
            issues.general("expression could not be parsed");
            Err(issues)
        }
        Err(error) => {
            issues.general(format!("expression could not be parsed: {error}"));
            Err(issues)
        }
    }
}

/// How deep brackets nest, those in text not counted: the parser takes long to find that out itself.
fn nesting(source: &str) -> usize {
    let (mut depth, mut most, mut quote, mut escaped) = (0_usize, 0, None, false);
    for character in source.chars() {
        match (quote, character) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), close) if open == close => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(character),
            (None, '(' | '[' | '{') => {
                depth += 1;
                most = most.max(depth);
            }
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    most
}

fn parse_here(source: &str) -> Result<Parsed, Issues<'_>> {
    let mut issues = Issues::new(source);
    let parser = Parser::new()
        .max_recursion_depth(u16::try_from(MAX_DEPTH).unwrap_or(u16::MAX))
        .enable_optional_syntax(true);
    let (tree, info) = match parser.parse_with_source_info(source) {
        Ok(parsed) => parsed,
        Err(errors) => {
            for error in errors.errors {
                let nested =
                    |error: &(dyn std::error::Error + 'static)| error.to_string().contains("Recursion limit");
                if error.source.as_deref().is_some_and(|source| nested(source)) || error.msg == "UNKNOWN" {
                    issues.general(format!("expression recursion limit exceeded: {MAX_DEPTH}"));
                } else if !parser_own(&error.msg) {
                    let (line, column) = (error.pos.0 as i64, error.pos.1 as i64 - 1);
                    issues.found.push(Issue { line, column, message: error.msg });
                }
            }
            if issues.is_empty() {
                issues.general("expression could not be parsed");
            }
            return Err(issues);
        }
    };
    let last = (0..).take_while(|id| *id == 0 || info.offset_for(*id).is_some()).last().unwrap_or(0);
    let places = (0..=last).map(|id| info.offset_for(id).map_or(0, |(start, _)| start)).collect();
    let mut builder = Builder::new(places, MAX_DEPTH);
    let root = builder.build(&tree);
    if builder.too_deep {
        issues.general("max recursion depth exceeded");
        return Err(issues);
    }
    for error in &builder.errors {
        issues.add(builder.places.get(error.id as usize).copied().unwrap_or_default(), error.message.clone());
    }
    if issues.is_empty() { Ok(Parsed { root, places: builder.places }) } else { Err(issues) }
}

/// What the parser says of itself about a tree that the syntax error before it left incomplete.
fn parser_own(message: &str) -> bool {
    (message.starts_with("No `") || message.starts_with("Incomplete")) && message.contains('`')
        || message.starts_with("Incomplete ")
        || message.starts_with("unexpected character, wanted")
}
