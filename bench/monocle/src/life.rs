//! What each operator is put through.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, Service};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind, ObjectMeta};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, ResourceExt as _};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::contender::{Contender, Process};
use crate::server::{Server, Verbs};

/// Children of each Monocle: Secret, ConfigMap, two Services, StatefulSet, two Deployments.
pub(crate) const CHILDREN: usize = 7;
const NAMESPACES: usize = 20;
const PARALLEL: usize = 16;
/// How long all Monocles together may take.
const PATIENCE: Duration = Duration::from_secs(1800);
/// So long without a request is quiet.
const QUIET: Duration = Duration::from_secs(8);
const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];

pub(crate) struct Plan {
    pub(crate) count: usize,
    pub(crate) rest: u64,
    pub(crate) secrets: usize,
}

/// What was measured of one operator.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Figures {
    pub(crate) operator: String,
    pub(crate) monocles: usize,
    /// From its start until every Monocle is ready.
    pub(crate) seconds_to_ready: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) peak_megabytes: f64,
    pub(crate) requests: Verbs,
    pub(crate) requests_per_monocle: f64,
    pub(crate) rest_seconds: u64,
    pub(crate) requests_at_rest: u64,
    pub(crate) restart_writes: u64,
    pub(crate) restart_cpu_seconds: f64,
    pub(crate) restart_peak_megabytes: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unrelated: Option<Unrelated>,
}

/// What many objects of others do to its memory.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Unrelated {
    pub(crate) secrets: usize,
    pub(crate) megabytes_before: f64,
    /// After they came while it ran.
    pub(crate) megabytes_after: f64,
    /// The peak of a start with none of them, and with all of them there.
    pub(crate) restart_peak_before: f64,
    pub(crate) restart_peak_after: f64,
}

pub(crate) async fn run(contender: &Contender, server: &Server, plan: &Plan) -> Result<Figures> {
    let name = &contender.name;
    let client = server.client();
    prepare(&client, plan.count).await?;
    eprintln!("{name}: {} Monocles are there", plan.count);

    let operator = contender.start(server.kubeconfig())?;
    let start = Instant::now();
    until_ready(&client, plan.count).await?;
    let seconds_to_ready = start.elapsed().as_secs_f64();
    quiet(server, name).await?;
    let requests = server.requests(name)?;
    let (cpu_seconds, memory) = (operator.cpu()?, operator.memory()?);
    check(&client, plan.count).await?;
    let working = total(&requests) as f64 / plan.count as f64;
    eprintln!(
        "{name}: ready after {seconds_to_ready:.0} s, {cpu_seconds:.1} s of CPU, {memory:?}, {working:.2} requests each"
    );

    sleep(Duration::from_secs(plan.rest)).await;
    let requests_at_rest = total(&server.requests(name)?) - total(&requests);

    let operator = restart(operator, contender, server).await?;
    let restart_writes = writes(&server.requests(name)?) - writes(&requests);
    let (restart_cpu_seconds, restarted) = (operator.cpu()?, operator.memory()?);
    eprintln!("{name}: {requests_at_rest} requests at rest, {restart_writes} writes after a restart");

    let mut unrelated = None;
    let mut operator = operator;
    if plan.secrets > 0 {
        server.add_secrets(plan.secrets).await?;
        quiet(server, name).await?;
        let after = operator.memory()?;
        operator = restart(operator, contender, server).await?;
        unrelated = Some(Unrelated {
            secrets: plan.secrets,
            megabytes_before: restarted.now,
            megabytes_after: after.now,
            restart_peak_before: restarted.peak,
            restart_peak_after: operator.memory()?.peak,
        });
        eprintln!("{name}: {unrelated:?}");
    }
    operator.kill().await?;
    Ok(Figures {
        operator: name.clone(),
        monocles: plan.count,
        seconds_to_ready,
        cpu_seconds,
        peak_megabytes: memory.peak,
        requests_per_monocle: working,
        requests,
        rest_seconds: plan.rest,
        requests_at_rest,
        restart_writes,
        restart_cpu_seconds,
        restart_peak_megabytes: restarted.peak,
        unrelated,
    })
}

async fn restart(operator: Process, contender: &Contender, server: &Server) -> Result<Process> {
    operator.kill().await?;
    let before = server.watches(&contender.name)?;
    let operator = contender.start(server.kubeconfig())?;
    // It has started once it watches again.
    let watching = async {
        while server.watches(&contender.name)? == before {
            sleep(Duration::from_millis(100)).await;
        }
        anyhow::Ok(())
    };
    timeout(Duration::from_secs(60), watching).await.context("it did not start again")??;
    idle(&operator).await?;
    quiet(server, &contender.name).await?;
    Ok(operator)
}

/// Waits until the operator uses hardly any CPU.
async fn idle(operator: &Process) -> Result<()> {
    loop {
        let before = operator.cpu()?;
        sleep(Duration::from_secs(2)).await;
        if operator.cpu()? - before < 0.05 {
            return Ok(());
        }
    }
}

/// Waits until the operator has asked for nothing for a while.
async fn quiet(server: &Server, name: &str) -> Result<()> {
    let start = Instant::now();
    let mut before = total(&server.requests(name)?);
    loop {
        sleep(QUIET).await;
        let now = total(&server.requests(name)?);
        if now == before {
            return Ok(());
        }
        ensure!(start.elapsed() < PATIENCE, "{name} does not come to rest");
        before = now;
    }
}

/// All requests but watches, and but the lists and lookups with which a process starts.
pub(crate) fn total(requests: &Verbs) -> u64 {
    requests
        .iter()
        .filter(|(verb, _)| !matches!(verb.as_str(), "watch" | "list"))
        .map(|(_, count)| count)
        .sum()
}

fn writes(requests: &Verbs) -> u64 {
    WRITES.iter().filter_map(|verb| requests.get(*verb)).sum()
}

/// Installs the definition and makes the Monocles.
async fn prepare(client: &Client, count: usize) -> Result<()> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in windlass_monocle::crds() {
        crds.create(&PostParams::default(), &crd).await.context("failed to install the definition")?;
        let name = crd.name_any();
        let established = kube::runtime::conditions::is_crd_established();
        timeout(
            Duration::from_secs(60),
            kube::runtime::wait::await_condition(crds.clone(), &name, established),
        )
        .await??;
    }
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for number in 0..NAMESPACES.min(count) {
        let metadata = ObjectMeta { name: Some(namespace(number)), ..ObjectMeta::default() };
        namespaces.create(&PostParams::default(), &Namespace { metadata, ..Namespace::default() }).await?;
    }
    let makes = (0..count).map(|number| {
        let api = monocles(client, Some(&namespace(number)));
        async move {
            let object =
                DynamicObject::new(&format!("monocle-{number}"), &resource()).data(json!({"spec": {}}));
            api.create(&PostParams::default(), &object).await
        }
    });
    futures::stream::iter(makes)
        .buffer_unordered(PARALLEL)
        .try_for_each(|_| std::future::ready(Ok(())))
        .await?;
    Ok(())
}

fn namespace(number: usize) -> String {
    format!("team-{}", number % NAMESPACES)
}

fn resource() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("monocle.monocle.change-metrics.io", "v1alpha1", "Monocle"))
}

fn monocles(client: &Client, namespace: Option<&str>) -> Api<DynamicObject> {
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource()),
        None => Api::all_with(client.clone(), &resource()),
    }
}

async fn until_ready(client: &Client, count: usize) -> Result<()> {
    let mut ready = BTreeMap::new();
    let mut events =
        pin!(watcher(monocles(client, None), watcher::Config::default()).default_backoff().applied_objects());
    let waiting = async {
        while let Some(object) = events.try_next().await? {
            ready.insert((object.namespace(), object.name_any()), is_ready(&object));
            if ready.values().filter(|ready| **ready).count() == count {
                return Ok(());
            }
        }
        anyhow::bail!("the watch ended")
    };
    let outcome = timeout(PATIENCE, waiting).await;
    outcome.with_context(|| format!("not all of {count} Monocles became ready within {PATIENCE:?}"))?
}

fn is_ready(object: &DynamicObject) -> bool {
    let conditions = object.data["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ready = |one: &&Value| one["type"] == "Ready" && one["status"] == "True";
    conditions.iter().any(|one| ready(&one))
}

/// That all children are there.
async fn check(client: &Client, count: usize) -> Result<()> {
    let ours = ListParams::default().labels("app.kubernetes.io/part-of=monocle");
    let mut found = Api::<Secret>::all(client.clone()).list_metadata(&ours).await?.items.len();
    found += Api::<ConfigMap>::all(client.clone()).list_metadata(&ours).await?.items.len();
    found += Api::<Service>::all(client.clone()).list_metadata(&ours).await?.items.len();
    found += Api::<StatefulSet>::all(client.clone()).list_metadata(&ours).await?.items.len();
    found += Api::<Deployment>::all(client.clone()).list_metadata(&ours).await?.items.len();
    ensure!(found == count * CHILDREN, "there are {found} children, not {}", count * CHILDREN);
    Ok(())
}
