//! The environment of a checkup: both generations of the contract at once.

use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, ObjectFieldSelector};
use kube::ResourceExt as _;

use super::Checkup;

/// Variables that no parameter may take the place of.
const RESERVED: &[&str] = &[
    "RESULT_CONFIGMAP_NAMESPACE",
    "RESULT_CONFIGMAP_NAME",
    "CHECKUP_UID",
    "CONFIGMAP_NAMESPACE",
    "CONFIGMAP_NAME",
    "POD_UID",
    "KUBECONFIG",
    "HOSTNAME",
    "HOME",
    "PATH",
];
/// The beginnings of others: where the API is, and what the dynamic linker loads.
const RESERVED_PREFIXES: &[&str] = &["KUBERNETES_", "LD_"];

/// The variable of a parameter.
pub(super) fn variable(param: &str) -> String {
    param.to_ascii_uppercase()
}

pub(super) fn is_reserved(variable: &str) -> bool {
    RESERVED.contains(&variable) || RESERVED_PREFIXES.iter().any(|prefix| variable.starts_with(prefix))
}

pub(super) fn build(checkup: &Checkup) -> Vec<EnvVar> {
    let namespace = checkup.namespace().unwrap_or_default();
    let plain = |name: &str, value: &str| EnvVar {
        name: name.into(),
        value: Some(value.into()),
        ..EnvVar::default()
    };
    let mut variables = vec![
        plain("RESULT_CONFIGMAP_NAMESPACE", &namespace),
        plain("RESULT_CONFIGMAP_NAME", &checkup.results()),
        plain("CHECKUP_UID", &checkup.uid().unwrap_or_default()),
        plain("CONFIGMAP_NAMESPACE", &namespace),
        plain("CONFIGMAP_NAME", &checkup.results()),
        EnvVar {
            name: "POD_UID".into(),
            value_from: Some(EnvVarSource {
                field_ref: Some(ObjectFieldSelector {
                    field_path: "metadata.uid".into(),
                    ..ObjectFieldSelector::default()
                }),
                ..EnvVarSource::default()
            }),
            ..EnvVar::default()
        },
    ];
    let params = checkup.spec.params.read().unwrap_or_default();
    // The kubelet would expand $(NAME): a parameter is taken as it is.
    variables.extend(params.iter().map(|(name, value)| plain(&variable(name), &value.replace('$', "$$"))));
    variables
}
