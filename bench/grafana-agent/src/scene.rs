//! The objects that the operator works on.

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use windlass_grafana_agent::kinds::{GrafanaAgent, MetricsInstance, ServiceMonitor};

const CLIENTS: usize = 16;
/// Where the agents and their instance are.
pub(crate) const HOME: &str = "bench-agents";

pub(crate) struct Scene {
    pub(crate) client: Client,
    monitors: usize,
    namespaces: usize,
}

impl Scene {
    /// Definitions, namespaces, monitors, an instance and one agent.
    pub(crate) async fn set(client: Client, monitors: usize, namespaces: usize) -> Result<Self> {
        let scene = Self { client, monitors, namespaces };
        let crds: Api<CustomResourceDefinition> = Api::all(scene.client.clone());
        for crd in windlass_grafana_agent::crds() {
            let name = crd.name_any();
            crds.patch(&name, &PatchParams::apply("bench").force(), &Patch::Apply(&crd)).await?;
            await_condition(crds.clone(), &name, conditions::is_crd_established()).await?;
        }
        let spaces: Api<Namespace> = Api::all(scene.client.clone());
        for index in 0..namespaces {
            scene.namespace(&spaces, &space(index)).await?;
        }
        scene.namespace(&spaces, HOME).await?;
        stream::iter(0..monitors)
            .map(|index| Ok(scene.monitor(index)))
            .try_buffer_unordered(CLIENTS)
            .try_for_each(|()| async { Ok(()) })
            .await?;
        let instances: Api<MetricsInstance> = Api::namespaced(scene.client.clone(), HOME);
        let instance = json!({"metadata": {"name": "bench"}, "spec": {"serviceMonitorSelector": {},
            "serviceMonitorNamespaceSelector": {}, "remoteWrite": [{"url": "http://metrics/push"}]}});
        instances.create(&PostParams::default(), &serde_json::from_value(instance)?).await?;
        scene.agent("bench").await?;
        Ok(scene)
    }

    /// Edits one monitor; gives what is then in the configuration.
    pub(crate) async fn edit(&self, index: usize, edit: usize) -> Result<String> {
        let index = index % self.monitors;
        let api: Api<ServiceMonitor> = Api::namespaced(self.client.clone(), &space(index % self.namespaces));
        let path = format!("/metrics-{index}-{edit}");
        let change = json!([{"op": "add", "path": "/spec/endpoints/0/path", "value": path}]);
        let change: json_patch::Patch = serde_json::from_value(change)?;
        api.patch(&format!("monitor-{index}"), &PatchParams::default(), &Patch::Json::<()>(change)).await?;
        Ok(format!("metrics_path: {path}\n"))
    }

    /// Makes more agents; gives their names.
    pub(crate) async fn agents(&self, count: usize) -> Result<Vec<String>> {
        let names: Vec<String> = (0..count).map(|index| format!("agent-{index}")).collect();
        stream::iter(names.clone())
            .map(|name| Ok(async move { self.agent(&name).await }))
            .try_buffer_unordered(CLIENTS)
            .try_for_each(|()| async { Ok(()) })
            .await?;
        Ok(names)
    }

    async fn agent(&self, name: &str) -> Result<()> {
        let api: Api<GrafanaAgent> = Api::namespaced(self.client.clone(), HOME);
        // No pods: what runs them is not measured.
        let agent = json!({"metadata": {"name": name},
            "spec": {"metrics": {"replicas": 0, "instanceSelector": {}, "scrapeInterval": "30s"}}});
        api.create(&PostParams::default(), &serde_json::from_value(agent)?).await?;
        Ok(())
    }

    async fn monitor(&self, index: usize) -> Result<()> {
        let api: Api<ServiceMonitor> = Api::namespaced(self.client.clone(), &space(index % self.namespaces));
        let monitor: Value = json!({"metadata": {"name": format!("monitor-{index}")}, "spec": {
        "selector": {"matchLabels": {"app": format!("app-{index}"), "team": format!("team-{}", index % 20)}},
        "jobLabel": "app",
        "endpoints": [
            {"port": "web", "interval": "30s"},
            {"port": "admin", "interval": "1m", "relabelings": [{"sourceLabels":
                ["__meta_kubernetes_pod_node_name"], "targetLabel": "node", "regex": "(.+)-x"}]},
        ]}});
        api.create(&PostParams::default(), &serde_json::from_value(monitor)?).await?;
        Ok(())
    }

    async fn namespace(&self, spaces: &Api<Namespace>, name: &str) -> Result<()> {
        if spaces.get_opt(name).await?.is_some() {
            spaces.delete(name, &DeleteParams::default()).await?;
            await_condition(spaces.clone(), name, |now: Option<&Namespace>| now.is_none()).await?;
        }
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        spaces.create(&PostParams::default(), &namespace).await?;
        Ok(())
    }
}

fn space(index: usize) -> String {
    format!("bench-{index}")
}
