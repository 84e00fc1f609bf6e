//! The cells of kinds that are about the cluster itself: admission, flow control, certificates, devices, addresses.

use serde_json::Value;

use super::{NONE, count, duration, number, or};

const UNSET: &str = "<unset>";

/// The cells of an object, where its kind is one of these.
pub(super) fn row(table: (&str, &str), object: &Value, name: &Value, old: &Value) -> Option<Vec<Value>> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (name, old) = (name.clone(), old.clone());
    Some(match table {
        ("admissionregistration.k8s.io", "validatingadmissionpolicies") => {
            vec![name, count(&spec["validations"]).into(), param_kind(spec), old]
        }
        ("admissionregistration.k8s.io", "mutatingadmissionpolicies") => {
            vec![name, count(&spec["mutations"]).into(), param_kind(spec), old]
        }
        (
            "admissionregistration.k8s.io",
            "validatingadmissionpolicybindings" | "mutatingadmissionpolicybindings",
        ) => vec![name, spec["policyName"].clone(), param(&spec["paramRef"]), old],
        ("apiregistration.k8s.io", "apiservices") => {
            let service = &spec["service"];
            let service = match service.is_object() {
                true => format!("{}/{}", text(&service["namespace"]), text(&service["name"])),
                false => "Local".to_owned(),
            };
            let conditions = status["conditions"].as_array().into_iter().flatten();
            let available = conditions.into_iter().find(|condition| condition["type"] == "Available");
            let available = available.map_or("Unknown".to_owned(), |condition| match &condition["status"] {
                status if *status != "True" => format!("{} ({})", text(status), text(&condition["reason"])),
                status => text(status),
            });
            vec![name, service.into(), available.into(), old]
        }
        ("certificates.k8s.io", "certificatesigningrequests") => {
            let signer = or(&spec["signerName"], NONE);
            let asked = spec["expirationSeconds"].as_i64().map_or(NONE.to_owned(), duration);
            vec![name, old, signer, text(&spec["username"]).into(), asked.into(), request(status).into()]
        }
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => {
            let conditions = status["conditions"].as_array().into_iter().flatten();
            let dangling = conditions.into_iter().find(|condition| condition["type"] == "Dangling");
            vec![
                name,
                spec["priorityLevelConfiguration"]["name"].clone(),
                number(&spec["matchingPrecedence"]),
                or(&spec["distinguisherMethod"]["type"], NONE),
                old,
                dangling.map_or("?".into(), |condition| condition["status"].clone()),
            ]
        }
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations") => {
            let limited = &spec["limited"];
            let queuing = &limited["limitResponse"]["queuing"];
            let shown = |value: &Value| if value.is_null() { NONE.into() } else { value.clone() };
            let shares = match limited.is_object() {
                true => number(&limited["nominalConcurrencyShares"]),
                false => NONE.into(),
            };
            let (queues, hand) = (shown(&queuing["queues"]), shown(&queuing["handSize"]));
            vec![name, spec["type"].clone(), shares, queues, hand, shown(&queuing["queueLengthLimit"]), old]
        }
        ("networking.k8s.io", "ingressclasses") => {
            let default = &object["metadata"]["annotations"]["ingressclass.kubernetes.io/is-default-class"];
            let name = if default == "true" { format!("{} (default)", text(&name)).into() } else { name };
            let parameters = &spec["parameters"];
            let group = parameters["apiGroup"].as_str().map(|group| format!(".{group}")).unwrap_or_default();
            let parameters = match parameters.is_object() {
                true => format!("{}{group}/{}", text(&parameters["kind"]), text(&parameters["name"])),
                false => NONE.to_owned(),
            };
            vec![name, spec["controller"].clone(), parameters.into(), old]
        }
        ("networking.k8s.io", "ipaddresses") => vec![name, parent(&spec["parentRef"]).into(), old],
        ("networking.k8s.io", "servicecidrs") => {
            let ranges: Vec<&str> =
                spec["cidrs"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            vec![name, ranges.join(",").into(), old]
        }
        ("resource.k8s.io", "resourceclaims") => vec![name, claim(object).into(), old],
        ("resource.k8s.io", "resourceslices") => {
            let node = text(&spec["nodeName"]);
            vec![name, node.into(), spec["driver"].clone(), spec["pool"]["name"].clone(), old]
        }
        ("storage.k8s.io", "volumeattachments") => vec![
            name,
            spec["attacher"].clone(),
            text(&spec["source"]["persistentVolumeName"]).into(),
            spec["nodeName"].clone(),
            (status["attached"] == true).into(),
            old,
        ],
        ("storage.k8s.io", "volumeattributesclasses") => vec![name, object["driverName"].clone(), old],
        _ => return None,
    })
}

fn param_kind(spec: &Value) -> Value {
    let kind = &spec["paramKind"];
    let text = |field: &str| kind[field].as_str().unwrap_or_default();
    if kind.is_object() { format!("{}/{}", text("apiVersion"), text("kind")).into() } else { UNSET.into() }
}

/// The parameter of a binding: by its name, in whatever namespace, or by its labels as Go shows them.
fn param(reference: &Value) -> Value {
    let text = |field: &str| reference[field].as_str().filter(|text| !text.is_empty());
    match (text("name"), text("namespace")) {
        (Some(name), Some(namespace)) => format!("{namespace}/{name}").into(),
        (Some(name), None) => format!("*/{name}").into(),
        _ if reference["selector"].is_object() => selector(&reference["selector"]).into(),
        _ => UNSET.into(),
    }
}

fn selector(selector: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let labels: String = labels.map(|(key, value)| format!("{key}: {},", text(value))).collect();
    let rules = selector["matchExpressions"].as_array().into_iter().flatten();
    let rules: String = rules
        .map(|rule| {
            let values = rule["values"].as_array().into_iter().flatten().map(text).collect::<Vec<_>>();
            format!(
                "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
                text(&rule["key"]),
                text(&rule["operator"]),
                values.join(" ")
            )
        })
        .collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{rules}}},}}"
    )
}

fn request(status: &Value) -> String {
    let has = |kind: &str| {
        status["conditions"].as_array().into_iter().flatten().any(|condition| condition["type"] == kind)
    };
    let mut out = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    }
    .to_owned();
    if has("Failed") {
        out.push_str(",Failed");
    }
    if status["certificate"].as_str().is_some_and(|certificate| !certificate.is_empty()) {
        out.push_str(",Issued");
    }
    out
}

fn parent(reference: &Value) -> String {
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    if !reference.is_object() {
        return NONE.to_owned();
    }
    let resource = match text("group") {
        "" => text("resource").to_lowercase(),
        group => format!("{}.{group}", text("resource")).to_lowercase(),
    };
    match text("namespace") {
        "" => format!("{resource}/{}", text("name")),
        namespace => format!("{resource}/{namespace}/{}", text("name")),
    }
}

fn claim(object: &Value) -> String {
    let deleted = object["metadata"]["deletionTimestamp"].is_string();
    let status = &object["status"];
    let mut states = Vec::new();
    if deleted {
        states.push("deleted");
    }
    if status["allocation"].is_object() {
        states.push("allocated");
        if count(&status["reservedFor"]) > 0 {
            states.push("reserved");
        }
    } else if !deleted {
        states.push("pending");
    }
    states.join(",")
}
