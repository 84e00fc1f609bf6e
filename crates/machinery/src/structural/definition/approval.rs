//! Groups that belong to the Kubernetes community.

use serde_json::Value;

use crate::invalid::{FieldError, Path};

const APPROVAL: &str = "api-approved.kubernetes.io";

/// Groups of the Kubernetes community ask for an approval.
pub(super) fn approval(new: &Value, old: Option<&Value>) -> Option<FieldError> {
    let group = new["spec"]["group"].as_str().unwrap_or_default();
    let protected = ["k8s.io", "kubernetes.io"]
        .into_iter()
        .any(|domain| group == domain || group.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.')));
    if !protected {
        return None;
    }
    let approved = |definition: &Value| {
        let text = definition["metadata"]["annotations"][APPROVAL].as_str().unwrap_or_default().to_owned();
        let url = text
            .split_once("://")
            .is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty() && !rest.starts_with('/'));
        let state = if text.is_empty() {
            "missing"
        } else if text.starts_with("unapproved") {
            "bypassed"
        } else if url {
            "approved"
        } else {
            "invalid"
        };
        (state, text)
    };
    let (state, text) = approved(new);
    if old.is_some_and(|old| approved(old).0 == state) {
        return None;
    }
    let at = Path::new("metadata.annotations").key(APPROVAL);
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let must = format!("protected groups must have approval annotation \"{APPROVAL}\"");
    match state {
        "missing" => Some(FieldError::required(at, format!("{must}, {see}"))),
        "invalid" => {
            let why = format!("{must} with either a URL or a reason starting with \"unapproved\", {see}");
            Some(FieldError::invalid(at, text, why))
        }
        _ => None,
    }
}
