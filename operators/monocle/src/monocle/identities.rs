//! Identities are updated once for each content of `config.yaml`, by a Job.
//!
//! The first content that is seen is only recorded: Monocle reads it when it starts, and there is nothing to update
//! yet. Each content that follows gets one Job, and never two at once: a content that comes while a Job runs waits
//! for it, and only the last of several is run. What ran last is kept in the status, so that a Job which its TTL
//! removes is not run again; a Job that failed is reported and not run again either, until the content changes.

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{Condition, Halt, World, content_hash};

use super::{Component, Monocle, config, pod};

/// The annotation of a Job with the hash of the content it runs for.
const CONTENT: &str = "monocle.change-metrics.io/config-hash";
/// The annotation of a Job with its number: one more than that of the last. Times have only whole seconds.
const RUN: &str = "monocle.change-metrics.io/run";
const COMPONENT: &str = "update-idents";
/// Digits of the hash in a Job's name.
const DIGITS: usize = 10;

/// The `config.yaml` that identities were last updated for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Identities {
    /// The hash of its content.
    pub content_hash: String,
    /// How many Jobs have run up to its own; none for the first content.
    #[serde(default)]
    pub run: i64,
    /// Whether its Job failed.
    #[serde(default)]
    pub failed: bool,
}

/// Where the update of identities stands.
pub(super) struct Standing {
    /// What ran last, for the status.
    pub(super) record: Option<Identities>,
    pub(super) running_or_finished: Vec<Job>,
    pub(super) to_run: Option<Job>,
    pub(super) problem: Option<Condition>,
}

/// Looks at the config and the Jobs.
pub(super) fn look(monocle: &Monocle, world: &World) -> Result<Standing, Halt> {
    let mut jobs = world.select::<Job>(&pod::made_for(monocle, COMPONENT))?;
    let recorded = monocle.status.as_ref().and_then(|status| status.identities.clone());
    let last = jobs.iter().filter_map(finished).chain(recorded).max_by_key(|ran| ran.run);

    let config = monocle.config_name();
    let content =
        match world.need_view(&config, |config: &ConfigMap| config::text(config).map(content_hash))? {
            Ok(content) => content,
            Err(wrong) => {
                let message = format!("ConfigMap {config}: {wrong}");
                let problem = Some(Condition::failed("InvalidConfig", message));
                return Ok(Standing { record: last, running_or_finished: jobs, to_run: None, problem });
            }
        };
    let Some(last) = last else {
        let first = Identities { content_hash: content, run: 0, failed: false };
        return Ok(Standing { record: Some(first), running_or_finished: jobs, to_run: None, problem: None });
    };

    let mut to_run = None;
    let mut problem = None;
    let busy = jobs.iter().any(|job| finished(job).is_none());
    if last.content_hash == content {
        if last.failed {
            let name = name(monocle, &content);
            let message = format!("Job {name} failed; identities are not up to date with the config");
            problem = Some(Condition::failed("IdentitiesFailed", message));
        }
    } else if !busy {
        // One of this content that is left from before another content ran has to go first: left out of the plan,
        // it is pruned.
        let before = jobs.len();
        jobs.retain(|job| finished(job).is_none_or(|ran| ran.content_hash != content));
        to_run = Some(job(monocle, &content, last.run + 1)).filter(|_| jobs.len() == before);
    }
    Ok(Standing { record: Some(last), running_or_finished: jobs, to_run, problem })
}

/// What a Job has run for, once it has ended.
fn finished(job: &Job) -> Option<Identities> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let ended = conditions.iter().find(|condition| {
        matches!(condition.type_.as_str(), "Complete" | "Failed") && condition.status == "True"
    })?;
    Some(Identities {
        content_hash: job.annotations().get(CONTENT).cloned().unwrap_or_default(),
        run: job.annotations().get(RUN).and_then(|run| run.parse().ok()).unwrap_or(0),
        failed: ended.type_ == "Failed",
    })
}

fn name(monocle: &Monocle, content: &str) -> String {
    monocle.child(&format!("{COMPONENT}-{}", content.get(..DIGITS).unwrap_or(content)))
}

fn job(monocle: &Monocle, content: &str, run: i64) -> Job {
    let command = [
        "monocle",
        "janitor",
        "update-idents",
        "--elastic",
        "$(MONOCLE_ELASTIC_URL)",
        "--config",
        pod::CONFIG_FILE,
    ];
    let env = vec![pod::variable("MONOCLE_ELASTIC_URL", monocle.elastic_url())];
    let container = pod::container(monocle, COMPONENT, &command, env);
    let mut template =
        pod::with_config(monocle, pod::template(monocle, COMPONENT, &Component::default(), container));
    template.spec.get_or_insert_default().restart_policy = Some("Never".into());
    let mut metadata = pod::metadata(monocle, "", COMPONENT);
    metadata.name = Some(name(monocle, content));
    metadata.annotations = Some([(CONTENT.into(), content.into()), (RUN.into(), run.to_string())].into());
    Job {
        metadata,
        spec: Some(JobSpec {
            backoff_limit: Some(0),
            ttl_seconds_after_finished: Some(3600),
            template,
            ..JobSpec::default()
        }),
        status: None,
    }
}
