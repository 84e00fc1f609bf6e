//! What the Kiagnose operator installs: the definitions, and the checkup controller with its permissions.
//!
//! It has no custom resource. All that it makes, but for the definitions, belongs to its own ClusterRole: when that is
//! deleted, garbage collection takes the rest. Where there is no role of that name, as under OLM, which makes up names for
//! each version, it belongs to the newest binding of the operator's own service account. The definitions stay, and with
//! them everybody's Checkups.

mod cluster_role;
mod cluster_role_binding;
mod deployment;
mod policy;
mod role;
mod role_binding;
mod service_account;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding, Subject};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource as _, ResourceExt as _};
use windlass::{Halt, Kind, LeaseName, Operator, Plan, Query, World};

use crate::{CONTROLLER, OPERATOR};

/// How the checkup controller is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// The namespace of the operator and the controller.
    pub namespace: String,
    /// The image that holds both programs.
    pub image: String,
    /// The ClusterRole that owns all of it.
    pub anchor: String,
    /// Whether the definitions are installed too; else somebody else brings them, such as OLM with its bundle, and they
    /// are waited for.
    pub definitions: bool,
}

impl Default for Installation {
    fn default() -> Self {
        Self {
            namespace: "kiagnose".into(),
            image: format!("quay.io/kiagnose/kiagnose-operator:v{}", env!("CARGO_PKG_VERSION")),
            anchor: OPERATOR.into(),
            definitions: true,
        }
    }
}

impl Installation {
    /// The operator that keeps it.
    #[must_use]
    pub fn operator(self) -> Operator {
        let mut owns = vec![
            Kind::of::<ServiceAccount>(),
            Kind::of::<ClusterRole>(),
            Kind::of::<ClusterRoleBinding>(),
            Kind::of::<Role>(),
            Kind::of::<RoleBinding>(),
            Kind::of::<ValidatingAdmissionPolicy>(),
            Kind::of::<ValidatingAdmissionPolicyBinding>(),
            Kind::of::<Deployment>(),
        ];
        let mut reads = Vec::new();
        if self.definitions { &mut owns } else { &mut reads }.push(Kind::of::<CustomResourceDefinition>());
        // Nobody may give away what they do not have.
        let given = [cluster_role::rules(), role::rules(&self)].concat();
        Operator::new(OPERATOR)
            .keeps("installation", owns, reads, move |world, plan| self.plan(world, plan))
            .needs(given)
    }

    /// The Lease of the controller's replicas: one works, and others stand by.
    fn lease(&self) -> LeaseName {
        LeaseName { namespace: self.namespace.clone(), name: CONTROLLER.into() }
    }

    /// What all of it belongs to, and goes with.
    fn owner(&self, world: &World) -> Result<OwnerReference, Halt> {
        let anchor = world.get::<ClusterRole>(&self.anchor)?;
        let anchor = anchor.filter(|anchor| anchor.metadata.deletion_timestamp.is_none());
        let owner = match anchor {
            Some(anchor) => anchor.controller_owner_ref(&()),
            None => self.newest_binding(world)?.and_then(|binding| binding.controller_owner_ref(&())),
        };
        let Some(owner) = owner else {
            let message = format!(
                "there is neither a ClusterRole {}, to which all of it belongs, nor a binding of service account {}/{OPERATOR}",
                self.anchor, self.namespace
            );
            return Err(Halt::waiting("Uninstalled", message));
        };
        Ok(OwnerReference { controller: None, block_owner_deletion: None, ..owner })
    }

    /// The newest binding of the operator's own account. While one version follows another there are those of both: the
    /// older goes when the newer runs, and must not take anything along.
    fn newest_binding(&self, world: &World) -> Result<Option<ClusterRoleBinding>, Halt> {
        let bindings = world.select::<ClusterRoleBinding>(&Query::default())?.into_iter();
        let is_ours = |subject: &Subject| {
            subject.kind == "ServiceAccount"
                && subject.name == OPERATOR
                && subject.namespace.as_ref() == Some(&self.namespace)
        };
        let stays = |binding: &ClusterRoleBinding| {
            binding.metadata.deletion_timestamp.is_none() && binding.subjects.iter().flatten().any(is_ours)
        };
        let age =
            |binding: &ClusterRoleBinding| (binding.metadata.creation_timestamp.clone(), binding.name_any());
        Ok(bindings.filter(stays).max_by_key(age))
    }

    fn plan(&self, world: &World, plan: &mut Plan) -> Result<(), Halt> {
        let mut definitions = Vec::new();
        for definition in crate::crds() {
            match world.get::<CustomResourceDefinition>(&definition.name_any())? {
                // Installed by somebody else, such as OLM, who keeps it.
                Some(theirs) if theirs.labels().get(windlass::MANAGED_BY).is_none_or(|by| by != OPERATOR) => {
                    definitions.push(plan.keep(&theirs));
                }
                Some(theirs) if !self.definitions => definitions.push(plan.keep(&theirs)),
                None if !self.definitions => {
                    let message = format!(
                        "definition {} is not there; it comes with the bundle",
                        definition.name_any()
                    );
                    return Err(Halt::waiting("NoDefinition", message));
                }
                _ => definitions.push(plan.add(definition)),
            }
        }
        let owner = self.owner(world)?;
        plan.add(service_account::build(self, &owner));
        plan.add(cluster_role::build(&owner));
        plan.add(cluster_role_binding::build(self, &owner));
        plan.add(role::build(self, &owner));
        plan.add(role_binding::build(self, &owner));
        plan.add(policy::build(self, &owner));
        plan.add(policy::binding(&owner));
        plan.add(deployment::build(self, &owner)).after(&definitions).ready();
        Ok(())
    }
}

fn named(namespace: Option<&str>, owner: &OwnerReference) -> ObjectMeta {
    ObjectMeta {
        name: Some(CONTROLLER.into()),
        namespace: namespace.map(str::to_owned),
        labels: Some([("app.kubernetes.io/name".to_owned(), CONTROLLER.to_owned())].into()),
        owner_references: Some(vec![owner.clone()]),
        ..ObjectMeta::default()
    }
}
