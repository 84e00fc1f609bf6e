//! The parts of a version besides its schema.

use crate::invalid::{FieldError, Path};
use crate::names;
use crate::structural::openapi::field_path;
use crate::structural::props::Props;

const MAX_SELECTABLE: usize = 8;

pub(super) fn deprecation(version: Props<'_>, path: &Path) -> Vec<FieldError> {
    let Some(warning) = version.pointer("deprecationWarning") else {
        return Vec::new();
    };
    let mut why = Vec::new();
    if !version.flag("deprecated") {
        why.push("can only be set for deprecated versions".to_owned());
    } else {
        if warning.len() > 256 {
            why.push("must be <= 256 characters long".to_owned());
        }
        if warning.is_empty() {
            why.push("must not be an empty string".to_owned());
        }
        if let Some((at, _)) = warning.char_indices().find(|(_, c)| !names::is_print(*c)) {
            why.push(format!(
                "must only contain printable UTF-8 characters; non-printable character found at index {at}"
            ));
        }
    }
    why.into_iter().map(|why| FieldError::invalid(path, warning, why)).collect()
}

pub(super) fn subresources(given: Props<'_>, path: &Path, out: &mut Vec<FieldError>) {
    let Some(scale) = given.schema("scale") else {
        return;
    };
    for (name, roots, why) in [
        ("specReplicasPath", &[".spec."][..], "should be a json path under .spec"),
        ("statusReplicasPath", &[".status."], "should be a json path under .status"),
        ("labelSelectorPath", &[".spec.", ".status."], "should be a json path under either .spec or .status"),
    ] {
        let (text, at) = (scale.text(name), path.child("scale").child(name));
        if text.is_empty() {
            if name != "labelSelectorPath" {
                out.push(FieldError::required(at, ""));
            }
        } else if let Some(error) = json_path(text, &at) {
            out.push(error);
        } else if !roots.iter().any(|root| text.starts_with(root)) {
            out.push(FieldError::invalid(at, text, why));
        }
    }
}

pub(super) fn columns(version: Props<'_>, path: &Path, out: &mut Vec<FieldError>) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    for (index, column) in version.schemas("additionalPrinterColumns").enumerate() {
        let at = path.index(index);
        if column.text("name").is_empty() {
            out.push(FieldError::required(at.child("name"), ""));
        }
        let why = || format!("must be one of {}", TYPES.join(","));
        match column.kind() {
            "" => out.push(FieldError::required(at.child("type"), why())),
            kind if !TYPES.contains(&kind) => out.push(FieldError::invalid(at.child("type"), kind, why())),
            _ => {}
        }
        let format = column.text("format");
        if !format.is_empty() && !FORMATS.contains(&format) {
            let why = format!("must be one of {}", FORMATS.join(","));
            out.push(FieldError::invalid(at.child("format"), format, why));
        }
        let at = at.child("JSONPath");
        match column.text("jsonPath") {
            "" => out.push(FieldError::required(at, "")),
            text => out.extend(json_path(text, &at)),
        }
    }
}

pub(super) fn selectable(version: Props<'_>, schema: Props<'_>, path: &Path, out: &mut Vec<FieldError>) {
    let mut seen: Vec<Vec<String>> = Vec::new();
    for (index, one) in version.schemas("selectableFields").enumerate() {
        let (text, at) = (one.text("jsonPath"), path.index(index).child("jsonPath"));
        if text.is_empty() {
            out.push(FieldError::required(at, ""));
            continue;
        }
        let (names, found) = match field_path(text, schema, false) {
            Ok(found) => found,
            Err(why) => {
                out.push(FieldError::invalid(at, text, format!("is an invalid path: {why}")));
                continue;
            }
        };
        if names.first().is_some_and(|name| name == "metadata") {
            out.push(FieldError::invalid(&at, text, "must not point to fields in metadata"));
        }
        if !found.is_some_and(|found| matches!(found.kind(), "string" | "boolean" | "integer")) {
            let why = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            out.push(FieldError::invalid(&at, text, why));
        }
        if seen.contains(&names) {
            out.push(FieldError::duplicate(at, text));
        } else {
            seen.push(names);
        }
    }
    if seen.len() > MAX_SELECTABLE {
        out.push(FieldError::too_many(path, seen.len(), MAX_SELECTABLE));
    }
}

fn json_path(text: &str, path: &Path) -> Option<FieldError> {
    (!text.starts_with('.'))
        .then(|| FieldError::invalid(path, text, "must be a simple json path starting with ."))
}
