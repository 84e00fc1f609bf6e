//! The CRDs have every field of the API, with its type, and say what it is for.

// A test that cannot go on should say so and stop.
#![allow(clippy::unwrap_used, clippy::panic)]

use serde_json::Value;
use windlass_grafana_agent::crds;

/// Kind, path, type and whether it is required, of every field that is not of a type of Kubernetes' own.
const FIELDS: &str = include_str!("../../fixtures/fields.txt");

#[test]
fn every_field_is_there_and_described() {
    let crds: Vec<Value> = crds().iter().map(|crd| serde_json::to_value(crd).unwrap()).collect();
    assert_eq!(crds.len(), 8);
    for line in FIELDS.lines() {
        let [kind, path, of_type, required] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let crd = crds.iter().find(|crd| crd["spec"]["names"]["kind"] == kind).unwrap();
        let mut parent = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let mut steps: Vec<&str> = path.split('.').skip(1).collect();
        let last = steps.pop().unwrap();
        for step in steps {
            parent = &parent["properties"][step.trim_end_matches("[]").trim_end_matches("{}")];
            parent = match step {
                list if list.ends_with("[]") => &parent["items"],
                map if map.ends_with("{}") => &parent["additionalProperties"],
                _ => parent,
            };
        }
        let field = &parent["properties"][last];
        assert!(field.is_object(), "{kind} has no {path}");
        let actual = match field["x-kubernetes-int-or-string"].as_bool() {
            Some(true) => "int-or-string",
            _ => field["type"].as_str().unwrap_or_default(),
        };
        assert_eq!(actual, of_type, "{kind} {path}");
        let is_required =
            parent["required"].as_array().is_some_and(|list| list.iter().any(|name| name == last));
        assert_eq!(is_required, required == "required", "{kind} {path}");
        assert!(field["description"].as_str().is_some_and(|text| !text.is_empty()), "{kind} {path}");
    }
}

#[test]
fn they_have_a_status_columns_and_a_size_that_etcd_takes() {
    for crd in crds() {
        let size = serde_json::to_vec(&crd).unwrap().len();
        let version = &crd.spec.versions[0];
        assert!(size < 256 * 1024, "{}: {size} bytes", crd.spec.names.kind);
        assert!(version.subresources.as_ref().unwrap().status.is_some());
        let columns = version.additional_printer_columns.as_ref().unwrap();
        // The Prometheus Operator's kinds have a status only while something is wrong.
        let ours = crd.spec.group == "monitoring.grafana.com";
        let says = if ours { "Ready" } else { "Left out because" };
        assert!(columns.iter().any(|column| column.name == says) && columns.len() >= 2);
    }
}
