//! Images whose names are wrong, and images that are changed.

use super::*;

fn waiting(status: &ContainerStatus, reason: &str) -> bool {
    let waiting = status.state.as_ref().and_then(|state| state.waiting.as_ref());
    waiting.is_some_and(|waiting| waiting.reason.as_deref() == Some(reason))
}

async fn set_image(yard: &Yard, name: &str, image: &str) {
    let change = json!({"spec": {"containers": [{"name": "c", "image": image}]}});
    yard.pods().patch(name, &PatchParams::default(), &Patch::Strategic(change)).await.unwrap();
}

#[tokio::test]
async fn an_invalid_name_is_said_and_can_be_put_right() {
    let yard = Yard::open().await;
    yard.create(with(script("p", "echo right"), "image", json!("Sh:v1"))).await;
    let status = yard.container("p", "has a wrong name", |status| waiting(status, "InvalidImageName")).await;
    let message = status.state.unwrap().waiting.unwrap().message.unwrap();
    assert!(message.ends_with("repository name (library/Sh) must be lowercase"), "{message}");
    assert_eq!(yard.event("InspectFailed").await, message);
    assert_eq!(yard.pods().get("p").await.unwrap().status.unwrap().phase.as_deref(), Some("Pending"));
    set_image(&yard, "p", "sh").await;
    yard.phase("p", "Succeeded").await;
    assert_eq!(yard.log("p").await, "right\n");
    yard.close().await;
}

#[tokio::test]
async fn another_image_is_tried_at_once() {
    let yard = Yard::open().await;
    yard.create(with(script("p", "echo pulled"), "image", json!("broken"))).await;
    yard.container("p", "is not pulled", |status| waiting(status, "ImagePullBackOff")).await;
    set_image(&yard, "p", "sh").await;
    yard.phase("p", "Succeeded").await;
    yard.close().await;
}

#[tokio::test]
async fn what_runs_is_restarted_with_another_image() {
    let yard = Yard::open().await;
    let mut pod = script("p", "echo $$$$; exec sleep 1000");
    pod["spec"]["restartPolicy"] = "Always".into();
    yard.create(pod).await;
    let first = yard.log_has("p", "\n").await;
    set_image(&yard, "p", "sh:v2").await;
    let status = yard
        .container("p", "runs again", |status| {
            status.restart_count == 1 && status.state.as_ref().is_some_and(|state| state.running.is_some())
        })
        .await;
    assert_eq!(status.image, "sh:v2");
    assert_eq!(yard.event("Killing").await, "Container c definition changed, will be restarted");
    assert!(!is_alive(first.trim()));
    yard.close().await;
}
