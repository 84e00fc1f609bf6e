//! Jobs: the labels by which a Job finds its pods.

use serde_json::{Value, json};

use super::super::status::Outcome;
use super::super::write::{Write, metadata_of, name_of};

/// Gives a new Job the selector and labels of its own, unless the user does that.
pub(super) fn create(_: &Write<'_>, object: &mut Value) -> Outcome<()> {
    if object["spec"]["manualSelector"] == true {
        return Ok(());
    }
    let name = name_of(object).to_owned();
    let uid = metadata_of(object).get("uid").and_then(Value::as_str).unwrap_or_default().to_owned();
    let labels = [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ];
    // A Job without labels has those of its template, these included.
    let own = metadata_of(object).get("labels").and_then(Value::as_object).filter(|own| !own.is_empty());
    let shared =
        own.is_none_or(|own| object["spec"]["template"]["metadata"]["labels"].as_object() == Some(own));
    for (label, value) in labels {
        if shared {
            object["metadata"]["labels"][label] = value.as_str().into();
        }
        object["spec"]["template"]["metadata"]["labels"][label] = value.as_str().into();
    }
    if object["spec"].get("selector").is_none_or(Value::is_null) {
        object["spec"]["selector"] = json!({});
    }
    object["spec"]["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"] = uid.into();
    Ok(())
}
