//! How operators run among their replicas, and where they say how they are: the options of `run` and of the programs
//! of images.

use std::net::{IpAddr, SocketAddr};

use anyhow::Result;
use windlass::{LeaseName, Runtime};

use crate::port;

/// The options. Their name is also that of their group, which no other may have.
#[derive(Debug, clap::Args)]
pub(crate) struct ServingArguments {
    /// Work only in these namespaces: rights in them are enough. In all without it
    #[arg(long = "watch-namespace", value_name = "A,B", value_delimiter = ',')]
    watch_namespaces: Vec<String>,
    /// Work only while holding a Lease: of several replicas one works, and the others stand by
    #[arg(long)]
    leader_elect: bool,
    /// Share the objects with the other replicas: each works on its part, and has a Lease
    #[arg(long, conflicts_with = "leader_elect")]
    shards: bool,
    /// The namespace of the Leases; without it, that of the pod or the kubeconfig
    #[arg(long, value_name = "NAME")]
    lease_namespace: Option<String>,
    /// The name of the Lease, the same for all replicas; without it windlass- and the operators' names
    #[arg(long, value_name = "NAME")]
    lease_name: Option<String>,
    /// What this replica is called in its Lease; without it $POD_NAME or $HOSTNAME
    #[arg(long, value_name = "NAME")]
    identity: Option<String>,
    /// Where to serve metrics, health and explain; without it 127.0.0.1:9446 if that is free
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    listen: Option<SocketAddr>,
}

impl ServingArguments {
    /// The Lease of operators of these names, in this namespace unless told otherwise.
    pub(crate) fn lease(&self, namespace: &str, operators: &[&str]) -> LeaseName {
        let name = || format!("windlass-{}", operators.join("-"));
        LeaseName {
            namespace: self.lease_namespace.clone().unwrap_or_else(|| namespace.to_owned()),
            name: self.lease_name.clone().unwrap_or_else(name),
        }
    }

    /// Tells the runtime; what it serves where, in words.
    pub(crate) fn apply(&self, mut runtime: Runtime, lease: LeaseName) -> Result<(Runtime, String)> {
        runtime = runtime.namespaces(&self.watch_namespaces);
        if let Some(identity) = self.identity() {
            runtime = runtime.identity(identity);
        }
        if self.leader_elect {
            runtime = runtime.leader(lease);
        } else if self.shards {
            runtime = runtime.shards(lease);
        }
        let Some(listener) = port::bind(self.listen)? else { return Ok((runtime, String::new())) };
        let place = format!(", metrics and explain on http://{}", listener.local_addr()?);
        Ok((runtime.listen(listener), place))
    }

    fn identity(&self) -> Option<String> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        self.identity.clone().or_else(|| variable("POD_NAME")).or_else(|| variable("HOSTNAME"))
    }
}

/// An address and a port. A manifest that has `$(POD_IP):9446` cannot know whether brackets are needed, so they are not.
fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let parts = text.rsplit_once(':').and_then(|(ip, port)| Some((ip.parse().ok()?, port.parse().ok()?)));
    parts
        .map(|(ip, port): (IpAddr, u16)| SocketAddr::new(ip, port))
        .ok_or_else(|| "it is an address and a port, such as 127.0.0.1:9446".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_either_family_needs_no_brackets() {
        for (text, wanted) in [
            ("10.0.0.7:9446", "10.0.0.7:9446"),
            ("[fd00::7]:9446", "[fd00::7]:9446"),
            ("fd00::7:9446", "[fd00::7]:9446"),
        ] {
            assert_eq!(address(text), Ok(wanted.parse().unwrap()), "{text}");
        }
        assert!(address(":9446").is_err() && address("9446").is_err());
    }
}
