//! The echo checkup: returns its parameter `message` as a result, and fails without it.
//!
//! A model of a checkup: it reads its parameters from the ConfigMap that the environment names, and writes its verdict
//! into the same, as its own service account. Where only the variables of the older contract are set, its parameters are
//! variables too. A verdict that was written is all that counts: the program then exits with 0, whatever the verdict is.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;

/// Why no verdict could be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The environment names no ConfigMap.
    #[error("neither {0} nor {1} is set: this program is run by a Checkup")]
    Environment(&'static str, &'static str),
    /// The API could not be reached, or refused.
    #[error("failed to {what} ConfigMap {name}: {source}")]
    Api {
        /// What was tried.
        what: &'static str,
        /// On what.
        name: String,
        /// What went wrong.
        source: Box<kube::Error>,
    },
    /// There is no API to reach.
    #[error("failed to find the API server: {0}")]
    Connect(#[source] Box<kube::Error>),
}

/// Runs the checkup.
///
/// # Errors
/// If no verdict could be written.
pub async fn run() -> Result<(), Error> {
    let contract = Contract::of(|name| std::env::var(name).ok())?;
    let client = Client::try_default().await.map_err(|error| Error::Connect(Box::new(error)))?;
    let maps: Api<ConfigMap> = Api::namespaced(client, &contract.namespace);
    let failed = |what| {
        let name = format!("{}/{}", contract.namespace, contract.name);
        move |source| Error::Api { what, name, source: Box::new(source) }
    };
    let map = maps.get(&contract.name).await.map_err(failed("read"))?;
    let message = match contract.generation {
        Generation::Newer => map.data.unwrap_or_default().remove("spec.param.message"),
        Generation::Older => std::env::var("MESSAGE").ok(),
    };
    let verdict = json!({"data": verdict(message)});
    let patch = Patch::Merge(verdict);
    maps.patch(&contract.name, &PatchParams::default(), &patch).await.map_err(failed("write"))?;
    Ok(())
}

/// What the environment says.
struct Contract {
    generation: Generation,
    namespace: String,
    name: String,
}

#[derive(Debug, PartialEq, Eq)]
enum Generation {
    /// Parameters are in the ConfigMap.
    Newer,
    /// Parameters are variables.
    Older,
}

impl Contract {
    fn of(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        const NEWER: [&str; 2] = ["CONFIGMAP_NAMESPACE", "CONFIGMAP_NAME"];
        const OLDER: [&str; 2] = ["RESULT_CONFIGMAP_NAMESPACE", "RESULT_CONFIGMAP_NAME"];
        for (generation, names) in [(Generation::Newer, NEWER), (Generation::Older, OLDER)] {
            if let [Some(namespace), Some(name)] = names.map(&variable) {
                return Ok(Self { generation, namespace, name });
            }
        }
        Err(Error::Environment(NEWER[1], OLDER[1]))
    }
}

/// The verdict on this message.
fn verdict(message: Option<String>) -> BTreeMap<&'static str, String> {
    match message.filter(|message| !message.is_empty()) {
        Some(message) => {
            println!("echo: {message}");
            [("status.succeeded", "true".to_owned()), ("status.result.message", message)].into()
        }
        None => {
            println!("echo: there is no message");
            let reason = "the parameter message is missing".to_owned();
            [("status.succeeded", "false".to_owned()), ("status.failureReason", reason)].into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_comes_back_and_its_lack_is_a_failure() {
        assert_eq!(verdict(Some("hi".into()))["status.result.message"], "hi");
        assert_eq!(verdict(Some(String::new()))["status.succeeded"], "false");
        assert_eq!(verdict(None)["status.succeeded"], "false");
    }

    #[test]
    fn the_newer_contract_wins_where_both_are_set() {
        let of = |set: &[&str]| {
            let contract = Contract::of(|name| set.contains(&name).then(|| "x".to_owned()));
            contract.map(|contract| contract.generation).ok()
        };
        let (newer, older) = ([NAMES[0], NAMES[1]], [NAMES[2], NAMES[3]]);
        assert_eq!(of(&NAMES), Some(Generation::Newer));
        assert_eq!(of(&newer), Some(Generation::Newer));
        assert_eq!(of(&older), Some(Generation::Older));
        assert_eq!(of(&[]), None);
    }

    const NAMES: [&str; 4] =
        ["CONFIGMAP_NAMESPACE", "CONFIGMAP_NAME", "RESULT_CONFIGMAP_NAMESPACE", "RESULT_CONFIGMAP_NAME"];
}
