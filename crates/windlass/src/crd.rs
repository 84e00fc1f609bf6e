//! Installs the definitions of an operator's kinds, if they differ, and waits until the server serves them.
//!
//! A definition that somebody else installed (another operator that has the same kind, or a person) is left as it is.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::Api;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, ResourceExt as _};
use serde_json::Value;

use crate::admission::Registration;
use crate::apply::{ApplyError, Requests, difference, without_nulls};
use crate::cache::{Shares, Stored};
use crate::{Error, Kind, ObjectName, Operator};

/// The pause after a failure to look.
const PAUSE: Duration = Duration::from_secs(2);

/// `conversion` gives what a definition of several versions says of their conversion.
pub(crate) async fn install(
    client: &Client,
    requests: &Requests,
    operator: &Operator,
    conversion: impl Fn(&CustomResourceDefinition) -> Option<Registration>,
) -> Result<(), Error> {
    for crd in operator.crds() {
        let name = crd.name_any();
        let failed = |message: String| Error::Install { name: name.clone(), message };
        let installed = async {
            // Before there is a version to convert.
            if let Some(conversion) = conversion(crd) {
                announce(requests, crd, &conversion).await?;
            }
            install_one(requests, operator.name(), crd).await
        };
        installed.await.map_err(|error: ApplyError| failed(error.to_string()))?;
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        let established = await_condition(api, &name, conditions::is_crd_established());
        established.await.map_err(|error| failed(error.to_string()))?;
    }
    Ok(())
}

/// Resolves once the server serves all definitions of the operators, whoever installs them.
pub(crate) async fn established(client: &Client, operators: &[Operator]) {
    for crd in operators.iter().flat_map(Operator::crds) {
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        let name = crd.name_any();
        while await_condition(api.clone(), &name, conditions::is_crd_established()).await.is_err() {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Tells how the versions of a definition are converted, unless it is told already. Where there is no definition yet, it
/// is made with it: objects of another version than the stored one must never be taken in as they are. The operator gives
/// that part up again when it installs its own, and the other manager keeps it.
async fn announce(
    requests: &Requests,
    crd: &CustomResourceDefinition,
    conversion: &Registration,
) -> Result<(), ApplyError> {
    let Registration { kind, name, body, manager, .. } = conversion;
    let found = match requests.get(kind, name).await? {
        Some(found) => found,
        None => {
            let mut whole = without_nulls(serde_json::to_value(crd).unwrap_or_default());
            whole["spec"]["conversion"] = body["spec"]["conversion"].clone();
            requests.patch(kind, name, &whole, false).await?
        }
    };
    let found = Stored::new(&found, &Shares::new([manager.clone()].into()));
    let ours = found.share.as_ref().map_or(Value::Null, |share| share.fields.clone());
    if difference(body, &found.value(), &ours).is_some() {
        requests.named(manager).patch(kind, name, body, true).await?;
    }
    Ok(())
}

async fn install_one(
    requests: &Requests,
    operator: &str,
    crd: &CustomResourceDefinition,
) -> Result<(), ApplyError> {
    let kind = Kind::of::<CustomResourceDefinition>();
    let name = ObjectName::new("", crd.name_any());
    let desired = without_nulls(serde_json::to_value(crd).unwrap_or_default());
    let shares = Shares::new([operator.to_owned()].into());
    let Some(found) = requests.get(&kind, &name).await?.map(|object| Stored::new(&object, &shares)) else {
        return requests.patch(&kind, &name, &desired, true).await.map(drop);
    };
    match &found.share {
        None => tracing::info!(%name, "the definition was installed by somebody else and is left as it is"),
        Some(share) if difference(&desired, &found.value(), &share.fields).is_none() => {}
        Some(_) => drop(requests.patch(&kind, &name, &desired, true).await?),
    }
    Ok(())
}
