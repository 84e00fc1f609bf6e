//! What is done with bytes that nobody vouches for. Each function takes any bytes and must come back: what it
//! comes to does not matter here.
//!
//! The targets of cargo-fuzz in `fuzz/` call these, and so does the short run of each in the tests.

use std::sync::LazyLock;

use serde_json::{Value, json};
use windlass_machinery::cel::{Environment, Program, Type as CelType};
use windlass_machinery::fields::FieldSet;
use windlass_machinery::managed::{self, Manager};
use windlass_machinery::schema::{NodeId, Schemas, Type};
use windlass_machinery::selector::{Fields, Labels};
use windlass_machinery::{decode, encode, patch, quantity, structural};

static DEPLOYMENT: LazyLock<(Schemas, NodeId)> = LazyLock::new(|| {
    let mut all =
        Schemas::from_table(include_str!("../../../drydock/data/types.json")).expect("the table is whole");
    let root = all.root("io.k8s.api.apps.v1.Deployment").expect("there are deployments");
    (all, root)
});

fn deployment() -> Type<'static> {
    DEPLOYMENT.0.at(DEPLOYMENT.1)
}

fn live() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "d", "labels": {"a": "b"}, "finalizers": ["x/y"]},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": {"spec": {"containers": [
            {"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}], "ports": [{"containerPort": 80}]},
        ]}}},
    })
}

/// Patches of all three kinds, and reading what comes of them.
pub(crate) fn patches(bytes: &[u8]) {
    let Ok((patch, _)) = decode::text(bytes, None) else { return };
    let read = |value: &Value| {
        if let Ok((mut value, _)) = decode::value(value, deployment()) {
            encode::normalise(&mut value, deployment());
        }
    };
    if let Ok(new) = patch::json(&live(), &patch) {
        read(&new);
    }
    if let Ok(new) = patch::strategic(live(), patch.clone(), deployment()) {
        let _ = patch::convert::complaint(&new, deployment());
        read(&new);
    }
    let mut new = live();
    patch::merge(&mut new, patch);
    read(&new);
}

/// Server-side apply: onto nothing, onto an object, and onto what that made.
pub(crate) fn apply(bytes: &[u8]) {
    let Ok((config, _)) = decode::text(bytes, None) else { return };
    let one = Manager { name: "one", api_version: "apps/v1", subresource: "" };
    let two = Manager { name: "two", ..one };
    let now = "2026-01-01T00:00:00Z";
    let applied = |live: Option<&Value>, who: &Manager<'_>| {
        managed::apply(live, config.clone(), deployment(), who, true, &FieldSet::default(), now).ok()
    };
    let first = applied(None, &one);
    applied(Some(&live()), &one);
    if let Some(first) = first {
        applied(Some(&first), &two);
        let mut changed = live();
        managed::update(Some(&first), &mut changed, deployment(), &two, &FieldSet::default(), now);
    }
}

/// Selectors and quantities.
pub(crate) fn selectors(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(labels) = Labels::parse(&text) {
        let _ = labels.matches(|key| (key == "a").then_some("1"));
        let again = Labels::parse(&labels.to_string());
        assert!(again.is_ok(), "{labels} came from {text:?} and is not read again");
    }
    if let Ok(fields) = Fields::parse(&text) {
        let _ = fields.matches(|_| Some("x"));
    }
    if let Ok(canonical) = quantity::canonical(&text) {
        assert_eq!(quantity::canonical(&canonical).as_deref(), Ok(canonical.as_str()), "from {text:?}");
    }
}

/// Definitions of custom resources.
pub(crate) fn definitions(bytes: &[u8]) {
    let Ok((schema, _)) = decode::text(bytes, None) else { return };
    let mut definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "apples.tests.io"},
        "spec": {
            "group": "tests.io", "scope": "Namespaced", "names": {"plural": "apples", "kind": "Apple"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    structural::default_definition(&mut definition);
    let _ = structural::check_definition(&definition, None);
    let _ = structural::check_definition(&definition, Some(&definition.clone()));
}

/// Expressions: whatever compiles has an estimate.
pub(crate) fn expressions(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let environment = Environment::default().with("self", CelType::Dyn);
    if let Ok(program) = Program::compile(&text, &environment) {
        let _ = program.max_cost(None);
    }
}
