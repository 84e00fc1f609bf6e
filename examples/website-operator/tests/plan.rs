//! What a Website wants, without a server.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::core::ObjectMeta;
use website_operator::{Website, WebsiteSpec};
use windlass::test::Cluster;

fn hello(secret: Option<&str>) -> Website {
    let page = "<h1>Hello</h1>".into();
    Website::new("hello", WebsiteSpec { page, replicas: 2, host: None, secret: secret.map(str::to_owned) })
}

#[test]
fn a_website_is_a_page_servers_and_a_service() {
    let planned = Cluster::new().plan(&hello(None));
    assert_eq!(planned.names(), ["ConfigMap hello", "Service hello", "Deployment hello"]);
}

#[test]
fn servers_wait_for_the_secret() {
    let planned = Cluster::new().plan(&hello(Some("tokens")));
    assert_eq!(planned.names(), ["ConfigMap hello", "Service hello"]);
    assert_eq!(planned.halt().unwrap().to_string(), "Secret tokens is not there");

    let metadata = ObjectMeta { name: Some("tokens".into()), ..ObjectMeta::default() };
    let tokens = Secret { metadata, ..Secret::default() };
    let planned = Cluster::new().with(&tokens).plan(&hello(Some("tokens")));
    assert!(planned.object::<Deployment>("hello").is_some());
}
