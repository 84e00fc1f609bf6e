//! Plans that belong to no custom resource: what an operator keeps for as long as it runs, such as a Service that
//! lists all nodes.
//!
//! Such a plan is a primary that exists in this process only. What it makes is owned by nobody, and stays when the
//! operator goes; what is wrong with it is logged and explained, since there is no status to write it to.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Value, json};

use crate::admission::Admitted;
use crate::cache::{Reads, Shares, Stored};
use crate::controller::{Controller, Planned, Poison, Subject, Told, planned};
use crate::declared::Declared;
use crate::plan::Owner;
use crate::world::Source;
use crate::{Halt, Invalid, Kind, Plan, Status, World};

type Planner = dyn Fn(&World, &mut Plan) -> Result<(), Halt> + Send + Sync;

/// One such plan.
#[derive(Clone)]
pub(crate) struct Standing {
    owner: Owner,
    declared: Arc<Declared>,
    planner: Arc<Planner>,
}

impl Standing {
    pub(crate) fn new(
        operator: &str,
        name: &str,
        owns: Vec<Kind>,
        reads: Vec<Kind>,
        planner: impl Fn(&World, &mut Plan) -> Result<(), Halt> + Send + Sync + 'static,
    ) -> Self {
        let reference = OwnerReference { kind: operator.into(), name: name.into(), ..Default::default() };
        Self {
            owner: Owner { operator: operator.into(), name: crate::ObjectName::new("", name), reference },
            declared: Arc::new(Declared::standing(
                Kind::external(&format!("{operator}/{name}")),
                owns,
                reads,
            )),
            planner: Arc::new(planner),
        }
    }

    /// What stands for it where primaries are kept.
    pub(crate) fn stored(&self) -> Stored {
        let metadata = json!({"name": self.owner.name.name, "uid": self.kind().name()});
        Stored::made(&json!({"metadata": metadata}), &Shares::new(Default::default()))
    }
}

impl Controller for Standing {
    fn declared(&self) -> &Declared {
        &self.declared
    }

    fn operator(&self) -> &str {
        &self.owner.operator
    }

    fn pace(&self) -> Duration {
        Duration::ZERO
    }

    fn quiet(&self) -> bool {
        true
    }

    fn open(&self, _: &Stored) -> Result<Box<dyn Subject>, Poison> {
        Ok(Box::new(self.clone()))
    }

    fn admit(&self, object: &Value) -> Result<Admitted, Poison> {
        // Nobody writes one.
        Ok(Admitted { object: object.clone(), invalid: Vec::new(), warnings: Vec::new() })
    }
}

impl Subject for Standing {
    fn owner(&self) -> &Owner {
        &self.owner
    }

    fn validity(&self) -> Result<Vec<Invalid>, Poison> {
        Ok(Vec::new())
    }

    fn plan(&self, source: Box<dyn Source>) -> Planned {
        let (world, plan) = (World::new(source, ""), Plan::new(self.owner.clone()));
        planned(&self.declared, world, plan, |world, plan| {
            let outcome = (self.planner)(world, plan);
            plan.disown();
            outcome
        })
    }

    fn status(&self, _: Box<dyn Source>, _: &Value, _: &Status) -> Result<Told, Poison> {
        let status = Value::Object(Default::default());
        Ok(Told { status, reads: Reads::new(), glimpses: Some(Vec::new()) })
    }
}
