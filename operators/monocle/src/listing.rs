//! What catalogs of operators show of the Monocle operator.

use windlass::olm::Listing;

use crate::monocle::{ELASTIC_IMAGE, MONOCLE_IMAGE};

/// What catalogs show.
pub const LISTING: Listing = Listing {
    display_name: "Monocle",
    summary: "Deploys Monocle, change metrics for code reviews, and keeps it configured.",
    description: include_str!("../listing/description.md"),
    categories: &["Developer Tools", "Monitoring"],
    capabilities: "Seamless Upgrades",
    keywords: &["monocle", "code review", "metrics", "gerrit", "github", "gitlab"],
    maturity: "alpha",
    // Rules in schemas.
    min_kube_version: "1.29.0",
    provider: ("Windlass", "https://github.com/change-metrics"),
    maintainers: &[("The Windlass authors", "windlass@example.org")],
    links: &[
        ("Monocle", "https://changemetrics.io"),
        ("Source", "https://github.com/change-metrics/monocle"),
    ],
    repository: "https://github.com/change-metrics/monocle-operator",
    icon: include_str!("../listing/icon.svg"),
    images: &[("monocle", MONOCLE_IMAGE), ("elasticsearch", ELASTIC_IMAGE)],
    required_groups: &[],
};
