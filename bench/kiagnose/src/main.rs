//! Many Checkups at once, in process on the drydock: how many run side by side, how many end in a second, and how many
//! requests the checkup controller makes for each.
//!
//! Pods are simulated and take a second; this program plays the checkups, as their service account.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use kube::{Api, ResourceExt as _};
use serde_json::json;
use tokio::time::Instant;
use windlass::Runtime;
use windlass_drydock::api::auth::User;
use windlass_drydock::node::Behaviour;
use windlass_drydock::{Drydock, Options};
use windlass_kiagnose::{Checkup, Phase, controller};

const CONTROLLER: &str = "checkup-controller";

#[tokio::main]
async fn main() -> Result<()> {
    let count: usize =
        std::env::args().nth(1).map_or(Ok(200), |text| text.parse()).context("COUNT is a number")?;
    let options = Options::live();
    options.node.behaviours.set("sim", Behaviour::Exit { after: Duration::from_secs(1), code: 0 });
    let drydock = Drydock::start(options).await?;
    drydock.record().keep_entries();
    let client = drydock.client("bench");
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    let account: ServiceAccount = serde_json::from_value(json!({"metadata": {"name": "checker"}}))?;
    accounts.create(&PostParams::default(), &account).await?;
    let runtime =
        Runtime::new(drydock.client(CONTROLLER), drydock.context().clone()).install_crds().host(controller());
    tokio::spawn(runtime.run(std::future::pending()));
    tokio::spawn(play(
        Api::all(client.clone()),
        Api::namespaced(
            drydock.client_as(&User::service_account("default", "checker"), "checkup"),
            "default",
        ),
    ));

    let checkups: Api<Checkup> = Api::namespaced(client, "default");
    while checkups.list(&ListParams::default()).await.is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let began = Instant::now();
    stream::iter(0..count)
        .map(|n| {
            let checkups = checkups.clone();
            async move {
                let one: Checkup = serde_json::from_value(json!({
                    "apiVersion": "kiagnose.io/v1alpha1", "kind": "Checkup", "metadata": {"name": format!("c{n}")},
                    "spec": {"image": "sim", "serviceAccountName": "checker", "timeout": "5m"}}))?;
                checkups.create(&PostParams::default(), &one).await.map_err(anyhow::Error::from)
            }
        })
        .buffer_unordered(16)
        .collect::<Vec<_>>()
        .await;
    let mut most = 0;
    let took = loop {
        let all = checkups.list(&ListParams::default()).await?.items;
        let of = |phase: Phase| {
            let is = |one: &&Checkup| one.status.as_ref().and_then(|status| status.phase) == Some(phase);
            all.iter().filter(is).count()
        };
        most = most.max(of(Phase::Running));
        ensure!(of(Phase::Failed) == 0, "{} have failed", of(Phase::Failed));
        if of(Phase::Succeeded) == count {
            let crossed = all.iter().filter(|one| {
                one.status.as_ref().and_then(|s| s.results.get("of").cloned()) != one.metadata.name
            });
            ensure!(crossed.count() == 0, "results of one Checkup are in another");
            break began.elapsed();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let mut requests: BTreeMap<String, usize> = BTreeMap::new();
    for entry in drydock.record().entries(CONTROLLER) {
        if !matches!(entry.verb, "list" | "watch") && entry.resource != "customresourcedefinitions" {
            *requests.entry(format!("{} {}", entry.verb, entry.resource)).or_default() += 1;
        }
    }
    let total: usize = requests.values().sum();
    println!("{count} Checkups at once, pods of 1 s");
    println!("  all judged after       {:.2} s", took.as_secs_f64());
    println!("  throughput             {:.0} Checkups/s", count as f64 / took.as_secs_f64());
    println!("  most at once Running   {most}");
    println!("  requests per Checkup   {:.2}", total as f64 / count as f64);
    for (what, times) in requests {
        println!("    {:<28} {:.2}", what, times as f64 / count as f64);
    }
    drydock.stop().await;
    Ok(())
}

/// Writes a verdict for each checkup that runs.
async fn play(pods: Api<Pod>, maps: Api<ConfigMap>) {
    let mut events = watcher::watcher(pods, watcher::Config::default().labels("kiagnose.io/checkup")).boxed();
    let mut done = std::collections::BTreeSet::new();
    while let Some(event) = events.next().await {
        let Ok(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod)) = event else { continue };
        let runs = pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"));
        let Some(name) = pod.labels().get("kiagnose.io/checkup").cloned() else { continue };
        if runs && done.insert(name.clone()) {
            let data = json!({"data": {"status.succeeded": "true", "status.result.of": name}});
            let patch = Patch::Merge(data);
            if let Err(error) = maps.patch(&format!("{name}-results"), &PatchParams::default(), &patch).await
            {
                eprintln!("failed to write the verdict of {name}: {error}");
            }
        }
    }
}
