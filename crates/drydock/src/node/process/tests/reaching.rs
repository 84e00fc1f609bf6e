//! Processes that reach the API as their service account.

use super::logging::kubectl_is_there;
use super::*;

#[tokio::test]
async fn a_process_finds_its_account_and_the_api() {
    let yard = Yard::open().await;
    let account = "/var/run/secrets/kubernetes.io/serviceaccount";
    let text = format!(
        "echo $KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT; cat {account}/namespace; echo; \
         head -n 1 {account}/ca.crt; cut -c 1-2 {account}/token; cat $KUBECONFIG"
    );
    yard.create(script("p", &text)).await;
    yard.phase("p", "Succeeded").await;
    let log = yard.log("p").await;
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(
        lines[..4],
        [&*yard.endpoint.address.to_string(), "default", "-----BEGIN CERTIFICATE-----", "ey"]
    );
    assert!(lines[4].contains("tokenFile") && !lines[4].contains("\"token\""), "{}", lines[4]);

    let mut pod = script("q", "echo ${KUBECONFIG-none}; ls $WINDLASS_ROOT/var 2>/dev/null || echo nothing");
    pod["spec"]["automountServiceAccountToken"] = false.into();
    yard.create(pod).await;
    yard.phase("q", "Succeeded").await;
    assert_eq!(yard.log("q").await, "none\nnothing\n");
    yard.close().await;
}

#[tokio::test]
async fn a_process_may_do_what_its_account_may() {
    if !kubectl_is_there() {
        return;
    }
    let yard = Yard::open().await;
    yard.config_map("seen", json!({"a": "1"})).await;
    let client = yard.drydock.client("test");
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
    });
    use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
    let post = PostParams::default();
    let roles: Api<Role> = Api::namespaced(client.clone(), "default");
    roles.create(&post, &serde_json::from_value(role).unwrap()).await.unwrap();
    let bindings: Api<RoleBinding> = Api::namespaced(client, "default");
    bindings.create(&post, &serde_json::from_value(binding).unwrap()).await.unwrap();
    let text = "kubectl get configmap seen -o 'jsonpath={.data.a}'; echo; kubectl get secrets 2>&1";
    yard.create(script("p", text)).await;
    let ended = async || {
        let pod = yard.pods().get("p").await.unwrap();
        crate::controllers::pods::is_finished(&pod).then_some(())
    };
    eventually("the end of p", ended).await;
    let log = yard.log("p").await;
    assert!(log.starts_with("1\n"), "{log}");
    assert!(
        log.contains("User \"system:serviceaccount:default:default\" cannot list resource \"secrets\""),
        "{log}"
    );
    yard.close().await;
}

#[tokio::test]
async fn pods_that_listen_on_their_own_address_are_not_in_each_others_way() {
    if cfg!(not(target_os = "linux")) {
        return;
    }
    let yard = Yard::open().await;
    let address = json!([{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]);
    let mut seen = Vec::new();
    for name in ["p", "q"] {
        yard.create(with(script(name, "echo $POD_IP"), "env", address.clone())).await;
        yard.phase(name, "Succeeded").await;
        let log = yard.log(name).await;
        let address = log.trim();
        assert!(address.starts_with("127.") && address != "127.0.0.1");
        seen.push(std::net::TcpListener::bind((address, seen.first().map_or(0, port_of))).unwrap());
    }
    assert_eq!(port_of(&seen[0]), port_of(&seen[1]));
    yard.close().await;
}

fn port_of(listener: &std::net::TcpListener) -> u16 {
    listener.local_addr().unwrap().port()
}
