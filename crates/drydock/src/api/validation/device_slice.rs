//! Devices that are there: slices of pools, and what a claim's status says was allocated.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_machinery::invalid::{FieldError, Shown};
use windlass_machinery::quantity::Quantity;
use windlass_machinery::{go, names};

use super::devices::{
    EFFECTS, Requests, binding_conditions, configuration, each, label, qualified, raw, request_name,
    request_names, set, tolerations,
};
use super::field::{At, Errors, count, entries, has, immutable, is, list, reasons, required, text};
use super::resources::quantity;
use super::{address, condition, field, internal, scheduling, storage};

const SPEC: At<'static> = At::new("spec");
const STATUS: At<'static> = At::new("status");
const MOST_DEVICES: usize = 128;
/// Devices with taints or counters are more work for whoever allocates them.
const MOST_SPECIAL_DEVICES: usize = 64;
const MOST_COUNTERS: usize = 32;
const LONGEST_VALUE: usize = 64;

/// A slice of a pool of devices.
pub(super) fn slice(out: &mut Errors, slice: &Value, old: Option<&Value>) {
    let spec = &slice["spec"];
    storage::driver_name(out, spec, "driver", &SPEC);
    let at = &SPEC.child("pool");
    let pool = &spec["pool"];
    pool_name(out, pool, "name", at);
    if count(pool, "resourceSliceCount") <= 0 {
        let value = count(pool, "resourceSliceCount");
        out.push(FieldError::invalid(at.child("resourceSliceCount"), value, "must be greater than zero"));
    }
    if count(pool, "generation") < 0 {
        let why = "must be greater than or equal to zero";
        out.push(FieldError::invalid(at.child("generation"), count(pool, "generation"), why));
    }
    if let Some(old) = old.map(|old| &old["spec"]) {
        immutable(out, &pool["name"], &old["pool"]["name"], &at.child("name"));
        immutable(out, &spec["driver"], &old["driver"], &SPEC.child("driver"));
        immutable(out, &spec["nodeName"], &old["nodeName"], &SPEC.child("nodeName"));
    }
    places(out, spec);
    if has(spec, "sharedCounters") && has(spec, "devices") {
        out.push(FieldError::invalid(SPEC, "", "only one of `sharedCounters` or `devices` is allowed"));
    }
    let devices = list(spec, "devices");
    let special = |device: &Value| {
        let lists = ["ints", "bools", "strings", "versions"];
        !list(device, "taints").is_empty()
            || !list(device, "consumesCounters").is_empty()
            || entries(device, "attributes").any(|(_, value)| lists.iter().any(|list| has(value, list)))
    };
    let most = if devices.iter().any(special) { MOST_SPECIAL_DEVICES } else { MOST_DEVICES };
    set(
        out,
        devices,
        most,
        &SPEC.child("devices"),
        |device| text(device, "name"),
        |out, device, at| {
            let before = old.and_then(|old| {
                list(&old["spec"], "devices").iter().find(|old| old["name"] == device["name"])
            });
            self::device(out, device, before, at, is(spec, "perDeviceNodeSelection"));
        },
    );
    let at = &SPEC.child("sharedCounters");
    set(
        out,
        list(spec, "sharedCounters"),
        8,
        at,
        |counters| text(counters, "name"),
        |out, counters, at| {
            self::counters(out, counters, "name", at);
        },
    );
}

/// Where the devices of a slice can be used: said in one of four ways.
fn places(out: &mut Errors, spec: &Value) {
    const WAYS: &str =
        "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    let mut set = node_places(out, spec, &SPEC, "must be either unset or set to a non-empty string");
    if has(spec, "nodeSelector") && list(&spec["nodeSelector"], "nodeSelectorTerms").len() != 1 {
        let at = SPEC.child("nodeSelector");
        let terms = &spec["nodeSelector"]["nodeSelectorTerms"];
        let shown = internal::shown_list("NodeSelectorTerm", terms);
        let why = "must have exactly one node selector term";
        out.push(FieldError::invalid(at.child("nodeSelectorTerms"), shown, why));
    }
    flag(out, spec, "perDeviceNodeSelection", &SPEC, &mut set);
    match set.len() {
        0 => out.push(FieldError::required(SPEC, WAYS)),
        1 => {}
        _ => {
            let found = format!("{{{}}}", set.join(", "));
            out.push(FieldError::invalid(SPEC, found, format!("{WAYS}, but multiple fields are set")));
        }
    }
}

fn node_places(out: &mut Errors, within: &Value, at: &At<'_>, empty: &str) -> Vec<&'static str> {
    let mut set = Vec::new();
    if has(within, "nodeName") {
        let (name, at) = (text(within, "nodeName"), &at.child("nodeName"));
        if name.is_empty() {
            out.push(FieldError::invalid(at, name, empty));
        } else {
            set.push("`nodeName`");
            reasons(out, name, at, names::dns1123_subdomain(name));
        }
    }
    if has(within, "nodeSelector") {
        set.push("`nodeSelector`");
        scheduling::node_selector(out, &within["nodeSelector"], &at.child("nodeSelector"));
    }
    flag(out, within, "allNodes", at, &mut set);
    set
}

fn flag(out: &mut Errors, within: &Value, field: &'static str, at: &At<'_>, set: &mut Vec<&'static str>) {
    if is(within, field) {
        set.push(if field == "allNodes" { "`allNodes`" } else { "`perDeviceNodeSelection`" });
    } else if has(within, field) {
        out.push(FieldError::invalid(at.child(field), false, "must be either unset or set to true"));
    }
}

fn device(out: &mut Errors, device: &Value, old: Option<&Value>, at: &At<'_>, placed: bool) {
    label(out, text(device, "name"), &at.child("name"));
    let number = entries(device, "attributes").count() + entries(device, "capacity").count();
    if number > 32 {
        let why = "the total number of attributes and capacities must not exceed 32";
        out.push(FieldError::invalid(at, number as i64, why));
    }
    let inner = &at.child("attributes");
    for (name, value) in entries(device, "attributes") {
        qualified(out, name, inner);
        attribute(out, value, &inner.key(&shortened(name, 63 + 1 + 32)));
    }
    if old.is_none_or(|old| old["capacity"] != device["capacity"]) {
        let inner = &at.child("capacity");
        for (name, capacity) in entries(device, "capacity") {
            qualified(out, name, inner);
            let short = shortened(name, 63 + 1 + 32);
            let inner = &inner.key(&short);
            if has(capacity, "requestPolicy") {
                let at = &inner.child("requestPolicy");
                if is(device, "allowMultipleAllocations") {
                    policy(out, &capacity["requestPolicy"], &capacity["value"], at);
                } else {
                    out.push(FieldError::forbidden(at, "allowMultipleAllocations must be true"));
                }
            }
        }
    }
    if old.is_none_or(|old| old["taints"] != device["taints"]) {
        each(out, list(device, "taints"), 16, &at.child("taints"), taint);
    }
    let inner = &at.child("consumesCounters");
    set(
        out,
        list(device, "consumesCounters"),
        2,
        inner,
        |used| text(used, "counterSet"),
        |out, used, at| {
            counters(out, used, "counterSet", at);
        },
    );
    const WAYS: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
                        `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
    if placed {
        let set = node_places(out, device, at, "must not be empty");
        match set.len() {
            0 => out.push(FieldError::required(at, WAYS)),
            1 => {}
            _ => out.push(FieldError::invalid(at, format!("{{{}}}", set.join(", ")), WAYS)),
        }
    } else if ["nodeName", "nodeSelector", "allNodes"].iter().any(|field| has(device, field)) {
        let why = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to \
                   true in the ResourceSlice spec";
        out.push(FieldError::invalid(at, &Value::Null, why));
    }
    binding_conditions(out, device, at);
}

fn attribute(out: &mut Errors, value: &Value, at: &At<'_>) {
    let too_long = |out: &mut Errors, text: &str, at: &At<'_>| {
        if text.len() > LONGEST_VALUE {
            out.push(FieldError::too_long(at, LONGEST_VALUE));
        }
    };
    if has(value, "string") {
        too_long(out, text(value, "string"), &at.child("string"));
    }
    if has(value, "version") {
        let (version, at) = (text(value, "version"), &at.child("version"));
        if !is_version(version) {
            let why = "must be a string compatible with semver.org spec 2.0.0";
            out.push(FieldError::invalid(at, version, why));
        }
        too_long(out, version, at);
    }
    let kinds = ["bool", "int", "string", "version"];
    match kinds.iter().filter(|kind| has(value, kind)).count() {
        0 => out.push(FieldError::invalid(at, "", "exactly one value must be specified")),
        1 => {}
        _ => {
            let shown = internal::shown("DeviceAttribute", value);
            out.push(FieldError::invalid(at, shown, "exactly one value must be specified"));
        }
    }
}

/// Whether a text is a version as semver.org has it: `1.2.3-alpha.1+build`.
fn is_version(text: &str) -> bool {
    let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
    let (core, pre) = text.split_once('-').map_or((text, None), |(core, pre)| (core, Some(pre)));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let number = |part: &str| digits(part) && (part == "0" || !part.starts_with('0'));
    let word = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    core.split('.').count() == 3
        && core.split('.').all(number)
        && pre
            .is_none_or(|pre| pre.split('.').all(|part| if digits(part) { number(part) } else { word(part) }))
        && build.is_none_or(|build| build.split('.').all(word))
}

fn taint(out: &mut Errors, taint: &Value, at: &At<'_>) {
    let key = text(taint, "key");
    reasons(out, key, &at.child("key"), names::qualified_name(key));
    field::named(out, taint, "value", at, names::label_value);
    field::choice(out, taint, "effect", at, &EFFECTS);
}

fn counters(out: &mut Errors, counters: &Value, name: &str, at: &At<'_>) {
    if required(out, counters, name, at) {
        label(out, text(counters, name), &at.child(name));
    }
    let at = &at.child("counters");
    let number = entries(counters, "counters").count();
    if number == 0 {
        out.push(FieldError::required(at, ""));
    } else if number > MOST_COUNTERS {
        out.push(FieldError::too_many(at, number, MOST_COUNTERS));
    } else {
        entries(counters, "counters").for_each(|(name, _)| label(out, name, at));
    }
}

/// What a device that is shared gives to each of its users.
fn policy(out: &mut Errors, policy: &Value, most: &Value, at: &At<'_>) {
    let values = list(policy, "validValues");
    if !values.is_empty() && has(policy, "validRange") {
        let why = "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time";
        out.push(FieldError::forbidden(at, why));
        return;
    }
    let field = if values.is_empty() { "validRange" } else { "validValues" };
    if !has(policy, field) {
        return;
    }
    let (Some(default), Some(most)) = (quantity(&policy["default"]), quantity(most)) else {
        out.push(FieldError::required(at.child("default"), format!("required when {field} is defined")));
        return;
    };
    let at = &at.child(field);
    if field == "validRange" {
        range(out, &policy["validRange"], &default, &most, at);
        return;
    }
    let amounts: Vec<Quantity> = values.iter().filter_map(quantity).collect();
    for (index, pair) in amounts.windows(2).enumerate() {
        if pair[0] > pair[1] {
            let why = "values must be sorted in ascending order";
            out.push(FieldError::invalid(at.index(index + 1), pair[1].to_string(), why));
        }
    }
    if amounts.len() > 10 {
        out.push(FieldError::too_many(at, amounts.len(), 10));
    } else {
        let mut known = BTreeSet::new();
        for (index, amount) in amounts.iter().enumerate() {
            if *amount > most {
                let why = format!("option is larger than capacity value: {most}");
                out.push(FieldError::invalid(at.index(index), amount.to_string(), why));
            }
        }
        for (index, amount) in amounts.iter().enumerate() {
            if !known.insert(amount.value()) {
                out.push(FieldError::duplicate(at.index(index), amount.value().to_string()));
            }
        }
    }
    if amounts.len() > 10 || !amounts.contains(&default) {
        let why = "default value is not valid according to the requestPolicy";
        out.push(FieldError::invalid(at, default.to_string(), why));
    }
}

fn range(out: &mut Errors, range: &Value, default: &Quantity, most: &Quantity, at: &At<'_>) {
    let Some(low) = quantity(&range["min"]) else {
        out.push(FieldError::required(at.child("min"), "required when validRange is defined"));
        return;
    };
    let mut wrong = |wrong: bool, field: &str, shown: &Quantity, why: String| {
        if wrong {
            out.push(FieldError::invalid(at.child(field), shown.to_string(), why));
        }
    };
    wrong(low > *most, "min", &low, format!("min is larger than capacity value: {most}"));
    wrong(*default < low, "min", default, format!("default is less than min: {low}"));
    let high = quantity(&range["max"]);
    if let Some(high) = &high {
        wrong(low > *high, "max", &low, format!("min is larger than max: {high}"));
        wrong(*high > *most, "max", high, format!("max is larger than capacity value: {most}"));
        wrong(*default > *high, "max", default, format!("default is more than max: {high}"));
    }
    let Some(step) = quantity(&range["step"]) else { return };
    let next = low.add(&step);
    wrong(next > *most, "step", &step, format!("one step {next} is larger than capacity value: {most}"));
    let off = |value: &Quantity| step.value() != 0 && (value.value() - low.value()) % step.value() != 0;
    let why = format!("value is not a multiple of a given step ({step}) from ({low})");
    wrong(off(default), "step", default, why.clone());
    if let Some(high) = &high {
        wrong(off(high), "step", high, why);
    }
}

/// What is allocated to a claim, and to whom.
pub(super) fn claim_status(out: &mut Errors, new: &Value, old: &Value) {
    let (status, was) = (&new["status"], &old["status"]);
    let known = Requests::of(&new["spec"]["devices"]);
    let at = &STATUS.child("reservedFor");
    set(
        out,
        list(status, "reservedFor"),
        256,
        at,
        |user| text(user, "uid"),
        |out, user, at| {
            for field in ["resource", "name", "uid"] {
                required(out, user, field, at);
            }
        },
    );
    let results = list(&status["allocation"]["devices"], "results");
    let at = &STATUS.child("devices");
    set(out, list(status, "devices"), usize::MAX, at, identity, |out, device, at| {
        storage::driver_name(out, device, "driver", at);
        pool_name(out, device, "pool", at);
        label(out, text(device, "device"), &at.child("device"));
        share(out, device, at);
        if !results.iter().any(|result| identity(result) == identity(device)) {
            let [driver, pool, name, share] =
                ["driver", "pool", "device", "shareID"].map(|field| go::json(&text(device, field).into()));
            let shown =
                format!("{{\"Driver\":{driver},\"Pool\":{pool},\"Device\":{name},\"ShareID\":{share}}}");
            let why = "must be an allocated device in the claim";
            out.push(FieldError::invalid(at, Shown::raw(shown), why));
        }
        device_status(out, device, at);
    });
    let users = &STATUS.child("reservedFor");
    if !list(status, "reservedFor").is_empty() {
        let added = list(status, "reservedFor").iter().any(|user| !list(was, "reservedFor").contains(user));
        if !has(status, "allocation") {
            out.push(FieldError::forbidden(users, "may not be specified when `allocated` is not set"));
        } else if has(&new["metadata"], "deletionTimestamp") && added {
            let why =
                "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
            out.push(FieldError::forbidden(users, why));
        }
    }
    let at = &STATUS.child("allocation");
    if has(was, "allocation") && has(status, "allocation") {
        field::immutable_as(out, &status["allocation"], &was["allocation"], at, |value| {
            internal::shown("AllocationResult", value)
        });
    } else if has(status, "allocation") {
        allocation(out, &status["allocation"], at, &known);
    }
}

/// What tells users of one device apart: a UUID in its usual form.
fn share(out: &mut Errors, within: &Value, at: &At<'_>) {
    let Some(id) = within["shareID"].as_str() else { return };
    let at = at.child("shareID");
    let plain: String = id.chars().filter(|c| *c != '-').collect();
    let dashes = [8, 13, 18, 23].iter().all(|place| id.as_bytes().get(*place) == Some(&b'-'));
    let why = match id.len() {
        36 if !dashes || plain.len() != 32 || !plain.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            "error validating uid: invalid UUID format".to_owned()
        }
        36 if id == id.to_lowercase() => return,
        32 | 36 | 38 | 45 => {
            "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with \
                              lowercase hexadecimal characters"
                .to_owned()
        }
        length => format!("error validating uid: invalid UUID length: {length}"),
    };
    out.push(FieldError::invalid(at, id, why));
}

fn identity(device: &Value) -> String {
    ["driver", "pool", "device", "shareID"].map(|field| text(device, field)).join("/")
}

fn device_status(out: &mut Errors, device: &Value, at: &At<'_>) {
    let conditions = list(device, "conditions");
    if conditions.len() > 8 {
        out.push(FieldError::too_many(at.child("conditions"), conditions.len(), 8));
    }
    condition::conditions(out, device, at);
    if has(device, "data") {
        raw(out, &device["data"], &at.child("data"), 10 * 1024, false);
    }
    let (network, at) = (&device["networkData"], &at.child("networkData"));
    for (field, most) in [("interfaceName", 256), ("hardwareAddress", 128)] {
        if text(network, field).len() > most {
            out.push(FieldError::too_long(at.child(field), most));
        }
    }
    let text = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned();
    set(out, list(network, "ips"), 16, &at.child("ips"), text, |out, ip, at| {
        address::interface(out, ip.as_str().unwrap_or_default(), at);
    });
}

fn allocation(out: &mut Errors, allocation: &Value, at: &At<'_>, known: &Requests<'_>) {
    let (devices, inner) = (&allocation["devices"], &at.child("devices"));
    each(out, list(devices, "results"), 32, &inner.child("results"), |out, result, at| {
        request_name(out, text(result, "request"), &at.child("request"), known);
        storage::driver_name(out, result, "driver", at);
        pool_name(out, result, "pool", at);
        label(out, text(result, "device"), &at.child("device"));
        share(out, result, at);
        binding_conditions(out, result, at);
        tolerations(out, result, at);
    });
    each(out, list(devices, "config"), 64, &inner.child("config"), |out, config, at| {
        field::choice(out, config, "source", at, &["FromClaim", "FromClass"]);
        request_names(out, config, at, known);
        configuration(out, config, at, false);
    });
    if has(allocation, "nodeSelector") {
        scheduling::node_selector(out, &allocation["nodeSelector"], &at.child("nodeSelector"));
    }
}

fn pool_name(out: &mut Errors, within: &Value, field: &str, at: &At<'_>) {
    if !required(out, within, field, at) {
        return;
    }
    let (name, at) = (text(within, field), &at.child(field));
    if name.len() > 253 {
        out.push(FieldError::too_long(at, 253));
    }
    for part in name.split('/') {
        reasons(out, part, at, names::dns1123_subdomain(part));
    }
}

/// A key as messages show it: without its middle where it is too long.
fn shortened(key: &str, most: usize) -> String {
    if key.len() <= most {
        return key.to_owned();
    }
    let rest = most - 3;
    format!("{}...{}", &key[..rest.div_ceil(2)], &key[key.len() - rest / 2..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_semantic() {
        for good in ["1.0.0", "0.10.3-alpha.1", "1.2.3-a-b+build.001"] {
            assert!(is_version(good), "{good}");
        }
        for bad in ["", "1.0", "01.0.0", "1.0.0-01", "1.0.0-", "v1.0.0", "1.0.0+"] {
            assert!(!is_version(bad), "{bad}");
        }
    }
}
