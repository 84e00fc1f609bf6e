use std::time::Duration;

use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, Role, RoleBinding};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::controllers::Selection;
use crate::{Drydock, Options};

#[test]
fn service_accounts_are_told_from_other_users() {
    assert_eq!(account_of("system:serviceaccount:a:b"), Some(("a", "b")));
    for name in ["ann", "system:serviceaccount:a", "system:serviceaccount::b", "system:serviceaccount:a:b:c"]
    {
        assert_eq!(account_of(name), None, "{name}");
    }
}

#[test]
fn a_refusal_names_user_verb_resource_and_namespace() {
    let path = ResourcePath {
        group: "apps".into(),
        resource: "deployments".into(),
        namespace: Some("a".into()),
        name: Some("x".into()),
        subresource: Some("scale/more".into()),
        ..ResourcePath::default()
    };
    let query = Query::default();
    let failure = Attributes::of("patch", &path, &query).refusal(&User::new("ann", &[]), "");
    assert_eq!(
        failure.message,
        "deployments.apps \"x\" is forbidden: User \"ann\" cannot patch resource \"deployments/scale\" in API \
         group \"apps\" in the namespace \"a\""
    );
}

async fn drydock(controllers: Selection) -> Drydock {
    let options = Options { controllers, ..Options::seeded(1) };
    let drydock = Drydock::start(options).await.unwrap();
    let client = drydock.client("test");
    create::<Namespace>(&Api::all(client.clone()), json!({"metadata": {"name": "a"}})).await;
    create::<ServiceAccount>(&Api::namespaced(client, "a"), json!({"metadata": {"name": "robot"}})).await;
    drydock
}

async fn create<K>(api: &Api<K>, object: Value)
where
    K: Clone + DeserializeOwned + serde::Serialize + std::fmt::Debug,
{
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

/// Lets the service account read config maps.
async fn grant(client: &Client) {
    let roles = Api::<Role>::namespaced(client.clone(), "a");
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]);
    create(&roles, json!({"metadata": {"name": "reader"}, "rules": rules})).await;
    let bindings = Api::<RoleBinding>::namespaced(client.clone(), "a");
    let binding = json!({
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "a"}],
    });
    create(&bindings, binding).await;
}

/// Sends a request as over a connection without a certificate.
async fn send(
    server: &Server,
    method: &str,
    path: &str,
    token: Option<&str>,
    body: Value,
) -> (StatusCode, Value) {
    let mut request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let answer = server.handle(request.body(Full::new(bytes::Bytes::from(body))).unwrap()).await;
    let code = answer.status();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

async fn token(drydock: &Drydock, seconds: i64) -> String {
    let server = drydock.server().clone();
    let mut request = Request::builder()
        .method("POST")
        .uri("/api/v1/namespaces/a/serviceaccounts/robot/token")
        .body(Full::new(bytes::Bytes::from(json!({"spec": {"expirationSeconds": seconds}}).to_string())))
        .unwrap();
    request.extensions_mut().insert(User::master("admin"));
    let body = server.handle(request).await.into_body().collect().await.unwrap().to_bytes();
    let answer: Value = serde_json::from_slice(&body).unwrap();
    answer["status"]["token"].as_str().unwrap().to_owned()
}

const MAPS: &str = "/api/v1/namespaces/a/configmaps";

#[tokio::test(start_paused = true)]
async fn a_token_is_good_until_it_expires() {
    let drydock = drydock(Selection::none()).await;
    let server = drydock.server();
    let token = token(&drydock, 600).await;
    let get = || send(server, "GET", MAPS, Some(&token), Value::Null);
    let (code, refusal) = get().await;
    assert_eq!(code, StatusCode::FORBIDDEN);
    assert_eq!(
        refusal["message"],
        "configmaps is forbidden: User \"system:serviceaccount:a:robot\" cannot list resource \"configmaps\" in API \
         group \"\" in the namespace \"a\""
    );
    grant(&drydock.client("test")).await;
    assert_eq!(get().await.0, StatusCode::OK);
    let review = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let (_, review) = send(server, "POST", path, Some(&token), review).await;
    let user = &review["status"]["userInfo"];
    assert_eq!(user["username"], "system:serviceaccount:a:robot");
    assert_eq!(
        user["groups"],
        json!(["system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"])
    );
    tokio::time::advance(Duration::from_secs(670)).await;
    let (code, refusal) = get().await;
    assert_eq!((code, &refusal["message"]), (StatusCode::UNAUTHORIZED, &json!("Unauthorized")));
}

#[tokio::test]
async fn a_token_goes_with_its_account() {
    let drydock = drydock(Selection::none()).await;
    let token = token(&drydock, 600).await;
    let get = || send(drydock.server(), "GET", "/api", Some(&token), Value::Null);
    assert_eq!(get().await.0, StatusCode::OK);
    let accounts = Api::<ServiceAccount>::namespaced(drydock.client("test"), "a");
    accounts.delete("robot", &DeleteParams::default()).await.unwrap();
    assert_eq!(get().await.0, StatusCode::UNAUTHORIZED);
    create(&accounts, json!({"metadata": {"name": "robot"}})).await;
    assert_eq!(get().await.0, StatusCode::UNAUTHORIZED, "another account of that name");
}

#[tokio::test]
async fn nobody_in_particular_sees_health_and_version() {
    let drydock = drydock(Selection::none()).await;
    let get = |path| send(drydock.server(), "GET", path, None, Value::Null);
    for path in ["/healthz", "/livez", "/readyz", "/version"] {
        assert_eq!(get(path).await.0, StatusCode::OK, "{path}");
    }
    for path in ["/api", "/openapi/v3", "/metrics", MAPS] {
        assert_eq!(get(path).await.0, StatusCode::FORBIDDEN, "{path}");
    }
    let (code, _) = send(drydock.server(), "GET", "/healthz", Some("nonsense"), Value::Null).await;
    assert_eq!(code, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_client_of_a_user_may_do_what_roles_say() {
    let drydock = drydock(Selection::none()).await;
    let robot = drydock.client_as(&User::service_account("a", "robot"), "robot");
    let maps = Api::<ConfigMap>::namespaced(robot, "a");
    assert!(maps.list(&Default::default()).await.is_err());
    let admin = drydock.client("test");
    grant(&admin).await;
    maps.list(&Default::default()).await.unwrap();
    let bindings = Api::<RoleBinding>::namespaced(admin, "a");
    bindings.delete("reader", &DeleteParams::default()).await.unwrap();
    assert!(maps.list(&Default::default()).await.is_err());
}

#[tokio::test]
async fn aggregated_roles_follow_those_they_gather() {
    let drydock = drydock(Selection::parse("clusterrole-aggregation-controller").unwrap()).await;
    let roles = Api::<ClusterRole>::all(drydock.client("test"));
    let rule = json!({"apiGroups": ["acme.io"], "resources": ["anvils"], "verbs": ["get"]});
    let labels = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    create(&roles, json!({"metadata": {"name": "anvils", "labels": labels}, "rules": [rule]})).await;
    let gathers = |role: ClusterRole| {
        let rules = role.rules.unwrap_or_default();
        rules.iter().any(|rule| rule.resources.iter().flatten().any(|resource| resource == "anvils"))
    };
    for name in ["view", "edit", "admin"] {
        let gathered = async {
            while !gathers(roles.get(name).await.unwrap()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), gathered).await.unwrap();
    }
}
