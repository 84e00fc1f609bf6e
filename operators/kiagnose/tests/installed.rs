//! The Kiagnose operator: what it installs, puts back, upgrades and leaves.

// A test that cannot go on should say so and stop.
#![allow(clippy::unwrap_used, clippy::panic)]

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::{Probe, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use windlass::Operator;
use windlass_drydock::api::auth::User;
use windlass_kiagnose::{CONTROLLER, Checkup, Installation, OPERATOR, PREPARATION, operator};
use windlass_testkit::Harbour;

async fn installed(operator: impl Fn() -> Operator + Send + Sync + 'static) -> Harbour {
    let harbour = Harbour::start(operator).await;
    harbour.put(PREPARATION).await;
    until_there(&harbour).await;
    harbour
}

fn deployments(harbour: &Harbour) -> Api<Deployment> {
    Api::namespaced(harbour.client(), "kiagnose")
}

/// Waits until the controller is installed and runs.
async fn until_there(harbour: &Harbour) {
    let deployments = deployments(harbour);
    harbour
        .until("the controller to run", async || {
            let found = deployments.get_opt(CONTROLLER).await.unwrap();
            found.and_then(|found| found.status).is_some_and(|status| status.available_replicas == Some(1))
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_or_edited_is_back() {
    let harbour = installed(operator).await;
    harbour.settle().await;
    let (client, params) = (harbour.client(), DeleteParams::default());
    deployments(&harbour).delete(CONTROLLER, &params).await.unwrap();
    Api::<ServiceAccount>::namespaced(client.clone(), "kiagnose").delete(CONTROLLER, &params).await.unwrap();
    Api::<ClusterRoleBinding>::all(client.clone()).delete(CONTROLLER, &params).await.unwrap();
    Api::<Role>::namespaced(client.clone(), "kiagnose").delete(CONTROLLER, &params).await.unwrap();
    Api::<RoleBinding>::namespaced(client.clone(), "kiagnose").delete(CONTROLLER, &params).await.unwrap();
    Api::<ValidatingAdmissionPolicy>::all(client.clone()).delete(CONTROLLER, &params).await.unwrap();
    Api::<ValidatingAdmissionPolicyBinding>::all(client.clone()).delete(CONTROLLER, &params).await.unwrap();
    Api::<CustomResourceDefinition>::all(client.clone())
        .delete("checkupschedules.kiagnose.io", &params)
        .await
        .unwrap();
    let roles: Api<ClusterRole> = Api::all(client.clone());
    let more = json!({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    roles.patch(CONTROLLER, &PatchParams::default(), &Patch::Merge(more)).await.unwrap();
    harbour.settle().await;
    until_there(&harbour).await;
    let rules = roles.get(CONTROLLER).await.unwrap().rules.unwrap();
    assert!(rules.len() > 3 && !rules.iter().any(|rule| rule.verbs.contains(&"*".to_owned())));
    Api::<ServiceAccount>::namespaced(client.clone(), "kiagnose").get(CONTROLLER).await.unwrap();
    Api::<ClusterRoleBinding>::all(client.clone()).get(CONTROLLER).await.unwrap();
    Api::<Role>::namespaced(client.clone(), "kiagnose").get(CONTROLLER).await.unwrap();
    Api::<RoleBinding>::namespaced(client.clone(), "kiagnose").get(CONTROLLER).await.unwrap();
    Api::<ValidatingAdmissionPolicy>::all(client.clone()).get(CONTROLLER).await.unwrap();
    Api::<ValidatingAdmissionPolicyBinding>::all(client.clone()).get(CONTROLLER).await.unwrap();
    Api::<CustomResourceDefinition>::all(client).get("checkupschedules.kiagnose.io").await.unwrap();
    let before = harbour.revision();
    tokio::time::sleep(std::time::Duration::from_secs(6 * 3600)).await;
    assert_eq!(harbour.revision(), before, "something is written at rest");
}

#[tokio::test(start_paused = true)]
async fn another_version_brings_another_controller() {
    let newer =
        || Installation { image: "quay.io/kiagnose/kiagnose-operator:v9".into(), ..Installation::default() };
    let mut harbour = installed(operator).await;
    harbour.stop().await;
    let runtime =
        windlass::Runtime::new(harbour.drydock().client("newer"), harbour.drydock().context().clone());
    tokio::spawn(runtime.host(newer().operator()).run(std::future::pending()));
    harbour
        .until("the newer image", async || {
            let pod =
                deployments(&harbour).get(CONTROLLER).await.unwrap().spec.unwrap().template.spec.unwrap();
            pod.containers[0].image.as_deref() == Some("quay.io/kiagnose/kiagnose-operator:v9")
        })
        .await;
    until_there(&harbour).await;
}

#[tokio::test(start_paused = true)]
async fn an_uninstall_leaves_the_users_checkups_and_nothing_else() {
    let harbour = installed(operator).await;
    let mine: Checkup = serde_json::from_value(json!({"metadata": {"name": "mine"}, "spec": {
        "image": "x", "serviceAccountName": "y", "timeout": 5}, "apiVersion": "kiagnose.io/v1alpha1", "kind": "Checkup"}))
    .unwrap();
    harbour.api::<Checkup>().create(&PostParams::default(), &mine).await.unwrap();
    Api::<ClusterRole>::all(harbour.client()).delete(OPERATOR, &DeleteParams::default()).await.unwrap();
    harbour.settle().await;
    let client = harbour.client();
    assert!(deployments(&harbour).get_opt(CONTROLLER).await.unwrap().is_none());
    assert!(Api::<ClusterRole>::all(client.clone()).get_opt(CONTROLLER).await.unwrap().is_none());
    assert!(Api::<ClusterRoleBinding>::all(client.clone()).get_opt(CONTROLLER).await.unwrap().is_none());
    assert!(Api::<ValidatingAdmissionPolicy>::all(client).get_opt(CONTROLLER).await.unwrap().is_none());
    assert_eq!(harbour.names::<Checkup>().await, ["mine"]);
}

#[tokio::test(start_paused = true)]
async fn definitions_of_somebody_else_are_left_alone() {
    let harbour = Harbour::start(operator).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(harbour.client());
    harbour
        .until("the definitions", async || {
            definitions.get_opt("checkups.kiagnose.io").await.unwrap().is_some()
        })
        .await;
    harbour.settle().await;
    // As OLM would have installed it.
    let theirs = json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "olm"}}});
    definitions.patch("checkups.kiagnose.io", &PatchParams::default(), &Patch::Merge(theirs)).await.unwrap();
    harbour.put(PREPARATION).await;
    until_there(&harbour).await;
    harbour.settle().await;
    let label =
        definitions.get("checkups.kiagnose.io").await.unwrap().labels()["app.kubernetes.io/managed-by"]
            .clone();
    assert_eq!(label, "olm");
}

#[tokio::test(start_paused = true)]
async fn who_may_not_use_a_service_account_may_not_make_checkups_with_it() {
    let harbour = installed(operator).await;
    harbour
        .put(
            r#"
{apiVersion: v1, kind: ServiceAccount, metadata: {name: strong}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: weak}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: checkups}, rules: [
  {apiGroups: [kiagnose.io], resources: [checkups, checkupschedules], verbs: ["*"]},
  {apiGroups: [""], resources: [serviceaccounts], resourceNames: [weak], verbs: [use]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: checkups},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: checkups},
  subjects: [{kind: User, name: jane, apiGroup: rbac.authorization.k8s.io}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: editor},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit},
  subjects: [{kind: User, name: joe, apiGroup: rbac.authorization.k8s.io}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: editor-checkups},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: checkups},
  subjects: [{kind: User, name: joe, apiGroup: rbac.authorization.k8s.io}]}
"#,
        )
        .await;
    harbour.settle().await;
    let apply = async |user: &str, kind: &str, name: &str, account: &str| {
        let client = harbour.drydock().client_as(&User::new(user, &[]), user);
        let spec = json!({"image": "x", "serviceAccountName": account, "timeout": 5});
        let spec = match kind {
            "Checkup" => spec,
            _ => json!({"schedule": "@daily", "checkupTemplate": {"spec": spec}}),
        };
        let object = json!({"apiVersion": "kiagnose.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec});
        let resource = kube::api::ApiResource::from_gvk(&kube::api::GroupVersionKind::gvk(
            "kiagnose.io",
            "v1alpha1",
            kind,
        ));
        let api: Api<kube::api::DynamicObject> = Api::namespaced_with(client, "default", &resource);
        api.patch(name, &PatchParams::apply("test"), &Patch::<Value>::Apply(object)).await
    };
    for kind in ["Checkup", "CheckupSchedule"] {
        let refused = apply("jane", kind, "a", "strong").await.unwrap_err();
        assert!(refused.to_string().contains("you may not use service account strong"), "{refused}");
        apply("jane", kind, "a", "weak").await.unwrap();
        assert!(apply("jane", kind, "a", "strong").await.is_err(), "nor by a change");
        apply("joe", kind, "b", "strong").await.unwrap();
    }
    // A rerun of another's Checkup is a use of its service account too.
    let client = harbour.drydock().client_as(&User::new("jane", &[]), "jane");
    let rerun = json!({"metadata": {"annotations": {"kiagnose.io/rerun": "1"}}});
    let checkups: Api<Checkup> = Api::namespaced(client, "default");
    assert!(checkups.patch("b", &PatchParams::default(), &Patch::Merge(&rerun)).await.is_err());
    checkups.patch("a", &PatchParams::default(), &Patch::Merge(&rerun)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_controller_says_how_it_is_and_works_only_while_it_leads() {
    let harbour = installed(operator).await;
    let pod = deployments(&harbour).get(CONTROLLER).await.unwrap().spec.unwrap().template.spec.unwrap();
    let container = &pod.containers[0];
    let path = |probe: &Option<Probe>| probe.clone().unwrap().http_get.unwrap().path.unwrap();
    assert_eq!(
        (path(&container.liveness_probe), path(&container.readiness_probe)),
        ("/healthz".into(), "/readyz".into())
    );
    assert!(container.args.iter().flatten().any(|one| one == "--leader-elect"));
    // It may hold its own Lease, and no other.
    let may = async |verb: &str, namespace: &str, name: &str| {
        let review: SubjectAccessReview = serde_json::from_value(json!({"spec": {
            "user": format!("system:serviceaccount:kiagnose:{CONTROLLER}"),
            "resourceAttributes": {"group": "coordination.k8s.io", "resource": "leases", "verb": verb,
                "namespace": namespace, "name": name}}}))
        .unwrap();
        let reviews: Api<SubjectAccessReview> = Api::all(harbour.client());
        reviews.create(&PostParams::default(), &review).await.unwrap().status.unwrap().allowed
    };
    assert!(may("update", "kiagnose", CONTROLLER).await && may("create", "kiagnose", "").await);
    assert!(!may("update", "kiagnose", OPERATOR).await && !may("create", "default", "").await);
}

#[tokio::test(start_paused = true)]
async fn definitions_of_a_bundle_are_waited_for_and_never_touched() {
    let bundled = || Installation { definitions: false, ..Installation::default() }.operator();
    let harbour = Harbour::start(bundled).await;
    harbour.put(PREPARATION).await;
    harbour.settle().await;
    assert!(
        deployments(&harbour).get_opt(CONTROLLER).await.unwrap().is_none(),
        "there is nothing to control yet"
    );
    let definitions: Api<CustomResourceDefinition> = Api::all(harbour.client());
    for mut definition in windlass_kiagnose::crds() {
        // As an installation without OLM left it: it is OLM's now all the same.
        definition.labels_mut().insert(windlass::MANAGED_BY.into(), OPERATOR.into());
        definition.annotations_mut().insert("example.org/edited".into(), "by somebody".into());
        let name = definition.name_any();
        definitions.patch(&name, &PatchParams::apply("olm"), &Patch::Apply(&definition)).await.unwrap();
    }
    let found = async || {
        let list = definitions.list(&Default::default()).await.unwrap().items;
        list.into_iter().map(|one| (one.name_any(), one.resource_version())).collect::<Vec<_>>()
    };
    let before = found().await;
    until_there(&harbour).await;
    harbour.settle().await;
    assert_eq!(found().await, before);
    let allowed = windlass::Permissions::of(&bundled()).requests();
    let writes = ["create", "patch", "delete"].map(|verb| format!("{verb} customresourcedefinitions"));
    assert!(writes.iter().all(|write| !allowed.contains(write)), "{allowed:?}");
}

#[tokio::test(start_paused = true)]
async fn under_olm_all_of_it_belongs_to_the_newest_binding_of_the_operators_account() {
    let harbour = Harbour::start(operator).await;
    let bindings: Api<ClusterRoleBinding> = Api::all(harbour.client());
    let bind = async |name: &str| {
        harbour
            .put(&format!(
                "{{apiVersion: v1, kind: Namespace, metadata: {{name: kiagnose}}}}
---
{{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {{name: {name}}},
  roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {name}}},
  subjects: [{{kind: ServiceAccount, name: {OPERATOR}, namespace: kiagnose}}]}}"
            ))
            .await;
    };
    let owned = async || {
        let deployment = deployments(&harbour).get(CONTROLLER).await.unwrap();
        (deployment.uid(), deployment.owner_references()[0].name.clone())
    };
    bind("kiagnose-operator.v1-x").await;
    until_there(&harbour).await;
    let (uid, owner) = owned().await;
    assert_eq!(owner, "kiagnose-operator.v1-x");
    // The next version's roles come before those of the first go.
    harbour.settle().await;
    bind("kiagnose-operator.v2-a").await;
    harbour.settle().await;
    assert_eq!(owned().await, (uid.clone(), "kiagnose-operator.v2-a".to_owned()));
    bindings.delete("kiagnose-operator.v1-x", &DeleteParams::default()).await.unwrap();
    harbour.settle().await;
    assert_eq!(owned().await, (uid, "kiagnose-operator.v2-a".to_owned()), "an upgrade takes nothing away");
    bindings.delete("kiagnose-operator.v2-a", &DeleteParams::default()).await.unwrap();
    harbour.settle().await;
    assert!(deployments(&harbour).get_opt(CONTROLLER).await.unwrap().is_none());
    assert!(bindings.get_opt(CONTROLLER).await.unwrap().is_none());
}
