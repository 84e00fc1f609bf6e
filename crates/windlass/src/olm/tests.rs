use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::descriptors::display_name;
use super::*;
use crate::{Halt, Kind, Plan, Primary, Status, World};

/// A text that is kept.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Greeting", namespaced, status = "Status")]
#[serde(rename_all = "camelCase")]
struct GreetingSpec {
    /// What it says.
    text: String,
    /// How often.
    replicas: Option<i32>,
    /// Whether it does.
    enabled: Option<bool>,
    place: Option<Place>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Place {
    /// The Secret with its address.
    address_secret: Option<String>,
}

impl Primary for Greeting {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<ConfigMap>()]
    }

    fn reads() -> Vec<Kind> {
        vec![Kind::of::<Secret>()]
    }

    fn plan(&self, _: &World, _: &mut Plan) -> Result<(), Halt> {
        Ok(())
    }
}

const LISTING: Listing = Listing {
    display_name: "Greeter",
    summary: "Greets.",
    description: "It greets.",
    categories: &["Developer Tools"],
    capabilities: "Basic Install",
    keywords: &["greeting"],
    maturity: "alpha",
    min_kube_version: "1.29.0",
    provider: ("Example", "https://example.org"),
    maintainers: &[("Greeter", "greeter@example.org")],
    links: &[("Source", "https://example.org/source")],
    repository: "https://example.org/source",
    icon: "<svg/>",
    images: &[("cup", "example.org/cup:1")],
    required_groups: &[],
};

fn setup(webhooks: bool) -> Setup {
    Setup {
        namespace: "greeter".into(),
        watch_namespaces: Vec::new(),
        make_namespace: true,
        image: "example.org/greeter:1".into(),
        command: Vec::new(),
        args: vec!["run".into()],
        env: BTreeMap::new(),
        replicas: 1,
        shards: false,
        webhooks,
    }
}

fn bundled(setup: &Setup, listing: &Listing) -> BTreeMap<String, File> {
    let operator = Operator::new("greeter").manages::<Greeting>();
    let samples = [
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "not-shown"}}),
        json!({"apiVersion": "example.org/v1", "kind": "Greeting", "metadata": {"name": "hello"}, "spec": {"text": "hi"}}),
    ];
    let package = Package { operator: &operator, kinds: &operator, setup, listing, samples: &samples };
    package.bundle(&Release {
        version: "0.2.0".into(),
        channels: vec!["stable".into(), "fast".into()],
        default_channel: Some("stable".into()),
        replaces: Some(package.name("0.1.0")),
        ..Release::default()
    })
}

fn csv_of(files: &BTreeMap<String, File>) -> &Value {
    match &files["manifests/greeter.clusterserviceversion.yaml"] {
        File::Tree(tree) => tree,
        File::Text(text) => panic!("{text}"),
    }
}

#[test]
fn what_is_deployed_is_what_manifests_deploy() {
    for webhooks in [false, true] {
        let (operator, setup) = (Operator::new("greeter").manages::<Greeting>(), setup(webhooks));
        let objects = manifests::objects(&operator, &setup);
        let of = |kind: &str| objects.iter().find(|object| object["kind"] == kind).unwrap();
        let files = bundled(&setup, &LISTING);
        let install = &csv_of(&files)["spec"]["install"]["spec"];
        assert_eq!(install["deployments"][0]["spec"], of("Deployment")["spec"]);
        assert_eq!(install["deployments"][0]["label"], of("Deployment")["metadata"]["labels"]);
        assert_eq!(install["clusterPermissions"][0]["rules"], of("ClusterRole")["rules"]);
        assert_eq!(install["permissions"][0]["rules"], of("Role")["rules"]);
        let service = files.get("manifests/greeter_v1_service.yaml");
        assert_eq!(service.is_some(), webhooks);
        if let Some(File::Tree(service)) = service {
            assert_eq!(service["spec"], of("Service")["spec"]);
            assert!(service["metadata"].get("namespace").is_none());
        }
    }
}

#[test]
fn fields_are_described_by_their_schema() {
    let files = bundled(&setup(false), &LISTING);
    let owned = &csv_of(&files)["spec"]["customresourcedefinitions"]["owned"][0];
    assert_eq!(owned["name"], "greetings.example.org");
    assert_eq!(owned["description"], "A text that is kept.");
    let fields = owned["specDescriptors"].as_array().unwrap();
    let of = |path: &str| fields.iter().find(|field| field["path"] == path).unwrap();
    assert_eq!(of("text")["description"], "What it says.");
    assert_eq!(of("replicas")["x-descriptors"], json!(["urn:alm:descriptor:com.tectonic.ui:podCount"]));
    assert_eq!(of("enabled")["x-descriptors"], json!(["urn:alm:descriptor:com.tectonic.ui:booleanSwitch"]));
    assert_eq!(
        of("place.addressSecret")["x-descriptors"],
        json!(["urn:alm:descriptor:io.kubernetes:Secret"])
    );
    let conditions = owned["statusDescriptors"].as_array().unwrap();
    assert!(
        conditions
            .iter()
            .any(|field| field["x-descriptors"] == json!(["urn:alm:descriptor:io.kubernetes.conditions"]))
    );
    let resources: Vec<_> = owned["resources"].as_array().unwrap().iter().map(|one| &one["kind"]).collect();
    assert_eq!(resources, ["ConfigMap", "Secret"]);
}

#[test]
fn kinds_of_another_package_are_required_and_do_not_come_along() {
    let listing = Listing { required_groups: &["example.org"], ..LISTING };
    let files = bundled(&setup(false), &listing);
    let definitions = &csv_of(&files)["spec"]["customresourcedefinitions"];
    assert_eq!(definitions["owned"], json!([]));
    assert_eq!(definitions["required"][0]["kind"], "Greeting");
    assert_eq!(csv_of(&files)["metadata"]["annotations"]["alm-examples"], "[]");
    assert!(!files.contains_key("manifests/example.org_greetings.yaml"));
}

#[test]
fn a_release_says_what_it_follows() {
    let files = bundled(&setup(false), &LISTING);
    let csv = csv_of(&files);
    assert_eq!(csv["metadata"]["name"], "greeter.v0.2.0");
    assert_eq!(csv["spec"]["replaces"], "greeter.v0.1.0");
    assert!(csv["metadata"]["annotations"].get("createdAt").is_none());
    assert!(csv["metadata"]["annotations"]["alm-examples"].as_str().unwrap().contains("\"hello\""));
    let File::Text(dockerfile) = &files["bundle.Dockerfile"] else { panic!("a tree") };
    assert!(dockerfile.contains("bundle.channels.v1=stable,fast\n"));
}

#[test]
fn names_become_words() {
    for (name, words) in [
        ("timeoutSeconds", "Timeout Seconds"),
        ("publicURL", "Public URL"),
        ("enableConfigReadAPI", "Enable Config Read API"),
        ("CheckupSchedule", "Checkup Schedule"),
        ("image", "Image"),
    ] {
        assert_eq!(display_name(name), words);
    }
}
