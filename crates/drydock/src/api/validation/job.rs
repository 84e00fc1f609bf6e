//! Jobs.

use serde_json::Value;
use windlass_machinery::invalid::FieldError;
use windlass_machinery::names;

use super::field::{
    At, Errors, count, has, immutable, immutable_as, is, list, not_negative, number, reasons, text,
};
use super::{internal, network, pod, selector};

const SPEC: At<'static> = At::new("spec");
/// The longest name of another controller.
const LONGEST_MANAGER: usize = 63;
const STATUS: At<'static> = At::new("status");

/// A new job.
pub(super) fn create(out: &mut Errors, job: &Value) {
    generated_selector(out, job);
    let spec = &job["spec"];
    whole_spec(out, spec);
    let completions = count(spec, "completions");
    if text(spec, "completionMode") == "Indexed" && completions > 0 {
        let name = text(&job["metadata"], "name");
        let last = format!("{name}-{}", completions - 1);
        if !names::dns1123_label(&last).is_empty() {
            let at = At::new("metadata");
            let why = format!("will not able to create pod with invalid DNS label: {last}");
            out.push(FieldError::invalid(at.child("name"), name, why));
        }
    }
}

/// A changed job; its own rules are looked at twice.
pub(super) fn update(out: &mut Errors, new: &Value, old: &Value) {
    create(out, new);
    let (spec, was) = (&new["spec"], &old["spec"]);
    whole_spec(out, spec);
    completions(out, spec, was);
    immutable(out, &spec["selector"], &was["selector"], &SPEC.child("selector"));
    template_change(out, spec, was, &old["status"]);
    immutable(out, &spec["completionMode"], &was["completionMode"], &SPEC.child("completionMode"));
    for (field, ty) in [("podFailurePolicy", "PodFailurePolicy"), ("successPolicy", "SuccessPolicy")] {
        immutable_as(out, &spec[field], &was[field], &SPEC.child(field), |value| internal::shown(ty, value));
    }
    for field in ["backoffLimitPerIndex", "managedBy"] {
        immutable(out, &spec[field], &was[field], &SPEC.child(field));
    }
}

/// The status of a job.
pub(super) fn status(out: &mut Errors, new: &Value, old: &Value) {
    let (status, was) = (&new["status"], &old["status"]);
    not_negative(out, status, &["active", "succeeded", "failed", "ready", "terminating"], &STATUS);
    let set = |status: &Value, kind: &str| {
        list(status, "conditions")
            .iter()
            .any(|one| text(one, "type") == kind && text(one, "status") == "True")
    };
    let conditions = |out: &mut Errors, why: String| {
        out.push(FieldError { value: None, ..FieldError::invalid(STATUS.child("conditions"), "", why) });
    };
    let (complete, failed) = (set(status, "Complete"), set(status, "Failed"));
    let (target, met) = (set(status, "FailureTarget"), set(status, "SuccessCriteriaMet"));
    if complete && failed {
        conditions(out, "cannot set Complete=True and Failed=true conditions".into());
    }
    if complete && target {
        conditions(out, "cannot set Complete=True and FailureTarget=true conditions".into());
    }
    let ended = &STATUS.child("completionTime");
    if has(status, "completionTime") && !complete {
        let why = "cannot set completionTime when there is no Complete=True condition";
        out.push(FieldError::invalid(ended, &status["completionTime"], why));
    }
    if complete && !has(status, "completionTime") {
        out.push(FieldError::required(ended, "completionTime is required for Complete jobs"));
    }
    if has(status, "completionTime") && text(status, "completionTime") < text(status, "startTime") {
        let why = "must be equal to or after `startTime`";
        out.push(FieldError::invalid(ended, &status["completionTime"], why));
    }
    if failed && !target {
        conditions(out, "cannot set Failed=True condition without the FailureTarget=true condition".into());
    }
    if complete && !met {
        conditions(
            out,
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition".into(),
        );
    }
    let finished = complete || failed;
    if finished && count(status, "active") > 0 {
        let why = "active>0 is invalid for finished job";
        out.push(FieldError::invalid(STATUS.child("active"), count(status, "active"), why));
    }
    if finished && !has(status, "startTime") {
        out.push(FieldError::required(STATUS.child("startTime"), "startTime is required for finished job"));
    }
    if finished && count(status, "terminating") > 0 {
        let why = "terminating>0 is invalid for finished job";
        out.push(FieldError::invalid(STATUS.child("terminating"), count(status, "terminating"), why));
    }
    if let Some(ready) = number(status, "ready").filter(|ready| *ready > count(status, "active")) {
        out.push(FieldError::invalid(STATUS.child("ready"), ready, "cannot set more ready pods than active"));
    }
    indexes(out, &new["spec"], status);
    uncounted(out, status, finished);
    if met && failed {
        conditions(out, "cannot set SuccessCriteriaMet=True and Failed=true conditions".into());
    }
    if met && target {
        conditions(out, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions".into());
    }
    for kind in
        ["Failed", "Complete", "FailureTarget"].iter().filter(|kind| set(was, kind) && !set(status, kind))
    {
        conditions(out, format!("cannot disable the terminal {kind}=True condition"));
    }
    for field in ["failed", "succeeded"].iter().filter(|field| count(status, field) < count(was, field)) {
        let why = format!("cannot decrease the {field} counter");
        out.push(FieldError::invalid(STATUS.child(field), count(status, field), why));
    }
    if has(status, "completionTime") && has(was, "completionTime") {
        immutable(out, &status["completionTime"], &was["completionTime"], ended);
    }
    let restarted = has(was, "startTime") && status["startTime"] != was["startTime"];
    if restarted && !is(&new["spec"], "suspend") {
        let why = "field is immutable for unsuspended job once set";
        out.push(FieldError::invalid(STATUS.child("startTime"), &status["startTime"], why));
    }
    if set(was, "SuccessCriteriaMet") && !met {
        conditions(out, "cannot disable the SuccessCriteriaMet=True condition".into());
    }
}

/// Which parts of a job are done, and which have failed.
fn indexes(out: &mut Errors, spec: &Value, status: &Value) {
    let (done, failed) = (text(status, "completedIndexes"), status["failedIndexes"].as_str());
    let per_index = has(spec, "backoffLimitPerIndex");
    let at = &STATUS.child("completedIndexes");
    let read = |out: &mut Errors, field: &str, text: &str| {
        let Some(completions) = number(spec, "completions").filter(|_| !text.is_empty()) else { return };
        if let Err(why) = count_indexes(text, completions) {
            let why = format!("error parsing {field}: {why}");
            out.push(FieldError::invalid(STATUS.child(field), text, why));
        }
    };
    read(out, "completedIndexes", done);
    if let Some(failed) = failed.filter(|_| per_index) {
        read(out, "failedIndexes", failed);
    }
    if !done.is_empty() && text(spec, "completionMode") != "Indexed" {
        let why = "cannot set non-empty completedIndexes when non-indexed completion mode";
        out.push(FieldError::invalid(at, done, why));
    }
    if let Some(failed) = failed.filter(|_| !per_index) {
        let why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        out.push(FieldError::invalid(STATUS.child("failedIndexes"), failed, why));
    }
}

/// Pods that have ended and are not in the counters yet.
fn uncounted(out: &mut Errors, status: &Value, finished: bool) {
    let (pods, at) = (&status["uncountedTerminatedPods"], &STATUS.child("uncountedTerminatedPods"));
    let mut known = std::collections::BTreeSet::new();
    for field in ["succeeded", "failed"] {
        let at = &at.child(field);
        for (index, uid) in list(pods, field).iter().enumerate() {
            let uid = uid.as_str().unwrap_or_default();
            if uid.is_empty() {
                out.push(FieldError::invalid(at.index(index), uid, "must not be empty"));
            } else if !known.insert(uid) {
                out.push(FieldError::duplicate(at.index(index), uid));
            }
        }
    }
    if finished && !known.is_empty() {
        let shown = serde_json::json!({"Succeeded": pods["succeeded"], "Failed": pods["failed"]});
        let shown = format!("{{\"Succeeded\":{},\"Failed\":{}}}", shown["Succeeded"], shown["Failed"]);
        let shown = windlass_machinery::invalid::Shown::raw(shown);
        out.push(FieldError::invalid(at, shown, "must be empty for finished job"));
    }
}

fn generated_selector(out: &mut Errors, job: &Value) {
    let spec = &job["spec"];
    if is(spec, "manualSelector") || !has(spec, "selector") {
        return;
    }
    let (name, uid) = (text(&job["metadata"], "name"), text(&job["metadata"], "uid"));
    let expected = [
        ("controller-uid", uid),
        ("job-name", name),
        ("batch.kubernetes.io/controller-uid", uid),
        ("batch.kubernetes.io/job-name", name),
    ];
    let labels = &spec["template"]["metadata"]["labels"];
    let at = At::new("spec.template.metadata.labels");
    for (key, wanted) in expected {
        match labels[key].as_str() {
            None => out.push(FieldError::required(at.key(key), format!("must be '{wanted}'"))),
            Some(found) if found != wanted => {
                out.push(FieldError::invalid(at.key(key), labels, format!("must be '{wanted}'")));
            }
            Some(_) => {}
        }
    }
    let Some(wanted) = selector::read(&spec["selector"]) else {
        return;
    };
    if !wanted.matches(|key| expected.iter().find(|(known, _)| *known == key).map(|(_, value)| *value)) {
        let at = SPEC.child("selector");
        out.push(FieldError::invalid(at, &spec["selector"], "`selector` not auto-generated"));
    }
}

fn whole_spec(out: &mut Errors, spec: &Value) {
    self::spec(out, spec, &SPEC);
    let at = &SPEC.child("selector");
    if has(spec, "selector") {
        selector::label_selector(out, &spec["selector"], at);
    } else {
        out.push(FieldError::required(at, ""));
    }
    if let Some(wanted) = selector::read(&spec["selector"]) {
        selector::matches_template(out, &wanted, &spec["template"], &SPEC.child("template"));
    }
}

/// What a job does, and how often.
pub(super) fn spec(out: &mut Errors, spec: &Value, at: &At<'_>) {
    let numbers = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    not_negative(out, spec, &numbers, at);
    if has(spec, "maxFailedIndexes") && !has(spec, "backoffLimitPerIndex") {
        out.push(FieldError::required(
            at.child("backoffLimitPerIndex"),
            "when maxFailedIndexes is specified",
        ));
    }
    if let Some(name) = spec["managedBy"].as_str() {
        let at = &at.child("managedBy");
        network::names_a_domain(out, name, at);
        if name.len() > LONGEST_MANAGER {
            out.push(FieldError::too_long(at, LONGEST_MANAGER));
        }
    }
    match text(spec, "completionMode") {
        "Indexed" => {
            indexed(out, spec, at);
            success_policy(out, spec, &at.child("successPolicy"));
        }
        mode => {
            let known = !has(spec, "completionMode") || mode == "NonIndexed";
            if !known {
                out.push(FieldError::not_supported(
                    at.child("completionMode"),
                    mode,
                    ["NonIndexed", "Indexed"],
                ));
            } else {
                for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
                    if let Some(value) = number(spec, field) {
                        out.push(FieldError::invalid(
                            at.child(field),
                            value,
                            "requires indexed completion mode",
                        ));
                    }
                }
            }
            if has(spec, "successPolicy") {
                let shown = internal::shown("SuccessPolicy", &spec["successPolicy"]);
                out.push(FieldError::invalid(
                    at.child("successPolicy"),
                    shown,
                    "requires indexed completion mode",
                ));
            }
        }
    }
    failure_policy(out, spec, &at.child("podFailurePolicy"));
    if let Some(policy) = spec["podReplacementPolicy"].as_str() {
        let options: &[&str] =
            if has(spec, "podFailurePolicy") { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
        if !options.contains(&policy) {
            out.push(FieldError::not_supported(at.child("podReplacementPolicy"), policy, options));
        }
    }
    let template = &at.child("template");
    pod::template(out, &spec["template"], template);
    let at = template.child("spec");
    let at = at.child("restartPolicy");
    match text(&spec["template"]["spec"], "restartPolicy") {
        "" | "Always" => {
            out.push(FieldError::required(at, "valid values: \"OnFailure\", \"Never\""));
        }
        "OnFailure" if has(spec, "podFailurePolicy") => {
            let why = "only \"Never\" is supported when podFailurePolicy is specified";
            out.push(FieldError::invalid(at, "OnFailure", why));
        }
        "OnFailure" | "Never" => {}
        other => out.push(FieldError::not_supported(at, other, ["OnFailure", "Never"])),
    }
}

fn indexed(out: &mut Errors, spec: &Value, at: &At<'_>) {
    let most = 100_000;
    let completions = number(spec, "completions");
    if completions.is_none() {
        out.push(FieldError::required(at.child("completions"), "when completion mode is Indexed"));
    }
    let parallelism = count(spec, "parallelism");
    if parallelism > most {
        let why = format!("must be less than or equal to {most} when completion mode is Indexed");
        out.push(FieldError::invalid(at.child("parallelism"), parallelism, why));
    }
    if let Some(failed) = number(spec, "maxFailedIndexes") {
        let at = at.child("maxFailedIndexes");
        if completions.is_some_and(|completions| failed > completions) {
            out.push(FieldError::invalid(at, failed, "must be less than or equal to completions"));
        }
        if failed > most {
            out.push(FieldError::invalid(at, failed, format!("must be less than or equal to {most}")));
        }
    }
}

fn success_policy(out: &mut Errors, spec: &Value, at: &At<'_>) {
    const MOST: usize = 20;
    let Some(completions) = number(spec, "completions").filter(|_| has(spec, "successPolicy")) else {
        return;
    };
    let (rules, at) = (list(&spec["successPolicy"], "rules"), &at.child("rules"));
    if rules.is_empty() {
        let why = "at least one rules must be specified when the successPolicy is specified";
        out.push(FieldError::required(at, why));
    }
    if rules.len() > MOST {
        out.push(FieldError::too_many(at, rules.len(), MOST));
    }
    for (index, rule) in rules.iter().enumerate() {
        let at = &at.index(index);
        let indexes = rule["succeededIndexes"].as_str();
        if indexes.is_none() && !has(rule, "succeededCount") {
            let why = "at least one of succeededCount or succeededIndexes must be specified";
            out.push(FieldError::required(at, why));
        }
        let mut total = 0;
        if let Some(text) = indexes {
            match count_indexes(text, completions) {
                Ok(found) => total = found,
                Err(why) => {
                    let why = format!("error parsing succeededIndexes: {why}");
                    out.push(FieldError::invalid(at.child("succeededIndexes"), text, why));
                }
            }
        }
        let Some(wanted) = number(rule, "succeededCount") else { continue };
        not_negative(out, rule, &["succeededCount"], at);
        let at = at.child("succeededCount");
        if wanted > completions {
            let why =
                format!("must be less than or equal to {completions} (the number of specified completions)");
            out.push(FieldError::invalid(at, wanted, why));
        }
        if indexes.is_some() && wanted > total {
            let why = format!(
                "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
            );
            out.push(FieldError::invalid(at, wanted, why));
        }
    }
}

/// How many indexes a list such as `0-2,5` has.
fn count_indexes(text: &str, completions: i64) -> Result<i64, String> {
    let number = |text: &str| {
        let parsed = text.parse::<i64>().ok().filter(|_| !text.starts_with(['+', '-']));
        let parsed = parsed.ok_or_else(|| format!("cannot convert string to integer for index: {text:?}"))?;
        if parsed >= completions {
            return Err(format!("too large index: {text:?}"));
        }
        Ok(parsed)
    };
    let (mut total, mut last) = (0, None);
    if text.is_empty() {
        return Ok(0);
    }
    for part in text.split(',') {
        let limits: Vec<&str> = part.split('-').collect();
        let (first, end) = match limits.as_slice() {
            [one] => (number(one)?, number(one)?),
            [first, end] => {
                let (first_number, end_number) = (number(first)?, number(end)?);
                if first_number >= end_number {
                    return Err(format!(
                        "non-increasing order, previous: {first_number}, current: {end_number}"
                    ));
                }
                (first_number, end_number)
            }
            _ => {
                return Err(format!(
                    "the fragment {part:?} violates the requirement that an index interval can have at most two parts separated by '-'"
                ));
            }
        };
        if let Some(last) = last.filter(|last| first <= *last) {
            return Err(format!("non-increasing order, previous: {last}, current: {first}"));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

fn failure_policy(out: &mut Errors, spec: &Value, at: &At<'_>) {
    const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
    let at = &at.child("rules");
    let rules = list(&spec["podFailurePolicy"], "rules");
    if rules.len() > 20 {
        out.push(FieldError::too_many(at, rules.len(), 20));
    }
    for (index, rule) in rules.iter().enumerate() {
        let at = &at.index(index);
        let inner = at.child("action");
        match text(rule, "action") {
            "" => {
                let known = ACTIONS.map(|action| format!("{action:?}")).join(" ");
                out.push(FieldError::required(inner, format!("valid values: [{known}]")));
            }
            "FailIndex" if !has(spec, "backoffLimitPerIndex") => {
                out.push(FieldError::invalid(
                    inner,
                    "FailIndex",
                    "requires the backoffLimitPerIndex to be set",
                ));
            }
            action if !ACTIONS.contains(&action) => {
                out.push(FieldError::not_supported(inner, action, ACTIONS))
            }
            _ => {}
        }
        if has(rule, "onExitCodes") {
            let at = &at.child("onExitCodes");
            exit_codes(out, &rule["onExitCodes"], at);
            let names = |sort: &str| list(&spec["template"]["spec"], sort);
            if let Some(name) = rule["onExitCodes"]["containerName"].as_str()
                && !names("containers")
                    .iter()
                    .chain(names("initContainers"))
                    .any(|one| text(one, "name") == name)
            {
                let why = "must be one of the container or initContainer names in the pod template";
                out.push(FieldError::invalid(at.child("containerName"), name, why));
            }
        }
        pod_conditions(out, rule, &at.child("onPodConditions"));
        let why = match (has(rule, "onExitCodes"), !list(rule, "onPodConditions").is_empty()) {
            (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
            (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
            _ => continue,
        };
        out.push(FieldError { value: None, ..FieldError::invalid(at, "", why) });
    }
}

fn pod_conditions(out: &mut Errors, rule: &Value, at: &At<'_>) {
    const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
    const MOST: usize = 20;
    let all = list(rule, "onPodConditions").len();
    if all > MOST {
        out.push(FieldError::too_many(at, all, MOST));
    }
    for (index, pattern) in list(rule, "onPodConditions").iter().enumerate() {
        let at = &at.index(index);
        let kind = text(pattern, "type");
        reasons(out, kind, &at.child("type"), names::qualified_name(kind));
        match text(pattern, "status") {
            "" => {
                let known = STATUSES.map(|status| format!("{status:?}")).join(" ");
                out.push(FieldError::required(at.child("status"), format!("valid values: [{known}]")));
            }
            status if !STATUSES.contains(&status) => {
                out.push(FieldError::not_supported(at.child("status"), status, STATUSES));
            }
            _ => {}
        }
    }
}

fn exit_codes(out: &mut Errors, codes: &Value, at: &At<'_>) {
    let operator = text(codes, "operator");
    match operator {
        "" => out.push(FieldError::required(at.child("operator"), "valid values: [\"In\" \"NotIn\"]")),
        "In" | "NotIn" => {}
        other => out.push(FieldError::not_supported(at.child("operator"), other, ["In", "NotIn"])),
    }
    let at = &at.child("values");
    let values: Vec<i64> = list(codes, "values").iter().filter_map(Value::as_i64).collect();
    if values.is_empty() {
        out.push(FieldError::invalid(at, &codes["values"], "at least one value is required"));
    }
    for (index, value) in values.iter().enumerate() {
        if operator == "In" && *value == 0 {
            out.push(FieldError::invalid(at.index(index), 0, "must not be 0 for the In operator"));
        }
        if values[..index].contains(value) {
            out.push(FieldError::duplicate(at.index(index), *value));
        }
    }
    if !values.is_sorted() {
        out.push(FieldError::invalid(at, &codes["values"], "must be ordered"));
    }
}

fn completions(out: &mut Errors, spec: &Value, was: &Value) {
    let at = &SPEC.child("completions");
    if text(spec, "completionMode") != "Indexed" {
        immutable(out, &spec["completions"], &was["completions"], at);
    } else if has(spec, "completions")
        && spec["completions"] != was["completions"]
        && spec["completions"] != spec["parallelism"]
    {
        let why = "can only be modified in tandem with spec.parallelism";
        out.push(FieldError::invalid(at, &spec["completions"], why));
    }
}

/// The template stays, except for where pods run while the job has not begun.
fn template_change(out: &mut Errors, spec: &Value, was: &Value, status: &Value) {
    let mut allowed = was["template"].clone();
    let suspended = is(was, "suspend");
    if suspended && !has(status, "startTime") {
        let new = &spec["template"];
        for field in ["nodeSelector", "tolerations", "schedulingGates"] {
            put(&mut allowed["spec"], field, &new["spec"][field]);
        }
        for field in ["annotations", "labels"] {
            put(&mut allowed["metadata"], field, &new["metadata"][field]);
        }
        let node = &new["spec"]["affinity"]["nodeAffinity"];
        if !node.is_null() || has(&allowed["spec"], "affinity") {
            put(&mut allowed["spec"]["affinity"], "nodeAffinity", node);
        }
        if allowed["spec"]["affinity"].as_object().is_some_and(serde_json::Map::is_empty) {
            put(&mut allowed["spec"], "affinity", &new["spec"]["affinity"]);
        }
    }
    if suspended {
        // A job that is not running may get other resources.
        let mut same = allowed.clone();
        for sort in ["containers", "initContainers"] {
            let new = list(&spec["template"]["spec"], sort);
            for (old, new) in same["spec"][sort].as_array_mut().into_iter().flatten().zip(new) {
                if text(old, "name") == text(new, "name") {
                    put(old, "resources", &new["resources"]);
                }
            }
        }
        if has(&allowed["spec"], "initContainers") || !same["spec"]["initContainers"].is_null() {
            allowed = same;
        } else {
            put(&mut same["spec"], "initContainers", &Value::Null);
            allowed = same;
        }
        let at = At::new("spec.template.spec");
        immutable_as(out, &spec["template"]["spec"], &allowed["spec"], &at, |value| {
            internal::shown("PodSpec", value)
        });
        return;
    }
    immutable_as(out, &spec["template"], &allowed, &SPEC.child("template"), |value| {
        internal::shown("PodTemplateSpec", value)
    });
}

/// Sets a field, or removes it.
fn put(object: &mut Value, field: &str, value: &Value) {
    if value.is_null() {
        if let Some(map) = object.as_object_mut() {
            map.remove(field);
        }
    } else {
        object[field] = value.clone();
    }
}
