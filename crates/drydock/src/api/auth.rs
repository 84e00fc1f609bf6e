//! Who asks, and whether they may.

use super::registry::Resource;
use super::request::ResourcePath;
use super::status::{Failure, Outcome};

/// The group that may do everything.
pub const MASTERS: &str = "system:masters";

/// Who makes a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The user's name.
    pub name: String,
    /// The groups it is in.
    pub groups: Vec<String>,
}

impl User {
    /// A member of `system:masters`.
    #[must_use]
    pub fn master(name: &str) -> Self {
        Self { name: name.to_owned(), groups: vec![MASTERS.to_owned(), "system:authenticated".to_owned()] }
    }

    /// Somebody who did not say who they are.
    #[must_use]
    pub fn anonymous() -> Self {
        Self { name: "system:anonymous".to_owned(), groups: vec!["system:unauthenticated".to_owned()] }
    }

    /// Whether the user may do everything.
    #[must_use]
    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }
}

/// Whether the user may do that with a resource.
///
/// # Errors
/// 403, naming the user, the verb and the resource.
pub fn authorize(user: &User, verb: &str, path: &ResourcePath, resource: &Resource) -> Outcome<()> {
    if user.is_master() {
        return Ok(());
    }
    let what = match &path.subresource {
        Some(subresource) => format!("{}/{subresource}", path.resource),
        None => path.resource.clone(),
    };
    let place = match &path.namespace {
        Some(namespace) => format!("in the namespace {namespace:?}"),
        None => "at the cluster scope".to_owned(),
    };
    let why = format!(
        "User {:?} cannot {verb} resource {what:?} in API group {:?} {place}",
        user.name, path.group
    );
    Err(Failure::forbidden(resource, path.name.as_deref().unwrap_or_default(), why))
}

/// Whether the user may read a path that is no resource.
///
/// # Errors
/// 403, naming the user and the path.
pub fn authorize_path(user: &User, verb: &str, path: &str) -> Outcome<()> {
    let public = matches!(path, "/healthz" | "/livez" | "/readyz" | "/version" | "/version/");
    if public || user.is_master() {
        return Ok(());
    }
    Err(Failure::forbidden_path(format!("forbidden: User {:?} cannot {verb} path {path:?}", user.name)))
}
