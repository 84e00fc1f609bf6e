//! Requests as fast as they are answered: by one client, and by sixteen.

use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::future::try_join_all;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::Server;
use crate::connection::{Ask, Connection};
use crate::figure::Figure;

const CLIENTS: usize = 16;
/// Objects of the list that is timed.
const LISTED: usize = 1250;
/// Updates whose way to a watcher is timed.
const SEEN: usize = 300;

/// All figures of a server, in a namespace of the round's own.
pub(crate) async fn measure(server: &Server, round: usize, requests: usize) -> Result<Vec<Figure>> {
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(server.address.connect().await?);
    }
    let bench = Bench { server, namespace: format!("bench-{}-{round}", std::process::id()), requests };
    make_namespace(&mut clients[0], &bench.namespace).await?;
    let mut figures = Vec::new();
    figures
        .push(bench.rate("creates, one client", &mut clients[..1], requests / 4, Verb::Create("one")).await?);
    for (name, verb) in [
        ("creates, sixteen clients", Verb::Create("many")),
        ("updates, sixteen clients", Verb::Update),
        ("applies, sixteen clients", Verb::Apply),
        ("gets, sixteen clients", Verb::Get),
    ] {
        figures.push(bench.rate(name, &mut clients, requests, verb).await?);
    }
    figures.push(bench.list(&mut clients[0]).await?);
    let [writer, reader, ..] = &mut clients[..] else { return Ok(figures) };
    figures.push(bench.latency(writer, reader).await?);
    Ok(figures)
}

/// Makes a namespace.
pub(crate) async fn make_namespace(client: &mut Connection, name: &str) -> Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}).to_string();
    let made = client.ask(Ask::json("POST", "/api/v1/namespaces", namespace.as_bytes())).await;
    made.map(drop).context("failed to create the namespace")
}

/// A ConfigMap of 1 KB.
pub(crate) fn body(name: &str, value: &str) -> Vec<u8> {
    let padding = "x".repeat(900);
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","labels":{{"app":"bench"}}}},"data":{{"value":"{value}","padding":"{padding}"}}}}"#
    )
    .into_bytes()
}

#[derive(Clone, Copy)]
enum Verb {
    /// With names that begin so.
    Create(&'static str),
    Update,
    Apply,
    Get,
}

struct Bench<'a> {
    server: &'a Server,
    namespace: String,
    requests: usize,
}

impl Bench<'_> {
    /// So many requests, spread over the clients.
    async fn rate(&self, name: &str, clients: &mut [Connection], count: usize, verb: Verb) -> Result<Figure> {
        let lanes = clients.len();
        let (start, before) = (Instant::now(), self.server.processes.time());
        try_join_all(clients.iter_mut().enumerate().map(|(lane, client)| async move {
            for index in (lane..count).step_by(lanes) {
                self.turn(client, index, verb).await?;
            }
            Ok::<_, anyhow::Error>(())
        }))
        .await?;
        let cost = self.server.processes.cost(before, count);
        Ok(Figure::rate(name, count, start.elapsed()).costing(cost))
    }

    async fn turn(&self, client: &mut Connection, index: usize, verb: Verb) -> Result<()> {
        let all = self.path("");
        match verb {
            Verb::Create(prefix) => {
                client.ask(Ask::json("POST", &all, &body(&format!("{prefix}-{index}"), "1"))).await?;
            }
            Verb::Update => {
                let name = format!("many-{index}");
                client.ask(Ask::json("PUT", &self.path(&name), &body(&name, "2"))).await?;
            }
            Verb::Apply => {
                let name = format!("many-{index}");
                let path = format!("{}?fieldManager=bench-apply&force=true", self.path(&name));
                let kind = "application/apply-patch+yaml";
                client.ask(Ask { method: "PATCH", path: &path, kind, body: &body(&name, "3") }).await?;
            }
            Verb::Get => {
                client.ask(Ask::get(&self.path(&format!("many-{}", index % self.requests)))).await?;
            }
        }
        Ok(())
    }

    fn path(&self, name: &str) -> String {
        let slash = if name.is_empty() { "" } else { "/" };
        format!("/api/v1/namespaces/{}/configmaps{slash}{name}", self.namespace)
    }

    async fn list(&self, client: &mut Connection) -> Result<Figure> {
        let path = format!("{}?limit={LISTED}", self.path(""));
        let (mut times, before) = (Vec::new(), self.server.processes.time());
        for _ in 0..40 {
            let start = Instant::now();
            client.ask(Ask::get(&path)).await?;
            times.push(start.elapsed());
        }
        let cost = self.server.processes.cost(before, times.len());
        Ok(Figure::time("list of 1,250 objects of 1 KB", times).costing(cost))
    }

    /// From the moment an update is sent until a watcher of that object has it.
    async fn latency(&self, writer: &mut Connection, reader: &mut Connection) -> Result<Figure> {
        let name = "many-0";
        // Written once more, so that the watch does not begin in a past that the server has forgotten.
        let written = writer.ask(Ask::json("PUT", &self.path(name), &body(name, "before"))).await?;
        let found: Value = serde_json::from_slice(&written)?;
        let version = found["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        let selector = format!("watch=1&fieldSelector=metadata.name%3D{name}&resourceVersion={version}");
        reader.watch(&format!("{}?{selector}", self.path(""))).await?;
        let path = self.path(name);
        let (mut times, before) = (Vec::new(), self.server.processes.time());
        for turn in 0..SEEN {
            let value = format!("turn {turn}.");
            let body = body(name, &value);
            let start = Instant::now();
            let seen = async {
                reader.event_with(value.as_bytes()).await?;
                Ok::<Duration, anyhow::Error>(start.elapsed())
            };
            let (_, time) =
                futures::future::try_join(writer.ask(Ask::json("PUT", &path, &body)), seen).await?;
            times.push(time);
        }
        let cost = self.server.processes.cost(before, times.len());
        Ok(Figure::time("update to watcher", times).costing(cost))
    }
}
