//! Whether a bundle is good: the rules of OLM's own validators and of OperatorHub, as tables.
//!
//! A rule looks at a whole bundle and gives what violates it. What an API server would say of the bundle's objects is asked
//! from a drydock in this process beforehand, so that rules do no I/O.

mod bundle;
mod csv;
mod definitions;
mod hub;
mod layout;
mod objects;
mod server;

use std::collections::BTreeMap;
use std::fmt;

use anyhow::Result;

use self::bundle::Bundle;
use super::facts::Facts;

/// How bad a violation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    /// OLM or OperatorHub refuses the bundle.
    Error,
    /// It works, but not as well as it could.
    Warning,
}

/// A rule.
struct Rule {
    name: &'static str,
    level: Level,
    /// What holds for a good bundle.
    demands: &'static str,
    violations: fn(&Bundle) -> Vec<Finding>,
}

const fn error(name: &'static str, demands: &'static str, violations: fn(&Bundle) -> Vec<Finding>) -> Rule {
    Rule { name, level: Level::Error, demands, violations }
}

const fn warning(name: &'static str, demands: &'static str, violations: fn(&Bundle) -> Vec<Finding>) -> Rule {
    Rule { name, level: Level::Warning, demands, violations }
}

/// All rules, in the order in which they are reported.
const TABLES: [&[Rule]; 5] = [layout::RULES, csv::RULES, definitions::RULES, objects::RULES, hub::RULES];

/// Where a rule is violated, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    file: String,
    /// Empty where it is about the file as a whole.
    field: String,
    message: String,
}

fn finding(file: &str, field: impl Into<String>, message: impl Into<String>) -> Finding {
    Finding { file: file.to_owned(), field: field.into(), message: message.into() }
}

/// All that is wrong with a bundle.
pub(super) struct Report {
    name: String,
    violations: Vec<(&'static Rule, Finding)>,
}

impl Report {
    pub(super) fn errors(&self) -> usize {
        self.count(Level::Error)
    }

    pub(super) fn warnings(&self) -> usize {
        self.count(Level::Warning)
    }

    fn count(&self, level: Level) -> usize {
        self.violations.iter().filter(|(rule, _)| rule.level == level).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (rule, Finding { file, field, message }) in &self.violations {
            let level = if rule.level == Level::Error { "error" } else { "warning" };
            let place = if field.is_empty() { file.clone() } else { format!("{file}: {field}") };
            writeln!(f, "{level}[{}] {place}: {message}", rule.name)?;
        }
        match (self.errors(), self.warnings()) {
            (0, 0) => writeln!(f, "{} is good", self.name),
            (0, warnings) => writeln!(f, "{} is good, with {}", self.name, counted(warnings, "warning")),
            (errors, warnings) => {
                writeln!(f, "{}: {}, {}", self.name, counted(errors, "error"), counted(warnings, "warning"))
            }
        }
    }
}

fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Checks the files of a bundle.
pub(super) async fn validate(files: BTreeMap<String, Vec<u8>>) -> Result<Report> {
    check(&mut Bundle::new(files)).await
}

/// Checks the files of a bundle, and gives what a catalog needs to know of it.
pub(super) async fn facts(files: BTreeMap<String, Vec<u8>>) -> Result<(Report, Option<Facts>)> {
    let mut bundle = Bundle::new(files);
    let report = check(&mut bundle).await?;
    let facts = bundle.csv().map(|csv| Facts {
        package: bundle.annotation(layout::PACKAGE).unwrap_or_default().to_owned(),
        channels: bundle.channels().into_iter().map(str::to_owned).collect(),
        default_channel: bundle.annotation(layout::DEFAULT_CHANNEL).map(str::to_owned),
        csv: csv.tree.clone(),
        defined: bundle.defined().into_iter().map(|(kind, _)| kind).collect(),
    });
    Ok((report, facts))
}

async fn check(bundle: &mut Bundle) -> Result<Report> {
    bundle.refusals = server::refusals(bundle).await?;
    let mut violations = Vec::new();
    for rule in TABLES.into_iter().flatten() {
        violations.extend((rule.violations)(bundle).into_iter().map(|finding| (rule, finding)));
    }
    violations.sort_by_key(|(rule, _)| rule.level);
    let name = bundle.csv().map_or("the bundle", |csv| csv.text("/metadata/name"));
    Ok(Report { name: name.to_owned(), violations })
}

/// The rules, for people to read.
pub(super) fn rules() -> String {
    let line = |rule: &Rule| {
        let level = if rule.level == Level::Error { "error" } else { "warning" };
        format!("{:<24} {level:<8} {}\n", rule.name, rule.demands)
    };
    TABLES.into_iter().flatten().map(line).collect()
}

#[cfg(test)]
mod tests;
