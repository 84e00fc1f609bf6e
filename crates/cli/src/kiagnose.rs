//! The programs of the Kiagnose image: the operator, which is `windlass run kiagnose`, and the checkup controller that it
//! installs, which is for containers and stays out of the help.

use anyhow::{Context as _, Result};
use windlass::{Context, Operator, Runtime};
use windlass_kiagnose::Installation;

use crate::cluster::Target;
use crate::serving::ServingArguments;
use crate::signal;

/// The names by which this program is called where an image holds it under them, and the commands that they stand for.
pub(crate) const PROGRAMS: &[(&str, &[&str])] = &[
    ("kiagnose", &["run", "kiagnose"]),
    ("checkup-controller", &["checkup-controller"]),
    ("echo-checkup", &["echo-checkup"]),
];

/// The variable that names the image of the checkup controller, which is the operator's own.
pub(crate) const IMAGE_VARIABLE: &str = "RELATED_IMAGE_CHECKUP_CONTROLLER";

/// Run Checkups, as the Deployment that the operator kiagnose installs
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    serving: ServingArguments,
}

/// Runs Checkups.
pub(crate) async fn controller(arguments: Arguments) -> Result<()> {
    let operator = windlass_kiagnose::controller();
    let client = arguments.target.client().await?;
    let lease = arguments.serving.lease(client.default_namespace(), &[operator.name()]);
    let runtime = Runtime::new(client, Context::live()).host(operator);
    let (runtime, _) = arguments.serving.apply(runtime, lease)?;
    runtime.run(signal::stop()).await.context("failed to run the checkup controller")
}

/// The image of operator and controller.
pub(crate) fn image() -> String {
    Installation::default().image
}

/// The operator that installs the checkup controller.
pub(crate) fn installer() -> Operator {
    installation().operator()
}

/// The same where it came with a bundle that has the definitions.
pub(crate) fn bundled() -> Operator {
    Installation { definitions: false, ..installation() }.operator()
}

/// In the namespace and of the image of the pod that this program runs in, or by default.
fn installation() -> Installation {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let default = Installation::default();
    Installation {
        namespace: variable("POD_NAMESPACE").unwrap_or(default.namespace),
        image: variable(IMAGE_VARIABLE).unwrap_or(default.image),
        ..Installation::default()
    }
}
