//! What catalogs of operators show of Kiagnose.

use windlass::olm::Listing;

/// What catalogs show.
pub const LISTING: Listing = Listing {
    display_name: "Kiagnose",
    summary: "Runs checkups of a cluster as custom resources and keeps their verdicts.",
    description: include_str!("../listing/description.md"),
    categories: &["Monitoring", "Developer Tools"],
    capabilities: "Seamless Upgrades",
    keywords: &["checkup", "diagnostics", "validation", "verification"],
    maturity: "alpha",
    // ValidatingAdmissionPolicy.
    min_kube_version: "1.30.0",
    provider: ("Windlass", "https://github.com/kiagnose"),
    maintainers: &[("The Windlass authors", "windlass@example.org")],
    links: &[("Checkups", "https://github.com/kiagnose/kiagnose")],
    repository: "https://github.com/kiagnose/kiagnose",
    icon: include_str!("../listing/icon.svg"),
    images: &[],
    required_groups: &[],
};
