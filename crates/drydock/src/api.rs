//! The API server: one pipeline for every kind, driven by tables.
//!
//! A request is understood ([`request`]), its resource found in the [`registry`], and then read ([`read`]) or
//! written ([`write`]). Writing is always the same chain: decode, default, own, admit, prepare, validate,
//! commit, encode. What differs from kind to kind is data ([`defaults`], [`strategy`], [`validation`]), keyed by
//! the type it is about. Nothing here knows of sockets or TLS; [`crate::serve`] does.

pub mod admission;
pub mod auth;
pub mod defaults;
pub mod definitions;
mod destination;
pub mod discovery;
pub mod log;
pub mod negotiation;
pub mod openapi;
pub mod options;
pub mod protobuf;
pub mod read;
pub mod registry;
pub mod request;
pub mod server;
pub mod status;
pub mod strategy;
pub mod subresources;
pub mod table;
mod upkeep;
pub mod validation;
mod view;
mod warnings;
pub mod write;
