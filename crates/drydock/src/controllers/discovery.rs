//! Which kinds the API serves, custom ones included: one entry per resource, at its group's preferred version.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::Client;
use kube::core::ApiResource;
use kube::core::discovery::v2::{APIGroupDiscovery, APIResourceDiscovery};

use super::Error;

/// A kind of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) resource: ApiResource,
    pub(crate) namespaced: bool,
    pub(crate) verbs: Vec<String>,
}

impl Kind {
    pub(crate) fn supports(&self, verbs: &[&str]) -> bool {
        verbs.iter().all(|verb| self.verbs.iter().any(|have| have == verb))
    }

    /// The path of a collection.
    pub(crate) fn path(&self, namespace: Option<&str>) -> String {
        let base = if self.resource.group.is_empty() { "/api" } else { "/apis" };
        let namespace = namespace.filter(|_| self.namespaced).map(|name| format!("/namespaces/{name}"));
        format!(
            "{base}/{}{}/{}",
            self.resource.api_version,
            namespace.unwrap_or_default(),
            self.resource.plural
        )
    }
}

/// Asks the API what it serves: two requests where it answers aggregated, one per group and version otherwise.
pub(crate) async fn discover(client: &Client) -> Result<Vec<Kind>, Error> {
    match aggregated(client).await {
        Ok(kinds) if !kinds.is_empty() => Ok(kinds),
        _ => one_by_one(client).await,
    }
}

async fn aggregated(client: &Client) -> Result<Vec<Kind>, Error> {
    let core = client.list_core_api_versions_aggregated().await?;
    let groups = client.list_api_groups_aggregated().await?;
    Ok(core.items.iter().chain(&groups.items).flat_map(kinds_of_group).collect())
}

fn kinds_of_group(group: &APIGroupDiscovery) -> Vec<Kind> {
    let name = group.metadata.as_ref().and_then(|meta| meta.name.clone()).unwrap_or_default();
    let mut kinds: Vec<Kind> = Vec::new();
    // The first version is the preferred one; a resource that it lacks is taken from the next.
    for version in &group.versions {
        let Some(number) = &version.version else { continue };
        for resource in &version.resources {
            let kind = kind_of(&name, number, resource);
            if !kinds.iter().any(|known| known.resource.plural == kind.resource.plural) {
                kinds.push(kind);
            }
        }
    }
    kinds
}

fn kind_of(group: &str, version: &str, resource: &APIResourceDiscovery) -> Kind {
    let kind = resource.response_kind.as_ref().and_then(|kind| kind.kind.clone()).unwrap_or_default();
    Kind {
        resource: resource_of(group, version, kind, resource.resource.clone().unwrap_or_default()),
        namespaced: resource.scope.as_deref() == Some("Namespaced"),
        verbs: resource.verbs.clone(),
    }
}

async fn one_by_one(client: &Client) -> Result<Vec<Kind>, Error> {
    let mut kinds = kinds_of_list("", "v1", client.list_core_api_resources("v1").await?);
    for group in client.list_api_groups().await?.groups {
        let mut of_group: Vec<Kind> = Vec::new();
        for version in &group.versions {
            let list = client.list_api_group_resources(&version.group_version).await?;
            for kind in kinds_of_list(&group.name, &version.version, list) {
                if !of_group.iter().any(|known| known.resource.plural == kind.resource.plural) {
                    of_group.push(kind);
                }
            }
        }
        kinds.extend(of_group);
    }
    Ok(kinds)
}

fn kinds_of_list(group: &str, version: &str, list: APIResourceList) -> Vec<Kind> {
    let whole = list.resources.into_iter().filter(|resource| !resource.name.contains('/'));
    whole
        .map(|resource| Kind {
            resource: resource_of(group, version, resource.kind, resource.name),
            namespaced: resource.namespaced,
            verbs: resource.verbs,
        })
        .collect()
}

fn resource_of(group: &str, version: &str, kind: String, plural: String) -> ApiResource {
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    ApiResource { group: group.to_owned(), version: version.to_owned(), api_version, kind, plural }
}
