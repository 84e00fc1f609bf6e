//! What a request asks for, from its method and path alone.

use http::Method;

/// A request for a resource, or for something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A resource of a group and version.
    Resource(ResourcePath),
    /// Any other path.
    Path(String),
}

/// Where a resource request goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourcePath {
    /// The API group; empty for the core.
    pub group: String,
    /// The version.
    pub version: String,
    /// The namespace, where the path has one.
    pub namespace: Option<String>,
    /// The plural name.
    pub resource: String,
    /// The object's name, where the path has one.
    pub name: Option<String>,
    /// The subresource, where the path has one.
    pub subresource: Option<String>,
    /// Whether it is of the old form `/api/v1/watch/...`.
    pub watch: bool,
}

/// Query parameters, decoded.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads the part of a URI after `?`.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self(
            text.split('&')
                // Go leaves out what has a semicolon.
                .filter(|pair| !pair.is_empty() && !pair.contains(';'))
                .map(|pair| {
                    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                    (unescape(key, true), unescape(value, true))
                })
                .collect(),
        )
    }

    /// The first value of a parameter, where it is not empty.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).filter(|v| !v.is_empty())
    }

    /// The first value of a parameter, empty or not.
    #[must_use]
    pub fn first(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Adds a parameter.
    pub fn push(&mut self, name: &str, value: &str) {
        self.0.push((name.to_owned(), value.to_owned()));
    }

    /// All values of a parameter.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A boolean parameter, as Go reads one: there and not `false` or `0`.
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .is_some_and(|(_, value)| !matches!(value.to_ascii_lowercase().as_str(), "false" | "0"))
    }
}

/// Understands a path.
#[must_use]
pub fn target(path: &str) -> Target {
    let other = || Target::Path(path.to_owned());
    // As in Go, a slash that was escaped still parts a path.
    let unescaped = unescape(path, false);
    let unescaped = unescaped.strip_prefix('/').unwrap_or(&unescaped);
    let parts: Vec<&str> = unescaped.strip_suffix('/').unwrap_or(unescaped).split('/').collect();
    let (group, version, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return other(),
    };
    let (watch, rest) = match rest {
        ["watch", rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let mut found = ResourcePath {
        group: group.to_owned(),
        version: version.to_owned(),
        watch,
        ..ResourcePath::default()
    };
    let own = |text: &&str| Some((*text).to_owned());
    match rest {
        [] => return other(),
        // A namespace is itself a resource, and has subresources that look like resources within it.
        ["namespaces", name, sub @ ("status" | "finalize")] => {
            found.resource = "namespaces".to_owned();
            found.name = own(name);
            found.namespace = own(name);
            found.subresource = own(sub);
        }
        ["namespaces", namespace, resource, rest @ ..] => {
            found.namespace = Some(namespace).filter(|name| !name.is_empty()).and_then(own);
            found.resource = (*resource).to_owned();
            found.name = rest.first().and_then(own);
            found.subresource = (rest.len() > 1).then(|| rest[1..].join("/"));
        }
        ["namespaces", name] => {
            found.resource = "namespaces".to_owned();
            found.name = own(name);
        }
        [resource, rest @ ..] => {
            found.resource = (*resource).to_owned();
            found.name = rest.first().and_then(own);
            found.subresource = (rest.len() > 1).then(|| rest[1..].join("/"));
        }
    }
    Target::Resource(found)
}

/// The API's verb of a request.
#[must_use]
pub fn verb(method: &Method, path: &ResourcePath, query: &Query) -> &'static str {
    let named = path.name.is_some();
    match *method {
        _ if path.watch && *method != Method::GET => "",
        Method::GET if path.watch || (!named && query.flag("watch")) => "watch",
        Method::GET if named => "get",
        Method::GET => "list",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if named => "delete",
        Method::DELETE => "deletecollection",
        _ => "",
    }
}

fn unescape(text: &str, plus_is_space: bool) -> String {
    let mut out = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let hex = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match bytes[at] {
            b'%' => {
                if let (Some(high), Some(low)) = (hex(at + 1), hex(at + 2)) {
                    out.push(u8::try_from(high * 16 + low).unwrap_or_default());
                    at += 3;
                    continue;
                }
                out.push(b'%');
            }
            b'+' if plus_is_space => out.push(b' '),
            byte => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(path: &str) -> ResourcePath {
        match target(path) {
            Target::Resource(found) => found,
            Target::Path(path) => panic!("{path} is no resource"),
        }
    }

    #[test]
    fn paths_are_understood() {
        let pod = resource("/api/v1/namespaces/a/pods/p/log");
        assert_eq!((pod.namespace.as_deref(), pod.name.as_deref()), (Some("a"), Some("p")));
        assert_eq!(pod.subresource.as_deref(), Some("log"));
        let scale = resource("/apis/apps/v1/namespaces/a/deployments/d/scale");
        assert_eq!((scale.group.as_str(), scale.subresource.as_deref()), ("apps", Some("scale")));
        assert_eq!(resource("/api/v1/namespaces/a/finalize").resource, "namespaces");
        assert_eq!(resource("/api/v1/nodes/n").name.as_deref(), Some("n"));
        assert!(resource("/api/v1/watch/namespaces/a/configmaps").watch);
        assert_eq!(target("/healthz"), Target::Path("/healthz".into()));
        assert_eq!(target("/apis/apps/v1"), Target::Path("/apis/apps/v1".into()));
    }

    #[test]
    fn queries_are_unescaped() {
        let query = Query::parse("labelSelector=env%3Dprod,a+b&watch=1&x=");
        assert_eq!(query.get("labelSelector"), Some("env=prod,a b"));
        assert!(query.flag("watch") && query.get("x").is_none());
    }
}
