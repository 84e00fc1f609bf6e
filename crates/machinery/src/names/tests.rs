use serde_json::json;

use super::*;
use crate::invalid::{Path, summary};

#[test]
fn labels_and_subdomains_are_told_apart() {
    assert!(dns1123_label("my-name").is_empty());
    assert_eq!(dns1123_label("a.b"), ["must not contain dots"]);
    assert!(dns1123_subdomain("a.b-c.d").is_empty());
    assert_eq!(
        dns1123_subdomain("A_b"),
        [
            r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        ]
    );
    assert_eq!(dns1123_label(&"a".repeat(64)), ["must be no more than 63 characters"]);
}

#[test]
fn qualified_names_may_have_one_prefix() {
    assert!(qualified_name("example.com/My.Name_1").is_empty());
    assert_eq!(qualified_name("/x"), ["prefix part must be non-empty"]);
    assert!(qualified_name("a/b/c")[0].starts_with("a valid label key must consist of"));
    assert_eq!(
        qualified_name("a b"),
        [
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
        ]
    );
}

#[test]
fn ports_have_names_and_numbers() {
    assert!(port_name("http-1").is_empty());
    assert_eq!(port_name("1"), ["must contain at least one letter (a-z)"]);
    assert_eq!(port_number(0), ["must be between 1 and 65535, inclusive"]);
}

#[test]
fn a_new_object_needs_a_name() {
    let errors = object_meta(&json!({"namespace": "n"}), true, subdomain_name, &Path::new("metadata"));
    assert_eq!(summary(&errors), "metadata.name: Required value: name or generateName is required");
}

#[test]
fn owners_are_whole() {
    let meta = json!({"name": "x", "namespace": "n", "ownerReferences": [
        {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": ""}
    ]});
    let errors = object_meta(&meta, true, subdomain_name, &Path::new("metadata"));
    assert_eq!(summary(&errors), "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty");
}

#[test]
fn names_and_uids_stay() {
    let old = json!({"name": "x", "uid": "1", "resourceVersion": "1"});
    let new = json!({"name": "y", "uid": "1"});
    let errors = object_meta_update(&new, &old, &Path::new("metadata"));
    assert_eq!(
        summary(&errors),
        "[metadata.resourceVersion: Invalid value: \"\": must be specified for an update, metadata.name: Invalid value: \"y\": field is immutable]"
    );
}

#[test]
fn an_object_that_goes_gets_no_finalizers() {
    let old = json!({"name": "x", "resourceVersion": "1", "deletionTimestamp": "t", "finalizers": ["a/b"]});
    let new =
        json!({"name": "x", "resourceVersion": "1", "deletionTimestamp": "t", "finalizers": ["a/b", "a/c"]});
    let errors = object_meta_update(&new, &old, &Path::new("metadata"));
    assert_eq!(
        summary(&errors),
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"a/c\"}"
    );
}
