//! The definitions of an operator's kinds.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams};
use kube::{CustomResourceExt as _, ResourceExt as _};
use serde_json::json;
use windlass_testkit::Harbour;

use super::boat::{Boat, Marina, boat};

#[tokio::test(start_paused = true)]
async fn a_definition_that_somebody_else_installed_is_left_as_it_is() {
    let mut harbour = Harbour::start(Marina::default().operator()).await;
    harbour.stop().await;
    let crds: Api<CustomResourceDefinition> = Api::all(harbour.client());
    let name = Boat::crd_name();
    crds.delete(name, &kube::api::DeleteParams::default()).await.unwrap();
    harbour.until("the definition to be gone", async || crds.get_opt(name).await.unwrap().is_none()).await;
    let mut theirs = Boat::crd();
    theirs.annotations_mut().insert("theirs".into(), "yes".into());
    theirs.spec.names.short_names = Some(vec!["bt".into()]);
    let other = PatchParams::apply("another-operator");
    crds.patch(name, &other, &Patch::Apply(&theirs)).await.unwrap();

    harbour.run();
    harbour.apply(&boat(json!({"text": "one"}))).await;
    harbour.ready().await;
    let now = crds.get(name).await.unwrap();
    assert_eq!(now.spec.names.short_names.as_deref(), Some(&["bt".to_owned()][..]));
    let managers = now.managed_fields().iter().filter_map(|entry| entry.manager.as_deref());
    assert!(managers.eq(["another-operator", "kube-apiserver"]), "{:?}", now.managed_fields());
}
