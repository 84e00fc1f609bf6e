use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::*;
use crate::{Halt, Kind, Plan, Primary, Status, World};

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v2", kind = "Kite", namespaced, status = "Status")]
struct KiteSpec {
    colour: Option<String>,
    #[serde(default)]
    lines: Lines,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct Lines {
    #[serde(default)]
    count: u32,
}

mod old {
    use super::*;

    #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[kube(group = "example.org", version = "v1", kind = "Kite", namespaced)]
    pub(super) struct KiteSpec {
        pub(super) color: Option<String>,
    }
}

impl Primary for Kite {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<ConfigMap>()]
    }

    fn defaults(&mut self) {
        self.spec.colour.get_or_insert_with(|| "red".into());
        if self.spec.lines.count == 0 {
            self.spec.lines.count = 2;
        }
    }

    fn validity(&self) -> Vec<Invalid> {
        let few = self.spec.lines.count > 4;
        few.then(|| Invalid::new("spec.lines.count", "is more than 4")).into_iter().collect()
    }

    fn plan(&self, _: &World, _: &mut Plan) -> Result<(), Halt> {
        Ok(())
    }
}

fn operator() -> Operator {
    Operator::new("kites").manages::<Kite>().converts(|old: old::Kite| Kite {
        metadata: old.metadata,
        spec: KiteSpec { colour: old.spec.color, lines: Lines::default() },
        status: None,
    })
}

fn review(spec: Value) -> Value {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": "CREATE", "kind": {"group": "example.org", "version": "v2", "kind": "Kite"},
        "object": {"apiVersion": "example.org/v2", "kind": "Kite", "metadata": {"name": "k"}, "spec": spec},
    }})
}

fn patched(spec: Value) -> Value {
    let mut review = review(spec);
    let answer = operator().mutate(&review);
    assert_eq!((&answer["response"]["uid"], &answer["response"]["allowed"]), (&json!("u"), &json!(true)));
    let mut object = review["request"]["object"].take();
    if let Some(patch) = answer["response"].get("patch") {
        let bytes: ByteString = serde_json::from_value(patch.clone()).unwrap();
        json_patch::patch(&mut object, &serde_json::from_slice::<json_patch::Patch>(&bytes.0).unwrap())
            .unwrap();
    }
    object
}

#[test]
fn the_patch_fills_in_the_defaults_and_nothing_else() {
    let object = patched(json!({"unknown": [1]}));
    assert_eq!(object["spec"], json!({"unknown": [1], "colour": "red", "lines": {"count": 2}}));
    assert!(object.get("status").is_none());
    let full = operator().mutate(&review(json!({"colour": "blue", "lines": {"count": 1}})));
    assert_eq!(full["response"], json!({"allowed": true, "uid": "u"}), "no patch where nothing is left out");
}

#[test]
fn what_is_invalid_is_refused_with_its_field() {
    let answer = operator().validate(&review(json!({"lines": {"count": 9}})));
    let status = &answer["response"]["status"];
    assert_eq!(status["message"], "spec.lines.count: is more than 4");
    assert_eq!(status["details"]["causes"][0]["field"], "spec.lines.count");
    assert_eq!(answer["response"]["allowed"], false);
    let undecodable = operator().validate(&review(json!({"lines": "many"})));
    assert_eq!(undecodable["response"]["allowed"], false);
    assert_eq!(operator().validate(&review(json!({})))["response"]["allowed"], true);
}

#[test]
fn what_goes_or_is_not_ours_is_let_through() {
    let mut going = review(json!({"lines": {"count": 9}}));
    going["request"]["object"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    assert_eq!(operator().validate(&going)["response"]["allowed"], true);
    let mut other = review(json!({"lines": {"count": 9}}));
    other["request"]["kind"]["kind"] = "Other".into();
    assert_eq!(operator().validate(&other)["response"]["allowed"], true);
}

#[test]
fn versions_are_converted_and_metadata_is_left_alone() {
    let object = json!({"apiVersion": "example.org/v1", "kind": "Kite", "spec": {"color": "green"},
        "metadata": {"name": "k", "creationTimestamp": null, "labels": {"a": "b"}}});
    let review = |version: &str| {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "request": {"uid": "u", "desiredAPIVersion": version, "objects": [object.clone()]}})
    };
    let answer = operator().convert(&review("example.org/v2"));
    let converted = &answer["response"]["convertedObjects"][0];
    assert_eq!(
        (&converted["spec"]["colour"], &converted["apiVersion"]),
        (&json!("green"), &json!("example.org/v2"))
    );
    assert_eq!(converted["metadata"], object["metadata"]);
    let failed = operator().convert(&review("example.org/v3"));
    assert_eq!(failed["response"]["result"]["status"], "Failure");
}
