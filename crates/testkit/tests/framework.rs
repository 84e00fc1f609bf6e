//! What the framework promises, shown with a small operator on the drydock.

// A test that cannot go on should say so and stop.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "framework/annotations.rs"]
mod annotations;
#[path = "framework/boat.rs"]
mod boat;
#[path = "framework/configuration.rs"]
mod configuration;
#[path = "framework/definitions.rs"]
mod definitions;
#[path = "framework/external.rs"]
mod external;
#[path = "framework/faults_of_the_original.rs"]
mod faults_of_the_original;
#[path = "framework/fleet.rs"]
mod fleet;
#[path = "framework/kite.rs"]
mod kite;
#[path = "framework/mutation.rs"]
mod mutation;
#[path = "framework/namespaces.rs"]
mod namespaces;
#[path = "framework/permissions.rs"]
mod permissions;
#[path = "framework/poison.rs"]
mod poison;
#[path = "framework/port.rs"]
mod port;
#[path = "framework/preview.rs"]
mod preview;
#[path = "framework/replicas.rs"]
mod replicas;
#[path = "framework/selection.rs"]
mod selection;
#[path = "framework/views.rs"]
mod views;
#[path = "framework/webhooks.rs"]
mod webhooks;
