//! Many at once.

use kube::api::{ListParams, PostParams};
use serde_json::json;
use windlass_kiagnose::{Checkup, Phase};

use super::play::{ENDS_WELL, checkup, play, start};

#[tokio::test(start_paused = true)]
async fn two_hundred_at_once_without_cross_talk() {
    let harbour = start().await;
    play(&harbour, ENDS_WELL);
    let checkups = harbour.api::<Checkup>();
    for n in 0..200 {
        let one: Checkup =
            serde_json::from_str(&checkup(&format!("c{n}"), json!({"params": {"n": n.to_string()}})))
                .unwrap();
        checkups.create(&PostParams::default(), &one).await.unwrap();
    }
    let list = async || checkups.list(&ListParams::default()).await.unwrap().items;
    harbour
        .until("all to be over", async || {
            list()
                .await
                .iter()
                .all(|one| one.status.as_ref().is_some_and(|status| status.completion_time.is_some()))
        })
        .await;
    for one in list().await {
        let (name, status) = (one.metadata.name.unwrap(), one.status.unwrap());
        assert_eq!(status.phase, Some(Phase::Succeeded), "{name}: {status:?}");
        assert_eq!(status.results["of"], name);
    }
    let requests = harbour.requests();
    let total: u64 = requests.values().sum();
    assert!(total <= 200 * 10 + 20, "{total} requests: {requests:?}");
}
