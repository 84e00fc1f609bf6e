//! The ConfigMap that a checkup reads its parameters from and writes its verdict into.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Resource as _, ResourceExt as _};

use super::{Checkup, spec};
use crate::CONTROLLER;

/// What a checkup writes begins with this.
pub(super) const WRITTEN: &str = "status.";

pub(super) fn build(checkup: &Checkup) -> ConfigMap {
    let mut data = vec![("spec.timeout".to_owned(), spec::span(checkup.spec.time_limit()))];
    let params = checkup.spec.params.read().unwrap_or_default();
    data.extend(params.into_iter().map(|(name, value)| (format!("spec.param.{name}"), value)));
    ConfigMap {
        metadata: checkup.named(checkup.results()),
        data: Some(data.into_iter().collect()),
        ..ConfigMap::default()
    }
}

/// The same, with what the checkup wrote, and never to change again; whatever the checkup did to its labels and owners
/// is put right.
pub(super) fn frozen(checkup: &Checkup) -> ConfigMap {
    let mut map = build(checkup);
    let labels = map.metadata.labels.get_or_insert_default();
    labels.insert(windlass::MANAGED_BY.into(), CONTROLLER.into());
    map.metadata.owner_references = checkup.controller_owner_ref(&()).map(|mut owner| {
        owner.block_owner_deletion = None;
        vec![owner]
    });
    map.metadata.namespace = checkup.namespace();
    map.immutable = Some(true);
    map
}

/// A key that only a checkup writes, if there is one.
pub(super) fn written(map: &ConfigMap) -> Option<&String> {
    map.data.iter().flatten().map(|(key, _)| key).find(|key| key.starts_with(WRITTEN))
}
