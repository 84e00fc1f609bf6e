//! Installs the definitions of an operator's kinds, if they differ, and waits until the server serves them.
//!
//! A definition that somebody else installed (another operator that has the same kind, or a person) is left as it is.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::Api;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, ResourceExt as _};

use crate::apply::{ApplyError, Requests, difference, without_nulls};
use crate::cache::{Shares, Stored};
use crate::{Error, Kind, ObjectName, Operator};

/// The pause after a failure to look.
const PAUSE: Duration = Duration::from_secs(2);

pub(crate) async fn install(client: &Client, requests: &Requests, operator: &Operator) -> Result<(), Error> {
    for crd in operator.crds() {
        let name = crd.name_any();
        let failed = |message: String| Error::Install { name: name.clone(), message };
        install_one(requests, operator.name(), crd).await.map_err(|error| failed(error.to_string()))?;
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

async fn install_one(
    requests: &Requests,
    operator: &str,
    crd: &CustomResourceDefinition,
) -> Result<(), ApplyError> {
    let kind = Kind::of::<CustomResourceDefinition>();
    let name = ObjectName::new("", crd.name_any());
    let desired = without_nulls(serde_json::to_value(crd).unwrap_or_default());
    let shares = Shares::new([operator.to_owned()].into());
    let Some(found) = requests.get(&kind, &name).await?.map(|object| Stored::new(object, &shares)) else {
        return requests.patch(&kind, &name, &desired, true).await.map(drop);
    };
    match &found.share {
        None => tracing::info!(%name, "the definition was installed by somebody else and is left as it is"),
        Some(share) if difference(&desired, &found.value(), &share.fields).is_none() => {}
        Some(_) => drop(requests.patch(&kind, &name, &desired, true).await?),
    }
    Ok(())
}
