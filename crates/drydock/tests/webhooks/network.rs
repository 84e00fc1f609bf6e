//! Calls over real sockets, with real certificates; the messages are those that a real server gave.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use base64::Engine as _;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use windlass_drydock::controllers::Selection;
use windlass_drydock::{Drydock, Options, User};

/// Who signs certificates.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    bundle: String,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let bundle = encoded(&params.self_signed(&key).unwrap().pem());
        Self { issuer: Issuer::new(params, key), bundle }
    }

    fn certificate(&self, names: &[&str]) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let key = KeyPair::generate().unwrap();
        let signed = CertificateParams::new(names).unwrap().signed_by(&key, &self.issuer).unwrap();
        (signed.der().clone(), PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())))
    }
}

fn encoded(pem: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(pem)
}

/// A webhook on a port of 127.0.0.1 that labels what it sees; `/hang` never answers.
async fn serve((certificate, key): (CertificateDer<'static>, PrivateKeyDer<'static>)) -> SocketAddr {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = hyper::service::service_fn(answer);
                let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                let _ = builder.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    address
}

async fn answer(
    request: http::Request<hyper::body::Incoming>,
) -> anyhow::Result<http::Response<Full<Bytes>>> {
    if request.uri().path() == "/hang" {
        std::future::pending::<()>().await;
    }
    let review: Value = serde_json::from_slice(&request.into_body().collect().await?.to_bytes())?;
    let patch = json!([{"op": "add", "path": "/metadata/labels", "value": {"seen": "yes"}}]);
    let answer = json!({
        "kind": "AdmissionReview", "apiVersion": review["apiVersion"],
        "response": {
            "uid": review["request"]["uid"], "allowed": true,
            "patchType": "JSONPatch", "patch": encoded(&patch.to_string()),
        },
    });
    Ok(http::Response::new(Full::new(Bytes::from(answer.to_string()))))
}

/// A drydock with one webhook for new ConfigMaps.
struct World(Drydock);

impl World {
    async fn new(client: Value) -> Self {
        let options = Options { controllers: Selection::none(), ..Options::seeded(1) };
        let world = Self(Drydock::start(options).await.unwrap());
        let hook = json!({
            "name": "a.example.com", "clientConfig": client, "sideEffects": "None", "timeoutSeconds": 1,
            "admissionReviewVersions": ["v1"],
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
        });
        let body = json!({"metadata": {"name": "a"}, "webhooks": [hook]});
        let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
        let made = world.post(path, &body).await;
        assert_eq!(made["kind"], "MutatingWebhookConfiguration", "{made}");
        world
    }

    async fn url(address: SocketAddr, path: &str, bundle: &str) -> Self {
        Self::new(json!({"url": format!("https://{address}{path}"), "caBundle": bundle})).await
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let mut request = http::Request::post(path)
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body.to_string())))
            .unwrap();
        request.extensions_mut().insert(User::master("admin"));
        let response = self.0.server().handle(request).await;
        let body = response.into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice(&body).context("failed to read the answer").unwrap()
    }

    /// What a new ConfigMap's `seen` label is, or why there is none.
    async fn seen(&self) -> Result<String, String> {
        let made = self
            .post("/api/v1/namespaces/default/configmaps", &json!({"metadata": {"generateName": "x-"}}))
            .await;
        match made["metadata"]["labels"]["seen"].as_str() {
            Some(seen) => Ok(seen.to_owned()),
            None => Err(made["message"].as_str().unwrap_or_default().to_owned()),
        }
    }
}

fn refusal(address: SocketAddr, path: &str, why: &str) -> Result<String, String> {
    Err(format!(
        "Internal error occurred: failed calling webhook \"a.example.com\": failed to call webhook: Post \
         \"https://{address}{path}?timeout=1s\": {why}"
    ))
}

#[tokio::test]
async fn a_webhook_is_called_over_tls() {
    let authority = Authority::new();
    let address = serve(authority.certificate(&["127.0.0.1"])).await;
    let world = World::url(address, "/x", &authority.bundle).await;
    // The second call goes over the connection of the first.
    for _ in 0..2 {
        assert_eq!(world.seen().await, Ok("yes".to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn sockets_work_while_the_clock_is_paused() {
    let authority = Authority::new();
    let address = serve(authority.certificate(&["127.0.0.1"])).await;
    let before = tokio::time::Instant::now();
    let world = World::url(address, "/x", &authority.bundle).await;
    assert_eq!(world.seen().await, Ok("yes".to_owned()));
    assert!(before.elapsed() < Duration::from_secs(1), "virtual time ran ahead");
    let hangs = World::url(address, "/hang", &authority.bundle).await;
    assert_eq!(hangs.seen().await, refusal(address, "/hang", "context deadline exceeded"));
}

#[tokio::test]
async fn certificates_are_verified() {
    let authority = Authority::new();
    let named = serve(authority.certificate(&["other.example.com"])).await;
    let why = "tls: failed to verify certificate: x509: cannot validate certificate for 127.0.0.1 because it \
               doesn't contain any IP SANs";
    let world = World::url(named, "/x", &authority.bundle).await;
    assert_eq!(world.seen().await, refusal(named, "/x", why));

    let fits = serve(authority.certificate(&["127.0.0.1"])).await;
    let why = "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    let world = World::url(fits, "/x", &Authority::new().bundle).await;
    assert_eq!(world.seen().await, refusal(fits, "/x", why));

    let world = World::url(fits, "/x", &encoded("hello")).await;
    let why = "Internal error occurred: failed calling webhook \"a.example.com\": could not get REST client: unable \
               to load root certificates: unable to parse bytes as PEM block";
    assert_eq!(world.seen().await, Err(why.to_owned()));

    // A certificate in the bundle stands for itself.
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().self_signed(&key).unwrap();
    let pem = encoded(&own.pem());
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let address = serve((own.der().clone(), key)).await;
    assert_eq!(World::url(address, "/x", &pem).await.seen().await, Ok("yes".to_owned()));
}

#[tokio::test]
async fn a_webhook_that_is_not_there_is_named() {
    let authority = Authority::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let world = World::url(address, "/x", &authority.bundle).await;
    let why = format!("dial tcp {address}: connect: connection refused");
    assert_eq!(world.seen().await, refusal(address, "/x", &why));

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let plain = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    });
    let world = World::url(address, "/x", &authority.bundle).await;
    let why = "tls: first record does not look like a TLS handshake";
    assert_eq!(world.seen().await, refusal(address, "/x", why));
    plain.await.unwrap();
}

#[tokio::test]
async fn a_service_is_reached_at_its_ready_endpoints() {
    let authority = Authority::new();
    let address = serve(authority.certificate(&["hook.default.svc"])).await;
    let service = json!({"namespace": "default", "name": "hook", "path": "/x"});
    let world = World::new(json!({"service": service, "caBundle": authority.bundle})).await;
    let failed = |why: &str| {
        let call = "failed to call webhook: Post \"https://hook.default.svc:443/x?timeout=1s\"";
        Err(format!("Internal error occurred: failed calling webhook \"a.example.com\": {call}: {why}"))
    };
    assert_eq!(world.seen().await, failed("service \"hook\" not found"));
    let ports = json!([{"name": "web", "port": 443, "targetPort": 8443}]);
    let service = json!({"metadata": {"name": "hook"}, "spec": {"ports": ports, "selector": {"a": "b"}}});
    world.post("/api/v1/namespaces/default/services", &service).await;
    assert_eq!(world.seen().await, failed("no endpoints available for service \"hook\""));
    let slice = json!({
        "metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}}, "addressType": "IPv4",
        "ports": [{"name": "web", "port": address.port(), "protocol": "TCP"}],
        "endpoints": [
            {"addresses": ["10.1.2.3"], "conditions": {"ready": false}},
            {"addresses": ["10.1.2.4"], "conditions": {"ready": true}, "targetRef": {"kind": "Pod", "name": "p"}},
        ],
    });
    let made = world.post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", &slice).await;
    assert_eq!(made["kind"], "EndpointSlice", "{made}");
    assert_eq!(world.seen().await, Ok("yes".to_owned()));
}
