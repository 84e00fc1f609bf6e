//! How processes end: codes, last words, restarts, deadlines, grace, and nothing left behind.

use super::*;

#[tokio::test]
async fn codes_and_last_words_are_told() {
    let yard = Yard::open().await;
    yard.create(script("words", "echo said > /dev/termination-log; exit 3")).await;
    let fallback = json!("FallbackToLogsOnError");
    yard.create(with(script("log", "echo out; echo err >&2; exit 4"), "terminationMessagePolicy", fallback))
        .await;
    yard.create(script("signal", "kill -9 $$$$")).await;
    let mut missing = with(script("missing", ""), "image", json!("missing"));
    missing["spec"]["containers"][0].as_object_mut().unwrap().remove("args");
    yard.create(missing).await;
    let state = async |name: &str| {
        let pod = yard.phase(name, "Failed").await;
        terminated(pod.status.unwrap().container_statuses.unwrap().remove(0).state)
    };
    assert_eq!(state("words").await, (3, "Error".into(), Some("said\n".into())));
    let (code, _, words) = state("log").await;
    let words = words.unwrap();
    assert!(code == 4 && words.contains("out\n") && words.contains("err\n"), "{code} {words}");
    assert_eq!(state("signal").await.0, 137);
    let (code, reason, message) = state("missing").await;
    assert_eq!((code, reason.as_str()), (128, "StartError"));
    assert!(message.unwrap().contains("/nowhere/program"));
    yard.close().await;
}

#[tokio::test]
async fn a_crash_is_followed_by_a_restart_and_then_by_waiting() {
    let yard = Yard::open().await;
    let mut pod = script("p", "echo life >> /keep/lives; wc -l < /keep/lives; exit 5");
    pod["spec"]["restartPolicy"] = "OnFailure".into();
    pod["spec"]["volumes"] = json!([{"name": "keep", "emptyDir": {}}]);
    let pod = with(pod, "volumeMounts", json!([{"name": "keep", "mountPath": "/keep"}]));
    yard.create(pod).await;
    let status = yard
        .container("p", "backs off", |status| {
            let waiting = status.state.as_ref().and_then(|state| state.waiting.as_ref());
            status.restart_count == 1
                && waiting.is_some_and(|waiting| waiting.reason.as_deref() == Some("CrashLoopBackOff"))
        })
        .await;
    assert_eq!(terminated(status.last_state).0, 5);
    assert!(status.state.unwrap().waiting.unwrap().message.unwrap().starts_with("back-off 10s restarting"));
    // While it waits, its log is that of its last life.
    assert_eq!(yard.log("p").await.trim(), "2");
    yard.close().await;
}

#[tokio::test]
async fn a_deadline_fails_the_pod() {
    let yard = Yard::open().await;
    let mut pod = script("p", "while :; do sleep 0.05; done");
    pod["spec"]["activeDeadlineSeconds"] = 1.into();
    yard.create(pod).await;
    let status = yard.phase("p", "Failed").await.status.unwrap();
    assert_eq!(status.reason.as_deref(), Some("DeadlineExceeded"));
    assert_eq!(terminated(status.container_statuses.unwrap().remove(0).state).0, 143);
    yard.close().await;
}

#[tokio::test]
async fn deletion_asks_first_and_then_kills() {
    let yard = Yard::open().await;
    // A finalizer keeps the pod, so that its end can be seen.
    let text = "trap 'echo bye; ls /hooks; exit 0' TERM; while ! test -f /hooks/started; do sleep 0.02; done; \
                echo up; while :; do sleep 0.05; done";
    let mut polite = script("polite", text);
    polite["metadata"]["finalizers"] = json!(["test/keep"]);
    polite["spec"]["volumes"] = json!([{"name": "hooks", "emptyDir": {}}]);
    let polite = with(polite, "volumeMounts", json!([{"name": "hooks", "mountPath": "/hooks"}]));
    let hooks = json!({
        "postStart": {"exec": {"command": ["touch", "/hooks/started"]}},
        "preStop": {"exec": {"command": ["mv", "/hooks/started", "/hooks/stopping"]}},
    });
    yard.create(with(polite, "lifecycle", hooks)).await;
    let mut deaf = script("deaf", "trap '' TERM; echo up; while :; do sleep 0.05; done");
    deaf["metadata"]["finalizers"] = json!(["test/keep"]);
    deaf["spec"]["terminationGracePeriodSeconds"] = 1.into();
    yard.create(deaf).await;
    let unhooked = script("unhooked", "sleep 1000");
    yard.create(with(unhooked, "lifecycle", json!({"postStart": {"exec": {"command": ["false"]}}}))).await;
    let failed = yard.phase("unhooked", "Failed").await.status.unwrap().container_statuses.unwrap().remove(0);
    assert_eq!(terminated(failed.state).0, 137);
    for name in ["polite", "deaf"] {
        yard.log_has(name, "up").await;
        yard.pods().delete(name, &DeleteParams::default()).await.unwrap();
    }
    let ended =
        |status: &ContainerStatus| status.state.as_ref().is_some_and(|state| state.terminated.is_some());
    let polite = yard.container("polite", "has ended", ended).await;
    assert_eq!(terminated(polite.state).0, 0);
    assert!(yard.log("polite").await.ends_with("bye\nstopping\n"));
    let deaf = yard.container("deaf", "has ended", ended).await;
    assert_eq!(terminated(deaf.state).0, 137);
    yard.close().await;
}

#[tokio::test]
async fn a_deleted_pod_leaves_nothing() {
    let yard = Yard::open().await;
    yard.create(script("p", "setsid sleep 1000 & echo $$$$ $! $WINDLASS_ROOT; wait")).await;
    let log = yard.log_has("p", "\n").await;
    let words: Vec<&str> = log.split_whitespace().collect();
    assert!(is_alive(words[0]) && exists(words[2]));
    yard.pods().delete("p", &DeleteParams::default().grace_period(1)).await.unwrap();
    eventually("the end", async || {
        (!is_alive(words[0]) && !is_alive(words[1]) && !exists(words[2])).then_some(())
    })
    .await;
    yard.close().await;
}

#[tokio::test]
async fn nothing_outlives_the_drydock() {
    for dropped in [false, true] {
        let yard = Yard::open().await;
        yard.create(script("p", "trap '' TERM HUP; sleep 1000 & echo $$$$ $! $WINDLASS_ROOT; wait")).await;
        // One that leaves the process group is found by its environment.
        yard.create(script("q", "setsid sleep 1000 & echo $! ; wait")).await;
        let (first, second) = (yard.log_has("p", "\n").await, yard.log_has("q", "\n").await);
        let words: Vec<&str> = first.split_whitespace().collect();
        let directory = words[2].split("/pods/").next().unwrap();
        let private = std::fs::metadata(directory).unwrap().permissions();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&private) & 0o777, 0o700);
        if dropped {
            drop(yard);
        } else {
            yard.close().await;
        }
        eventually("the end of all", async || {
            let alive = is_alive(words[0]) || is_alive(words[1]) || is_alive(second.trim());
            (!alive && !exists(directory)).then_some(())
        })
        .await;
    }
}
