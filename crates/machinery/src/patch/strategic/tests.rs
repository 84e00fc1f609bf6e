use serde_json::json;

use super::*;
use crate::schema::Schemas;

fn patched(definition: &str, original: Value, patch: Value) -> Result<Value, PatchError> {
    let mut types = Schemas::from_table(include_str!("../../../../drydock/data/types.json")).unwrap();
    let root = types.root(definition).unwrap();
    strategic(original, patch, types.at(root))
}

fn containers(original: Value, patch: Value) -> Value {
    let spec = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
    let patched = patched("io.k8s.api.apps.v1.Deployment", spec(original), spec(patch)).unwrap();
    patched["spec"]["template"]["spec"].clone()
}

#[test]
fn lists_merge_by_key_in_the_order_of_the_patch() {
    assert_eq!(
        containers(
            json!({"containers": [{"name": "c", "image": "img"}]}),
            json!({"containers": [{"name": "d", "image": "new"}, {"name": "c", "env": [{"name": "A", "value": "1"}]}]})
        ),
        json!({"containers": [{"name": "d", "image": "new"}, {"name": "c", "image": "img", "env": [{"name": "A", "value": "1"}]}]})
    );
    assert_eq!(
        containers(
            json!({"containers": [{"name": "c", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}]}),
            json!({"containers": [{"name": "c", "env": [{"name": "A", "$patch": "delete"}, {"name": "C", "value": "3"}]}]})
        ),
        json!({"containers": [{"name": "c", "env": [{"name": "C", "value": "3"}, {"name": "B", "value": "2"}]}]})
    );
    assert_eq!(
        containers(
            json!({"containers": [{"name": "c"}, {"name": "d"}]}),
            json!({"containers": [{"$patch": "replace"}, {"name": "only", "image": "one"}]})
        ),
        json!({"containers": [{"name": "only", "image": "one"}]})
    );
}

#[test]
fn element_order_can_be_set() {
    assert_eq!(
        containers(
            json!({"containers": [{"name": "c"}, {"name": "d"}]}),
            json!({"$setElementOrder/containers": [{"name": "d"}, {"name": "c"}], "containers": [{"name": "d", "image": "newer"}]})
        ),
        json!({"containers": [{"name": "d", "image": "newer"}, {"name": "c"}]})
    );
    // The element that takes the place of a deleted one counts as known to the server.
    assert_eq!(
        containers(
            json!({"containers": [{"name": "c"}, {"name": "b"}, {"name": "a"}]}),
            json!({
                "$setElementOrder/containers": [{"name": "b"}, {"name": "c"}, {"name": "e"}, {"name": "d"}],
                "containers": [{"$patch": "delete", "name": "b"}, {"name": "c"}, {"name": "e"}, {"name": "d"}]
            })
        ),
        json!({"containers": [{"name": "c"}, {"name": "a"}, {"name": "e"}, {"name": "d"}]})
    );
}

#[test]
fn keys_are_retained_and_maps_replaced() {
    let deployment = "io.k8s.api.apps.v1.Deployment";
    assert_eq!(
        patched(
            deployment,
            json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}),
            json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}})
        )
        .unwrap(),
        json!({"spec": {"strategy": {"type": "Recreate"}}})
    );
    assert_eq!(
        containers(
            json!({"volumes": [{"name": "v", "emptyDir": {}}]}),
            json!({"volumes": [{"name": "v", "$retainKeys": ["name", "secret"], "secret": {"secretName": "s"}}]})
        ),
        json!({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]})
    );
    assert_eq!(
        containers(
            json!({"nodeSelector": {"a": "b"}}),
            json!({"nodeSelector": {"$patch": "replace", "c": "d"}})
        ),
        json!({"nodeSelector": {"c": "d"}})
    );
    assert_eq!(
        patched(
            "io.k8s.api.policy.v1.PodDisruptionBudget",
            json!({"spec": {"selector": {"matchLabels": {"a": "b"}}}}),
            json!({"spec": {"selector": {"matchLabels": {"c": "d"}}}})
        )
        .unwrap(),
        json!({"spec": {"selector": {"matchLabels": {"c": "d"}}}})
    );
}

#[test]
fn sets_merge_and_lose_elements() {
    let finalizers = |original: Value, patch: Value| {
        let original = json!({"metadata": {"finalizers": original}});
        let patched = patched("io.k8s.api.apps.v1.Deployment", original, json!({"metadata": patch})).unwrap();
        patched["metadata"]["finalizers"].clone()
    };
    assert_eq!(
        finalizers(
            json!(["a", "b"]),
            json!({"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"]})
        ),
        json!(["c", "b"])
    );
    assert_eq!(finalizers(json!(["a", "b"]), json!({"finalizers": ["b", "a"]})), json!(["b", "a"]));
    assert_eq!(finalizers(json!(["a"]), json!({"finalizers": null})), Value::Null);
}

#[test]
fn messages() {
    let error = |spec: Value| {
        let original = json!({"spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}});
        patched("io.k8s.api.apps.v1.Deployment", original, json!({"spec": spec})).unwrap_err()
    };
    let template = |spec: Value| json!({"template": {"spec": spec}});
    assert_eq!(
        error(template(json!({"containers": [{"image": "noname"}]}))),
        PatchError::Internal("map: map[image:noname] does not contain declared merge key: name".into())
    );
    assert_eq!(
        error(json!({"$patch": "bogus"})),
        PatchError::Internal("unknown patch type: bogus in map: map[$patch:bogus]".into())
    );
    assert_eq!(
        error(template(json!({"$retainKeys": ["x"], "containers": []}))),
        PatchError::BadRequest("invalid patch format of retainKeys".into())
    );
    assert_eq!(
        error(template(json!({"containers": [[]]}))),
        PatchError::Internal("list element types are not identical: [[map[name:c]] [[]]]".into())
    );
}
