//! What is wrong with a spec that its schema cannot say, field by field.

use kube::ResourceExt as _;
use windlass::{Invalid, is_quantity, same_quantity};

use super::{Component, Monocle};

/// Longest name whose children's names still fit: `<name>-update-idents-<10 digits>` is a label value.
pub(super) const LONGEST_NAME: usize = 63 - "-update-idents-".len() - 10;

pub(super) fn check(monocle: &Monocle) -> Vec<Invalid> {
    let spec = &monocle.spec;
    let mut invalid = Vec::new();
    if monocle.name_any().len() > LONGEST_NAME {
        let message =
            format!("is too long for the names of its children; use at most {LONGEST_NAME} letters");
        invalid.push(Invalid::new("metadata.name", message));
    }
    if !["http://", "https://"].iter().any(|scheme| monocle.public_url().starts_with(scheme)) {
        invalid.push(Invalid::new("spec.publicURL", "is not a URL; use http://… or https://…"));
    }
    if same_quantity(&spec.elastic.storage_size, "0") {
        let message = "is nothing; use 1Gi, for example";
        invalid.push(Invalid::new("spec.elastic.storageSize", message));
    }
    for (field, component) in
        [("api", &spec.api), ("crawler", &spec.crawler), ("elastic", &spec.elastic.component)]
    {
        invalid.extend(quantities(field, component));
    }
    invalid
}

fn quantities(field: &str, component: &Component) -> Vec<Invalid> {
    let resources = component.resources.clone().unwrap_or_default();
    let amounts = [("requests", resources.requests), ("limits", resources.limits)];
    let all = amounts.into_iter().flat_map(|(part, amounts)| {
        let amounts = amounts.unwrap_or_default().into_iter();
        amounts.map(move |(resource, amount)| (format!("spec.{field}.resources.{part}.{resource}"), amount))
    });
    let wrong = all.filter(|(_, amount)| !is_quantity(&amount.0));
    wrong.map(|(field, _)| Invalid::new(field, "is no quantity; use 500m or 1Gi, for example")).collect()
}
