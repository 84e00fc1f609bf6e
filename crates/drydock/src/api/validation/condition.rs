//! Conditions as many kinds have them in their status.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;

use super::field::{At, Errors, count, has, list, reasons, text};

const REASON: &str = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?";
const LONGEST_REASON: usize = 1024;
const LONGEST_MESSAGE: usize = 32 * 1024;

/// Conditions of the common form: of each type there is one.
pub(super) fn conditions(out: &mut Errors, status: &Value, at: &At<'_>) {
    let at = &at.child("conditions");
    let mut known = BTreeSet::new();
    for (index, condition) in list(status, "conditions").iter().enumerate() {
        let at = &at.index(index);
        let (kind, status) = (text(condition, "type"), text(condition, "status"));
        if !known.insert(kind) {
            out.push(FieldError::duplicate(at.child("type"), kind));
        }
        reasons(out, kind, &at.child("type"), names::qualified_name(kind));
        if !matches!(status, "True" | "False" | "Unknown") {
            out.push(FieldError::not_supported(at.child("status"), status, ["False", "True", "Unknown"]));
        }
        let seen = count(condition, "observedGeneration");
        if seen < 0 {
            let why = "must be greater than or equal to zero";
            out.push(FieldError::invalid(at.child("observedGeneration"), seen, why));
        }
        if !has(condition, "lastTransitionTime") {
            out.push(FieldError::required(at.child("lastTransitionTime"), ""));
        }
        reason(out, text(condition, "reason"), &at.child("reason"));
        if text(condition, "message").len() > LONGEST_MESSAGE {
            out.push(FieldError::too_long(at.child("message"), LONGEST_MESSAGE));
        }
    }
}

/// Conditions that need a type of their own and nothing else.
pub(super) fn typed(out: &mut Errors, new: &Value, _: &Value) {
    let at = At::new("status");
    let at = &at.child("conditions");
    let mut known = BTreeSet::new();
    for (index, condition) in list(&new["status"], "conditions").iter().enumerate() {
        let (kind, at) = (text(condition, "type"), &at.index(index));
        if !known.insert(kind) {
            out.push(FieldError::duplicate(at.child("type"), kind));
        }
        if kind.is_empty() {
            out.push(FieldError::required(at.child("type"), ""));
        }
    }
}

fn reason(out: &mut Errors, reason: &str, at: &At<'_>) {
    if reason.is_empty() {
        out.push(FieldError::required(at, ""));
        return;
    }
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let fits = reason.starts_with(|c: char| c.is_ascii_alphabetic())
        && reason.ends_with(word)
        && reason.chars().all(|c| word(c) || c == ',' || c == ':');
    if !fits {
        let why = names::regex_text(
            "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric \
             characters or '_,:', and must end with an alphanumeric character or '_'",
            REASON,
            &["my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"],
        );
        out.push(FieldError::invalid(at, reason, why));
    }
    if reason.len() > LONGEST_REASON {
        out.push(FieldError::too_long(at, LONGEST_REASON));
    }
}
