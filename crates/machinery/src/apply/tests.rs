use serde_json::json;

use super::*;
use crate::schema::{Custom, Field, ListKind, Node, NodeId, Omit, Patch, Scalar, Schemas, Shape, Struct};

/// A custom type with every kind of list and map.
pub(crate) fn grape() -> (Schemas, NodeId) {
    let mut types = Schemas::from_table(include_str!("../../../drydock/data/types.json")).unwrap();
    let custom = |preserve| Some(Box::new(Custom { preserve, ..Custom::default() }));
    let mut node = |shape, atomic| types.add(Node { shape, atomic, custom: custom(false) });
    let text = node(Shape::Scalar(Scalar::String, None), false);
    let number = node(Shape::Scalar(Scalar::Int64, None), false);
    let set = node(Shape::List { items: text, kind: ListKind::Set }, false);
    let plain = node(Shape::List { items: number, kind: ListKind::Atomic }, true);
    let atom = node(Shape::Map(text), true);
    let any = node(Shape::Any, false);
    let mut object = |fields: &[(&str, NodeId)], additional, preserve| {
        let field = |node| Field {
            node,
            pointer: true,
            omit: Omit::Empty,
            required: false,
            default: None,
            patch: Patch::default(),
            embedded: None,
        };
        let fields = fields.iter().map(|(name, node)| ((*name).into(), field(*node))).collect();
        let id = types.add_struct(Struct { fields, additional, ..Struct::default() });
        types.add(Node { shape: Shape::Struct(id), atomic: false, custom: custom(preserve) })
    };
    let item = object(&[("id", text), ("v", number), ("w", text)], None, false);
    let inner = object(&[("x", number)], None, false);
    let loose = object(&[("known", text), ("inner", inner)], None, true);
    let kind = ListKind::Map(["id".into()].into());
    let items =
        types.add(Node { shape: Shape::List { items: item, kind }, atomic: false, custom: custom(false) });
    let open = types.add(Node { shape: Shape::Map(any), atomic: false, custom: custom(true) });
    let meta = types.root("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").unwrap();
    let mut object = |fields: &[(&str, NodeId)]| {
        let field = |node| Field {
            node,
            pointer: true,
            omit: Omit::Empty,
            required: false,
            default: None,
            patch: Patch::default(),
            embedded: None,
        };
        let fields = fields.iter().map(|(name, node)| ((*name).into(), field(*node))).collect();
        let id = types.add_struct(Struct { fields, ..Struct::default() });
        types.add(Node { shape: Shape::Struct(id), atomic: false, custom: custom(false) })
    };
    let spec = object(&[
        ("items", items),
        ("set", set),
        ("plain", plain),
        ("atom", atom),
        ("n", number),
        ("loose", loose),
    ]);
    let root =
        object(&[("apiVersion", text), ("kind", text), ("metadata", meta), ("spec", spec), ("status", open)]);
    (types, root)
}

fn errors(spec: Value) -> String {
    let (types, root) = grape();
    validate(&json!({"spec": spec}), types.at(root), Duplicates::Refused).unwrap_err().to_string()
}

#[test]
fn validation_messages() {
    assert_eq!(
        errors(json!({"items": [{"id": "b"}, {"id": "b"}], "set": ["y", "y"]})),
        "errors:\n  .spec.items: duplicate entries for key [id=\"b\"]\n  .spec.set: duplicate entries for key [=\"y\"]"
    );
    assert_eq!(
        errors(json!({"items": [{"v": 1}]})),
        ".spec.items: element 0: associative list with keys has an element that omits all key fields [\"id\"] (and \
         doesn't have default values for any key fields)"
    );
    assert_eq!(errors(json!({"x": 1})), ".spec.x: field not declared in schema");
    assert_eq!(errors(json!({"n": true})), ".spec.n: expected numeric (int or float), got bool");
    assert_eq!(
        errors(json!({"set": [{"a": 1}]})),
        ".spec.set: element 0: associative list without keys has an element that's a map type"
    );
    assert_eq!(errors(json!("x")), ".spec: expected map, got &{x}");
    assert_eq!(errors(json!({"plain": {"a": 1.5}})), ".spec.plain: expected list, got &{map[a:1.5]}");
    assert_eq!(
        errors(json!({"items": [{"id": {"a": ["b", 1, null, true]}}]})),
        ".spec.items[id=a=[\"b\",1,null,true]].id: expected string, got &value.valueUnstructured{Value:map[string]\
         interface {}{\"a\":[]interface {}{\"b\", 1, interface {}(nil), true}}}"
    );
    assert_eq!(
        errors(json!({"items": [null]})),
        ".spec.items: element 0: associative list with keys may not have a null element"
    );
    let (types, root) = grape();
    let fine = json!({"spec": {"n": null, "loose": {"other": [1], "inner": {"y": 1}}}, "status": {"a": {"b": [{}]}}});
    validate(&fine, types.at(root), Duplicates::Refused).unwrap();
}

#[test]
fn fields_of_a_value() {
    let (types, root) = grape();
    let value = json!({
        "spec": {"items": [{"id": "b", "v": 1}], "set": ["x"], "plain": [1], "atom": {"a": "b"},
            "loose": {"known": "a", "other": {"z": 1}, "inner": {"x": 1, "y": 2}}},
        "status": {"n": 4, "anything": {"goes": [1]}, "empty": {}, "null": null}
    });
    assert_eq!(
        to_field_set(&value, types.at(root)).to_json(),
        json!({
            "f:spec": {
                "f:items": {"k:{\"id\":\"b\"}": {".": {}, "f:id": {}, "f:v": {}}},
                "f:set": {"v:\"x\"": {}}, "f:plain": {}, "f:atom": {},
                "f:loose": {"f:known": {}, "f:other": {".": {}, "f:z": {}}, "f:inner": {"f:x": {}, "f:y": {}}}
            },
            "f:status": {"f:n": {}, "f:anything": {".": {}, "f:goes": {}}, "f:empty": {}, "f:null": {}}
        })
    );
    let twice = json!({"spec": {"items": [{"id": "a", "v": 1}, {"id": "a"}, {"id": "b"}]}});
    assert_eq!(
        to_field_set(&twice, types.at(root)).to_json(),
        json!({"f:spec": {"f:items": {"k:{\"id\":\"a\"}": {}, "k:{\"id\":\"b\"}": {".": {}, "f:id": {}}}}})
    );
}

#[test]
fn order_of_merged_lists() {
    let (types, root) = grape();
    let merged = |live: &[&str], config: &[&str]| {
        let merged =
            merge(&json!({"spec": {"set": live}}), &json!({"spec": {"set": config}}), types.at(root));
        let items: Vec<String> = serde_json::from_value(merged["spec"]["set"].clone()).unwrap();
        items.join("")
    };
    for (live, config, expected) in [
        ("xy", "zx", "zxy"),
        ("ab", "ca", "cab"),
        ("abc", "b", "abc"),
        ("abc", "cb", "acb"),
        ("abcd", "dxa", "bcdxa"),
        ("abc", "", "abc"),
        ("", "abc", "abc"),
        ("ab", "xyab", "xyab"),
        ("ab", "axb", "axb"),
        ("acb", "ab", "acb"),
        ("abc", "bx", "abcx"),
    ] {
        let split = |text: &'static str| text.split("").filter(|part| !part.is_empty()).collect::<Vec<_>>();
        assert_eq!(merged(&split(live), &split(config)), expected, "{live} + {config}");
    }
}

#[test]
fn comparison() {
    let (types, root) = grape();
    let compared = |old: Value, new: Value| {
        let change = compare(&json!({"spec": old}), &json!({"spec": new}), types.at(root));
        let part = |set: FieldSet| set.to_json().get("f:spec").cloned().unwrap_or_default();
        (part(change.removed), part(change.modified), part(change.added))
    };
    assert_eq!(
        compared(
            json!({"items": [{"id": "a", "v": 1}, {"id": "b"}], "n": 1, "plain": [1], "atom": {}}),
            json!({"items": [{"id": "a", "v": 2}, {"id": "c"}], "set": ["x"], "plain": [1], "atom": null})
        ),
        (
            json!({"f:items": {"k:{\"id\":\"b\"}": {".": {}, "f:id": {}}}, "f:n": {}}),
            json!({"f:items": {"k:{\"id\":\"a\"}": {"f:v": {}}}, "f:atom": {}}),
            json!({"f:items": {"k:{\"id\":\"c\"}": {".": {}, "f:id": {}}}, "f:set": {".": {}, "v:\"x\"": {}}}),
        )
    );
    let old = json!({"loose": {"a": {"b": 1}, "c": "d"}});
    let new = json!({"loose": {"a": "x", "c": {"e": 1}}});
    assert_eq!(
        compared(old, new),
        (
            json!({"f:loose": {"f:a": {"f:b": {}}}}),
            json!({"f:loose": {"f:a": {}, "f:c": {}}}),
            json!({"f:loose": {"f:c": {"f:e": {}}}}),
        )
    );
    // Elements that are there more than once are compared as a whole.
    assert_eq!(
        compared(
            json!({"items": [{"id": "a"}, {"id": "a"}, {"id": "b"}]}),
            json!({"items": [{"id": "a"}, {"id": "b"}, {"id": "b"}]})
        ),
        (
            json!({"f:items": {"k:{\"id\":\"a\"}": {}, "k:{\"id\":\"b\"}": {".": {}, "f:id": {}}}}),
            Value::Null,
            json!({"f:items": {"k:{\"id\":\"a\"}": {".": {}, "f:id": {}}, "k:{\"id\":\"b\"}": {}}}),
        )
    );
}

#[test]
fn removing_and_extracting() {
    let (types, root) = grape();
    let ty = types.at(root);
    let value = json!({"spec": {"items": [{"id": "a", "v": 1}, {"id": "b"}], "set": ["x", "y"], "n": 1, "plain": [1]}});
    let items = FieldSet::from_json(&json!({
        "f:spec": {"f:items": {"k:{\"id\":\"a\"}": {"f:v": {}}, "k:{\"id\":\"b\"}": {}}, "f:set": {"v:\"x\"": {}, "v:\"y\"": {}}, "f:n": {}}
    }))
    .unwrap();
    assert_eq!(
        remove_items(&value, &items, ty),
        json!({"spec": {"items": [{"id": "a"}], "set": null, "plain": [1]}})
    );
    assert_eq!(
        extract_items(&value, &items, ty),
        json!({"spec": {"items": [{"v": 1}, {"id": "b"}], "set": ["x", "y"], "n": 1}})
    );
}
