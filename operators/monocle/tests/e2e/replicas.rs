//! Two replicas, and leadership that moves while there is work.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::coordination::v1::Lease;
use serde_json::json;
use windlass_monocle::{Monocle, operator};
use windlass_testkit::{Stage, play};

use super::monocle;

const MONOCLES: usize = 6;

async fn holder(stage: &Stage) -> Option<String> {
    let lease = stage.api::<Lease>().get_opt("operator").await.unwrap()?;
    lease.spec?.holder_identity.filter(|holder| !holder.is_empty())
}

async fn until_held_by(stage: &Stage, name: &str) {
    let held = async || holder(stage).await.is_some_and(|holder| holder.starts_with(name));
    stage.until(&format!("{name} to lead"), held).await;
}

async fn all_ready(stage: &Stage) {
    for number in 0..MONOCLES {
        stage.ready::<Monocle>(&format!("m{number}")).await;
    }
}

#[tokio::test]
async fn leadership_moves_in_mid_work_and_the_work_is_done() {
    play(operator, async |stage| {
        stage.stop().await;
        stage.replica("replica-a");
        until_held_by(stage, "replica-a").await;
        stage.replica("replica-b");
        for number in 0..MONOCLES {
            stage.apply(&monocle(&format!("m{number}"), json!({}))).await;
        }
        stage.until("work to begin", async || !stage.names::<StatefulSet>().await.is_empty()).await;
        // It falls, as in a crash: the other has to wait until the Lease is over.
        stage.kill_replica("replica-a");
        until_held_by(stage, "replica-b").await;
        all_ready(stage).await;

        // It goes in good order: the other takes over at once, in the midst of a change.
        stage.replica("replica-c");
        for number in 0..MONOCLES {
            stage.apply(&monocle(&format!("m{number}"), json!({"publicURL": "https://newer"}))).await;
        }
        stage.stop_replica("replica-b").await;
        until_held_by(stage, "replica-c").await;
        all_ready(stage).await;
        let before = stage.settle().await;
        stage.holds("one writer, and nothing to write", async || stage.objects().await == before).await;
        for number in 0..MONOCLES {
            let set = stage.api::<StatefulSet>().get(&format!("m{number}-elastic")).await.unwrap();
            assert_eq!(set.metadata.generation, Some(1), "made once");
        }
    })
    .await;
}
