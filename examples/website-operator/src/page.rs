//! The page, in a ConfigMap.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::core::ObjectMeta;

use crate::Website;

pub(crate) fn build(website: &Website) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(website.name_any()), ..ObjectMeta::default() },
        data: Some(BTreeMap::from([("index.html".to_owned(), website.spec.page.clone())])),
        ..ConfigMap::default()
    }
}
