//! Volumes as directories that follow what they show.

use super::*;

#[tokio::test]
async fn volumes_are_where_they_are_mounted() {
    let yard = Yard::open().await;
    yard.config_map("settings", json!({"a.conf": "colour=blue\n", "b.conf": "unused"})).await;
    yard.secret("login", json!({"word": "s3cret"})).await;
    let text = "cat /etc/app/a.conf /etc/one /run/all/nested/word; echo; cat /run/all/labels; echo; ls /etc/app; \
                stat -L -c %a /etc/login/word";
    let mut pod = script("p", text);
    pod["spec"]["volumes"] = json!([
        {"name": "settings", "configMap": {"name": "settings", "items": [{"key": "a.conf", "path": "a.conf"}]}},
        {"name": "login", "secret": {"secretName": "login"}},
        {"name": "absent", "secret": {"secretName": "absent", "optional": true}},
        {"name": "all", "projected": {"sources": [
            {"secret": {"name": "login", "items": [{"key": "word", "path": "nested/word"}]}},
            {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        ]}},
    ]);
    let mounts = json!([
        {"name": "settings", "mountPath": "/etc/app"},
        {"name": "settings", "mountPath": "/etc/one", "subPath": "a.conf"},
        {"name": "login", "mountPath": "/etc/login"},
        {"name": "absent", "mountPath": "/etc/absent"},
        {"name": "all", "mountPath": "/run/all"},
    ]);
    yard.create(with(pod, "volumeMounts", mounts)).await;
    yard.phase("p", "Succeeded").await;
    let wanted = "colour=blue\ncolour=blue\ns3cret\napp=\"p\"\na.conf\n600\n";
    assert_eq!(yard.log("p").await, wanted);
    yard.close().await;
}

#[tokio::test]
async fn a_change_is_seen_whole() {
    let yard = Yard::open().await;
    yard.config_map("settings", json!({"a": "1", "b": "1"})).await;
    // Both files are read through one directory: a mixture of old and new would be said.
    let text = "last=; while sleep 0.02; do cd -P /etc/app/..data && now=$(cat a && cat b) || continue; \
                [ \"$now\" = \"$last\" ] || echo $now; last=$now; done 2>/dev/null";
    let mut pod = script("p", text);
    pod["spec"]["volumes"] = json!([
        {"name": "settings", "configMap": {"name": "settings"}},
        {"name": "labels", "downwardAPI": {"items": [
            {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels['colour']"}},
        ]}},
    ]);
    let mounts = json!([
        {"name": "settings", "mountPath": "/etc/app"},
        {"name": "labels", "mountPath": "/etc/labels"},
    ]);
    yard.create(with(pod, "volumeMounts", mounts)).await;
    yard.log_has("p", "11\n").await;
    yard.config_map("settings", json!({"a": "2", "b": "2"})).await;
    let log = yard.log_has("p", "22\n").await;
    assert_eq!(log, "11\n22\n");

    let text = "while ! grep -q red /etc/labels/labels; do sleep 0.02; done; echo red";
    let mut pod = script("q", text);
    pod["spec"]["volumes"] = json!([{"name": "labels", "downwardAPI": {"items": [
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels['colour']"}},
    ]}}]);
    yard.create(with(pod, "volumeMounts", json!([{"name": "labels", "mountPath": "/etc/labels"}]))).await;
    yard.phase("q", "Running").await;
    let labels = json!({"metadata": {"labels": {"colour": "red"}}});
    yard.pods().patch("q", &PatchParams::default(), &Patch::Merge(labels)).await.unwrap();
    yard.phase("q", "Succeeded").await;
    yard.close().await;
}

#[tokio::test]
async fn a_volume_that_lacks_a_key_is_waited_for() {
    let yard = Yard::open().await;
    yard.config_map("settings", json!({"a": "1"})).await;
    let mut pod = script("p", "cat /etc/app/b");
    let items = json!([{"key": "b", "path": "b"}]);
    pod["spec"]["volumes"] = json!([{"name": "settings", "configMap": {"name": "settings", "items": items}}]);
    yard.create(with(pod, "volumeMounts", json!([{"name": "settings", "mountPath": "/etc/app"}]))).await;
    let message = yard.event("FailedMount").await;
    let wanted = "MountVolume.SetUp failed for volume \"settings\" : references non-existent config key: b";
    assert_eq!(message, wanted);
    yard.config_map("settings", json!({"a": "1", "b": "there"})).await;
    yard.phase("p", "Succeeded").await;
    assert_eq!(yard.log("p").await, "there");
    yard.close().await;
}

#[tokio::test]
async fn a_part_of_a_volume_stays_as_it_was() {
    let yard = Yard::open().await;
    yard.config_map("settings", json!({"a": "1"})).await;
    let text = "echo up; while ! grep -q 2 /etc/all/a; do sleep 0.02; done; cat /etc/part";
    let mut pod = script("p", text);
    pod["spec"]["volumes"] = json!([{"name": "settings", "configMap": {"name": "settings"}}]);
    let mounts = json!([
        {"name": "settings", "mountPath": "/etc/all"},
        {"name": "settings", "mountPath": "/etc/part", "subPath": "a"},
    ]);
    yard.create(with(pod, "volumeMounts", mounts)).await;
    yard.log_has("p", "up").await;
    yard.config_map("settings", json!({"a": "2"})).await;
    yard.phase("p", "Succeeded").await;
    assert_eq!(yard.log("p").await, "up\n1");
    yard.close().await;
}
