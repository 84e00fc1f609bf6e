//! The Job that runs a checkup: once, for a limited time, in a pod that may do little.
//!
//! It is made suspended, and released once its uid is recorded. A Job that was deleted before that has run nothing, and
//! can be made again; one that was deleted after it is known by its uid. So no crash, whenever it comes, makes a second
//! run.

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{
    Capabilities, Container, PodSecurityContext, PodSpec, PodTemplateSpec, SeccompProfile, SecurityContext,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;

use super::{CHECKUP, Checkup, env};

/// On a Job: the generation of the Checkup that it was made for.
const GENERATION: &str = "kiagnose.io/generation";
/// On a Job: it may run, or might have.
const RELEASED: &str = "kiagnose.io/released";

/// The container's name.
pub(super) const CONTAINER: &str = "checkup";

pub(super) fn build(checkup: &Checkup) -> Job {
    let spec = &checkup.spec;
    let container = Container {
        name: CONTAINER.into(),
        image: Some(spec.image.clone()),
        env: Some(env::build(checkup)),
        resources: spec.resources.clone(),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            capabilities: Some(Capabilities { drop: Some(vec!["ALL".into()]), ..Capabilities::default() }),
            ..SecurityContext::default()
        }),
        // A checkup that says nothing else is judged by its log.
        termination_message_policy: Some("FallbackToLogsOnError".into()),
        ..Container::default()
    };
    let pod = PodSpec {
        containers: vec![container],
        restart_policy: Some("Never".into()),
        service_account_name: Some(spec.service_account_name.clone()),
        automount_service_account_token: Some(true),
        enable_service_links: Some(false),
        node_selector: spec.node_selector.clone(),
        tolerations: spec.tolerations.clone(),
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            seccomp_profile: Some(SeccompProfile {
                type_: "RuntimeDefault".into(),
                ..SeccompProfile::default()
            }),
            ..PodSecurityContext::default()
        }),
        ..PodSpec::default()
    };
    let labels = Some([(CHECKUP.to_owned(), checkup.name_any())].into());
    let mut metadata = checkup.named(checkup.name_any());
    metadata.annotations = Some([(GENERATION.to_owned(), generation(checkup))].into());
    Job {
        metadata,
        spec: Some(JobSpec {
            suspend: Some(true),
            backoff_limit: Some(0),
            active_deadline_seconds: i64::try_from(spec.deadline().as_secs()).ok(),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels, ..ObjectMeta::default() }),
                spec: Some(pod),
            },
            ..JobSpec::default()
        }),
        ..Job::default()
    }
}

/// What lets a Job run.
pub(super) fn released(checkup: &Checkup) -> Job {
    with_suspend(checkup, false)
}

/// What stops a Job and leaves it for a look.
pub(super) fn suspended(checkup: &Checkup) -> Job {
    with_suspend(checkup, true)
}

/// Whether a Job may have run.
pub(super) fn is_released(job: &Job) -> bool {
    job.annotations().contains_key(RELEASED)
}

/// Whether a Job was made for the spec as it is.
pub(super) fn is_made_for(checkup: &Checkup, job: &Job) -> bool {
    job.annotations().get(GENERATION) == Some(&generation(checkup))
}

fn generation(checkup: &Checkup) -> String {
    checkup.metadata.generation.unwrap_or_default().to_string()
}

fn with_suspend(checkup: &Checkup, suspend: bool) -> Job {
    Job {
        metadata: ObjectMeta {
            name: checkup.metadata.name.clone(),
            namespace: checkup.namespace(),
            annotations: Some([(RELEASED.to_owned(), "true".to_owned())].into()),
            ..ObjectMeta::default()
        },
        spec: Some(JobSpec { suspend: Some(suspend), ..JobSpec::default() }),
        ..Job::default()
    }
}
