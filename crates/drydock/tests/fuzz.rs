//! A short run of the fuzz target: requests that make sense, changed until they do not.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "fuzz/target.rs"]
mod target;

use windlass_machinery::Context;

const TURNS: usize = 1500;

const SEEDS: &[(u8, u8, &str, &str)] = &[
    (
        1,
        0,
        "api/v1/namespaces/default/configmaps",
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"x":"y"}},"data":{"k":"v"}}"#,
    ),
    (
        1,
        1,
        "api/v1/namespaces/default/configmaps?fieldValidation=Strict",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata:\n  a: '1'\n",
    ),
    (1, 2, "api/v1/namespaces/default/configmaps", "k8s\0\n\x0c\n\x02v1\x12\x06Secret"),
    (
        2,
        0,
        "api/v1/namespaces/default/configmaps/a?dryRun=All",
        r#"{"metadata":{"name":"a","resourceVersion":"1"}}"#,
    ),
    (3, 3, "api/v1/namespaces/default/configmaps/a", r#"[{"op":"add","path":"/data/x","value":"y"}]"#),
    (3, 5, "apis/apps/v1/namespaces/default/deployments/d/scale", r#"{"spec":{"replicas":3}}"#),
    (
        3,
        6,
        "apis/apps/v1/namespaces/default/deployments/d?fieldManager=m&force=true",
        r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}"#,
    ),
    (
        1,
        0,
        "apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"apples.t.io"},"spec":{"group":"t.io","scope":"Namespaced","names":{"plural":"apples","kind":"Apple"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}"#,
    ),
    (
        1,
        0,
        "apis/t.io/v1/namespaces/default/apples",
        r#"{"apiVersion":"t.io/v1","kind":"Apple","metadata":{"name":"x"},"spec":{"a":[1,{"b":null}]}}"#,
    ),
    (
        0,
        0,
        "api/v1/pods?watch=1&resourceVersion=0&allowWatchBookmarks=true&fieldSelector=spec.nodeName%3D",
        "",
    ),
    (
        0,
        0,
        "api/v1/namespaces?limit=2&labelSelector=a%20in%20(b,c)&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0",
        "",
    ),
    (0, 0, "openapi/v3/apis/apps/v1", ""),
    (
        4,
        0,
        "api/v1/namespaces/default/configmaps/a",
        r#"{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"x"}}"#,
    ),
    (
        1,
        0,
        "apis/authorization.k8s.io/v1/subjectaccessreviews",
        r#"{"spec":{"user":"u","resourceAttributes":{"verb":"get","resource":"pods"}}}"#,
    ),
    (
        1,
        0,
        "api/v1/namespaces/default/serviceaccounts/default/token",
        r#"{"spec":{"audiences":["a"],"expirationSeconds":600}}"#,
    ),
];

#[test]
fn any_request_is_answered() {
    let random = Context::seeded(11);
    let below = |bound: usize| usize::try_from(random.below(bound as u64)).unwrap();
    let seed = |index: usize| {
        let (method, kind, path, body) = SEEDS[index];
        let mut bytes = vec![method, kind];
        bytes.extend(path.as_bytes());
        bytes.push(0);
        bytes.extend(body.as_bytes());
        bytes
    };
    for index in 0..SEEDS.len() {
        target::request(&seed(index));
    }
    for _ in 0..TURNS {
        let mut bytes = seed(below(SEEDS.len()));
        for _ in 0..=below(4) {
            let at = below(bytes.len() + 1);
            let length = below((bytes.len() - at).min(12) + 1);
            match below(5) {
                0 => bytes.truncate(at.max(3)),
                1 => drop(bytes.drain(at..at + length)),
                2 => bytes.insert(at, u8::try_from(below(256)).unwrap()),
                3 => {
                    let copy = bytes[at..at + length].to_vec();
                    bytes.splice(at..at, copy);
                }
                _ => {
                    let other = seed(below(SEEDS.len()));
                    let from = below(other.len());
                    bytes.splice(at..at, other[from..(from + 40).min(other.len())].iter().copied());
                }
            }
        }
        target::request(&bytes);
    }
}
