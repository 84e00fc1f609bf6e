//! Kiagnose: checkups of a cluster as custom resources.
//!
//! Two operators: the [checkup controller](controller) runs [`Checkup`]s, many at once, and makes them from
//! [`CheckupSchedule`]s; the [Kiagnose operator](operator) installs and keeps the checkup controller.
//!
//! Start reading at [`checkup`], its plan; then [`schedule`] and [`installation`].

pub mod checkup;
pub mod installation;
mod listing;
pub mod schedule;

use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;
use windlass::Operator;

pub use checkup::{Checkup, CheckupSpec, CheckupStatus, Phase};
pub use installation::Installation;
pub use listing::LISTING;
pub use schedule::{CheckupSchedule, CheckupScheduleSpec, CheckupScheduleStatus};

/// A manifest to try it with.
pub const SAMPLE: &str = include_str!("../samples/echo.yaml");

/// A manifest of a schedule.
pub const SCHEDULE_SAMPLE: &str = include_str!("../samples/nightly.yaml");

/// What the Kiagnose operator needs to be there before it starts: its namespace, and the role that owns all that it
/// installs.
pub const PREPARATION: &str = include_str!("../samples/preparation.yaml");

/// The Kiagnose operator's name: its field manager, and `app.kubernetes.io/managed-by` on what it makes.
pub const OPERATOR: &str = "kiagnose-operator";
/// The checkup controller's name, likewise.
pub const CONTROLLER: &str = "kiagnose-checkup-controller";

/// The Kiagnose operator: installs the checkup controller, as its defaults have it.
#[must_use]
pub fn operator() -> Operator {
    Installation::default().operator()
}

/// The checkup controller: runs Checkups.
#[must_use]
pub fn controller() -> Operator {
    let on = |group: &str, resource: &str, verbs: &[&str]| PolicyRule {
        api_groups: Some(vec![group.into()]),
        resources: Some(vec![resource.into()]),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        ..PolicyRule::default()
    };
    Operator::new(CONTROLLER)
        .manages::<Checkup>()
        .manages::<CheckupSchedule>()
        .external_with(checkup::LogTail::new)
        .external_with(checkup::Sight::new)
        .needs([
            on("", "pods/log", &["get"]),
            // What it grants to checkups it must have itself, or it would need `escalate` and `bind`.
            on("", "configmaps", &["get", "update", "patch"]),
        ])
}

/// The definitions of the kinds.
#[must_use]
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![Checkup::crd(), CheckupSchedule::crd()]
}
