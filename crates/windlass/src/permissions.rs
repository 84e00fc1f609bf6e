//! What operators have to be allowed on a cluster: the requests that the runtime makes for what they declare, and no
//! others.
//!
//! | for | requests |
//! |---|---|
//! | a primary | `list` and `watch` it, `patch` its status; `patch` itself only where it may need a finalizer, and `delete` it only where it retires |
//! | a kind that it owns | `get`, `list`, `watch`; `create` and `patch` (server-side apply needs both); `delete` for pruning |
//! | a kind that it adjusts | `get`, `list`, `watch`, `patch` |
//! | a kind that it reads | `get`, `list`, `watch` |
//! | Events | `create`; `get` and `patch` to count one that was there before |
//! | the leader's Lease | `create`, and `get` and `update` that one |
//! | the Leases of shards | `get`, `list`, `create`, `update`, `delete` |
//!
//! Leases and what webhooks need are in one namespace, and so are the permissions for them. All else is allowed in the
//! whole cluster, or in the namespaces that the operator is limited to. Owner references are made
//! without `blockOwnerDeletion`, so that no permission on finalizers is needed for them.

mod rules;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt as _;

use self::rules::Rules;
use crate::controller::Controller as _;
use crate::declared::Declared;
use crate::replica::Arrangement;
use crate::{Kind, LeaseName, Operator, admission, event};

const READ: &[&str] = &["get", "list", "watch"];
const MAKE: &[&str] = &["create", "patch", "delete"];
const COUNT_EVENTS: &[&str] = &["create", "get", "patch"];
const RENEW: &[&str] = &["get", "update"];
const SHARE: &[&str] = &["get", "list", "create", "update", "delete"];
const INSTALL: &[&str] = &["get", "list", "watch", "create", "patch"];

/// What operators have to be allowed on a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    cluster: Rules,
    namespaces: BTreeMap<String, Rules>,
}

impl Permissions {
    /// What an operator needs that runs alone, and whose definitions somebody else installs.
    #[must_use]
    pub fn of(operator: &Operator) -> Self {
        Self::within(operator, [""; 0])
    }

    /// The same for one that works only in these namespaces, if there are any: what its kinds need is allowed there and
    /// nowhere else. What is in no namespace, and what [`needs`](Operator::needs) says, is allowed in the whole cluster.
    #[must_use]
    pub fn within(operator: &Operator, namespaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let mut places = Places::default();
        for controller in operator.controllers() {
            let declared = controller.declared();
            let rules = places.of(&declared.kind);
            rules.allow(&declared.kind, &["list", "watch"]);
            rules.allow_part(&declared.kind, "status", &["patch"]);
            if declared.needs_finalizer() || !operator.externals().is_empty() {
                rules.allow(&declared.kind, &["patch"]);
            }
            if declared.retires {
                rules.allow(&declared.kind, &["delete"]);
            }
            // Of what is in no namespace, Events are in `default`.
            rules.allow(&event::kind(), COUNT_EVENTS);
            places.allow_declared(declared);
        }
        operator.standing().iter().for_each(|plan| places.allow_declared(plan.declared()));
        let Places { mut cluster, each } = places;
        operator.needed().iter().for_each(|rule| cluster.add(rule));
        let namespaces: BTreeMap<String, Rules> =
            namespaces.into_iter().map(|namespace| (namespace.into(), each.clone())).collect();
        if namespaces.is_empty() {
            cluster.merge(&each);
        }
        Self { cluster, namespaces }
    }

    /// And what it needs to be one of several replicas that stand by for each other.
    #[must_use]
    pub fn leader(mut self, lease: &LeaseName) -> Self {
        let rules = self.namespaces.entry(lease.namespace.clone()).or_default();
        // What is not there yet has no name that a role could name.
        rules.allow(&Kind::of::<Lease>(), &["create"]);
        rules.allow_named(&Kind::of::<Lease>(), &lease.name, RENEW);
        self
    }

    /// And what it needs to share its primaries with other replicas.
    #[must_use]
    pub fn shards(mut self, group: &LeaseName) -> Self {
        self.namespaces.entry(group.namespace.clone()).or_default().allow(&Kind::of::<Lease>(), SHARE);
        self
    }

    /// And what it needs to install the definitions of an operator's kinds by itself.
    #[must_use]
    pub fn install_crds(mut self, operator: &Operator) -> Self {
        for crd in operator.crds() {
            self.cluster.allow_named(&Kind::of::<CustomResourceDefinition>(), &crd.name_any(), INSTALL);
        }
        self
    }

    /// And what it needs to keep its webhooks.
    #[must_use]
    pub fn webhooks(mut self, webhooks: &admission::Permissions) -> Self {
        webhooks.in_cluster.iter().for_each(|rule| self.cluster.add(rule));
        let rules = self.namespaces.entry(webhooks.namespace.clone()).or_default();
        webhooks.in_namespace.iter().for_each(|rule| rules.add(rule));
        self
    }

    /// Both.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.cluster.merge(&other.cluster);
        for (namespace, rules) in &other.namespaces {
            self.namespaces.entry(namespace.clone()).or_default().merge(rules);
        }
        self
    }

    pub(crate) fn arranged(self, arrangement: &Arrangement) -> Self {
        match arrangement {
            Arrangement::Alone => self,
            Arrangement::Leader(lease) => self.leader(lease),
            Arrangement::Shards(group) => self.shards(group),
        }
    }

    /// The rules for all namespaces and for what is in none, in a fixed order.
    #[must_use]
    pub fn in_cluster(&self) -> Vec<PolicyRule> {
        self.cluster.to_policy()
    }

    /// The rules for single namespaces, in a fixed order.
    #[must_use]
    pub fn in_namespaces(&self) -> BTreeMap<String, Vec<PolicyRule>> {
        self.namespaces.iter().map(|(namespace, rules)| (namespace.clone(), rules.to_policy())).collect()
    }

    /// Every verb with the resource that it is allowed for, as `patch monocles/status`: to compare with what an
    /// operator has asked for.
    #[must_use]
    pub fn requests(&self) -> BTreeSet<String> {
        self.namespaces.values().chain([&self.cluster]).flat_map(Rules::requests).collect()
    }
}

/// Rules by where they are needed.
#[derive(Default)]
struct Places {
    /// For kinds that are in no namespace.
    cluster: Rules,
    /// For the others, in each namespace that the operator works in.
    each: Rules,
}

impl Places {
    fn of(&mut self, kind: &Kind) -> &mut Rules {
        if kind.namespaced() { &mut self.each } else { &mut self.cluster }
    }

    /// What a plan needs for the kinds that it declares.
    fn allow_declared(&mut self, declared: &Declared) {
        for kind in &declared.owns {
            self.of(kind).allow(kind, MAKE);
        }
        for kind in &declared.adjusts {
            self.of(kind).allow(kind, &["patch"]);
        }
        for kind in declared.written.iter().chain(&declared.reads) {
            self.of(kind).allow(kind, READ);
        }
    }
}

#[cfg(test)]
mod tests;
