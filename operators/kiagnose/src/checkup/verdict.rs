//! What is made of a run that is over. The ConfigMap decides, not the exit code:
//!
//! | the checkup | `status.succeeded` | verdict |
//! |---|---|---|
//! | exited with 0 | `true` | Succeeded |
//! | exited, with any code | `false` | Failed, `CheckupFailed` |
//! | exited with 0 | none | Failed, `NoResults` |
//! | exited with 0 | anything else | Failed, `MalformedResults` |
//! | exited with another code | other than `false` | Failed, `ExitCode` |
//! | took too long | | Failed, `Timeout` |
//! | lost its Job or ConfigMap | | Failed, `JobDeleted` or `ResultsDeleted` |
//! | was stopped by somebody | | Failed, `JobSuspended` |
//! | never got its service account | | Failed, `ServiceAccountMissing` |

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::results::{self, Results};
use super::run::End;
use super::spec::span;
use super::{CheckupStatus, Phase};

/// The condition that says that not all results are shown.
pub(super) const TRUNCATED: &str = "ResultsTruncated";

/// What is made of a run.
pub(super) struct Verdict {
    pub(super) succeeded: bool,
    reason: &'static str,
    message: String,
    failure_reason: Option<String>,
    results: Results,
}

impl Verdict {
    pub(super) fn of(end: &End, map: Option<&ConfigMap>, pods: &[Pod]) -> Self {
        let data = map.and_then(|map| map.data.clone()).unwrap_or_default();
        let said = data.get("status.succeeded").map(String::as_str);
        let failure_reason = data.get("status.failureReason").map(|reason| results::text(reason).0);
        let failure_reason = failure_reason.filter(|reason| !reason.is_empty());
        let (succeeded, reason, message) = match (end, said) {
            (End::Complete, Some("true")) => (true, "Succeeded", "the checkup succeeded".to_owned()),
            (End::Complete | End::Failed(_), Some("false")) => {
                let why = failure_reason.as_deref().unwrap_or("the checkup gives no reason");
                (false, "CheckupFailed", why.to_owned())
            }
            (End::Complete, None) => {
                (false, "NoResults", "the checkup ended without writing status.succeeded".to_owned())
            }
            (End::Complete, Some(other)) => {
                let other: String = results::printable(other).chars().take(64).collect();
                (false, "MalformedResults", format!("status.succeeded is {other:?}, neither true nor false"))
            }
            (End::Failed(message), said) => {
                let code =
                    exit_code(pods).map_or_else(|| message.clone(), |code| format!("exit code {code}"));
                let but = match said {
                    Some("true") => ", although the checkup says that it succeeded",
                    _ => ", and no results",
                };
                (false, "ExitCode", format!("{code}{but}"))
            }
            (End::Timeout, _) => (false, "Timeout", "the checkup did not end in time".to_owned()),
            (End::Deleted(reason, what), _) => {
                (false, *reason, format!("{what} was deleted while the checkup ran"))
            }
            (End::Suspended, _) => {
                (false, "JobSuspended", "the Job was suspended while the checkup ran".to_owned())
            }
            (End::NoServiceAccount, _) => {
                let message = "the service account did not appear within the timeout".to_owned();
                (false, "ServiceAccountMissing", message)
            }
        };
        let failure_reason = failure_reason.filter(|_| !succeeded);
        Self { succeeded, reason, message, failure_reason, results: Results::of(&data) }
    }

    /// Writes it down.
    pub(super) fn write(self, status: &mut CheckupStatus, log_tail: Option<String>, now: Timestamp) {
        let (phase, succeeded, failed) = if self.succeeded {
            (Phase::Succeeded, "True", "False")
        } else {
            (Phase::Failed, "False", "True")
        };
        status.phase = Some(phase);
        status.say("Succeeded", succeeded, self.reason, &self.message, now);
        status.say("Failed", failed, self.reason, &self.message, now);
        if let Some(lack) = self.results.lack() {
            status.say(TRUNCATED, "True", "TooLarge", &lack, now);
        }
        status.results = self.results.shown;
        status.failure_reason = self.failure_reason;
        status.log_tail = log_tail;
        status.completion_time = Some(Time(now));
        let began = status.start_time.as_ref().map_or(now, |start| start.0);
        status.duration = Duration::try_from(now.duration_since(began)).ok().map(span);
    }
}

/// The checkup's exit code, as its pod says.
fn exit_code(pods: &[Pod]) -> Option<i32> {
    let statuses = pods.last()?.status.as_ref()?.container_statuses.as_ref()?;
    statuses.iter().find_map(|status| Some(status.state.as_ref()?.terminated.as_ref()?.exit_code))
}
