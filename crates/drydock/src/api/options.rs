//! The options of a request: dry run, field manager, strictness.

use serde_json::{Map, Value, json};
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
    /// The options as the client gave them, for those who admit the write.
    pub given: Map<String, Value>,
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
            given: Map::new(),
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
            if let Some((at, char)) = name.char_indices().find(|(_, char)| char.is_control()) {
                let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(char));
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
        let mut given = Map::new();
        if dry_run {
            given.insert("dryRun".into(), json!(["All"]));
        }
        for (field, value) in [("fieldManager", named), ("fieldValidation", query.get("fieldValidation"))] {
            if let Some(value) = value {
                given.insert(field.into(), value.into());
            }
        }
        Ok(Self { dry_run, manager, validation, force, given })
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
    /// Whether the request names no object, but all of a kind.
    pub collection: bool,
    /// The options as the client gave them, for those who admit the deletion.
    pub given: Map<String, Value>,
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
        let mut given = options.as_object().cloned().unwrap_or_default();
        given.retain(|_, value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()));
        Ok(Self {
            collection: false,
            given,
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
        if let Some(policy) = query.first("propagationPolicy") {
            options["propagationPolicy"] = policy.into();
        }
        if query.get("orphanDependents").is_some() {
            options["orphanDependents"] = query.flag("orphanDependents").into();
        }
        Ok(options)
    }
}

/// The options of a list or a watch, beside its selectors.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// How many objects at most; 0 is all.
    pub limit: usize,
    /// Where to go on.
    pub from: Option<String>,
    /// The revision the client knows; `None` also where it is 0.
    pub version: Option<String>,
    /// Whether any state that the server has at hand will do.
    pub any_version: bool,
    /// Whether it must be exactly that revision.
    pub exact: bool,
    /// How long a watch lasts.
    pub timeout: Option<u64>,
    /// Whether a watch begins with what is there.
    pub initial_events: Option<bool>,
}

impl ListOptions {
    /// Reads them.
    ///
    /// # Errors
    /// When an option has a value it cannot have, or not beside another.
    pub fn parse(query: &Query, watch: bool) -> Outcome<Self> {
        let number = |name: &str| query.first(name).map(parse_int).transpose();
        let limit = usize::try_from(number("limit")?.unwrap_or(0)).unwrap_or(0);
        let timeout = number("timeoutSeconds")?.map(|seconds| u64::try_from(seconds).unwrap_or(0));
        if let Some(text) = query.get("timeout")
            && !go_duration(text)
        {
            return Err(Failure::bad_request(format!(
                "invalid timeout specified in the request URL - time: invalid duration {text:?}"
            )));
        }
        let from = query.get("continue");
        let version = query.get("resourceVersion");
        let matching = query.get("resourceVersionMatch");
        let initial_events = query.first("sendInitialEvents").map(|_| query.flag("sendInitialEvents"));
        let mut errors = Vec::new();
        let mut forbid = |field: &str, why: &str| errors.push(FieldError::forbidden(field, why));
        const MATCH: &str = "resourceVersionMatch";
        let continued = "resourceVersionMatch is forbidden when continue is provided";
        if watch {
            if initial_events.is_some() && matching != Some("NotOlderThan") {
                forbid(MATCH, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
            }
            if matching.is_some() && initial_events.is_none() {
                forbid(
                    MATCH,
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                );
            }
            if from.is_some() {
                forbid(MATCH, continued);
            }
            if let Some(other) = matching.filter(|known| *known != "NotOlderThan") {
                errors.push(FieldError::not_supported(MATCH, other, ["NotOlderThan"]));
            }
        } else {
            if matching.is_some() && version.is_none() {
                forbid(MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided");
            }
            if matching.is_some() && from.is_some() {
                forbid(MATCH, continued);
            }
            if matching == Some("Exact") && version == Some("0") {
                forbid(MATCH, "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
            }
            if initial_events.is_some() {
                forbid("sendInitialEvents", "sendInitialEvents is forbidden for list");
            }
            if let Some(other) = matching.filter(|known| !matches!(*known, "Exact" | "NotOlderThan")) {
                errors.push(FieldError::not_supported(MATCH, other, ["Exact", "NotOlderThan", ""]));
            }
        }
        refuse("ListOptions", &errors)?;
        let any_version = version == Some("0");
        let version = version.filter(|version| *version != "0").map(ToOwned::to_owned);
        // Pages can only be cut from one state: a limit asks for exactly the revision that is named.
        let exact = matching == Some("Exact") || (limit > 0 && matching.is_none() && version.is_some());
        Ok(Self {
            limit: if any_version { 0 } else { limit },
            from: from.map(ToOwned::to_owned),
            version,
            any_version,
            exact,
            timeout,
            initial_events,
        })
    }
}

/// Whether Go reads a text as a duration (`1h30m`).
fn go_duration(text: &str) -> bool {
    let text = text.trim_start_matches(['-', '+']);
    if text == "0" {
        return true;
    }
    let mut rest = text;
    while !rest.is_empty() {
        let digits =
            rest.len() - rest.trim_start_matches(|char: char| char.is_ascii_digit() || char == '.').len();
        if digits == 0 || rest[..digits].chars().all(|char| char == '.') {
            return false;
        }
        rest = &rest[digits..];
        let Some(unit) = ["ns", "us", "µs", "ms", "s", "m", "h"].iter().find(|unit| rest.starts_with(**unit))
        else {
            return false;
        };
        rest = &rest[unit.len()..];
    }
    !text.is_empty()
}

/// Reads a whole number as Go does.
///
/// # Errors
/// When it is none.
pub fn parse_int(text: &str) -> Outcome<i64> {
    text.parse().map_err(|error| unparsed("ParseInt", text, &error))
}

/// Reads a whole number that is not negative as Go does.
///
/// # Errors
/// When it is none.
pub fn parse_unsigned(text: &str) -> Outcome<u64> {
    // Go takes no sign here.
    if text.starts_with('+') {
        return Err(Failure::bad_request(format!("strconv.ParseUint: parsing {text:?}: invalid syntax")));
    }
    text.parse().map_err(|error| unparsed("ParseUint", text, &error))
}

fn unparsed(function: &str, text: &str, error: &std::num::ParseIntError) -> Failure {
    let why = match error.kind() {
        std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => "value out of range",
        _ => "invalid syntax",
    };
    Failure::bad_request(format!("strconv.{function}: parsing {text:?}: {why}"))
}

fn dry_run<'a>(values: impl Iterator<Item = &'a str>, errors: &mut Vec<FieldError>) -> bool {
    let values: Vec<&str> = values.collect();
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
