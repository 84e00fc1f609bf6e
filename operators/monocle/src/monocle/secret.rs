//! The Secret with Monocle's tokens: made once with random ones, then the user's to edit.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use windlass::World;

use super::{Monocle, pod};

pub(super) fn build(monocle: &Monocle, world: &World) -> Secret {
    let token = |name: &str, length| (name.to_owned(), ByteString(world.random(name, length).into_bytes()));
    Secret {
        metadata: pod::metadata(monocle, "api", "api"),
        type_: Some("Opaque".into()),
        data: Some([token("CRAWLERS_API_KEY", 24), token("MONOCLE_JWK_GEN_KEY", 64)].into()),
        ..Secret::default()
    }
}
