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

    fn warnings(&self) -> Vec<String> {
        let unlit = self.spec.colour.is_none();
        unlit.then(|| "a kite without a colour is red".to_owned()).into_iter().collect()
    }

    fn plan(&self, _: &World, _: &mut Plan) -> Result<(), Halt> {
        Ok(())
    }
}

impl Kite {
    fn old(self) -> old::Kite {
        old::Kite { metadata: self.metadata, spec: old::KiteSpec { color: self.spec.colour } }
    }
}

fn operator() -> Operator {
    Operator::new("kites")
        .manages::<Kite>()
        .converts(|old: old::Kite| Kite {
            metadata: old.metadata,
            spec: KiteSpec { colour: old.spec.color, lines: Lines::default() },
            status: None,
        })
        .converts(|kite: Kite| if kite.spec.lines.count == 13 { panic!("unlucky") } else { kite.old() })
        .serves::<old::Kite>()
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

#[test]
fn an_object_that_was_invalid_before_can_be_annotated() {
    let mut update = review(json!({"lines": {"count": 9}}));
    update["request"]["operation"] = "UPDATE".into();
    update["request"]["oldObject"] = update["request"]["object"].clone();
    update["request"]["object"]["metadata"]["annotations"] = json!({"a": "b"});
    let answer = operator().validate(&update);
    assert_eq!(answer["response"]["allowed"], true);
    assert_eq!(answer["response"]["warnings"], json!(["spec.lines.count: is more than 4"]));
    assert!(
        operator().mutate(&update)["response"].get("patch").is_none(),
        "defaults are not ours to add here"
    );
    update["request"]["object"]["spec"]["lines"]["count"] = 10.into();
    assert_eq!(operator().validate(&update)["response"]["allowed"], false);
}

#[test]
fn warnings_are_of_what_the_user_wrote() {
    let answer = operator().mutate(&review(json!({})));
    assert_eq!(answer["response"]["warnings"], json!(["a kite without a colour is red"]));
    let answer = operator().mutate(&review(json!({"colour": "blue"})));
    assert!(answer["response"].get("warnings").is_none());
}

#[test]
fn a_conversion_that_panics_fails_alone() {
    let object = json!({"apiVersion": "example.org/v2", "kind": "Kite", "metadata": {"name": "k"},
        "spec": {"lines": {"count": 13}}});
    let review = json!({"kind": "ConversionReview",
        "request": {"uid": "u", "desiredAPIVersion": "example.org/v1", "objects": [object]}});
    let failed = operator().convert(&review);
    let message = failed["response"]["result"]["message"].as_str().unwrap();
    assert!(message.contains("from example.org/v2 to example.org/v1: the operator panicked"), "{message}");
}

#[test]
fn a_definition_has_all_versions_and_stores_the_one_that_is_managed() {
    let versions = |operator: Operator| {
        let versions = operator.crds()[0].spec.versions.clone();
        versions.into_iter().map(|one| (one.name, one.storage)).collect::<Vec<_>>()
    };
    let wanted = [("v2".to_owned(), true), ("v1".to_owned(), false)];
    assert_eq!(versions(operator()), wanted);
    assert_eq!(versions(Operator::new("kites").serves::<old::Kite>().manages::<Kite>()), wanted);
}

#[test]
fn requests_from_anywhere_are_answered_or_refused_and_never_panic() {
    let endpoint = Endpoint::default();
    assert_eq!(endpoint.answer("/validate/kites/kites.example.org", b"{}").0, 404, "it is not open yet");
    endpoint.open(vec![operator()]).unwrap();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let review = serde_json::to_vec(&review(json!({}))).unwrap();
    for (path, body, status) in [
        ("/validate/kites/kites.example.org", review.as_slice(), 200),
        ("/mutate/kites/kites.example.org", review.as_slice(), 200),
        ("/convert/kites/kites.example.org", review.as_slice(), 400),
        ("/validate/kites/kites.example.org", b"{}".as_slice(), 400),
        ("/validate/kites/kites.example.org", b"\xff{".as_slice(), 400),
        ("/validate/kites/kites.example.org", deep.as_bytes(), 400),
        ("/validate/kites/boats.example.org", review.as_slice(), 404),
        ("/validate/others/kites.example.org", review.as_slice(), 404),
        ("/validate", review.as_slice(), 404),
        ("/", b"".as_slice(), 404),
    ] {
        assert_eq!(endpoint.answer(path, body).0, status, "{path}");
    }
    for odd in [json!({"uid": "u"}), json!({"uid": "u", "operation": "CREATE", "object": 1, "kind": []})] {
        let review = json!({"kind": "AdmissionReview", "request": odd}).to_string();
        assert_eq!(endpoint.answer("/validate/kites/kites.example.org", review.as_bytes()).0, 200);
        assert_eq!(endpoint.answer("/mutate/kites/kites.example.org", review.as_bytes()).0, 200);
    }
    for odd in [json!({"uid": "u"}), json!({"uid": "u", "objects": [1, [], {"metadata": 3}]})] {
        let review = json!({"kind": "ConversionReview", "request": odd}).to_string();
        assert_eq!(endpoint.answer("/convert/kites/kites.example.org", review.as_bytes()).0, 200);
    }
}
