//! Definitions, and whether the ClusterServiceVersion is in step with them.

use std::collections::BTreeSet;

use super::bundle::{Bundle, GroupVersionKind, Refused, text_at};
use super::{Finding, Rule, error, warning};

pub(super) const RULES: &[Rule] = &[
    error("definition-refused", "an API server takes each definition", |bundle| {
        refused(bundle, Refused::Definition)
    }),
    error("definition-twice", "each version of a kind is defined once", twice),
    error("owned-missing", "each owned version of a kind is defined in the bundle", owned_missing),
    error("definition-not-owned", "each definition of the bundle is owned", not_owned),
    error("owned-name", "an owned kind is called by its definition's name", owned_name),
    error("example-refused", "an API server takes each example", |bundle| refused(bundle, Refused::Example)),
    warning("kind-description", "each owned or required kind is described", kind_description),
];

pub(super) fn refused(bundle: &Bundle, of: Refused) -> Vec<Finding> {
    bundle.refusals.iter().filter(|refusal| refusal.of == of).map(|refusal| refusal.finding.clone()).collect()
}

fn title((group, version, kind): &GroupVersionKind) -> String {
    format!("{kind} ({group}/{version})")
}

fn twice(bundle: &Bundle) -> Vec<Finding> {
    let mut seen = BTreeSet::new();
    let again = bundle.defined().into_iter().filter(|(kind, _)| !seen.insert(kind.clone()));
    again
        .map(|(kind, manifest)| {
            manifest.finding("spec.versions", format!("{} is defined twice; remove one", title(&kind)))
        })
        .collect()
}

fn owned_missing(bundle: &Bundle) -> Vec<Finding> {
    let Some(csv) = bundle.csv() else { return Vec::new() };
    let defined: BTreeSet<_> = bundle.defined().into_iter().map(|(kind, _)| kind).collect();
    let missing = bundle.owned().into_iter().enumerate().filter(|(_, kind)| !defined.contains(kind));
    let field = |index: usize| format!("spec.customresourcedefinitions.owned[{index}]");
    let message = |kind: &GroupVersionKind| {
        format!("{} is defined in no file; add its definition, or list it as required", title(kind))
    };
    missing.map(|(index, kind)| csv.finding(field(index), message(&kind))).collect()
}

fn not_owned(bundle: &Bundle) -> Vec<Finding> {
    let owned: BTreeSet<_> = bundle.owned().into_iter().map(|(group, _, kind)| (group, kind)).collect();
    let mut said = BTreeSet::new();
    let mut wrong = Vec::new();
    for (kind, manifest) in bundle.defined() {
        let (group, _, name) = &kind;
        if !owned.contains(&(group.clone(), name.clone())) && said.insert(manifest.file.clone()) {
            let message =
                format!("{} is not among spec.customresourcedefinitions.owned; add it there", title(&kind));
            wrong.push(manifest.finding("spec.names.kind", message));
        }
    }
    wrong
}

fn owned_name(bundle: &Bundle) -> Vec<Finding> {
    let Some(csv) = bundle.csv() else { return Vec::new() };
    let wrong = |(index, one): (usize, &serde_json::Value)| {
        let name = text_at(one, "/name");
        let message = format!("{name:?} is no name of a definition; write it as plural.group");
        let field = format!("spec.customresourcedefinitions.owned[{index}].name");
        (!name.contains('.')).then(|| csv.finding(field, message))
    };
    csv.list("/spec/customresourcedefinitions/owned").iter().enumerate().filter_map(wrong).collect()
}

fn kind_description(bundle: &Bundle) -> Vec<Finding> {
    let Some(csv) = bundle.csv() else { return Vec::new() };
    let mut wrong = Vec::new();
    for list in ["owned", "required"] {
        for (index, one) in csv.list(&format!("/spec/customresourcedefinitions/{list}")).iter().enumerate() {
            if text_at(one, "/description").is_empty() {
                let field = format!("spec.customresourcedefinitions.{list}[{index}].description");
                let message = format!("{} has no description; catalogs show it", text_at(one, "/kind"));
                wrong.push(csv.finding(field, message));
            }
        }
    }
    wrong
}
