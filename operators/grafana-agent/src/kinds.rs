//! The eight kinds and their fields.
//!
//! The fields' comments are their descriptions in the CRDs. What is given as an empty text, number or list counts as
//! not given, as in the original API; where the difference matters, the rendering says so.

mod agent;
mod auth;
mod integration;
mod logs;
mod metrics;
mod monitors;
mod names;
mod pipeline;
mod status;

pub use self::agent::{
    ApiServer, FileAccess, GrafanaAgent, GrafanaAgentSpec, IntegrationsSubsystem, LogsSubsystem, Memo,
    MetricsSubsystem, PodMetadata, Storage, VolumeClaim,
};
pub use self::auth::{
    ApiServerAuthorization, Authorization, BasicAuth, NamespaceSelector, OAuth2, Relabeling, SafeTls,
    SecretOrConfigMap, Tls,
};
pub use self::integration::{Integration, IntegrationSpec, IntegrationType};
pub use self::logs::{
    Backoff, LogsClient, LogsInstance, LogsInstanceSpec, PodLogs, PodLogsSpec, TargetConfig,
};
pub use self::metrics::{
    MetadataConfig, MetricsInstance, MetricsInstanceSpec, QueueConfig, RemoteWrite, SigV4,
};
pub use self::monitors::{
    AttachMetadata, Endpoint, Limits, PodMetricsEndpoint, PodMonitor, PodMonitorSpec, Probe, ProbeIngress,
    ProbeSpec, ProbeStatic, ProbeTargets, Prober, Scrape, ServiceMonitor, ServiceMonitorSpec,
};
pub use self::names::Named;
pub use self::pipeline::{
    Drop, Empty, Json, Limit, Match, Metric, Multiline, Output, Pack, Regex, Replace, Stage, Template,
    Tenant, Timestamp,
};
pub use self::status::{AgentStatus, LeftOut, SelectedStatus, Subsystem};
