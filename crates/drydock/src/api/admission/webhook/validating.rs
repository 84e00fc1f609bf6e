//! Validating webhooks: all at once; the first that says no is heard.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use serde_json::Value;

use super::super::super::status::Outcome;
use super::super::Admission;
use super::review::{self, Verdict};
use super::{Versioned, is_exempt, wanted};

/// Lets validating webhooks refuse a write, or warn of it.
pub(in super::super) async fn validate(admission: &mut Admission<'_>, object: &Value) -> Outcome<()> {
    let hooks = admission.server.hooks.validating.hooks(admission.server);
    if hooks.is_empty() || is_exempt(admission.resource) {
        return Ok(());
    }
    let mut calls = Vec::new();
    let mut seen = BTreeMap::new();
    let mut versions = Versioned::new(admission, object);
    for hook in hooks.iter() {
        let Some(resource) = wanted(admission, hook, &mut versions).await? else { continue };
        if !seen.contains_key(&resource.version) {
            let mut own = Versioned::new(admission, object);
            own.turn(admission, &resource).await?;
            seen.insert(resource.version.clone(), own);
        }
        calls.push((hook, resource.version.clone()));
    }
    let shared = &*admission;
    let mut running: FuturesUnordered<_> = calls
        .iter()
        .enumerate()
        .filter_map(|(index, (hook, version))| Some((index, *hook, seen.get(version)?)))
        .map(|(index, hook, versions)| async move {
            (index, hook, review::call(shared, hook, versions, false).await)
        })
        .collect();
    let mut first = None;
    // Warnings come in the order of the webhooks, so that two runs are equal.
    let mut warnings = BTreeMap::new();
    while let Some((index, hook, outcome)) = running.next().await {
        let failure = match outcome {
            Ok(Verdict { denial, warnings: said, .. }) => {
                warnings.insert(index, said);
                denial
            }
            Err(refusal) => refusal.settle(hook),
        };
        first = first.or(failure);
    }
    drop(running);
    admission.warnings.extend(warnings.into_values().flatten());
    first.map_or(Ok(()), Err)
}
