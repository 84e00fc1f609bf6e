//! Acting as another user, with the `Impersonate-` headers.
//!
//! A user may be granted all of it (`impersonate` on users, groups, uids and extras), or only certain requests
//! as certain users: then both the other user (`impersonate:MODE`) and the request
//! (`impersonate-on:MODE:VERB`) must be allowed.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use http::HeaderMap;
use windlass_machinery::go::quote;
use windlass_machinery::names;

use super::super::status::{Failure, Outcome};
use super::{ANONYMOUS, AUTHENTICATED, Attributes, Auth, MASTERS, ResourceTarget, Target, UNAUTHENTICATED};
use super::{User, account_of};

/// What all these headers begin with.
const PREFIX: &str = "impersonate-";
const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";

const AUTHENTICATION: &str = "authentication.k8s.io";
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
/// From that many checks on, one for all of them is tried first.
const MANY: usize = 4;
/// Users whose way of impersonating is remembered.
const REMEMBERED: usize = 10_000;

/// The ways to be allowed to impersonate, in the order in which they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// A pod's service account is the node that the pod is on.
    AssociatedNode,
    /// Any node.
    ArbitraryNode,
    /// A service account.
    ServiceAccount,
    /// Any other user.
    UserInfo,
    /// Anybody, for any request.
    Any,
}

const MODES: [Mode; 5] =
    [Mode::AssociatedNode, Mode::ArbitraryNode, Mode::ServiceAccount, Mode::UserInfo, Mode::Any];

/// The user a request is made as: the one that its headers name, where they do, or the one that makes it.
///
/// # Errors
/// 400 for headers without a user, 403 for what the user may not do.
pub fn apply(
    auth: &Auth,
    user: Arc<User>,
    headers: &HeaderMap,
    wanted: &Attributes<'_>,
) -> Outcome<Arc<User>> {
    let Some(other) = named(headers)? else {
        return Ok(user);
    };
    let check = Check { auth, user: &user, other: &other, request: wanted };
    let known = auth.modes.lock().unwrap_or_else(PoisonError::into_inner).get(&user.name).copied();
    let modes = known.into_iter().chain(MODES.into_iter().filter(|mode| Some(*mode) != known));
    let mut first = None;
    for mode in modes.filter(|mode| check.is_for(*mode)) {
        match check.try_as(mode) {
            Ok(found) => {
                let mut memory = auth.modes.lock().unwrap_or_else(PoisonError::into_inner);
                if memory.len() >= REMEMBERED {
                    memory.clear();
                }
                memory.insert(user.name.clone(), mode);
                return Ok(Arc::new(found));
            }
            Err(failure) => {
                first.get_or_insert(failure);
            }
        }
    }
    Err(first.unwrap_or_else(Failure::unauthorized))
}

/// The user that the headers name.
fn named(headers: &HeaderMap) -> Outcome<Option<User>> {
    if !headers.keys().any(|name| name.as_str().starts_with(PREFIX)) {
        return Ok(None);
    }
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let one = |name: &str| headers.get(name).map(text).unwrap_or_default();
    let groups: Vec<String> = headers.get_all(GROUP).iter().map(text).collect();
    let mut extra = BTreeMap::<String, Vec<String>>::new();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            extra.entry(unescaped(key)).or_default().push(text(value));
        }
    }
    let other = User { name: one(USER), uid: one(UID), groups, extra };
    if !other.name.is_empty() {
        return Ok(Some(other));
    }
    if other.uid.is_empty() && other.groups.is_empty() && other.extra.is_empty() {
        return Ok(None);
    }
    Err(Failure::bad_request(format!("requested {} without impersonating a user name", syntax(&other))))
}

/// A key with its `%2f` and the like resolved; as it is where that makes no sense.
fn unescaped(key: &str) -> String {
    let mut bytes = Vec::with_capacity(key.len());
    let mut rest = key.as_bytes();
    while let [first, more @ ..] = rest {
        if *first != b'%' {
            bytes.push(*first);
            rest = more;
            continue;
        }
        let digits = more.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else {
            return key.to_owned();
        };
        bytes.push(byte);
        rest = &more[2..];
    }
    String::from_utf8(bytes).unwrap_or_else(|_| key.to_owned())
}

/// A user in Go's syntax.
fn syntax(user: &User) -> String {
    let list = |values: &[String]| values.iter().map(|value| quote(value)).collect::<Vec<_>>().join(", ");
    let groups = match user.groups.as_slice() {
        [] => "[]string(nil)".to_owned(),
        groups => format!("[]string{{{}}}", list(groups)),
    };
    let extra = if user.extra.is_empty() {
        "map[string][]string(nil)".to_owned()
    } else {
        let entry =
            |(key, values): (&String, &Vec<String>)| format!("{}:[]string{{{}}}", quote(key), list(values));
        format!("map[string][]string{{{}}}", user.extra.iter().map(entry).collect::<Vec<_>>().join(", "))
    };
    format!(
        "&user.DefaultInfo{{Name:{}, UID:{}, Groups:{groups}, Extra:{extra}}}",
        quote(&user.name),
        quote(&user.uid)
    )
}

/// A request of a user to be another.
struct Check<'a> {
    auth: &'a Auth,
    user: &'a User,
    other: &'a User,
    request: &'a Attributes<'a>,
}

impl Check<'_> {
    /// Whether the other user is one of those a mode is about.
    fn is_for(&self, mode: Mode) -> bool {
        let other = self.other;
        let bare = other.uid.is_empty() && other.groups.is_empty() && other.extra.is_empty();
        let node = node_of(&other.name);
        let account = account_of(&other.name).is_some();
        match mode {
            Mode::AssociatedNode => {
                let own = self.user.extra.get(NODE_NAME).map(Vec::as_slice);
                let on = matches!((own, node), (Some([own]), Some(node)) if own == node);
                bare && on && account_of(&self.user.name).is_some()
            }
            Mode::ArbitraryNode => bare && node.is_some(),
            Mode::ServiceAccount => bare && account,
            Mode::UserInfo => node.is_none() && !account,
            Mode::Any => true,
        }
    }

    fn try_as(&self, mode: Mode) -> Outcome<User> {
        let (verb, constrained) = match mode.name() {
            None => ("impersonate".to_owned(), false),
            Some(name) => {
                let on = format!("impersonate-on:{name}:{}", self.request.verb);
                self.auth.authorize(self.user, &Attributes { verb: &on, ..*self.request })?;
                (format!("impersonate:{name}"), true)
            }
        };
        let group = if constrained { AUTHENTICATION } else { "" };
        let mut found = self.other.clone();
        let mut target =
            ResourceTarget { group, resource: "users", name: &self.other.name, ..ResourceTarget::default() };
        if let Some(node) = node_of(&self.other.name).filter(|_| constrained) {
            target.resource = "nodes";
            target.name = if mode == Mode::AssociatedNode { "*" } else { node };
            found.groups = vec!["system:nodes".to_owned()];
        }
        if let Some((namespace, name)) = account_of(&self.other.name) {
            target = ResourceTarget { resource: "serviceaccounts", namespace, name, ..target };
            if found.groups.is_empty() {
                let own = format!("system:serviceaccounts:{namespace}");
                found.groups = vec!["system:serviceaccounts".to_owned(), own];
            }
        }
        self.authorize(&verb, target)?;
        if !self.other.uid.is_empty() {
            let name = &self.other.uid;
            let uids =
                ResourceTarget { group: AUTHENTICATION, resource: "uids", name, ..ResourceTarget::default() };
            self.authorize(&verb, uids)?;
        }
        self.groups(&verb, group, constrained)?;
        self.extra(&verb, constrained)?;
        let missing = match found.name.as_str() {
            ANONYMOUS => UNAUTHENTICATED,
            _ if found.groups.iter().any(|group| group == UNAUTHENTICATED) => return Ok(found),
            _ => AUTHENTICATED,
        };
        if !found.groups.iter().any(|group| group == missing) {
            found.groups.push(missing.to_owned());
        }
        Ok(found)
    }

    fn groups(&self, verb: &str, group: &str, constrained: bool) -> Outcome<()> {
        let groups = &self.other.groups;
        let target = ResourceTarget { group, resource: "groups", ..ResourceTarget::default() };
        if constrained && groups.iter().any(String::is_empty) {
            return self.refuse(verb, target, "impersonating the empty string group is not allowed");
        }
        if constrained && groups.iter().any(|group| group == MASTERS) {
            let target = ResourceTarget { name: MASTERS, ..target };
            return self.refuse(verb, target, "impersonating the system:masters group is not allowed");
        }
        let all = ResourceTarget { name: "*", ..target };
        if constrained && groups.len() >= MANY && self.authorize(verb, all).is_ok() {
            return Ok(());
        }
        groups.iter().try_for_each(|name| self.authorize(verb, ResourceTarget { name, ..target }))
    }

    fn extra(&self, verb: &str, constrained: bool) -> Outcome<()> {
        let extra = &self.other.extra;
        let target =
            ResourceTarget { group: AUTHENTICATION, resource: "userextras", ..ResourceTarget::default() };
        if constrained && let Some(why) = wrong_extra(extra) {
            return self.refuse(verb, target, &why);
        }
        let many = extra.values().map(Vec::len).sum::<usize>() >= MANY;
        let all = ResourceTarget { subresource: "*", name: "*", ..target };
        if constrained && many && self.authorize(verb, all).is_ok() {
            return Ok(());
        }
        for (key, values) in extra {
            for name in values {
                self.authorize(verb, ResourceTarget { subresource: key, name, ..target })?;
            }
        }
        Ok(())
    }

    fn authorize(&self, verb: &str, target: ResourceTarget<'_>) -> Outcome<()> {
        self.auth.authorize(self.user, &Attributes { verb, target: Target::Resource(target) })
    }

    fn refuse(&self, verb: &str, target: ResourceTarget<'_>, why: &str) -> Outcome<()> {
        Err(Attributes { verb, target: Target::Resource(target) }.refusal(self.user, why))
    }
}

impl Mode {
    fn name(self) -> Option<&'static str> {
        match self {
            Self::AssociatedNode => Some("associated-node"),
            Self::ArbitraryNode => Some("arbitrary-node"),
            Self::ServiceAccount => Some("serviceaccount"),
            Self::UserInfo => Some("user-info"),
            Self::Any => None,
        }
    }
}

/// What is wrong with extras for anybody who may not impersonate everybody.
fn wrong_extra(extra: &BTreeMap<String, Vec<String>>) -> Option<String> {
    for (key, values) in extra {
        if key.is_empty() {
            return Some("impersonating the empty string key in extra is not allowed".to_owned());
        }
        let wrong = match key.split_once('/') {
            Some((domain, path)) if !domain.is_empty() && !path.is_empty() => {
                names::dns1123_subdomain(domain).into_iter().next()
            }
            _ => Some("must be a domain-prefixed path (such as \"acme.io/foo\")".to_owned()),
        };
        if let Some(wrong) = wrong {
            let key = quote(key);
            return Some(format!(
                "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: {key}: {wrong}"
            ));
        }
        if values.iter().any(String::is_empty) {
            return Some("impersonating the empty string value in extra is not allowed".to_owned());
        }
    }
    None
}

/// The name of the node that a user name is of.
fn node_of(user_name: &str) -> Option<&str> {
    let name = user_name.strip_prefix("system:node:")?;
    names::subdomain_name(name, false).is_empty().then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, http::HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn a_master_may_be_anybody() {
        let auth = Auth::new().unwrap();
        let wanted = Attributes { verb: "get", target: Target::Path("/version") };
        let as_other = |pairs: &[(&'static str, &'static str)]| {
            User::clone(&apply(&auth, Arc::new(User::master("admin")), &headers(pairs), &wanted).unwrap())
        };
        let ann = as_other(&[
            (USER, "ann"),
            (GROUP, "a"),
            (GROUP, "b"),
            ("impersonate-extra-acme%2fx", "1"),
            ("impersonate-extra-acme%2fx", "2"),
        ]);
        assert_eq!(ann.groups, ["a", "b", AUTHENTICATED]);
        assert_eq!(ann.extra["acme/x"], ["1", "2"]);
        let robot = as_other(&[(USER, "system:serviceaccount:x:y")]);
        assert_eq!(robot, User::service_account("x", "y"));
        assert_eq!(as_other(&[(USER, ANONYMOUS)]), User::anonymous());
        assert!(as_other(&[(USER, "x"), (GROUP, MASTERS)]).is_master());
        assert_eq!(as_other(&[(USER, "")]), User::master("admin"));
    }

    #[test]
    fn others_may_not() {
        let auth = Auth::new().unwrap();
        let wanted = Attributes { verb: "get", target: Target::Path("/version") };
        let ann = || User::new("ann", &[]);
        let failure = apply(&auth, Arc::new(ann()), &headers(&[(USER, "bob")]), &wanted).unwrap_err();
        assert_eq!(
            failure.message,
            "forbidden: User \"ann\" cannot impersonate-on:user-info:get path \"/version\""
        );
        let failure = apply(&auth, Arc::new(ann()), &headers(&[(UID, "7")]), &wanted).unwrap_err();
        assert_eq!(
            failure.message,
            "requested &user.DefaultInfo{Name:\"\", UID:\"7\", Groups:[]string(nil), \
             Extra:map[string][]string(nil)} without impersonating a user name"
        );
    }
}
