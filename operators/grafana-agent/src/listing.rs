//! What catalogs of operators show of the Grafana Agent operator.

use windlass::olm::Listing;

/// What catalogs show.
pub const LISTING: Listing = Listing {
    display_name: "Grafana Agent Operator",
    summary: "Runs Grafana agents that collect metrics and logs, found by labels.",
    description: include_str!("../listing/description.md"),
    categories: &["Monitoring", "Logging & Tracing"],
    capabilities: "Seamless Upgrades",
    keywords: &["grafana", "agent", "metrics", "logs", "prometheus", "loki"],
    maturity: "alpha",
    // Rules in schemas.
    min_kube_version: "1.29.0",
    provider: ("Windlass", "https://github.com/grafana/agent"),
    maintainers: &[("The Windlass authors", "windlass@example.org")],
    links: &[("Grafana Agent", "https://grafana.com/docs/agent/latest/operator/")],
    repository: "https://github.com/grafana/agent",
    icon: include_str!("../listing/icon.svg"),
    images: crate::agent::IMAGES,
    required_groups: &["monitoring.coreos.com"],
};
