//! What the Kiagnose operator installs: the definitions, and the checkup controller with its permissions.
//!
//! It has no custom resource. All that it makes, but for the definitions, belongs to its own ClusterRole: when that is
//! deleted, garbage collection takes the rest. The definitions stay, and with them everybody's Checkups.

mod cluster_role;
mod cluster_role_binding;
mod deployment;
mod policy;
mod service_account;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource as _, ResourceExt as _};
use windlass::{Halt, Kind, Operator, Plan, World};

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
}

impl Default for Installation {
    fn default() -> Self {
        Self {
            namespace: "kiagnose".into(),
            image: format!("quay.io/kiagnose/kiagnose-operator:v{}", env!("CARGO_PKG_VERSION")),
            anchor: OPERATOR.into(),
        }
    }
}

impl Installation {
    /// The operator that keeps it.
    #[must_use]
    pub fn operator(self) -> Operator {
        let owns = vec![
            Kind::of::<CustomResourceDefinition>(),
            Kind::of::<ServiceAccount>(),
            Kind::of::<ClusterRole>(),
            Kind::of::<ClusterRoleBinding>(),
            Kind::of::<ValidatingAdmissionPolicy>(),
            Kind::of::<ValidatingAdmissionPolicyBinding>(),
            Kind::of::<Deployment>(),
        ];
        // Nobody may give away what they do not have.
        let given = cluster_role::rules();
        Operator::new(OPERATOR)
            .keeps("installation", owns, Vec::new(), move |world, plan| self.plan(world, plan))
            .needs(given)
    }

    fn plan(&self, world: &World, plan: &mut Plan) -> Result<(), Halt> {
        let mut definitions = Vec::new();
        for definition in crate::crds() {
            match world.get::<CustomResourceDefinition>(&definition.name_any())? {
                // Installed by somebody else, such as OLM, who keeps it.
                Some(theirs) if theirs.labels().get(windlass::MANAGED_BY).is_none_or(|by| by != OPERATOR) => {
                    definitions.push(plan.keep(&theirs));
                }
                _ => definitions.push(plan.add(definition)),
            }
        }
        let anchor = world.get::<ClusterRole>(&self.anchor)?;
        let Some(anchor) = anchor.filter(|anchor| anchor.metadata.deletion_timestamp.is_none()) else {
            let message = format!("ClusterRole {} is not there, to which all of it belongs", self.anchor);
            return Err(Halt::waiting("Uninstalled", message));
        };
        let owner =
            OwnerReference { controller: None, ..anchor.controller_owner_ref(&()).unwrap_or_default() };
        let owner = OwnerReference { block_owner_deletion: None, ..owner };
        plan.add(service_account::build(self, &owner));
        plan.add(cluster_role::build(&owner));
        plan.add(cluster_role_binding::build(self, &owner));
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
