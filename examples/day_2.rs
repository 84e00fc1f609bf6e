//! The annotations that every operator understands: adopt what is there already, leave one dependent alone, pause,
//! force.
//!
//! Run it with `cargo run -p windlass-examples --example day_2`.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::core::ObjectMeta;
use kube::{CustomResource, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass::{Halt, Kind, Operator, Plan, Primary, Status, World, annotation};
use windlass_testkit::Harbour;

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Sign", namespaced, status = "Status")]
struct SignSpec {
    text: String,
}

impl Primary for Sign {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<ConfigMap>()]
    }

    fn plan(&self, _world: &World, plan: &mut Plan) -> Result<(), Halt> {
        let data = [("text".to_owned(), self.spec.text.clone())].into();
        let metadata = ObjectMeta { name: Some(self.name_any()), ..ObjectMeta::default() };
        plan.add(ConfigMap { metadata, data: Some(data), ..ConfigMap::default() });
        Ok(())
    }
}

const SIGN: &str = "{apiVersion: example.org/v1, kind: Sign, metadata: {name: exit}, spec: {text: EXIT}}";

async fn annotate(harbour: &Harbour, name: &str, value: Value) {
    let patch = Patch::Merge(json!({"metadata": {"annotations": {name: value}}}));
    harbour.api::<Sign>().patch("exit", &PatchParams::default(), &patch).await.unwrap();
    harbour.settle().await;
}

async fn rewrite(harbour: &Harbour, text: &str) {
    let patch = Patch::Merge(json!({"data": {"text": text}}));
    harbour.api::<ConfigMap>().patch("exit", &PatchParams::default(), &patch).await.unwrap();
    harbour.settle().await;
}

async fn expect(harbour: &Harbour, when: &str, text: &str) {
    let sign = harbour.api::<ConfigMap>().get("exit").await.unwrap().data.unwrap()["text"].clone();
    println!("{when}: {sign}");
    assert_eq!(sign, text, "{when}");
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub async fn main() {
    let mut harbour = Harbour::start(|| Operator::new("signs").manages::<Sign>()).await;
    let theirs: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": "exit"}, "data": {"text": "theirs"}})).unwrap();
    harbour.api::<ConfigMap>().create(&Default::default(), &theirs).await.unwrap();
    harbour.apply(SIGN).await;
    harbour.settle().await;
    expect(&harbour, "somebody else's is left alone", "theirs").await;
    annotate(&harbour, annotation::ADOPT, json!("ConfigMap/exit")).await;
    expect(&harbour, "adopted", "EXIT").await;

    annotate(&harbour, annotation::IGNORE, json!("ConfigMap/exit")).await;
    rewrite(&harbour, "closed today").await;
    expect(&harbour, "ignored", "closed today").await;
    annotate(&harbour, annotation::IGNORE, Value::Null).await;
    expect(&harbour, "no longer ignored", "EXIT").await;

    annotate(&harbour, annotation::PAUSED, json!("true")).await;
    rewrite(&harbour, "out of order").await;
    expect(&harbour, "paused", "out of order").await;
    annotate(&harbour, annotation::PAUSED, Value::Null).await;
    expect(&harbour, "going on", "EXIT").await;
}
