//! Webhooks: what is refused and filled in at the door, versions, certificates and who keeps them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher::watch_object;
use kube::{Api, Resource, ResourceExt as _};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use windlass::admission::{Endpoint, Webhooks};
use windlass::{Context, LeaseName, LeaseTimes, ObjectName, Runtime};
use windlass_drydock::controllers::Selection;
use windlass_drydock::{Drydock, Options};
use windlass_testkit::account;

use crate::fleet::Process;
use crate::kite::{self, Kite, v1alpha1};

const DAY: Duration = Duration::from_secs(24 * 3600);
const HOST: &str = "kites.default.svc";
const SECRET: &str = "kites-webhooks";
const ACCOUNT: &str = "kites";

/// Days pass here: nobody needs to renew a Lease every two seconds.
const SLOW: LeaseTimes = LeaseTimes {
    duration: Duration::from_secs(600),
    renew_deadline: Duration::from_secs(400),
    retry: Duration::from_secs(60),
};

struct Yard {
    drydock: Drydock,
}

/// A replica, and what it answers.
struct Replica {
    process: Process,
    endpoint: Endpoint,
}

impl Yard {
    async fn start() -> Self {
        let controllers = Selection::parse("").unwrap();
        let drydock = Drydock::start(Options { controllers, ..Options::seeded(1) }).await.unwrap();
        drydock.record().keep_entries();
        let yard = Self { drydock };
        let permissions = yard.runtime("").leader(lease()).install_crds().permissions();
        account::grant(&yard.drydock, ACCOUNT, &permissions).await;
        yard
    }

    fn runtime(&self, name: &str) -> Runtime {
        let client = account::client(&self.drydock, ACCOUNT, name);
        Runtime::new(client, self.drydock.context().clone())
            .identity(name)
            .host(kite::operator())
            .webhooks(Webhooks::service(ObjectName::new("default", "kites"), 443))
    }

    /// Starts a replica whose webhooks are called in this process.
    fn replica(&self, name: &str) -> Replica {
        let runtime = self.runtime(name).leader(lease()).lease_times(SLOW);
        let endpoint = runtime.endpoint();
        let served = endpoint.clone();
        self.drydock.webhooks().serve(
            HOST,
            tower::service_fn(move |request: Request<Full<Bytes>>| {
                let endpoint = served.clone();
                async move {
                    let path = request.uri().path().to_owned();
                    let body = request.into_body().collect().await?.to_bytes();
                    let (status, answer) = endpoint.answer(&path, &body);
                    let mut response = Response::new(Full::new(Bytes::from(answer)));
                    *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
                    Ok::<_, std::convert::Infallible>(response)
                }
            }),
        );
        Replica { process: Process::start(runtime), endpoint }
    }

    fn api<K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>>(&self) -> Api<K> {
        Api::namespaced(self.drydock.client("test"), "default")
    }

    fn all<K: Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>>(&self) -> Api<K> {
        Api::all(self.drydock.client("test"))
    }

    async fn secret(&self) -> BTreeMap<String, ByteString> {
        let secret = self.api::<Secret>().get_opt(SECRET).await.unwrap();
        secret.and_then(|secret| secret.data).unwrap_or_default()
    }

    /// The bundle that API servers trust, once it is the same everywhere.
    async fn bundle(&self) -> Option<Vec<u8>> {
        let definition = kube::core::ApiResource::erase::<CustomResourceDefinition>(&());
        let definitions: Api<kube::api::DynamicObject> =
            Api::all_with(self.drydock.client("test"), &definition);
        let crd = definitions.get_opt("kites.example.org").await.unwrap()?;
        let conversion = crd.data.pointer("/spec/conversion/webhook/clientConfig/caBundle")?.clone();
        let conversion: ByteString = serde_json::from_value(conversion).unwrap();
        let mutating = self.all::<MutatingWebhookConfiguration>().get_opt("kites").await.unwrap()?;
        let validating = self.all::<ValidatingWebhookConfiguration>().get_opt("kites").await.unwrap()?;
        let of_mutating = mutating.webhooks?.first()?.client_config.ca_bundle.clone()?;
        let of_validating = validating.webhooks?.first()?.client_config.ca_bundle.clone()?;
        (of_mutating == of_validating && of_mutating == conversion).then_some(of_mutating.0)
    }

    /// Who has a share in the definition.
    async fn owners(&self) -> Vec<String> {
        let crds: Api<CustomResourceDefinition> = self.all();
        let crd = crds.get("kites.example.org").await.unwrap();
        let mut owners: Vec<_> =
            crd.managed_fields().iter().filter_map(|entry| entry.manager.clone()).collect();
        owners.sort();
        owners
    }

    /// Waits until the API server knows of the webhooks.
    async fn registered(&self) {
        self.until("the webhooks to be registered", async || {
            let secret = self.secret().await;
            let bundle = self.bundle().await;
            bundle.is_some() && bundle == secret.get("ca.crt").map(|bytes| bytes.0.clone())
        })
        .await;
    }

    async fn until(&self, what: &str, condition: impl AsyncFn() -> bool) {
        let start = Instant::now();
        while !condition().await {
            assert!(start.elapsed() < Duration::from_secs(600), "waited in vain for {what}");
            sleep(Duration::from_millis(200)).await;
        }
    }
}

fn lease() -> LeaseName {
    LeaseName { namespace: "default".into(), name: "kites".into() }
}

/// The time of the certificates' dates is the test's.
#[derive(Debug)]
struct Clock(Context);

impl rustls::time_provider::TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.0.now().as_second()).unwrap();
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}

/// Connects to a replica as an API server with this bundle does; gives the certificate that it meets.
async fn meet(yard: &Yard, endpoint: &Endpoint, bundle: &[u8]) -> Result<Vec<u8>, String> {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(bundle) {
        roots.add(authority.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let clock = Arc::new(Clock(yard.drydock.context().clone()));
    let config = ClientConfig::builder_with_details(provider, clock)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let endpoint = endpoint.clone();
    let served = tokio::spawn(async move { endpoint.connection(theirs).await });
    let name = ServerName::try_from(HOST).unwrap();
    let connected = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, ours).await;
    let met = connected.map_err(|error| error.to_string()).map(|stream| {
        let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
        certificates[0].to_vec()
    });
    served.abort();
    met
}

fn kite(version: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("example.org/{version}"), "kind": "Kite", "metadata": {"name": "ada"}, "spec": spec})
}

async fn put<K>(yard: &Yard, body: &Value) -> Result<K, kube::Error>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    yard.api::<K>().patch("ada", &PatchParams::apply("test").force(), &Patch::Apply(body)).await
}

#[tokio::test(start_paused = true)]
async fn what_is_invalid_is_refused_at_the_door_and_defaults_are_there_at_once() {
    let yard = Yard::start().await;
    let _replica = yard.replica("replica-a");
    yard.registered().await;
    let refused = put::<Kite>(&yard, &kite("v1", json!({"lines": 9}))).await.unwrap_err();
    let kube::Error::Api(status) = refused else { panic!("{refused}") };
    let said = "spec.lines: are more than 4; use fewer";
    assert_eq!(
        status.message,
        format!("admission webhook \"validate.kites.example.org\" denied the request: {said}")
    );
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    let made = put::<Kite>(&yard, &kite("v1", json!({"lines": 3}))).await.unwrap();
    assert_eq!((made.spec.colour.as_deref(), made.spec.lines), (Some("red"), Some(3)));
    let worse = put::<Kite>(&yard, &kite("v1", json!({"lines": 5}))).await.unwrap_err();
    assert!(worse.to_string().contains(said), "{worse}");
    yard.api::<Kite>().delete("ada", &DeleteParams::default()).await.unwrap();

    // Past the door, the operator says the very same.
    yard.drydock.webhooks().serve(
        HOST,
        tower::service_fn(|_: Request<Full<Bytes>>| async {
            Err::<Response<Full<Bytes>>, _>("nobody is at home")
        }),
    );
    put::<Kite>(&yard, &kite("v1", json!({"lines": 9}))).await.unwrap();
    yard.until("the operator to refuse it", async || {
        let kite = yard.api::<Kite>().get("ada").await.unwrap();
        let conditions = kite.status.map(|status| status.conditions).unwrap_or_default();
        conditions.iter().any(|one| one.message == said)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn both_versions_are_read_and_written() {
    let yard = Yard::start().await;
    let _replica = yard.replica("replica-a");
    yard.registered().await;
    let old = kite("v1alpha1", json!({"color": "green", "lines": "3"}));
    put::<v1alpha1::Kite>(&yard, &old).await.unwrap();
    let read = yard.api::<Kite>().get("ada").await.unwrap();
    assert_eq!((read.spec.colour.as_deref(), read.spec.lines), (Some("green"), Some(3)));

    let merge = PatchParams::default();
    let change = Patch::Merge(json!({"spec": {"lines": 4, "colour": null}}));
    yard.api::<Kite>().patch("ada", &merge, &change).await.unwrap();
    let read = yard.api::<v1alpha1::Kite>().get("ada").await.unwrap();
    assert_eq!((read.spec.color.as_deref(), read.spec.lines.as_deref()), (Some("red"), Some("4")));

    // The rules hold in whatever version something is written.
    let change = Patch::Merge(json!({"spec": {"lines": "5"}}));
    let refused = yard.api::<v1alpha1::Kite>().patch("ada", &merge, &change).await.unwrap_err();
    assert!(refused.to_string().contains("spec.lines: are more than 4"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn several_versions_without_webhooks_are_refused() {
    let drydock = Drydock::start(Options::seeded(1)).await.unwrap();
    let runtime = Runtime::new(drydock.client("operator"), drydock.context().clone());
    let ended = runtime.host(kite::operator()).install_crds().run(std::future::pending()).await;
    assert!(ended.unwrap_err().to_string().contains("kites.example.org: it has several versions"));
}

#[tokio::test(start_paused = true)]
async fn replicas_that_start_at_once_agree_on_one_certificate() {
    let yard = Yard::start().await;
    let replicas = ["replica-a", "replica-b", "replica-c"].map(|name| yard.replica(name));
    yard.registered().await;
    let bundle = yard.bundle().await.unwrap();
    let mut met = Vec::new();
    for replica in &replicas {
        met.push(meet(&yard, &replica.endpoint, &bundle).await.unwrap());
    }
    assert!(met.iter().all(|one| *one == met[0]));

    // From then on nothing is asked for but Leases, by none of them.
    let requests = || {
        let names = ["replica-a", "replica-b", "replica-c"].into_iter();
        let all = names.flat_map(|name| yard.drydock.record().entries(name));
        all.filter(|entry| entry.resource != "leases" && entry.verb != "watch").count()
    };
    sleep(Duration::from_secs(60)).await;
    let before = requests();
    sleep(Duration::from_secs(6 * 3600)).await;
    assert_eq!(requests(), before);
    assert_eq!(yard.owners().await, ["kites", "kites-webhooks", "kube-apiserver"]);
    let ready = replicas.iter().map(|one| one.process.port.get("/readyz").status).collect::<Vec<_>>();
    assert_eq!(ready, [200; 3]);
}

#[tokio::test(start_paused = true)]
async fn what_somebody_breaks_is_put_back_and_nobody_notices() {
    let yard = Yard::start().await;
    let replicas = ["replica-a", "replica-b"].map(|name| yard.replica(name));
    yard.registered().await;
    let (secret, bundle) = (yard.secret().await, yard.bundle().await.unwrap());
    let secrets = yard.api::<Secret>();
    let same = async || {
        yard.until("the Secret to be as before", async || yard.secret().await == secret).await;
        for replica in &replicas {
            meet(&yard, &replica.endpoint, &bundle).await.unwrap();
        }
    };

    secrets.delete(SECRET, &DeleteParams::default()).await.unwrap();
    same().await;
    for key in ["tls.crt", "tls.key", "ca.crt"] {
        let garbage = json!({"data": {key: ByteString(b"garbage".to_vec())}});
        secrets.patch(SECRET, &PatchParams::default(), &Patch::Merge(garbage)).await.unwrap();
        same().await;
    }

    let configurations = yard.all::<ValidatingWebhookConfiguration>();
    let mut edited = configurations.get("kites").await.unwrap();
    let webhook = &mut edited.webhooks.as_mut().unwrap()[0];
    webhook.client_config.ca_bundle = None;
    webhook.failure_policy = Some("Fail".into());
    webhook.rules.as_mut().unwrap()[0].operations = Some(vec!["DELETE".into()]);
    let selector = json!({"matchLabels": {"theirs": "yes"}});
    webhook.object_selector = serde_json::from_value(selector).unwrap();
    configurations.replace("kites", &PostParams::default(), &edited).await.unwrap();
    yard.registered().await;
    yard.until("the configuration to be put back", async || {
        let now = configurations.get("kites").await.unwrap().webhooks.unwrap().remove(0);
        let operations = now.rules.unwrap()[0].operations.clone().unwrap();
        now.failure_policy.as_deref() == Some("Ignore") && operations == ["CREATE", "UPDATE"]
    })
    .await;
    let now = configurations.get("kites").await.unwrap().webhooks.unwrap().remove(0);
    assert!(now.object_selector.unwrap().match_labels.is_some(), "what is not ours is left alone");
    configurations.delete("kites", &DeleteParams::default()).await.unwrap();
    yard.all::<MutatingWebhookConfiguration>().delete("kites", &DeleteParams::default()).await.unwrap();
    yard.registered().await;
}

#[tokio::test(start_paused = true)]
async fn a_certificate_that_has_ended_is_replaced_at_the_start() {
    let yard = Yard::start().await;
    let first = yard.replica("replica-a");
    yard.registered().await;
    let before = yard.secret().await;
    first.process.stop().await;
    tokio::time::advance(100 * DAY).await;
    let second = yard.replica("replica-b");
    yard.until("a new certificate", async || yard.secret().await["tls.crt"] != before["tls.crt"]).await;
    yard.registered().await;
    meet(&yard, &second.endpoint, &yard.bundle().await.unwrap()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn for_a_year_no_client_meets_a_certificate_that_it_does_not_trust() {
    let yard = Arc::new(Yard::start().await);
    let replicas = ["replica-a", "replica-b"].map(|name| yard.replica(name));
    yard.registered().await;
    // What API servers trusted when: they are up to five minutes late.
    let bundles = Arc::new(Mutex::new(vec![(Instant::now(), yard.bundle().await.unwrap())]));
    let late = {
        let bundles = Arc::clone(&bundles);
        move || {
            let bundles = bundles.lock().unwrap();
            let old = Instant::now() - Duration::from_secs(300);
            bundles.iter().rev().find(|(since, _)| *since <= old).unwrap_or(&bundles[0]).1.clone()
        }
    };
    let watching = {
        let (api, bundles) = (yard.all::<ValidatingWebhookConfiguration>(), Arc::clone(&bundles));
        tokio::spawn(async move {
            let mut events = std::pin::pin!(watch_object(api, "kites"));
            while let Some(Ok(Some(seen))) = events.next().await {
                let bundle = seen.webhooks.unwrap()[0].client_config.ca_bundle.clone().unwrap();
                bundles.lock().unwrap().push((Instant::now(), bundle.0));
            }
        })
    };
    // Whenever the certificates change, late clients call at once, and again when all replicas have them.
    let endpoints = [replicas[0].endpoint.clone(), replicas[1].endpoint.clone()];
    let calling = {
        let (yard, late, endpoints) = (Arc::clone(&yard), late.clone(), endpoints.clone());
        tokio::spawn(async move {
            let mut events = std::pin::pin!(watch_object(yard.api::<Secret>(), SECRET));
            let mut changes = 0;
            while let Some(Ok(Some(_))) = events.next().await {
                for wait in [0, 1, 200] {
                    sleep(Duration::from_secs(wait)).await;
                    changes += 1;
                    for endpoint in &endpoints {
                        meet(&yard, endpoint, &late()).await.unwrap();
                    }
                }
                assert!(changes < 100);
            }
        })
    };
    let mut met = Vec::new();
    for _ in 0..183 {
        // As if everything had slept for two days, and then life goes on for a while.
        tokio::time::advance(2 * DAY).await;
        sleep(Duration::from_secs(1200)).await;
        for endpoint in &endpoints {
            let certificate = meet(&yard, endpoint, &late()).await.unwrap();
            if met.last() != Some(&certificate) {
                met.push(certificate);
            }
        }
        assert!(!calling.is_finished() && !watching.is_finished());
    }
    let bundles: Vec<_> = bundles.lock().unwrap().iter().map(|(_, bundle)| bundle.clone()).collect();
    assert!((6..=8).contains(&met.len()), "{} certificates in a year", met.len());
    let authorities = |bundle: &Vec<u8>| CertificateDer::pem_slice_iter(bundle).count();
    assert!(bundles.iter().all(|bundle| (1..=2).contains(&authorities(bundle))));
}
