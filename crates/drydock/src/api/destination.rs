//! Where a `clientConfig` points, and what comes back from there.
//!
//! A service is reached as in a cluster: by its cluster address. Since nothing routes that address here, the call
//! goes to one of the service's ready endpoints, at the port that the service's port stands for.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;
use windlass_machinery::{decode, go};

use super::server::Server;
use super::write::yaml;
use super::write::{decoded, metadata_of};
use crate::store::{Key, Scope};
pub(super) use crate::webhook::CallError;
use crate::webhook::{Address, Answer, Call};

const LOOPBACK: &str = "127.0.0.1";

/// A webhook's place.
#[derive(Debug)]
pub(super) struct Destination {
    host: String,
    path: String,
    authority: Bytes,
    service: Option<Service>,
}

#[derive(Debug)]
struct Service {
    namespace: String,
    name: String,
    port: i64,
}

impl Destination {
    /// Reads a `clientConfig`, which was validated before.
    pub(super) fn read(config: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let authority = STANDARD.decode(text(&config["caBundle"])).unwrap_or_default().into();
        let service = &config["service"];
        if service.is_object() {
            let (namespace, name) = (text(&service["namespace"]), text(&service["name"]));
            let port = service["port"].as_i64().unwrap_or(443);
            return Self {
                host: format!("{name}.{namespace}.svc:{port}"),
                path: clean(&text(&service["path"])),
                authority,
                service: Some(Service { namespace, name, port }),
            };
        }
        let url = text(&config["url"]);
        let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        Self { host: host.to_owned(), path: clean(path), authority, service: None }
    }

    /// Sends a review there.
    pub(super) async fn call(
        &self,
        server: &Server,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Answer, CallError> {
        let call = Call {
            host: self.host.clone(),
            path: self.path.clone(),
            authority: self.authority.clone(),
            timeout,
            body,
        };
        server.webhooks.call(call, || self.find(server)).await
    }

    fn find(&self, server: &Server) -> Result<Address, String> {
        let Some(service) = &self.service else {
            let (host, port) = match self.host.rsplit_once(':') {
                Some((host, port)) => (host, port.parse().map_err(|_| format!("invalid port {port:?}"))?),
                None => (self.host.as_str(), 443),
            };
            return Ok(Address { host: host.trim_matches(['[', ']']).to_owned(), port });
        };
        service.find(server)
    }
}

/// A path as Go's client sends it: from the root, without empty steps and without a slash at its end.
fn clean(path: &str) -> String {
    let steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty() && *step != ".").collect();
    format!("/{}", steps.join("/"))
}

impl Service {
    fn find(&self, server: &Server) -> Result<Address, String> {
        let Self { namespace, name, port } = self;
        let registry = server.registry();
        let missing = || format!("service {name:?} not found");
        let services = registry.core("services").ok_or_else(missing)?;
        let stored = server.store.get(services.table, &Key::new(namespace, name)).ok_or_else(missing)?;
        let service = decoded(&stored).map_err(|failure| failure.message)?;
        let spec = &service["spec"];
        let number = |value: &Value| value.as_i64().and_then(|port| u16::try_from(port).ok());
        if spec["type"] == "ExternalName" {
            let host = spec["externalName"].as_str().unwrap_or_default().to_owned();
            return Ok(Address { host, port: u16::try_from(*port).unwrap_or(443) });
        }
        let ports = spec["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
        let known = ports.iter().find(|one| one["port"] == *port);
        let known = known.ok_or_else(|| format!("no service port {port} found for service {name:?}"))?;
        if spec["clusterIP"] == "None" {
            return Err("cannot route to service with ClusterIP \"None\"".to_owned());
        }
        let none = || format!("no endpoints available for service {name:?}");
        let slices = registry.find("discovery.k8s.io", "v1", "endpointslices").ok_or_else(none)?;
        let (_, slices) = server.store.list(slices.table, &Scope::Namespace(namespace.as_str().into()));
        let wanted = known["name"].as_str().unwrap_or_default();
        slices
            .iter()
            .filter(|slice| slice.label("kubernetes.io/service-name") == Some(name))
            .filter_map(|slice| decoded(slice).ok())
            .find_map(|slice| {
                let ports = slice["ports"].as_array()?;
                let port = ports.iter().find(|one| one["name"].as_str().unwrap_or_default() == wanted)?;
                let endpoints = slice["endpoints"].as_array()?;
                let ready = endpoints.iter().find(|one| one["conditions"]["ready"] != false)?;
                // What pods run listens on this machine's loopback, whatever address the pod has.
                let pod = ready["targetRef"]["kind"] == "Pod";
                let host = if pod { LOOPBACK } else { ready["addresses"][0].as_str()? }.to_owned();
                Some(Address { host, port: number(&port["port"])? })
            })
            .ok_or_else(none)
    }
}

/// What kind of review an answer must be.
pub(super) struct Reply {
    /// The group.
    pub(super) api: &'static str,
    /// The version.
    pub(super) version: &'static str,
    /// The kind.
    pub(super) kind: &'static str,
}

impl Reply {
    /// The review in an answer; the error is in the words of Go's client.
    pub(super) fn read(&self, answer: &Answer) -> Result<Value, String> {
        if !answer.status.is_success() || answer.status.as_u16() > 206 {
            return Err(unsuccessful(answer));
        }
        if answer.body.is_empty() {
            let (code, kind) = (answer.status.as_u16(), &answer.content_type);
            return Err(format!("0-length response with status code: {code} and content type: {kind}"));
        }
        let review = parsed(&answer.body)?;
        let text = |field: &str| review[field].as_str().unwrap_or_default();
        let (api, kind) = (text("apiVersion"), text("kind"));
        let own = format!("{}/{}", self.api, self.version);
        if api.is_empty() || kind.is_empty() || (api == own && kind == self.kind) {
            return Ok(review);
        }
        let ours = api == "v1" && kind == "Status";
        let sibling =
            kind == self.kind && [("v1"), ("v1beta1")].iter().any(|one| api == format!("{}/{one}", self.api));
        if ours || sibling {
            let version = api.rsplit('/').next().unwrap_or_default();
            return Err(format!(
                "converting ({version}.{kind}) to ({}.{}): unknown conversion",
                self.version, self.kind
            ));
        }
        Err(format!(
            "no kind {kind:?} is registered for version {api:?} in scheme \"pkg/runtime/scheme.go:111\""
        ))
    }
}

fn parsed(body: &Bytes) -> Result<Value, String> {
    let bad = |why: String| format!("couldn't get version/kind; json parse error: {why}");
    let start = body.iter().find(|byte| !byte.is_ascii_whitespace());
    let value = if start == Some(&b'{') {
        serde_json::from_slice::<Value>(body).map_err(|error| bad(decode::go_syntax_error(body, &error)))?
    } else {
        yaml::read(body)?.value
    };
    if !value.is_object() {
        return Err(bad(format!(
            "json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \
             \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
            json_type(&value)
        )));
    }
    Ok(value)
}

/// What Go's client makes of an answer that is no success.
fn unsuccessful(answer: &Answer) -> String {
    let status = parsed(&answer.body).unwrap_or_default();
    let text = |field: &str| status[field].as_str().unwrap_or_default();
    if text("kind") == "Status" && text("apiVersion") == "v1" && text("status") != "Success" {
        return text("message").to_owned();
    }
    let said = match answer.content_type.starts_with("text/") {
        true => String::from_utf8_lossy(&answer.body).trim().to_owned(),
        false => "unknown".to_owned(),
    };
    match answer.status {
        StatusCode::CONFLICT => "the server reported a conflict".to_owned(),
        StatusCode::NOT_FOUND => "the server could not find the requested resource".to_owned(),
        StatusCode::BAD_REQUEST => "the server rejected our request for an unknown reason".to_owned(),
        StatusCode::UNAUTHORIZED => "the server has asked for the client to provide credentials".to_owned(),
        StatusCode::FORBIDDEN => said,
        StatusCode::NOT_ACCEPTABLE => said,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => said,
        StatusCode::METHOD_NOT_ALLOWED => {
            "the server does not allow this method on the requested resource".to_owned()
        }
        StatusCode::UNPROCESSABLE_ENTITY => {
            "the server rejected our request due to an error in our request".to_owned()
        }
        StatusCode::SERVICE_UNAVAILABLE => "the server is currently unable to handle the request".to_owned(),
        StatusCode::GATEWAY_TIMEOUT => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
                .to_owned()
        }
        StatusCode::TOO_MANY_REQUESTS => {
            "the server has received too many requests and has asked us to try again later".to_owned()
        }
        code if code.as_u16() >= 500 => {
            format!("an error on the server ({}) has prevented the request from succeeding", go::quote(&said))
        }
        code => format!(
            "the server responded with the status code {} but did not return more information",
            code.as_u16()
        ),
    }
}

/// What Go's JSON reader calls a value.
pub(super) fn json_type(value: &Value) -> &'static str {
    super::write::body::json_type(value)
}

/// Whether the metadata of two objects differ in more than labels and annotations; the first field that does.
pub(super) fn immutable(before: &Value, after: &Value) -> Option<String> {
    let (before, after) = (metadata_of(before), metadata_of(after));
    for field in ["name", "namespace", "uid"] {
        let text = |map: &serde_json::Map<String, Value>| {
            map.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let (before, after) = (text(before), text(after));
        if before != after {
            let shown = if field == "uid" { "UID" } else { field };
            return Some(format!("must have the same {shown}: {before} != {after}"));
        }
    }
    None
}
