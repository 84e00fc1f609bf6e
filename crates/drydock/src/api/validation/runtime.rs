//! The classes that runtimes have.

use serde_json::{Value, json};
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;

use super::field::{At, Errors, entries, immutable, labels, list, reasons, text};
use super::{internal, resources, scheduling};

/// A runtime class.
pub(super) fn class(out: &mut Errors, class: &Value) {
    let (handler, at) = (text(class, "handler"), &At::new("handler"));
    if handler.is_empty() {
        out.push(FieldError::required(at, ""));
    } else {
        reasons(out, handler, at, names::dns1123_label(handler));
    }
    overhead(out, class);
    let (scheduling, at) = (&class["scheduling"], &At::new("scheduling"));
    labels(out, scheduling, "nodeSelector", at);
    scheduling::tolerations(out, scheduling, at);
    let at = &at.child("tolerations");
    let all = list(scheduling, "tolerations");
    for (index, one) in all.iter().enumerate().filter(|(index, one)| all[..*index].contains(one)) {
        out.push(FieldError::duplicate(at.index(index), internal::shown("Toleration", one)));
    }
}

/// A runtime class keeps its handler.
pub(super) fn class_update(out: &mut Errors, new: &Value, old: &Value) {
    class(out, new);
    immutable(out, &json!(text(new, "handler")), &json!(text(old, "handler")), &At::new("handler"));
}

/// What running costs; the server reports it as the limits of a container.
fn overhead(out: &mut Errors, class: &Value) {
    let at = &At::new("overhead");
    let at = &at.child("limits");
    for (name, value) in entries(&class["overhead"], "podFixed") {
        let at = &at.key(name);
        resources::container_name(out, name, at);
        resources::amount(out, name, value, at);
    }
}
