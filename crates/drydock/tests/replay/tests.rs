//! The player itself: a server that repeats the recorded answers is equal everywhere, another is not.

use std::collections::VecDeque;

use serde_json::Value;

use super::scenario::{self, Answer, Scenario};
use super::server::{Request, Response, Server};
use super::{difference, player};

/// Gives the recorded answers.
struct Parrot(VecDeque<Answer>);

impl Parrot {
    fn of(scenario: &Scenario) -> Self {
        Self(scenario.steps.iter().map(|step| step.response.clone()).collect())
    }
}

impl Server for Parrot {
    async fn send(&mut self, request: Request) -> anyhow::Result<Response> {
        let answer = self.0.pop_front().ok_or_else(|| anyhow::anyhow!("asked too often"))?;
        let watch = request.path.contains("watch=") && answer.status == 200;
        let body = match &answer.body {
            Value::Array(events) if watch => events.iter().map(|event| format!("{event}\n")).collect(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let mut headers = vec![("Content-Type".to_owned(), answer.kind.clone())];
        for warning in &answer.warnings {
            let escaped = warning.replace('\\', "\\\\").replace('"', "\\\"");
            headers.push(("Warning".to_owned(), format!("299 - \"{escaped}\"")));
        }
        Ok(Response { status: answer.status, headers, body: body.into_bytes() })
    }
}

#[tokio::test]
async fn recorded_answers_are_equal_to_themselves() {
    let mut steps = 0;
    for scenario in scenario::all().unwrap() {
        for result in player::replay(&scenario, &mut Parrot::of(&scenario)).await {
            assert!(result.differences.is_empty(), "{}: {}", scenario.name, result.summary(3));
            steps += 1;
        }
    }
    assert!(steps >= 357, "only {steps} recorded answers");
}

#[tokio::test]
async fn another_answer_is_noticed() {
    let scenario = scenario::all().unwrap().into_iter().find(|one| one.name == "crd-basic").unwrap();
    let mut parrot = Parrot::of(&scenario);
    parrot.0[0].status = 500;
    parrot.0[4].body["spec"]["color"] = "blue".into();
    let results = player::replay(&scenario, &mut parrot).await;
    let different: Vec<usize> =
        results.iter().filter(|result| !result.differences.is_empty()).map(|result| result.step).collect();
    assert_eq!(different, [0, 4]);
    assert_eq!(results[4].differences, [".body.spec.color: expected \"red\", got \"blue\""]);
}

#[test]
fn differences_name_paths() {
    let expected = serde_json::json!({"a": [1, {"b": 2}], "c": 3});
    let got = serde_json::json!({"a": [1, {"b": 4}], "d": 3});
    assert_eq!(
        difference::between(&expected, &got),
        [".a[1].b: expected 2, got 4", ".c: missing, expected 3", ".d: not expected: 3"]
    );
}
