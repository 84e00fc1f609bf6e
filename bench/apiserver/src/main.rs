//! Drives an API server, and a peer, with the same load; prints one line a figure with the ratio.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Parser;
use futures::{StreamExt as _, TryStreamExt as _};
use http::Request;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, PostParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::time::Instant;

/// Compare the speed of API servers
#[derive(Parser)]
struct Arguments {
    /// The server to measure
    kubeconfig: PathBuf,
    /// What to compare it with
    #[arg(long)]
    peer: Option<PathBuf>,
    /// Requests for each figure
    #[arg(long, default_value_t = 2000)]
    requests: usize,
}

const NAMESPACE: &str = "bench";
const CLIENTS: usize = 16;
const LISTED: usize = 1250;

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let own = measure(&arguments.kubeconfig, arguments.requests).await?;
    let peer = match &arguments.peer {
        Some(peer) => Some(measure(peer, arguments.requests).await?),
        None => None,
    };
    println!("{:28} {:>12} {:>12} {:>8}", "figure", "here", "peer", "ratio");
    for (index, figure) in own.iter().enumerate() {
        let other = peer.as_ref().map(|peer| &peer[index]);
        let ratio = other.map_or(String::new(), |other| {
            let times =
                if figure.more_is_better { figure.value / other.value } else { other.value / figure.value };
            format!("{times:.1}x")
        });
        let shown = |figure: &Figure| format!("{:.*} {}", figure.digits(), figure.value, figure.unit);
        println!(
            "{:28} {:>12} {:>12} {ratio:>8}",
            figure.name,
            shown(figure),
            other.map(shown).unwrap_or_default()
        );
    }
    Ok(())
}

struct Figure {
    name: &'static str,
    value: f64,
    unit: &'static str,
    more_is_better: bool,
}

impl Figure {
    fn digits(&self) -> usize {
        if self.value < 10.0 { 2 } else { 0 }
    }
}

async fn connect(path: &PathBuf) -> Result<Client> {
    let read = Kubeconfig::read_from(path).with_context(|| format!("failed to read {}", path.display()))?;
    Ok(Client::try_from(Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?)?)
}

async fn measure(path: &PathBuf, requests: usize) -> Result<Vec<Figure>> {
    // One connection for each client, as separate programs would have.
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(connect(path).await?);
    }
    let namespaces: Api<Namespace> = Api::all(clients[0].clone());
    let meta = ObjectMeta { name: Some(NAMESPACE.into()), ..ObjectMeta::default() };
    let namespace = Namespace { metadata: meta, ..Namespace::default() };
    namespaces.create(&PostParams::default(), &namespace).await.context("failed to create the namespace")?;
    let rate = |name, count: usize, time: Duration| Figure {
        name,
        value: f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / time.as_secs_f64(),
        unit: "/s",
        more_is_better: true,
    };
    let mut figures = Vec::new();
    let one =
        timed(&clients[..1], requests / 4, |client, index| create(client, format!("one-{index}"))).await?;
    figures.push(rate("creates, one client", requests / 4, one));
    let many = timed(&clients, requests, |client, index| create(client, format!("many-{index}"))).await?;
    figures.push(rate("creates, sixteen clients", requests, many));
    let updates = timed(&clients, requests, |client, index| update(client, format!("many-{index}"))).await?;
    figures.push(rate("updates, sixteen clients", requests, updates));
    let applies = timed(&clients, requests, |client, index| apply(client, format!("many-{index}"))).await?;
    figures.push(rate("applies, sixteen clients", requests, applies));
    let gets =
        timed(&clients, requests * 2, |client, index| get(client, format!("many-{}", index % requests)))
            .await?;
    figures.push(rate("gets, sixteen clients", requests * 2, gets));
    figures.push(list(&clients[0]).await?);
    figures.push(latency(&clients[0], &clients[1]).await?);
    namespaces.delete(NAMESPACE, &DeleteParams::default()).await?;
    Ok(figures)
}

/// The time of `count` requests, spread over the clients.
async fn timed<F, W>(clients: &[Client], count: usize, work: W) -> Result<Duration>
where
    W: Fn(Client, usize) -> F,
    F: Future<Output = Result<()>> + Send + 'static,
{
    let start = Instant::now();
    let lanes = clients.iter().enumerate().map(|(lane, client)| {
        let turns: Vec<F> =
            (lane..count).step_by(clients.len()).map(|index| work(client.clone(), index)).collect();
        tokio::spawn(async move {
            for turn in turns {
                turn.await?;
            }
            Ok::<_, anyhow::Error>(())
        })
    });
    for lane in futures::future::join_all(lanes).await {
        lane??;
    }
    Ok(start.elapsed())
}

fn body(name: &str, value: &str) -> Vec<u8> {
    let padding = "x".repeat(900);
    let object = serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"app": "bench"}},
        "data": {"value": value, "padding": padding},
    });
    object.to_string().into_bytes()
}

fn path(name: &str) -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{name}")
}

async fn send(client: Client, request: Request<Vec<u8>>) -> Result<()> {
    client.request_text(request).await?;
    Ok(())
}

async fn create(client: Client, name: String) -> Result<()> {
    let uri = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
    send(client, Request::post(uri).header("content-type", "application/json").body(body(&name, "1"))?).await
}

async fn update(client: Client, name: String) -> Result<()> {
    send(client, Request::put(path(&name)).header("content-type", "application/json").body(body(&name, "2"))?)
        .await
}

async fn apply(client: Client, name: String) -> Result<()> {
    let uri = format!("{}?fieldManager=bench&force=true", path(&name));
    let request = Request::patch(uri).header("content-type", "application/apply-patch+yaml");
    send(client, request.body(body(&name, "3"))?).await
}

async fn get(client: Client, name: String) -> Result<()> {
    send(client, Request::get(path(&name)).body(Vec::new())?).await
}

async fn list(client: &Client) -> Result<Figure> {
    let uri = format!("/api/v1/namespaces/{NAMESPACE}/configmaps?limit={LISTED}");
    let mut times = Vec::new();
    for _ in 0..20 {
        let start = Instant::now();
        client.request_text(Request::get(&uri).body(Vec::new())?).await?;
        times.push(start.elapsed());
    }
    Ok(milliseconds("list of 1,250 objects", times))
}

async fn latency(writer: &Client, reader: &Client) -> Result<Figure> {
    let maps: Api<ConfigMap> = Api::namespaced(reader.clone(), NAMESPACE);
    let name = "many-0";
    let version = maps.list(&ListParams::default().fields(&format!("metadata.name={name}"))).await?;
    let version = version.metadata.resource_version.unwrap_or_default();
    let parameters = WatchParams::default().fields(&format!("metadata.name={name}"));
    let mut events = maps.watch(&parameters, &version).await?.boxed();
    let mut times = Vec::new();
    for turn in 0..200 {
        let start = Instant::now();
        let request = Request::put(path(name)).header("content-type", "application/json");
        let writing = tokio::spawn(send(writer.clone(), request.body(body(name, &format!("turn {turn}")))?));
        while let Some(event) = events.try_next().await? {
            if matches!(event, WatchEvent::Modified(_)) {
                break;
            }
        }
        times.push(start.elapsed());
        writing.await??;
    }
    Ok(milliseconds("update to watcher", times))
}

fn milliseconds(name: &'static str, mut times: Vec<Duration>) -> Figure {
    times.sort();
    let middle = times[times.len() / 2];
    Figure { name, value: middle.as_secs_f64() * 1000.0, unit: "ms", more_is_better: false }
}
