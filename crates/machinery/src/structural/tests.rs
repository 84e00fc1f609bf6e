//! Answers of a real API server, compared with ours. Errors are compared as sets: the server's maps have no
//! order.

use serde_json::{Value, json};

use super::*;
use crate::schema::Schemas;

/// The parts of metadata that the recordings use.
const METADATA: &str = r#"{"Meta": {"go": "v1.ObjectMeta", "f": [
    {"n": "name", "t": "string", "o": 1}, {"n": "namespace", "t": "string", "o": 1},
    {"n": "labels", "t": "map:string", "o": 1}, {"n": "finalizers", "t": "[]string", "o": 1},
    {"n": "creationTimestamp", "t": "time", "o": 1}, {"n": "resourceVersion", "t": "string", "o": 1}
]}}"#;

fn recordings(text: &str) -> Vec<Value> {
    serde_json::from_str(text).unwrap()
}

/// The causes that we have and the server has not, and the reverse.
fn differences(errors: &[FieldError], causes: &Value) -> Vec<String> {
    let mut ours: Vec<String> = errors.iter().map(|error| error.cause().to_string()).collect();
    let mut theirs: Vec<String> = causes.as_array().into_iter().flatten().map(ToString::to_string).collect();
    // The status has each message of a field once.
    for list in [&mut ours, &mut theirs] {
        list.sort();
        list.dedup();
    }
    let more = ours.iter().filter(|one| !theirs.contains(one)).map(|one| format!("  not expected: {one}"));
    let less = theirs.iter().filter(|one| !ours.contains(one)).map(|one| format!("  missing: {one}"));
    more.chain(less).collect()
}

#[test]
fn definitions_are_refused_as_a_real_server_refuses_them() {
    let mut wrong = Vec::new();
    let all = recordings(include_str!("../../fixtures/structural/definitions.json"));
    for recording in &all {
        let mut definition = recording["definition"].clone();
        default_definition(&mut definition);
        let found = differences(&check_definition(&definition, recording.get("old")), &recording["causes"]);
        if !found.is_empty() {
            wrong.push(format!("{}\n{}", recording["definition"]["spec"], found.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

#[test]
fn objects_are_pruned_defaulted_and_checked_as_a_real_server_does_it() {
    let mut builtin = Schemas::from_table(METADATA).unwrap();
    let meta = builtin.root("Meta").unwrap();
    let mut wrong = Vec::new();
    let mut count = 0;
    for group in &recordings(include_str!("../../fixtures/structural/objects.json")) {
        let compiled = compile(&group["schema"], builtin.at(meta));
        for recording in group["objects"].as_array().unwrap() {
            count += 1;
            let found = replay(recording, compiled.root());
            if !found.is_empty() {
                wrong.push(format!("{}\n{}", recording["object"], found.join("\n")));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}

fn replay(recording: &Value, ty: Type<'_>) -> Vec<String> {
    let prepare = |value: &Value| {
        let mut value = value.clone();
        let unknown = prune(&mut value, ty);
        default(&mut value, ty);
        (value, unknown)
    };
    let (object, unknown) = prepare(&recording["object"]);
    let old = recording.get("old").map(|old| prepare(old).0);
    let errors = validate(&object, old.as_ref(), ty);
    let mut out = differences(&errors, &recording["causes"]);
    let warnings: Vec<String> = unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
    if json!(warnings) != *recording.get("warnings").unwrap_or(&json!([])) {
        out.push(format!("  warnings: {warnings:?}, expected {}", recording["warnings"]));
    }
    if let Some(expected) = recording.get("result") {
        let mut body = object;
        for name in ["apiVersion", "kind", "metadata"] {
            body.as_object_mut().unwrap().remove(name);
        }
        // Go writes whole floats without a fraction.
        if crate::go::json(&body) != crate::go::json(expected) {
            out.push(format!("  result: {body}, expected {expected}"));
        }
    }
    out
}
