//! Traces, sent to a collector by OTLP over HTTP.
//!
//! | variable | what it does |
//! |---|---|
//! | `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` | where they go; without either there are none |
//! | `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_EXPORTER_OTLP_TIMEOUT` (and `…_TRACES_…`) | how |
//! | `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES` | whose they are; `windlass` if it is not said |
//! | `OTEL_TRACES_SAMPLER`, `OTEL_TRACES_SAMPLER_ARG`, `OTEL_BSP_*` | how many, and how they are batched |
//! | `OTEL_SDK_DISABLED=true` | none after all |
//! | `WINDLASS_TRACES` | which spans, as in `RUST_LOG`; `windlass=info` if it is not said |

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Handle;
use tracing::Subscriber;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{EnvFilter, Layer};

/// The most that is read of a collector's answer.
const LARGEST_ANSWER: usize = 64 << 10;

/// Traces on their way to a collector.
pub(super) struct Traces(SdkTracerProvider);

impl Traces {
    /// As the standard variables say; nothing if they name no collector.
    pub(super) fn from_environment() -> Result<Option<Self>> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let endpoint = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        let disabled = variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        if disabled || endpoint.or_else(|| variable("OTEL_EXPORTER_OTLP_ENDPOINT")).is_none() {
            return Ok(None);
        }
        let exporter = SpanExporter::builder().with_http().with_http_client(Sender::new()?).build();
        let exporter = exporter.context("failed to set up traces; see OTEL_EXPORTER_OTLP_ENDPOINT")?;
        let mut resource = Resource::builder();
        if variable("OTEL_SERVICE_NAME").is_none() {
            resource = resource.with_service_name("windlass");
        }
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource.build())
            .build();
        Ok(Some(Self(provider)))
    }

    /// What makes them of the program's spans.
    pub(super) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        let filter = std::env::var("WINDLASS_TRACES").unwrap_or_else(|_| "windlass=info".to_owned());
        tracing_opentelemetry::layer()
            .with_tracer(self.0.tracer("windlass"))
            .with_location(false)
            .with_threads(false)
            .with_filter(EnvFilter::new(filter))
    }

    /// Sends what is left.
    pub(super) async fn finish(self) {
        // It waits for the exporter, which needs this runtime.
        let finished = tokio::task::spawn_blocking(move || self.0.shutdown()).await;
        if let Ok(Err(error)) = finished {
            eprintln!("failed to send the last traces: {error}");
        }
    }
}

/// Sends batches with the HTTP client that the rest of the program uses. The exporter has a thread of its own, and this
/// runtime does the work for it.
#[derive(Debug)]
struct Sender {
    runtime: Handle,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Sender {
    fn new() -> Result<Self> {
        let connector = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(rustls::crypto::ring::default_provider())
            .context("failed to read the machine's certificates, for traces")?
            .https_or_http()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { runtime: Handle::try_current()?, client })
    }
}

#[async_trait::async_trait]
impl HttpClient for Sender {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let sent = self.runtime.spawn(async move {
            let response = client.request(request.map(Full::new)).await?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, LARGEST_ANSWER).collect().await?.to_bytes();
            Ok::<_, HttpError>(Response::from_parts(parts, body))
        });
        sent.await?
    }
}
