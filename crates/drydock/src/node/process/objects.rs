//! What the pods' processes need of the API: ConfigMaps, Secrets and tokens, read when they are needed.

use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, ServiceAccount, ServiceAccountTokenProjection};
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt as _};

/// Reads objects for pods.
#[derive(Clone)]
pub(super) struct Objects {
    client: Client,
}

/// A token and when it is to be asked for again.
#[derive(Clone)]
pub(super) struct Token {
    pub(super) text: String,
    pub(super) renew: Timestamp,
}

impl Objects {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    pub(super) async fn config_map(&self, namespace: &str, name: &str) -> Result<Option<ConfigMap>, String> {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        api.get_opt(name).await.map_err(|error| format!("failed to get configmap {name:?}: {error}"))
    }

    pub(super) async fn secret(&self, namespace: &str, name: &str) -> Result<Option<Secret>, String> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        api.get_opt(name).await.map_err(|error| format!("failed to get secret {name:?}: {error}"))
    }

    /// A token of the pod's service account, bound to the pod.
    pub(super) async fn token(
        &self,
        pod: &Pod,
        wanted: &ServiceAccountTokenProjection,
        now: Timestamp,
    ) -> Result<Token, String> {
        let namespace = pod.namespace().unwrap_or_default();
        let account =
            pod.spec.as_ref().and_then(|spec| spec.service_account_name.clone()).unwrap_or_default();
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                audiences: wanted.audience.clone().map(|audience| vec![audience]),
                expiration_seconds: wanted.expiration_seconds,
                bound_object_ref: Some(BoundObjectReference {
                    api_version: Some("v1".to_owned()),
                    kind: Some("Pod".to_owned()),
                    name: Some(pod.name_any()),
                    uid: pod.uid(),
                }),
            }),
            ..TokenRequest::default()
        };
        let api: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &namespace);
        let answer = api.create_token_request(&account, &PostParams::default(), &request).await;
        let answer = answer.map_err(|error| format!("failed to fetch token: {error}"))?;
        let status = answer.status.unwrap_or_default();
        let (Some(text), Some(until)) = (status.token, status.expiration_timestamp) else {
            return Err("failed to fetch token: the answer has none".to_owned());
        };
        // The kubelet renews a token when a fifth of its time is left.
        let renew = now.checked_add(until.0.duration_since(now) / 5 * 4).unwrap_or(Timestamp::MAX);
        Ok(Token { text, renew })
    }
}
