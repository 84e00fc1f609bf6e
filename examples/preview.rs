//! What would change: the same plan and the same comparison as the running operator's, without a single write. It is
//! what `windlass plan` prints.
//!
//! Run it with `cargo run -p windlass-examples --example preview`.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::ObjectMeta;
use kube::{CustomResource, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass::preview::{Verb, preview};
use windlass::{Halt, Kind, Operator, Plan, Primary, Status, World};
use windlass_testkit::Harbour;

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Poem", namespaced, status = "Status")]
struct PoemSpec {
    lines: Vec<String>,
}

impl Primary for Poem {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<ConfigMap>()]
    }

    fn plan(&self, _world: &World, plan: &mut Plan) -> Result<(), Halt> {
        plan.add_each(self.spec.lines.iter().enumerate().map(|(number, line)| ConfigMap {
            metadata: ObjectMeta {
                name: Some(format!("{}-{number}", self.name_any())),
                ..ObjectMeta::default()
            },
            data: Some([("line".to_owned(), line.clone())].into()),
            ..ConfigMap::default()
        }));
        Ok(())
    }
}

fn poem(lines: &[&str]) -> serde_json::Value {
    json!({"apiVersion": "example.org/v1", "kind": "Poem", "metadata": {"name": "poem", "namespace": "default"}, "spec": {"lines": lines}})
}

fn operator() -> Operator {
    Operator::new("poems").manages::<Poem>()
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub async fn main() {
    let mut harbour = Harbour::start(operator).await;
    harbour.apply(&poem(&["one", "two", "three"]).to_string()).await;
    harbour.ready().await;
    harbour.stop().await;
    let edit = Patch::Merge(json!({"data": {"line": "scribbled"}}));
    harbour.api::<ConfigMap>().patch("poem-0", &PatchParams::default(), &edit).await.unwrap();

    // What if the poem had two lines?
    let before = harbour.revision();
    let wanted: DynamicObject = serde_json::from_value(poem(&["one", "two"])).unwrap();
    let context = harbour.drydock().context();
    let shown = preview(&harbour.client(), context, &operator(), Some(&[wanted])).await.unwrap();
    for step in &shown[0].steps {
        println!("{:?} {}", step.verb, step.object);
        for change in &step.changes {
            println!("    {}: {:?} -> {:?}", change.path, change.from, change.to);
        }
    }
    let steps: Vec<_> = shown[0].steps.iter().map(|step| (step.verb, step.object.as_str())).collect();
    assert_eq!(
        steps,
        [(Verb::Change, "ConfigMap default/poem-0"), (Verb::Delete, "ConfigMap default/poem-2")]
    );
    assert_eq!(harbour.revision(), before, "nothing was written");
}
