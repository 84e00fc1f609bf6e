//! What the webhooks of a recording answer.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower::Service;
use tower::util::BoxCloneSyncService;

/// The webhooks of a recording, by path.
pub(super) type Hooks = BTreeMap<String, Value>;

/// A service that answers for them.
pub(super) fn service(
    hooks: Hooks,
) -> impl Service<Request<Full<Bytes>>, Response = Response<Full<Bytes>>, Error = Infallible, Future: Send>
+ Clone
+ Send
+ Sync {
    let hooks = Arc::new(hooks);
    BoxCloneSyncService::new(tower::service_fn(move |request: Request<Full<Bytes>>| {
        let hooks = Arc::clone(&hooks);
        async move {
            let path = request.uri().path().to_owned();
            let body = request.into_body().collect().await?.to_bytes();
            let review: Value = serde_json::from_slice(&body).unwrap();
            Ok::<_, Infallible>(hooks.get(&path).map_or_else(nothing, |hook| answer(hook, &review)))
        }
    }))
}

fn nothing() -> Response<Full<Bytes>> {
    sent(404, "text/plain", "404 page not found\n".to_owned())
}

fn sent(status: u16, kind: &str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response.headers_mut().insert("content-type", kind.parse().unwrap());
    response
}

fn answer(hook: &Value, review: &Value) -> Response<Full<Bytes>> {
    let json = |body: Value| sent(200, "application/json", body.to_string());
    let request = &review["request"];
    if let Some(mode) = hook["convert"].as_str() {
        return json(converted(mode, review));
    }
    if !hook["echo"].is_null() {
        // A denial whose message is the whole review: so recordings hold what webhooks are sent.
        let denial =
            json!({"uid": request["uid"], "allowed": false, "status": {"message": review.to_string()}});
        return json(
            json!({"kind": "AdmissionReview", "apiVersion": review["apiVersion"], "response": denial}),
        );
    }
    let body = match &hook["body"] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let body = body.replace("$uid", request["uid"].as_str().unwrap_or_default());
    let status = hook["status"].as_u64().unwrap_or(200);
    sent(u16::try_from(status).unwrap(), hook["type"].as_str().unwrap_or("application/json"), body)
}

/// A ConversionReview in which `spec.size` of v1 is `spec.dimensions.size` of v2, good or bad in a certain way.
fn converted(mode: &str, review: &Value) -> Value {
    let request = &review["request"];
    let wanted = request["desiredAPIVersion"].as_str().unwrap();
    let mut objects: Vec<Value> =
        request["objects"].as_array().unwrap().iter().map(|object| turned(object, wanted)).collect();
    for object in &mut objects {
        match mode {
            "rename" => object["metadata"]["name"] = "other".into(),
            "label" => {
                object["metadata"]["labels"]["converted"] = "yes".into();
                object["metadata"]["annotations"]["from"] = "webhook".into();
            }
            "finalizer" => object["metadata"]["finalizers"] = json!(["a.b/c"]),
            "kind" => object["kind"] = "Other".into(),
            "version" => object["apiVersion"] = "example.com/v9".into(),
            _ => {}
        }
    }
    match mode {
        "fewer" => objects.clear(),
        "more" => objects.extend(objects.clone()),
        _ => {}
    }
    let uid = if mode == "uid" { json!("x") } else { request["uid"].clone() };
    let mut response = json!({"uid": uid, "convertedObjects": objects, "result": {"status": "Success"}});
    match mode {
        "fail" => response = json!({"uid": uid, "result": {"status": "Failure", "message": "no way"}}),
        "failquiet" => response = json!({"uid": uid, "result": {"status": "Failure"}}),
        "nostatus" => drop(response.as_object_mut().unwrap().remove("result")),
        _ => {}
    }
    let mut out = json!({"kind": "ConversionReview", "apiVersion": review["apiVersion"]});
    if mode != "none" {
        out["response"] = response;
    }
    out
}

fn turned(object: &Value, wanted: &str) -> Value {
    let mut object = object.clone();
    let other = object["apiVersion"] != wanted;
    object["apiVersion"] = wanted.into();
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut).filter(|_| other) {
        if wanted.ends_with("/v2") {
            if let Some(size) = spec.remove("size") {
                spec.insert("dimensions".into(), json!({"size": size}));
            }
        } else if let Some(mut dimensions) = spec.remove("dimensions") {
            spec.insert("size".into(), dimensions["size"].take());
        }
    }
    object
}
