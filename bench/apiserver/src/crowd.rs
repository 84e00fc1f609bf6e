//! Many objects and many watchers, held at once: what they take of memory, and what is left of the speed.
//!
//! The objects are ConfigMaps of 1 KB in a hundred namespaces. Each watcher has a connection of its own and watches
//! the whole kind, as the agent of each node watches all Services.

use std::time::Duration;

use anyhow::Result;
use futures::future::try_join_all;
use tokio::time::Instant;

use crate::Server;
use crate::connection::{Ask, Connection};
use crate::figure::Figure;
use crate::load::{body, make_namespace};

const NAMESPACES: usize = 100;
const CLIENTS: usize = 16;
/// Connections that are made at the same time.
const DIALS: usize = 64;
/// Updates that all watchers are to see.
const SEEN: usize = 5;

/// All figures of a crowd.
pub(crate) async fn measure(server: &Server, objects: usize, watchers: usize) -> Result<Vec<Figure>> {
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(server.address.connect().await?);
    }
    for namespace in 0..NAMESPACES {
        make_namespace(&mut clients[0], &format!("crowd-{namespace}")).await?;
    }
    let mut figures = Vec::new();
    let empty = server.processes.memory();
    let (start, before) = (Instant::now(), server.processes.time());
    try_join_all(clients.iter_mut().enumerate().map(|(lane, client)| async move {
        for index in (lane..objects).step_by(CLIENTS) {
            client.ask(Ask::json("POST", &all(index), &body(&format!("held-{index}"), "1"))).await?;
        }
        Ok::<_, anyhow::Error>(())
    }))
    .await?;
    let made = Figure::rate("creates of all objects", objects, start.elapsed());
    figures.push(made.costing(server.processes.cost(before, objects)));

    // What an object is as JSON, as a client reads it.
    let json = clients[0].ask(Ask::get(&one(0))).await?.len();
    let full = settled(server).await;
    let taken = |from: Option<f64>, to: Option<f64>| Some(to? - from?);
    if let Some(kilobytes) = taken(empty, full) {
        let bytes = kilobytes * 1024.0 / objects as f64;
        figures.push(Figure::amount("memory of an object", bytes, "B"));
        figures.push(Figure::amount("  times its JSON", bytes / json as f64, "x"));
    }
    figures.push(updates("updates, one client", server, &mut clients[0], objects).await?);

    let start = Instant::now();
    let mut watching: Vec<Connection> = Vec::new();
    while watching.len() < watchers {
        let count = DIALS.min(watchers - watching.len());
        watching.extend(try_join_all((0..count).map(|_| watcher(server))).await?);
    }
    figures.push(Figure::rate("watches begun", watchers, start.elapsed()));
    if let Some(kilobytes) = taken(full, settled(server).await) {
        figures.push(Figure::amount("memory of a watcher", kilobytes / watchers as f64, "KB"));
    }
    let (mut answers, mut times) = (Vec::new(), Vec::new());
    for turn in 0..SEEN {
        let value = format!("seen {turn}.");
        let start = Instant::now();
        let (path, body) = (one(turn), body(&format!("held-{turn}"), &value));
        let answer = async {
            clients[0].ask(Ask::json("PUT", &path, &body)).await?;
            Ok::<Duration, anyhow::Error>(start.elapsed())
        };
        let seen = try_join_all(watching.iter_mut().map(|watcher| watcher.event_with(value.as_bytes())));
        let (answered, _) = futures::future::try_join(answer, seen).await?;
        answers.push(answered);
        times.push(start.elapsed());
    }
    figures.push(Figure::time("update to its answer", answers));
    figures.push(Figure::time("update to the last watcher", times));
    Ok(figures)
}

fn all(index: usize) -> String {
    format!("/api/v1/namespaces/crowd-{}/configmaps", index % NAMESPACES)
}

fn one(index: usize) -> String {
    format!("{}/held-{index}", all(index))
}

async fn watcher(server: &Server) -> Result<Connection> {
    let mut connection = server.address.connect().await?;
    // From now on: the objects that are there are of no interest.
    connection
        .watch("/api/v1/configmaps?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan")
        .await?;
    Ok(connection)
}

/// The memory once nothing is going on any more.
async fn settled(server: &Server) -> Option<f64> {
    let mut before = server.processes.time()?;
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = server.processes.time()?;
        // Less than a tenth of a processor.
        if now - before < Duration::from_millis(100) {
            break;
        }
        before = now;
    }
    server.processes.memory()
}

async fn updates(name: &str, server: &Server, client: &mut Connection, objects: usize) -> Result<Figure> {
    let count = objects.min(2000);
    let (start, before) = (Instant::now(), server.processes.time());
    for index in 0..count {
        client.ask(Ask::json("PUT", &one(index), &body(&format!("held-{index}"), "2"))).await?;
    }
    Ok(Figure::rate(name, count, start.elapsed()).costing(server.processes.cost(before, count)))
}
