use serde_json::json;

use super::*;
use crate::apply::tests::grape;
use crate::schema::{NodeId, Schemas};

const NOW: &str = "2026-01-01T00:00:00Z";

/// One object, written by several managers.
struct Object {
    types: Schemas,
    root: NodeId,
    api_version: &'static str,
    kind: &'static str,
    reset: FieldSet,
    live: Option<Value>,
    now: u32,
}

impl Object {
    fn new(definition: &str, api_version: &'static str, kind: &'static str) -> Self {
        let mut types = Schemas::from_table(include_str!("../../../drydock/data/types.json")).unwrap();
        let root = types.root(definition).unwrap();
        Self { types, root, api_version, kind, reset: FieldSet::of(&[&["status"]]), live: None, now: 0 }
    }

    fn grape() -> Self {
        let (types, root) = grape();
        Self {
            types,
            root,
            api_version: "g.io/v1",
            kind: "Grape",
            reset: FieldSet::of(&[&["status"]]),
            live: None,
            now: 0,
        }
    }

    fn whole(&self, mut object: Value) -> Value {
        object["apiVersion"] = self.api_version.into();
        object["kind"] = self.kind.into();
        object["metadata"]["name"] = "a".into();
        object
    }

    fn time(&mut self) -> String {
        self.now += 1;
        format!("2026-01-01T00:00:{:02}Z", self.now)
    }

    fn try_apply(&mut self, manager: &str, force: bool, config: Value) -> Result<(), ApplyError> {
        let (config, time) = (self.whole(config), self.time());
        let who = Manager { name: manager, api_version: self.api_version, subresource: "" };
        let ty = self.types.at(self.root);
        let object = apply(self.live.as_ref(), config, ty, &who, force, &self.reset, &time)?;
        self.store(object);
        Ok(())
    }

    fn apply(&mut self, manager: &str, config: Value) {
        self.try_apply(manager, false, config).unwrap();
    }

    fn force(&mut self, manager: &str, config: Value) {
        self.try_apply(manager, true, config).unwrap();
    }

    fn refused(&mut self, manager: &str, config: Value) -> String {
        self.try_apply(manager, false, config).unwrap_err().to_string()
    }

    fn update(&mut self, manager: &str, object: Value) {
        let (mut object, time) = (self.whole(object), self.time());
        let who = Manager { name: manager, api_version: self.api_version, subresource: "" };
        update(self.live.as_ref(), &mut object, self.types.at(self.root), &who, &self.reset, &time);
        self.store(object);
    }

    fn store(&mut self, mut object: Value) {
        object["metadata"]["uid"] = "1".into();
        let ty = self.types.at(self.root);
        if ty.custom().is_none() {
            encode::normalise(&mut object, ty);
        }
        self.live = Some(object);
    }

    fn part(&self, name: &str) -> Value {
        self.live.as_ref().map(|live| live[name].clone()).unwrap_or_default()
    }

    /// Manager, operation and fields of each entry.
    fn managers(&self) -> Value {
        let entries = self.live.as_ref().and_then(managed_fields).and_then(Value::as_array).cloned();
        let entries = entries.unwrap_or_default().into_iter();
        entries.map(|entry| json!([entry["manager"], entry["operation"], entry["fieldsV1"]])).collect()
    }

    fn times(&self) -> Vec<Value> {
        let entries = self.live.as_ref().and_then(managed_fields).and_then(Value::as_array).cloned();
        entries.unwrap_or_default().into_iter().map(|entry| entry["time"].clone()).collect()
    }
}

#[test]
fn config_map() {
    let mut object = Object::new("io.k8s.api.core.v1.ConfigMap", "v1", "ConfigMap");
    object.apply("one", json!({"data": {"x": "1", "y": "1"}}));
    assert_eq!(object.managers(), json!([["one", "Apply", {"f:data": {"f:x": {}, "f:y": {}}}]]));
    let before = object.live.clone();
    object.apply("one", json!({"data": {"x": "1", "y": "1"}}));
    assert_eq!(object.live, before);
    assert_eq!(
        object.refused("two", json!({"data": {"x": "2", "z": "2"}})),
        "Apply failed with 1 conflict: conflict with \"one\": .data.x"
    );
    object.force("two", json!({"data": {"x": "2", "z": "2"}}));
    assert_eq!(
        object.managers(),
        json!([["one", "Apply", {"f:data": {"f:y": {}}}], ["two", "Apply", {"f:data": {"f:x": {}, "f:z": {}}}]])
    );
    object.apply("one", json!({"data": {"z": "2"}}));
    assert_eq!(object.part("data"), json!({"x": "2", "z": "2"}));
    object.apply("two", json!({"data": {"x": "2"}}));
    assert_eq!(object.part("data"), json!({"x": "2", "z": "2"}));
    object.force("one", json!({"metadata": {"labels": {"l": "m"}}}));
    assert_eq!(object.part("data"), json!({"x": "2"}));
    assert_eq!(
        object.managers(),
        json!([
            ["two", "Apply", {"f:data": {"f:x": {}}}],
            ["one", "Apply", {"f:metadata": {"f:labels": {"f:l": {}}}}]
        ])
    );
    assert_eq!(
        object.refused("one", json!({"metadata": {"managedFields": [{"manager": "one"}]}})),
        "metadata.managedFields must be nil"
    );
    assert_eq!(
        object.refused("m", json!({"dta": {"x": "y"}})),
        "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .dta: field not declared in schema"
    );
}

#[test]
fn owning_with_others_does_not_count_as_a_change() {
    let mut object = Object::new("io.k8s.api.core.v1.ConfigMap", "v1", "ConfigMap");
    object.apply("one", json!({"data": {"x": "1"}}));
    object.apply("two", json!({"data": {"x": "1"}}));
    assert_eq!(
        object.managers(),
        json!([["two", "Apply", {"f:data": {"f:x": {}}}], ["one", "Apply", {"f:data": {"f:x": {}}}]])
    );
    assert_eq!(object.times(), [Value::Null, json!("2026-01-01T00:00:01Z")]);
}

#[test]
fn updates_take_what_they_change() {
    let mut object = Object::new("io.k8s.api.core.v1.ConfigMap", "v1", "ConfigMap");
    object.update("one", json!({"data": {"x": "1", "y": "2"}}));
    assert_eq!(object.managers(), json!([["one", "Update", {"f:data": {".": {}, "f:x": {}, "f:y": {}}}]]));
    object.update("one", json!({"data": {"x": "z", "new": "n"}}));
    assert_eq!(object.managers(), json!([["one", "Update", {"f:data": {".": {}, "f:x": {}, "f:new": {}}}]]));
    object.update("two", json!({"data": {"x": "q", "new": "n"}}));
    assert_eq!(
        object.managers(),
        json!([
            ["one", "Update", {"f:data": {".": {}, "f:new": {}}}],
            ["two", "Update", {"f:data": {"f:x": {}}}]
        ])
    );
    let times = object.times();
    object.update("three", json!({"data": {"x": "q", "new": "n"}}));
    object.update("one", json!({"data": {"new": "n"}}));
    assert_eq!(object.managers(), json!([["one", "Update", {"f:data": {".": {}, "f:new": {}}}]]));
    assert_eq!(object.times(), times[..1]);
    assert_eq!(
        object.refused("kubectl", json!({"data": {"new": "other"}})),
        "Apply failed with 1 conflict: conflict with \"one\" using v1: .data.new"
    );
    // An empty list of managers makes the server forget them, and track nobody from then on.
    object.update("one", json!({"metadata": {"managedFields": []}, "data": {"new": "n"}}));
    object.update("one", json!({"data": {"new": "m"}}));
    assert_eq!(object.managers(), json!([]));
    // The first apply gives what is there to nobody in particular.
    object.apply("two", json!({"data": {"x": "1"}}));
    assert_eq!(
        object.managers(),
        json!([
            ["two", "Apply", {"f:data": {"f:x": {}}}],
            ["before-first-apply", "Update", {"f:data": {".": {}, "f:new": {}}}]
        ])
    );
}

#[test]
fn created_deployment() {
    let mut object = Object::new("io.k8s.api.apps.v1.Deployment", "apps/v1", "Deployment");
    object.update(
        "recorder",
        json!({"spec": {
            "replicas": 1, "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
                "containers": [{"name": "c", "image": "img", "resources": {}, "imagePullPolicy": "Always"}],
                "restartPolicy": "Always", "securityContext": {}
            }},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
        }, "status": {}}),
    );
    assert_eq!(
        object.managers(),
        json!([["recorder", "Update", {"f:spec": {
            "f:replicas": {}, "f:selector": {},
            "f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}, "f:maxUnavailable": {}}, "f:type": {}},
            "f:template": {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}, "f:spec": {
                "f:containers": {"k:{\"name\":\"c\"}": {
                    ".": {}, "f:image": {}, "f:imagePullPolicy": {}, "f:name": {}, "f:resources": {}
                }},
                "f:restartPolicy": {}, "f:securityContext": {}
            }}
        }}]])
    );
}

#[test]
fn deployment_of_several_appliers() {
    let mut object = Object::new("io.k8s.api.apps.v1.Deployment", "apps/v1", "Deployment");
    let base = json!({"selector": {"matchLabels": {"a": "b"}}, "template": {
        "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "img"}]}
    }});
    let mut with_replicas = base.clone();
    with_replicas["replicas"] = 2.into();
    object.apply("one", json!({"spec": with_replicas}));
    assert_eq!(
        object.refused("hpa", json!({"spec": {"replicas": 5}})),
        "Apply failed with 1 conflict: conflict with \"one\": .spec.replicas"
    );
    object.force("hpa", json!({"spec": {"replicas": 5}}));
    object.apply("one", json!({"spec": base}));
    assert_eq!(object.part("spec")["replicas"], 5);
    let side = |ports: Value| {
        json!({"spec": {"template": {"spec": {"containers": [
            {"name": "side", "image": "s", "ports": ports}
        ]}}}})
    };
    object.apply("side", side(json!([{"containerPort": 80}])));
    let ports = |object: &Object| {
        let managers = object.managers();
        let entry = managers.as_array().unwrap().iter().find(|entry| entry[0] == "side").unwrap();
        entry[2]["f:spec"]["f:template"]["f:spec"]["f:containers"]["k:{\"name\":\"side\"}"]["f:ports"].clone()
    };
    assert_eq!(
        ports(&object),
        json!({"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}})
    );
    object.apply(
        "side",
        side(json!([{"containerPort": 81, "name": "http"}, {"containerPort": 80, "protocol": "UDP"}])),
    );
    assert_eq!(
        ports(&object),
        json!({
            "k:{\"containerPort\":80,\"protocol\":\"UDP\"}": {".": {}, "f:containerPort": {}, "f:protocol": {}},
            "k:{\"containerPort\":81,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}, "f:name": {}}
        })
    );
    let containers = &object.part("spec")["template"]["spec"]["containers"];
    assert_eq!(
        containers[1]["ports"],
        json!([{"containerPort": 81, "name": "http"}, {"containerPort": 80, "protocol": "UDP"}])
    );
    object.apply("side", json!({}));
    let containers = &object.part("spec")["template"]["spec"]["containers"];
    assert_eq!(containers.as_array().map(Vec::len), Some(1));
    assert_eq!(object.managers().as_array().map(Vec::len), Some(2));
    assert_eq!(
        object.refused("one", json!({"spec": {"replicas": "many"}})),
        "failed to create typed patch object (/a; apps/v1, Kind=Deployment): .spec.replicas: expected numeric (int or \
         float), got string"
    );
}

#[test]
fn custom_resource() {
    let mut object = Object::grape();
    let spec = json!({"items": [{"id": "a", "v": 1}, {"id": "b"}], "set": ["x", "y"], "plain": [1, 2], "atom": {"k": "v"}, "n": 1});
    object.apply("one", json!({"spec": spec}));
    object.apply(
        "two",
        json!({"spec": {"items": [{"id": "c", "v": 3}, {"id": "a", "v": 1}], "set": ["z", "x"]}}),
    );
    assert_eq!(object.part("spec")["items"], json!([{"id": "c", "v": 3}, {"id": "a", "v": 1}, {"id": "b"}]));
    assert_eq!(object.part("spec")["set"], json!(["z", "x", "y"]));
    assert_eq!(
        object.refused(
            "two",
            json!({"spec": {"items": [{"id": "a", "v": 2}], "plain": [3], "atom": {"q": "r"}}})
        ),
        "Apply failed with 3 conflicts: conflicts with \"one\":\n- .spec.atom\n- .spec.plain\n- .spec.items[id=\"a\"].v"
    );
    object.apply("one", json!({"spec": {"items": [{"id": "b"}], "set": ["y"], "n": 1}}));
    assert_eq!(
        object.part("spec"),
        json!({"items": [{"id": "c", "v": 3}, {"id": "a", "v": 1}, {"id": "b"}], "n": 1, "set": ["z", "x", "y"]})
    );
    object.update("recorder", json!({"spec": {"items": [{"id": "z", "w": "dw"}]}}));
    assert_eq!(
        object.managers(),
        json!([["recorder", "Update", {"f:spec": {"f:items": {"k:{\"id\":\"z\"}": {".": {}, "f:id": {}, "f:w": {}}}}}]])
    );
}

#[test]
fn created_custom_resource() {
    let mut object = Object::grape();
    object.update("recorder", json!({"spec": {"n": 1, "loose": {"x": [1]}}}));
    assert_eq!(
        object.managers(),
        json!([["recorder", "Update", {"f:spec": {".": {}, "f:n": {}, "f:loose": {".": {}, "f:x": {}}}}]])
    );
}

#[test]
fn old_updaters_are_merged() {
    let mut object = Object::new("io.k8s.api.core.v1.ConfigMap", "v1", "ConfigMap");
    let mut data = json!({});
    for index in 0..12 {
        data[format!("k{index:02}")] = "v".into();
        object.update(&format!("m{index:02}"), json!({"data": data}));
    }
    let managers = object.managers();
    let managers = managers.as_array().unwrap();
    assert_eq!(managers.len(), 10);
    assert_eq!(
        managers[0],
        json!(["ancient-changes", "Update", {"f:data": {".": {}, "f:k00": {}, "f:k01": {}, "f:k02": {}}}])
    );
    assert_eq!(object.times()[0], "2026-01-01T00:00:03Z");
}

#[test]
fn kubectl_takes_over_from_client_side_apply() {
    let mut object = Object::new("io.k8s.api.core.v1.ConfigMap", "v1", "ConfigMap");
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let last = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1"}}"#;
    object.update(
        "kubectl-client-side-apply",
        json!({"metadata": {"annotations": {annotation: last}}, "data": {"x": "1", "y": "1"}}),
    );
    object.apply("kubectl", json!({"data": {"x": "2"}}));
    assert_eq!(object.part("data"), json!({"x": "2", "y": "1"}));
    assert_eq!(
        object.part("metadata")["annotations"][annotation],
        "{\"apiVersion\":\"v1\",\"data\":{\"x\":\"2\"},\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}}\n"
    );
    assert_eq!(
        object.refused("kubectl", json!({"data": {"y": "2"}})),
        "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using v1: .data.y"
    );
}

#[test]
fn subresources_have_managers_of_their_own() {
    let mut object = Object::grape();
    object.apply("one", json!({"spec": {"n": 1}}));
    let who = Manager { name: "one", api_version: "g.io/v1", subresource: "status" };
    let reset = FieldSet::of(&[&["spec"], &["metadata"]]);
    let ty = object.types.at(object.root);
    let config = object.whole(json!({"status": {"n": 4}}));
    let new = apply(object.live.as_ref(), config, ty, &who, false, &reset, NOW).unwrap();
    assert_eq!(new["metadata"]["managedFields"][0]["subresource"], "status");
    object.store(new);
    object.reset = FieldSet::new();
    assert_eq!(
        object.refused("two", json!({"status": {"n": 5}})),
        "Apply failed with 1 conflict: conflict with \"one\" with subresource \"status\": .status.n"
    );
}
