use serde_json::json;

use super::*;

fn desired() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "a", "namespace": "n", "labels": {"app": "a"}},
        "spec": {
            "selector": {"matchLabels": {"app": "a"}},
            "template": {"spec": {
                "nodeSelector": {"disk": "ssd"},
                "volumes": [{"name": "tmp", "emptyDir": {}}],
                "containers": [{
                    "name": "main", "image": "x:1", "args": ["a", "b"],
                    "ports": [{"containerPort": 80}],
                    "env": [{"name": "EMPTY", "value": ""}, {"name": "B", "value": "1"}],
                    "resources": {"limits": {"cpu": "0.5"}},
                }],
            }},
        },
    })
}

fn observed() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "a", "namespace": "n", "labels": {"app": "a", "theirs": "x"}, "uid": "u"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "a"}},
            "template": {"spec": {
                "restartPolicy": "Always",
                "nodeSelector": {"disk": "ssd"},
                "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "injected", "emptyDir": {}}],
                "containers": [{"name": "sidecar", "image": "s"}, {
                    "name": "main", "image": "x:1", "args": ["a", "b"], "imagePullPolicy": "IfNotPresent",
                    "ports": [{"containerPort": 80, "protocol": "TCP"}],
                    "env": [{"name": "B", "value": "1"}, {"name": "EMPTY"}],
                    "resources": {"limits": {"cpu": "500m"}},
                }],
            }},
        },
        "status": {"replicas": 1},
    })
}

fn share() -> Value {
    json!({
        "f:metadata": {"f:labels": {"f:app": {}}},
        "f:spec": {
            "f:selector": {},
            "f:template": {"f:spec": {
                "f:nodeSelector": {},
                "f:volumes": {"k:{\"name\":\"tmp\"}": {".": {}, "f:name": {}, "f:emptyDir": {}}},
                "f:containers": {"k:{\"name\":\"main\"}": {
                    ".": {}, "f:name": {}, "f:image": {}, "f:args": {},
                    "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
                    "f:env": {
                        "k:{\"name\":\"EMPTY\"}": {".": {}, "f:name": {}, "f:value": {}},
                        "k:{\"name\":\"B\"}": {".": {}, "f:name": {}, "f:value": {}},
                    },
                    "f:resources": {"f:limits": {"f:cpu": {}}},
                }},
            }},
        },
    })
}

fn at(value: &mut Value, pointer: &str, new: Value) {
    *value.pointer_mut(pointer).unwrap() = new;
}

#[test]
fn defaults_sidecars_foreign_labels_and_other_forms_are_no_difference() {
    assert_eq!(difference(&desired(), &observed(), &share()), None);
}

#[test]
fn a_changed_value_is_a_difference() {
    for (pointer, new) in [
        ("/spec/template/spec/containers/0/image", json!("x:2")),
        ("/spec/template/spec/containers/0/args", json!(["a"])),
        ("/spec/template/spec/containers/0/args", json!(["b", "a"])),
        ("/spec/template/spec/containers/0/env/1/value", json!("2")),
        ("/spec/template/spec/containers/0/resources/limits/cpu", json!("600m")),
        ("/spec/template/spec/nodeSelector", json!({"disk": "hdd"})),
        ("/metadata/labels/app", json!("b")),
    ] {
        let mut desired = desired();
        at(&mut desired, pointer, new);
        let path = difference(&desired, &observed(), &share());
        assert!(path.is_some(), "{pointer}");
    }
}

#[test]
fn the_path_names_the_field() {
    let mut desired = desired();
    at(&mut desired, "/spec/template/spec/containers/0/image", json!("x:2"));
    assert_eq!(
        difference(&desired, &observed(), &share()).as_deref(),
        Some("spec.template.spec.containers[name=main].image")
    );
}

#[test]
fn a_new_field_or_item_is_a_difference() {
    let mut more = desired();
    more["spec"]["replicas"] = json!(1);
    assert_eq!(difference(&more, &observed(), &share()).as_deref(), Some("spec.replicas"));

    let mut more = desired();
    let env = &mut more["spec"]["template"]["spec"]["containers"][0]["env"];
    env.as_array_mut().unwrap().push(json!({"name": "C"}));
    assert!(difference(&more, &observed(), &share()).is_some());
}

#[test]
fn a_field_of_ours_that_is_no_longer_desired_is_a_difference() {
    for pointer in ["/spec/template/spec", "/spec/template/spec/containers/0"] {
        let mut less = desired();
        let map = less.pointer_mut(pointer).unwrap().as_object_mut().unwrap();
        let key = if map.contains_key("nodeSelector") { "nodeSelector" } else { "args" };
        map.remove(key);
        assert!(difference(&less, &observed(), &share()).unwrap().ends_with(key));
    }
    let mut less = desired();
    at(&mut less, "/spec/template/spec/volumes", json!([]));
    assert!(difference(&less, &observed(), &share()).is_some());
}

#[test]
fn a_field_that_somebody_else_took_is_a_difference() {
    let mut share = share();
    share["f:spec"]["f:template"]["f:spec"].as_object_mut().unwrap().remove("f:nodeSelector");
    let mut observed = observed();
    at(&mut observed, "/spec/template/spec/nodeSelector", json!({"disk": "ssd", "more": "x"}));
    assert_eq!(difference(&desired(), &observed, &share).as_deref(), Some("spec.template.spec.nodeSelector"));
}

#[test]
fn a_field_that_somebody_else_set_as_desired_differs_not_in_value() {
    let mut share = share();
    share["f:spec"]["f:template"]["f:spec"].as_object_mut().unwrap().remove("f:nodeSelector");
    assert!(difference(&desired(), &observed(), &share).is_some());
    assert_eq!(difference_in_value(&desired(), &observed(), &share), None);
}

#[test]
fn quantities_are_compared_as_such_only_where_they_are_quantities() {
    let mut desired = desired();
    at(&mut desired, "/spec/template/spec/containers/0/env/1/value", json!("1000m"));
    assert!(difference(&desired, &observed(), &share()).is_some(), "an environment variable is a text");
}

#[test]
fn nulls_are_not_desired() {
    assert_eq!(without_nulls(json!({"a": null, "b": [{"c": null}]})), json!({"b": [{}]}));
}
