//! Conditions and status: a rule of one's own for a dependent, with attributes, and fields of one's own in the
//! status.
//!
//! Run it with `cargo run -p windlass-examples --example conditions`.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::core::ObjectMeta;
use kube::{CustomResource, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass::{Condition, Halt, Kind, Operator, Plan, Primary, Status, World};
use windlass_testkit::Harbour;

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Poll", namespaced, status = "PollStatus")]
struct PollSpec {
    question: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct PollStatus {
    #[serde(flatten)]
    windlass: Status,
    answer: Option<String>,
}

impl Primary for Poll {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<ConfigMap>()]
    }

    fn plan(&self, _world: &World, plan: &mut Plan) -> Result<(), Halt> {
        let data = [("question".to_owned(), self.spec.question.clone())].into();
        let metadata = ObjectMeta { name: Some(self.name_any()), ..ObjectMeta::default() };
        plan.add(ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }).ready().condition(
            |ballot| match answer(ballot) {
                Some(answer) => Condition::ready().attribute("answer", answer),
                None => Condition::pending("NoAnswer", "nobody has set data.answer"),
            },
        );
        Ok(())
    }

    fn own_status(&self, world: &World, _report: &Status, status: &mut PollStatus) -> Result<(), Halt> {
        status.answer = world.get::<ConfigMap>(&self.name_any())?.as_ref().and_then(answer);
        Ok(())
    }
}

fn answer(ballot: &ConfigMap) -> Option<String> {
    ballot.data.as_ref()?.get("answer").cloned()
}

const POLL: &str = "{apiVersion: example.org/v1, kind: Poll, metadata: {name: tea}, spec: {question: tea?}}";

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub async fn main() {
    let mut harbour = Harbour::start(|| Operator::new("polls").manages::<Poll>()).await;
    harbour.apply(POLL).await;
    let ready = harbour.condition("Ready", "False").await;
    println!("Ready: {}, {}: {}", ready["status"], ready["reason"], ready["message"]);
    assert_eq!(ready["reason"], "NoAnswer");

    let vote = Patch::Merge(json!({"data": {"answer": "yes"}}));
    harbour.api::<ConfigMap>().patch("tea", &PatchParams::default(), &vote).await.unwrap();
    harbour.ready().await;
    let status = harbour.api::<Poll>().get("tea").await.unwrap().status.unwrap();
    println!(
        "answered: {:?}; the dependent says {:?}",
        status.answer, status.windlass.dependents[0].attributes
    );
    assert_eq!(status.answer.as_deref(), Some("yes"));
    assert_eq!(status.windlass.dependents[0].attributes["answer"], "yes");
}
