//! The echo checkup: returns its parameter `message` as a result, and fails without it.
//!
//! A model of a checkup: it reads its parameters from the ConfigMap that the environment names, and writes its verdict
//! into the same, as its own service account. A verdict that was written is all that counts: the program then exits
//! with 0, whatever the verdict is.

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
    let namespace = either("CONFIGMAP_NAMESPACE", "RESULT_CONFIGMAP_NAMESPACE")?;
    let name = either("CONFIGMAP_NAME", "RESULT_CONFIGMAP_NAME")?;
    let client = Client::try_default().await.map_err(|error| Error::Connect(Box::new(error)))?;
    let maps: Api<ConfigMap> = Api::namespaced(client, &namespace);
    let failed = |what| {
        let name = format!("{namespace}/{name}");
        move |source| Error::Api { what, name, source: Box::new(source) }
    };
    let map = maps.get(&name).await.map_err(failed("read"))?;
    let verdict = json!({"data": verdict(&map.data.unwrap_or_default())});
    maps.patch(&name, &PatchParams::default(), &Patch::Merge(verdict)).await.map_err(failed("write"))?;
    Ok(())
}

/// The verdict on these parameters.
fn verdict(params: &BTreeMap<String, String>) -> BTreeMap<&'static str, String> {
    match params.get("spec.param.message").filter(|message| !message.is_empty()) {
        Some(message) => {
            println!("echo: {message}");
            [("status.succeeded", "true".to_owned()), ("status.result.message", message.clone())].into()
        }
        None => {
            println!("echo: there is no message");
            let reason = "the parameter message is missing".to_owned();
            [("status.succeeded", "false".to_owned()), ("status.failureReason", reason)].into()
        }
    }
}

/// A variable of the newer contract, or that of the older.
fn either(newer: &'static str, older: &'static str) -> Result<String, Error> {
    std::env::var(newer).or_else(|_| std::env::var(older)).map_err(|_| Error::Environment(newer, older))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_comes_back_and_its_lack_is_a_failure() {
        let verdict_of = |params: &[(&str, &str)]| {
            verdict(&params.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
        };
        assert_eq!(verdict_of(&[("spec.param.message", "hi")])["status.result.message"], "hi");
        assert_eq!(verdict_of(&[("spec.param.message", "")])["status.succeeded"], "false");
        assert_eq!(verdict_of(&[])["status.succeeded"], "false");
    }
}
