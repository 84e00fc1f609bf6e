use serde_json::json;

use super::*;

/// A package with a channel of these entries, and a bundle for each: name, what it replaces, what it skips.
fn catalog(entries: &[(&str, &str, &[&str])]) -> Vec<Value> {
    let mut documents = vec![
        json!({"schema": "olm.package", "name": "a", "defaultChannel": "stable"}),
        json!({"schema": "olm.channel", "package": "a", "name": "stable", "entries": entries.iter().map(|(version, replaces, skips)| {
            let mut entry = json!({"name": format!("a.v{version}")});
            if !replaces.is_empty() {
                entry["replaces"] = format!("a.v{replaces}").into();
            }
            if !skips.is_empty() {
                entry["skips"] = skips.iter().map(|skip| format!("a.v{skip}")).collect::<Vec<_>>().into();
            }
            entry
        }).collect::<Vec<_>>()}),
    ];
    let bundle = |version: &str| {
        json!({"schema": "olm.bundle", "package": "a", "name": format!("a.v{version}"), "image": "example.org/a:1",
            "properties": [{"type": "olm.package", "value": {"packageName": "a", "version": version}}]})
    };
    documents.extend(entries.iter().map(|(version, ..)| bundle(version)));
    documents
}

/// The one problem.
fn problem(documents: &[Value]) -> String {
    let problems = problems(documents);
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems[0].clone()
}

#[test]
fn one_way_up_is_good() {
    for good in [
        &[("1.0.0", "", &[][..])][..],
        &[("1.0.0", "0.9.0", &[]), ("1.1.0", "1.0.0", &[])],
        &[("1.0.0", "", &[]), ("1.1.0", "1.0.0", &[]), ("1.2.0", "1.0.0", &["1.1.0"])],
    ] {
        assert_eq!(problems(&catalog(good)), Vec::<String>::new());
    }
}

#[test]
fn a_broken_way_up_is_told() {
    let two = problem(&catalog(&[("1.0.0", "", &[]), ("1.1.0", "", &[])]));
    assert!(two.contains("a.v1.0.0, a.v1.1.0") && two.contains("--replaces"), "{two}");
    let circle = problems(&catalog(&[("1.0.0", "1.1.0", &[]), ("1.1.0", "1.0.0", &[])]));
    assert!(circle.iter().any(|problem| problem.contains("circle")), "{circle:?}");
    let tail =
        problems(&catalog(&[("1.0.0", "1.1.0", &[]), ("1.1.0", "1.0.0", &[]), ("1.2.0", "1.1.0", &[])]));
    assert!(tail.iter().any(|problem| problem.contains("circle")), "{tail:?}");
    // The newest skips one whose predecessor then has no way up.
    let stranded =
        problem(&catalog(&[("1.0.0", "", &[]), ("1.1.0", "1.0.0", &[]), ("1.2.0", "", &["1.1.0"])]));
    assert!(stranded.contains("a.v1.0.0"), "{stranded}");
    let back = problem(&catalog(&[("1.1.0", "", &[]), ("1.0.0", "1.1.0", &[])]));
    assert!(back.contains("newer"), "{back}");
}

#[test]
fn what_is_missing_or_twice_is_told() {
    let whole = catalog(&[("1.0.0", "", &[]), ("1.1.0", "1.0.0", &[])]);
    let without = |index: usize| {
        let mut documents = whole.clone();
        documents.remove(index);
        problem(&documents)
    };
    assert!(without(0).contains("no olm.package"));
    assert!(without(3).contains("there is no bundle a.v1.1.0"));
    let changed = |index: usize, pointer: &str, value: Value| {
        let mut documents = whole.clone();
        *documents[index].pointer_mut(pointer).unwrap() = value;
        problem(&documents)
    };
    assert!(changed(0, "/defaultChannel", json!("fast")).contains("\"fast\" is not there"));
    assert!(changed(2, "/image", json!("")).contains("no image"));
    assert!(changed(2, "/properties/0/value/packageName", json!("b")).contains("says it is of package"));
    assert!(changed(2, "/properties/0/value/version", json!("1")).contains("three numbers"));
    assert!(changed(2, "/properties", json!([])).contains("exactly one property"));
    assert!(changed(3, "/properties/0/value/version", json!("1.0.0")).contains("same version"));
    let mut twice = whole.clone();
    twice.push(whole[1].clone());
    assert!(problem(&twice).contains("channel stable is there twice"));
    let mut spare = whole.clone();
    spare
        .push(json!({"schema": "olm.bundle", "package": "a", "name": "a.v3.0.0", "image": "example.org/a:1",
        "properties": [{"type": "olm.package", "value": {"packageName": "a", "version": "3.0.0"}}]}));
    assert!(problem(&spare).contains("in no channel"));
}
