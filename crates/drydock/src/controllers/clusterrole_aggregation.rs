//! `clusterrole-aggregation-controller`: fills the rules of cluster roles that gather those of others.
//!
//! A controller and not a part of the API server, as in a real cluster: without controllers an aggregated role
//! keeps the rules it was written with.

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::core::Selector;
use serde_json::json;

use super::informer::ObjectKey;
use super::informers::Handle;
use super::ownership::selects;
use super::queue::Queue;
use super::{Error, Reconciler, Setup};

const MANAGER: &str = "clusterrole-aggregation-controller";

pub(crate) fn start(setup: &mut Setup<'_>) {
    let controller = Controller { roles: setup.handle(), api: Api::all(setup.client.clone()) };
    let queue = Queue::new();
    let (adds, informer) = (queue.clone(), controller.roles.informer.clone());
    controller.roles.on_change(move |_| {
        // Whatever changed may enter, leave or be any of those that gather.
        for role in informer.all() {
            if role.aggregation_rule.is_some() {
                adds.add(ObjectKey::of(&role.metadata));
            }
        }
    });
    setup.work(&queue, controller);
}

struct Controller {
    roles: Handle<ClusterRole>,
    api: Api<ClusterRole>,
}

impl Reconciler for Controller {
    async fn reconcile(&self, key: &ObjectKey) -> Result<(), Error> {
        let Some(role) = self.roles.get(key) else {
            return Ok(());
        };
        let Some(rules) = self.gathered(&role) else {
            return Ok(());
        };
        if role.rules.as_deref().unwrap_or_default() == rules {
            return Ok(());
        }
        let patch = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": key.name}, "rules": rules,
        });
        let params = PatchParams::apply(MANAGER).force();
        let written = self.api.patch(&key.name, &params, &Patch::Apply(&patch)).await?;
        self.roles.observe(written);
        Ok(())
    }
}

impl Controller {
    /// The rules of all roles that a role's selectors match, in the order of their names, each once.
    fn gathered(&self, role: &ClusterRole) -> Option<Vec<PolicyRule>> {
        let aggregation = role.aggregation_rule.as_ref()?;
        let mut others = self.roles.all();
        others.retain(|other| other.metadata.name != role.metadata.name);
        others.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
        let mut rules = Vec::new();
        for selector in aggregation.cluster_role_selectors.iter().flatten() {
            let selector = Selector::try_from(selector.clone()).ok()?;
            for other in others.iter().filter(|other| selects(&selector, &other.metadata)) {
                for rule in other.rules.iter().flatten() {
                    if !rules.contains(rule) {
                        rules.push(rule.clone());
                    }
                }
            }
        }
        Some(rules)
    }
}
