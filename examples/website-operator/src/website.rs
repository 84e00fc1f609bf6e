//! The Website resource and what should exist for one.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use k8s_openapi::api::networking::v1::Ingress;
use kube::{CustomResource, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{Halt, Invalid, Kind, Plan, Primary, Status, World, content_hash};

use crate::{ingress, page, servers, service};

/// One page and the servers that show it.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "example.org",
    version = "v1",
    kind = "Website",
    namespaced,
    status = "WebsiteStatus",
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "URL", "type": "string", "jsonPath": ".status.url"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct WebsiteSpec {
    /// The page, as HTML.
    pub page: String,
    /// How many servers show it.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 10))]
    pub replicas: i32,
    /// The host name of an Ingress; without it there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// A Secret whose entries are the servers' environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

fn one() -> i32 {
    1
}

/// What is known of a Website.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WebsiteStatus {
    /// What every primary reports.
    #[serde(flatten)]
    pub windlass: Status,
    /// Where the page is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl Primary for Website {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<ConfigMap>(), Kind::of::<Deployment>(), Kind::of::<Service>(), Kind::of::<Ingress>()]
    }

    fn reads() -> Vec<Kind> {
        vec![Kind::of::<Secret>()]
    }

    fn validity(&self) -> Vec<Invalid> {
        let mut invalid = Vec::new();
        if !self.spec.page.contains('<') {
            invalid.push(Invalid::new("spec.page", "is not HTML; begin with <h1>"));
        }
        invalid
    }

    fn plan(&self, world: &World, plan: &mut Plan) -> Result<(), Halt> {
        plan.add(page::build(self));
        plan.add(service::build(self));
        plan.add_each(ingress::build(self));

        let mut content = vec![content_hash(&self.spec.page)];
        if let Some(name) = &self.spec.secret {
            content.push(content_hash(&world.need::<Secret>(name)?.data));
        }
        plan.add(servers::build(self, &content.join("-"))).ready();
        Ok(())
    }

    fn own_status(&self, _world: &World, _report: &Status, status: &mut WebsiteStatus) -> Result<(), Halt> {
        let host = self.spec.host.clone().unwrap_or_else(|| self.name_any());
        status.url = Some(format!("http://{host}/"));
        Ok(())
    }
}
