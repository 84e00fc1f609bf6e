//! What a mutating webhook makes of the operator's objects causes no writes: neither what it adds nor what it overrides.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use windlass_testkit::Harbour;

use crate::boat::{Marina, boat};

const HOST: &str = "mutator.default.svc";

/// Has a patch applied to every ConfigMap that is written.
async fn mutate(harbour: &Harbour, patch: Value) {
    let patch = ByteString(patch.to_string().into_bytes());
    harbour.drydock().webhooks().serve(
        HOST,
        tower::service_fn(move |request: Request<Full<Bytes>>| {
            let patch = patch.clone();
            async move {
                let body = request.into_body().collect().await?.to_bytes();
                let review: Value = serde_json::from_slice(&body).unwrap();
                let response = json!({
                    "uid": review["request"]["uid"], "allowed": true, "patchType": "JSONPatch", "patch": patch,
                });
                let answer = json!({
                    "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
                });
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(answer.to_string()))))
            }
        }),
    );
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "mutator"},
        "webhooks": [{
            "name": "mutator.example.org", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "failurePolicy": "Fail",
            "clientConfig": {"service": {"namespace": "default", "name": "mutator"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                "operations": ["CREATE", "UPDATE"]}],
        }],
    });
    harbour.put(&configuration.to_string()).await;
}

#[tokio::test(start_paused = true)]
async fn an_operator_rests_whatever_a_webhook_makes_of_its_objects() {
    for (patch, text) in [
        (json!([{"op": "add", "path": "/data/added", "value": "x"}]), "one"),
        (json!([{"op": "add", "path": "/metadata/labels/added", "value": "x"}]), "one"),
        (json!([{"op": "add", "path": "/data/text", "value": "overridden"}]), "overridden"),
    ] {
        let mut harbour = Harbour::start(Marina::default().operator()).await;
        mutate(&harbour, patch.clone()).await;
        harbour.apply(&boat(json!({"text": "one"}))).await;
        harbour.ready().await;
        harbour.settle().await;
        let data = harbour.api::<ConfigMap>().get("ada").await.unwrap().data.unwrap();
        assert_eq!(data["text"], text);
        let before = harbour.revision();
        tokio::time::sleep(Duration::from_secs(6 * 3600)).await;
        assert_eq!(harbour.revision(), before, "it went on writing after {patch}");
    }
}
