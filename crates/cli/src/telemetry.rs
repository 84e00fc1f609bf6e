//! What the program says of itself: its log, and, with the feature `opentelemetry`, traces.
//!
//! The log goes to stderr and follows `RUST_LOG`. Traces go to `OTEL_EXPORTER_OTLP_ENDPOINT` where that is set, and
//! follow the other standard variables too.

#[cfg(feature = "opentelemetry")]
mod otlp;

use std::io::IsTerminal as _;

use anyhow::Result;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

/// What has to be finished before the program ends.
pub(crate) struct Telemetry {
    #[cfg(feature = "opentelemetry")]
    traces: Option<otlp::Traces>,
}

/// Starts it.
pub(crate) fn start() -> Result<Telemetry> {
    let log = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_filter(EnvFilter::from_default_env());
    let registry = tracing_subscriber::registry().with(log);
    #[cfg(feature = "opentelemetry")]
    {
        let traces = otlp::Traces::from_environment()?;
        registry.with(traces.as_ref().map(otlp::Traces::layer)).init();
        Ok(Telemetry { traces })
    }
    #[cfg(not(feature = "opentelemetry"))]
    {
        registry.init();
        Ok(Telemetry {})
    }
}

impl Telemetry {
    /// Sends what is left.
    pub(crate) async fn finish(self) {
        #[cfg(feature = "opentelemetry")]
        if let Some(traces) = self.traces {
            traces.finish().await;
        }
    }
}
