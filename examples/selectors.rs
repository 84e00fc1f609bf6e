//! Selectors through several hops: a Board collects the Notes of all namespaces that a label picks, by their own
//! labels. Nobody writes a mapping from events to Boards: what a plan has read is what is watched.
//!
//! Run it with `cargo run -p windlass-examples --example selectors`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::{Api, Patch, PatchParams};
use kube::core::ObjectMeta;
use kube::{CustomResource, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass::{Halt, Kind, Operator, Plan, Primary, Query, Status, World};
use windlass_testkit::Harbour;

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Board", namespaced, status = "Status")]
struct BoardSpec {
    namespaces: LabelSelector,
    notes: LabelSelector,
}

impl Primary for Board {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<ConfigMap>()]
    }

    fn reads() -> Vec<Kind> {
        vec![Kind::of::<Namespace>()]
    }

    fn plan(&self, world: &World, plan: &mut Plan) -> Result<(), Halt> {
        let unclear = |error| Halt::failed("BadSelector", format!("spec: {error}"));
        let namespaces = self.spec.namespaces.clone().try_into().map_err(unclear)?;
        let notes = self.spec.notes.clone().try_into().map_err(unclear)?;
        let query = Query::matching(notes).in_namespaces_matching(namespaces);
        let found = world.select::<ConfigMap>(&query)?;
        let list: Vec<_> = found.iter().map(|note| note.name_any()).collect();
        plan.add(ConfigMap {
            metadata: ObjectMeta { name: Some(self.name_any()), ..ObjectMeta::default() },
            data: Some(BTreeMap::from([("notes".to_owned(), list.join(" "))])),
            ..ConfigMap::default()
        });
        Ok(())
    }
}

const SCENE: &str = r#"
{apiVersion: example.org/v1, kind: Board, metadata: {name: board}, spec: {namespaces: {matchLabels: {team: web}}, notes: {matchLabels: {kind: note}}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: web, labels: {team: web}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: first, namespace: web, labels: {kind: note}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: second, namespace: shop, labels: {kind: note}}}
"#;

async fn expect(harbour: &Harbour, notes: &str) {
    let board = async || harbour.api::<ConfigMap>().get("board").await.ok()?.data;
    harbour.until(notes, async || board().await.is_some_and(|data| data["notes"] == notes)).await;
    println!("on the board: {notes}");
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub async fn main() {
    let mut harbour = Harbour::start(|| Operator::new("boards").manages::<Board>()).await;
    harbour.apply(SCENE).await;
    expect(&harbour, "first").await;

    // The label of a namespace changes: two hops away from the Board.
    let label = Patch::Merge(json!({"metadata": {"labels": {"team": "web"}}}));
    let namespaces = Api::<Namespace>::all(harbour.client());
    namespaces.patch("shop", &PatchParams::default(), &label).await.unwrap();
    expect(&harbour, "second first").await;

    // A note loses its label.
    let unlabel = Patch::Merge(json!({"metadata": {"labels": {"kind": null}}}));
    let notes = Api::<ConfigMap>::namespaced(harbour.client(), "web");
    notes.patch("first", &PatchParams::default(), &unlabel).await.unwrap();
    expect(&harbour, "second").await;
}
