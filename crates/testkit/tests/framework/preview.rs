//! The plan is shown, and nothing is changed.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass::preview::{Preview, Verb, preview};
use windlass_testkit::Harbour;

use super::boat::{Marina, boat};

const READER: &str = "preview";

async fn show(harbour: &Harbour, marina: &Marina, spec: Option<Value>) -> Preview {
    let objects: Option<Vec<DynamicObject>> =
        spec.map(|spec| vec![serde_json::from_str(&boat(spec)).unwrap()]);
    let operator = marina.operator()();
    let client = harbour.drydock().client(READER);
    let before = harbour.revision();
    let mut shown =
        preview(&client, harbour.drydock().context(), &operator, objects.as_deref()).await.unwrap();
    let verbs: BTreeSet<_> =
        harbour.drydock().record().entries(READER).iter().map(|entry| entry.verb).collect();
    assert!(verbs.iter().all(|verb| matches!(*verb, "get" | "list")), "{verbs:?}");
    assert_eq!(harbour.revision(), before);
    shown.remove(0)
}

fn steps(preview: &Preview) -> Vec<(Verb, &str)> {
    preview.steps.iter().map(|step| (step.verb, step.object.as_str())).collect()
}

#[tokio::test(start_paused = true)]
async fn what_would_be_made_is_shown_to_the_end_and_not_made() {
    let marina = Marina::default();
    let mut harbour = Harbour::start(marina.operator()).await;
    harbour.stop().await;
    let shown =
        show(&harbour, &marina, Some(json!({"text": "x", "berth": "b1", "length": 4, "secret": "key"})))
            .await;
    assert_eq!(steps(&shown), [(Verb::Create, "ConfigMap default/ada"), (Verb::Create, "Berth b1")]);
    assert_eq!(shown.notes, ["the plan goes no further yet: Secret key is not there"]);
    let manifest = shown.steps[0].manifest.as_ref().unwrap();
    assert_eq!((&manifest["data"]["text"], &manifest["kind"]), (&json!("x"), &json!("ConfigMap")));
    assert!(shown.changes_something() && marina.berth("b1").is_none());
}

#[tokio::test(start_paused = true)]
async fn nothing_would_change_where_all_is_as_it_should_be() {
    let marina = Marina::default();
    let mut harbour = Harbour::start(marina.operator()).await;
    harbour.apply(&boat(json!({"text": "x", "berth": "b1", "length": 4}))).await;
    harbour.ready().await;
    let shown = show(&harbour, &marina, None).await;
    assert!(!shown.changes_something() && shown.notes.is_empty(), "{shown:?}");
}

#[tokio::test(start_paused = true)]
async fn drift_and_what_is_not_wanted_any_more_are_shown() {
    let marina = Marina::default();
    let mut harbour = Harbour::start(marina.operator()).await;
    let secret: Secret = serde_json::from_value(json!({"metadata": {"name": "key"}, "data": {}})).unwrap();
    harbour.api::<Secret>().create(&PostParams::default(), &secret).await.unwrap();
    harbour.apply(&boat(json!({"text": "x", "secret": "key"}))).await;
    harbour.ready().await;
    harbour.stop().await;
    let edit = json!({"data": {"text": "edited"}});
    harbour.api::<ConfigMap>().patch("ada", &PatchParams::default(), &Patch::Merge(edit)).await.unwrap();
    let shown = show(&harbour, &marina, Some(json!({"text": "x"}))).await;
    assert_eq!(
        steps(&shown),
        [(Verb::Change, "ConfigMap default/ada"), (Verb::Delete, "ConfigMap default/ada-secret")]
    );
    let change = &shown.steps[0].changes[0];
    assert_eq!(
        (change.path.as_str(), change.from.as_deref(), change.to.as_deref()),
        ("data.text", Some("edited"), Some("x"))
    );
}
