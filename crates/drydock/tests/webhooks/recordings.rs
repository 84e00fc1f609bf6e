//! Recordings of a real kube-apiserver, whose webhooks answer here as they did there.

use std::path::Path;

use bytes::Bytes;
use http_body_util::Full;
use serde::Deserialize;
use serde_json::Value;
use tower::ServiceExt as _;
use windlass_drydock::controllers::Selection;
use windlass_drydock::{Drydock, Options, User};

use super::answers::{self, Hooks};
use crate::replay::player;
use crate::replay::scenario::Scenario;
use crate::replay::server::{InProcess, Request, Response, Server};

const HOST: &str = "127.0.0.1:21500";

#[derive(Deserialize)]
struct Recording {
    webhooks: Hooks,
}

#[tokio::test(start_paused = true)]
async fn webhooks_are_called_and_heard_as_by_a_real_server() {
    let only = std::env::var("REPLAY").ok();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/webhooks/transcripts");
    let mut files: Vec<_> =
        std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let (mut steps, mut equal) = (0, 0);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut scenario: Scenario = serde_json::from_str(&text).unwrap();
        scenario.steps.iter_mut().for_each(|step| unfold(&mut step.response.body));
        if only.as_ref().is_some_and(|only| *only != scenario.name) {
            continue;
        }
        let recording: Recording = serde_json::from_str(&text).unwrap();
        let mut server = start(recording.webhooks).await;
        let results = player::replay(&scenario, &mut server).await;
        steps += results.len();
        for result in &results {
            if result.differences.is_empty() {
                equal += 1;
            } else {
                println!("{} {}", scenario.name, result.summary(if only.is_some() { 30 } else { 3 }));
            }
        }
    }
    println!("{equal}/{steps} steps equal");
    assert_eq!(equal, steps, "some answers are not those of a real server");
    assert!(only.is_some() || steps > 300, "only {steps} recorded answers");
}

/// A denial that repeats a whole review is compared field by field, not as a text.
fn unfold(body: &mut Value) {
    let Some((before, review)) = body["message"].as_str().and_then(|text| text.split_once(": {")) else {
        return;
    };
    let Ok(mut review) = serde_json::from_str::<Value>(&format!("{{{review}")) else { return };
    // The name is generated, and as such made comparable in the object only.
    if !review["request"]["object"]["metadata"]["generateName"].is_null() {
        review["request"]["name"] = "generated".into();
    }
    body["message"] = before.into();
    body["review"] = review;
}

/// Unfolds the answers of another server.
struct Unfolding<S>(S);

impl<S: Server> Server for Unfolding<S> {
    async fn send(&mut self, request: Request) -> anyhow::Result<Response> {
        let mut response = self.0.send(request).await?;
        if let Ok(mut body) = serde_json::from_slice(&response.body) {
            unfold(&mut body);
            response.body = body.to_string().into_bytes();
        }
        Ok(response)
    }
}

async fn start(webhooks: Hooks) -> impl Server {
    let options = Options { controllers: Selection::none(), ..Options::seeded(1) };
    let drydock = Drydock::start(options).await.unwrap();
    drydock.webhooks().serve(HOST, answers::service(webhooks));
    let server = drydock.server().clone();
    Unfolding(InProcess(server.map_request(|mut request: http::Request<Full<Bytes>>| {
        request.extensions_mut().insert(User::master("admin"));
        request
    })))
}
