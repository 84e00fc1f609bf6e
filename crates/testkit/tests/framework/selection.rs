//! Reads by labels where one of the objects cannot be decoded: the others go on, and nothing is taken away.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind, ObjectMeta};
use kube::{Api, CustomResource, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass::{Halt, Kind, Operator, Plan, Primary, Query, Status, World};
use windlass_testkit::Harbour;

/// A ConfigMap for each of its Apples.
#[derive(CustomResource, Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Basket", namespaced, status = "Status")]
struct BasketSpec {
    /// Whether the Apples are weighed one by one, and the weights kept.
    weighed: bool,
}

/// Its definition in the cluster is laxer than this.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Apple", namespaced)]
struct AppleSpec {
    weight: u32,
}

impl Primary for Basket {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<ConfigMap>()]
    }

    fn reads() -> Vec<Kind> {
        vec![Kind::of::<Apple>()]
    }

    fn plan(&self, world: &World, plan: &mut Plan) -> Result<(), Halt> {
        let names: Vec<String> = match self.spec.weighed {
            false => world.select::<Apple>(&Query::default())?.iter().map(|apple| apple.name_any()).collect(),
            true => {
                let weigh = |_: &World, apple: &Apple, (): &()| {
                    Ok(format!("{}-{}", apple.name_any(), apple.spec.weight))
                };
                let weights = world.derive(&Query::default(), &(), weigh)?;
                weights.iter().map(|weight| weight.to_string()).collect()
            }
        };
        plan.add_each(names.into_iter().map(|name| ConfigMap {
            metadata: ObjectMeta { name: Some(name), ..ObjectMeta::default() },
            ..ConfigMap::default()
        }));
        Ok(())
    }
}

fn apple(name: &str, weight: serde_json::Value) -> String {
    json!({"apiVersion": "example.org/v1", "kind": "Apple", "metadata": {"name": name}, "spec": {"weight": weight}})
        .to_string()
}

async fn maps(harbour: &Harbour) -> Vec<String> {
    let names = harbour.names::<ConfigMap>().await;
    names.into_iter().filter(|name| name != "kube-root-ca.crt").collect()
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_decoded_is_left_out_and_named() {
    for weighed in [false, true] {
        let mut harbour = Harbour::start(|| Operator::new("baskets").manages::<Basket>()).await;
        let lax = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "apples.example.org"},
            "spec": {
                "group": "example.org", "scope": "Namespaced",
                "names": {"kind": "Apple", "plural": "apples", "singular": "apple"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": lax}}],
            },
        });
        harbour.put(&definition.to_string()).await;
        harbour.settle().await;
        for (name, weight) in [("boskoop", 3), ("elstar", 2), ("gala", 1)] {
            harbour.put(&apple(name, weight.into())).await;
        }
        let basket = json!({"apiVersion": "example.org/v1", "kind": "Basket", "metadata": {"name": "basket"},
            "spec": {"weighed": weighed}});
        harbour.apply(&basket.to_string()).await;
        harbour.ready().await;
        let whole = maps(&harbour).await;
        assert_eq!(whole.len(), 3, "{whole:?}");

        harbour.put(&apple("elstar", "heavy".into())).await;
        harbour.put(&apple("jonagold", 4.into())).await;
        let degraded = harbour.condition("Degraded", "True").await;
        let message = degraded["message"].as_str().unwrap();
        assert!(message.contains("failed to decode Apple default/elstar"), "{message}");
        harbour.settle().await;
        let now = maps(&harbour).await;
        assert_eq!(now.len(), 4, "the others go on, and nothing is pruned: {now:?}");

        let apples = ApiResource::from_gvk(&GroupVersionKind::gvk("example.org", "v1", "Apple"));
        let apples: Api<DynamicObject> = Api::default_namespaced_with(harbour.client(), &apples);
        apples.delete("elstar", &DeleteParams::default()).await.unwrap();
        harbour.ready().await;
        harbour.settle().await;
        let now = maps(&harbour).await;
        assert_eq!(now.len(), 3, "what is not wanted goes now: {now:?}");
    }
}
