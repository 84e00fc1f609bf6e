//! The options of webhooks, for commands that run operators.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use anyhow::{Context as _, Result};
use windlass::admission::{FailurePolicy, Webhooks};
use windlass::{ObjectName, Runtime};

/// The port of webhooks unless told otherwise.
const PORT: u16 = 9443;

/// How commands say whether and where webhooks are served.
#[derive(Debug, clap::Args)]
pub(crate) struct WebhookArguments {
    /// Have the API server ask the operators about each write: defaults at once, invalid objects refused
    #[arg(long)]
    webhooks: bool,
    /// Where to serve webhooks; without it 127.0.0.1:9443, or 0.0.0.0:9443 in a pod
    #[arg(long, value_name = "ADDRESS", requires = "webhooks")]
    webhooks_listen: Option<SocketAddr>,
    /// The Service through which the API server reaches them; without it, in a pod, windlass- and the operators' names
    #[arg(long, value_name = "NAME", requires = "webhooks", conflicts_with = "webhooks_url")]
    webhooks_service: Option<String>,
    /// The URL at which the API server reaches them; without it, outside a cluster, the address of --webhooks-listen
    #[arg(long, value_name = "URL", requires = "webhooks")]
    webhooks_url: Option<String>,
    /// What becomes of a write when no operator answers
    #[arg(long, value_name = "POLICY", requires = "webhooks", value_enum, default_value = "ignore")]
    webhooks_failure_policy: Policy,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Policy {
    /// Let it through; what is invalid shows in the object's conditions
    Ignore,
    /// Refuse it
    Fail,
}

impl WebhookArguments {
    /// Has the runtime serve them, if they were asked for; says where. `group` names all replicas together.
    pub(crate) fn apply(&self, runtime: Runtime, group: &ObjectName) -> Result<(Runtime, String)> {
        if !self.webhooks {
            return Ok((runtime, String::new()));
        }
        // Set in every pod.
        let in_pod = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
        let service = self.webhooks_service.clone().or_else(|| in_pod.then(|| group.name.clone()));
        let service = service.filter(|_| self.webhooks_url.is_none());
        let host = if service.is_some() { Ipv4Addr::UNSPECIFIED } else { Ipv4Addr::LOCALHOST };
        let address = self.webhooks_listen.unwrap_or_else(|| (host, PORT).into());
        let listener = TcpListener::bind(address)
            .with_context(|| format!("failed to listen for webhooks on {address}; see --webhooks-listen"))?;
        let address = listener.local_addr()?;
        let webhooks = match service {
            Some(service) => Webhooks::service(ObjectName::new(group.namespace.clone(), service), 443),
            None => {
                let url = self.webhooks_url.clone().unwrap_or_else(|| format!("https://{address}"));
                let secret = ObjectName::new(group.namespace.clone(), format!("{}-webhooks", group.name));
                Webhooks::url(&url, secret)?
            }
        };
        let webhooks = webhooks.failure_policy(match self.webhooks_failure_policy {
            Policy::Ignore => FailurePolicy::Ignore,
            Policy::Fail => FailurePolicy::Fail,
        });
        let place = format!(", webhooks on https://{address}");
        Ok((runtime.webhooks(webhooks).listen_webhooks(listener), place))
    }
}
