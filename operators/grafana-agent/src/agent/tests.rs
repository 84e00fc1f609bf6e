//! Plans without a server.
