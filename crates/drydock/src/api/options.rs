//! The options of a request: dry run, field manager, strictness.

use serde_json::{Value, json};
use windlass_machinery::invalid::FieldError;

use super::request::Query;
use super::status::{Failure, Outcome};

/// What to do about unknown and duplicate fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValidation {
    /// Nothing.
    Ignore,
    /// Tell the client.
    Warn,
    /// Refuse.
    Strict,
}

/// The options of a write.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// Do everything but write.
    pub dry_run: bool,
    /// Who owns the fields it sets.
    pub manager: String,
    /// What to do about unknown fields.
    pub validation: FieldValidation,
    /// Take fields over from other managers.
    pub force: Option<bool>,
}

impl WriteOptions {
    /// The options of a write that no client sent.
    #[must_use]
    pub fn internal() -> Self {
        Self {
            dry_run: false,
            manager: "kube-apiserver".to_owned(),
            validation: FieldValidation::Ignore,
            force: None,
        }
    }

    /// Reads them. `kind` is `CreateOptions`, `UpdateOptions` or `PatchOptions`.
    ///
    /// # Errors
    /// When an option has a value it cannot have.
    pub fn parse(kind: &str, query: &Query, user_agent: &str, apply: bool) -> Outcome<Self> {
        let mut errors = Vec::new();
        let dry_run = dry_run(query.all("dryRun"), &mut errors);
        let named = query.get("fieldManager");
        let force = query.get("force").map(|text| !matches!(text, "false" | "0"));
        if kind == "PatchOptions" {
            if apply && named.is_none() {
                errors.push(FieldError::required("fieldManager", "is required for apply patch"));
            }
            if !apply && force.is_some() {
                errors.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
            }
        }
        if let Some(name) = named {
            if name.len() > 128 {
                errors.push(FieldError::too_long("fieldManager", 128));
            }
            if let Some((at, char)) = name.chars().enumerate().find(|(_, char)| char.is_control()) {
                let detail = format!(
                    "should only contain printable characters, invalid character at position {at}: {char:?}"
                );
                errors.push(FieldError::invalid("fieldManager", name, detail));
            }
        }
        let validation = match query.get("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                let known = ["", "Ignore", "Strict", "Warn"];
                errors.push(FieldError::not_supported("fieldValidation", other, known));
                FieldValidation::Warn
            }
        };
        refuse(kind, &errors)?;
        let manager = named.map_or_else(|| manager_of(user_agent), ToOwned::to_owned);
        Ok(Self { dry_run, manager, validation, force })
    }
}

/// The options of a deletion.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// Do everything but delete.
    pub dry_run: bool,
    /// How long the object may take to stop.
    pub grace: Option<i64>,
    /// Only the object with this uid.
    pub uid: Option<String>,
    /// Only the object at this revision.
    pub resource_version: Option<String>,
    /// What becomes of its dependents.
    pub propagation: Option<Propagation>,
}

/// What becomes of the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They go first.
    Foreground,
    /// They go afterwards.
    Background,
    /// They stay.
    Orphan,
}

impl DeleteOptions {
    /// Reads them from the body, where there is one, or from the query.
    ///
    /// # Errors
    /// When an option has a value it cannot have.
    pub fn parse(body: Option<&Value>, query: &Query) -> Outcome<Self> {
        let mut errors = Vec::new();
        let from_query;
        let options = match body {
            Some(body) => body,
            None => {
                from_query = Self::query(query)?;
                &from_query
            }
        };
        let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
        let dry = options["dryRun"].as_array().map(Vec::as_slice).unwrap_or_default();
        let dry_run = dry_run(dry.iter().filter_map(Value::as_str), &mut errors);
        let orphan = options["orphanDependents"].as_bool();
        let propagation = match options["propagationPolicy"].as_str() {
            None => orphan.map(|orphan| if orphan { Propagation::Orphan } else { Propagation::Background }),
            Some("Foreground") => Some(Propagation::Foreground),
            Some("Background") => Some(Propagation::Background),
            Some("Orphan") => Some(Propagation::Orphan),
            Some(other) => {
                let known = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported("propagationPolicy", other, known));
                None
            }
        };
        if orphan.is_some() && options["propagationPolicy"].is_string() {
            let detail = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid(
                "propagationPolicy",
                options["propagationPolicy"].clone(),
                detail,
            ));
        }
        refuse("DeleteOptions", &errors)?;
        Ok(Self {
            dry_run,
            grace: options["gracePeriodSeconds"].as_i64(),
            uid: text(&options["preconditions"]["uid"]),
            resource_version: text(&options["preconditions"]["resourceVersion"]),
            propagation,
        })
    }

    fn query(query: &Query) -> Outcome<Value> {
        let mut options = json!({"dryRun": query.all("dryRun").collect::<Vec<_>>()});
        if let Some(grace) = query.get("gracePeriodSeconds") {
            options["gracePeriodSeconds"] = parse_int(grace)?.into();
        }
        if let Some(policy) = query.get("propagationPolicy") {
            options["propagationPolicy"] = policy.into();
        }
        if query.get("orphanDependents").is_some() {
            options["orphanDependents"] = query.flag("orphanDependents").into();
        }
        Ok(options)
    }
}

/// Reads a whole number as Go does.
///
/// # Errors
/// When it is none.
pub fn parse_int(text: &str) -> Outcome<i64> {
    text.parse()
        .map_err(|_| Failure::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax")))
}

fn dry_run<'a>(values: impl Iterator<Item = &'a str>, errors: &mut Vec<FieldError>) -> bool {
    let values: Vec<&str> = values.filter(|value| !value.is_empty()).collect();
    if values.iter().any(|value| *value != "All") {
        errors.push(FieldError::not_supported("dryRun", json!(values), ["All"]));
    }
    !values.is_empty()
}

fn refuse(kind: &str, errors: &[FieldError]) -> Outcome<()> {
    if errors.is_empty() { Ok(()) } else { Err(Failure::invalid("meta.k8s.io", kind, "", errors)) }
}

/// The name a client goes by where it does not name a field manager: its user agent up to the slash.
fn manager_of(user_agent: &str) -> String {
    let name = user_agent.split('/').next().unwrap_or_default();
    let mut out = String::new();
    for char in name.chars().filter(|char| !char.is_control()) {
        if out.len() + char.len_utf8() > 128 {
            break;
        }
        out.push(char);
    }
    out
}
