//! A kind with two versions, defaults and rules, for tests of webhooks.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{Halt, Invalid, Kind, Operator, Plan, Primary, Status, World};

/// The version that is managed and stored.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Kite", namespaced, status = "Status")]
pub(crate) struct KiteSpec {
    pub(crate) colour: Option<String>,
    pub(crate) lines: Option<u32>,
}

pub(crate) mod v1alpha1 {
    use super::*;

    /// The older one: another spelling, and the lines as a text.
    #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[kube(group = "example.org", version = "v1alpha1", kind = "Kite", namespaced, status = "Status")]
    pub(crate) struct KiteSpec {
        pub(crate) color: Option<String>,
        pub(crate) lines: Option<String>,
    }
}

impl Primary for Kite {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<ConfigMap>()]
    }

    fn defaults(&mut self) {
        self.spec.colour.get_or_insert_with(|| "red".into());
        self.spec.lines.get_or_insert(2);
    }

    fn validity(&self) -> Vec<Invalid> {
        let many = self.spec.lines.is_some_and(|lines| lines > 4);
        many.then(|| Invalid::new("spec.lines", "are more than 4; use fewer")).into_iter().collect()
    }

    fn plan(&self, _: &World, _: &mut Plan) -> Result<(), Halt> {
        Ok(())
    }
}

pub(crate) fn operator() -> Operator {
    Operator::new("kites")
        .manages::<Kite>()
        .serves::<v1alpha1::Kite>()
        .converts(|old: v1alpha1::Kite| Kite {
            metadata: old.metadata,
            spec: KiteSpec {
                colour: old.spec.color,
                lines: old.spec.lines.and_then(|lines| lines.parse().ok()),
            },
            status: old.status,
        })
        .converts(|new: Kite| v1alpha1::Kite {
            metadata: new.metadata,
            spec: v1alpha1::KiteSpec {
                color: new.spec.colour,
                lines: new.spec.lines.map(|lines| lines.to_string()),
            },
            status: new.status,
        })
}
