//! The stored roles and bindings, indexed by whom they are for.
//!
//! A request asks the index, never the store. The server refreshes what a write changed before it answers the
//! write, so that whoever grants something can count on it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use windlass_machinery::go::quote;

use super::super::registry::Resource;
use super::rule::Rule;
use super::{Attributes, User, account_name};
use crate::store::{Key, Store};

/// The API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// Whether somebody may do something.
#[derive(Clone, Debug)]
pub enum Decision {
    /// A member of `system:masters` may do everything.
    Privileged,
    /// A binding grants it.
    Granted(Grant),
    /// Nothing grants it.
    Denied(Missing),
}

impl Decision {
    /// Whether they may.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        !matches!(self, Self::Denied(_))
    }

    /// Why, as access reviews tell it; it is the decision about that user.
    #[must_use]
    pub fn reason(&self, user: &User) -> String {
        match self {
            Self::Privileged => String::new(),
            Self::Granted(grant) => format!("RBAC: allowed by {}", grant.told(user)),
            Self::Denied(missing) => missing.reason(),
        }
    }
}

/// A binding that grants something.
#[derive(Clone, Debug)]
pub struct Grant(Arc<Binding>);

impl Grant {
    /// The binding, its role, and the first of its subjects that the user is.
    fn told(&self, user: &User) -> String {
        let Binding { name, namespace, role_ref, subjects } = &*self.0;
        let (kind, binding) = match namespace.as_str() {
            "" => ("ClusterRoleBinding", name.clone()),
            namespace => ("RoleBinding", format!("{name}/{namespace}")),
        };
        let applies = |subject: &&Subject| match subject.user(namespace) {
            Some(own) => own == user.name,
            None => subject.kind == "Group" && user.groups.contains(&subject.name),
        };
        let whom = subjects.iter().find(applies).map(|subject| {
            let name = match (subject.kind.as_str(), subject.namespace.as_str()) {
                ("ServiceAccount", "") => format!("{}/{namespace}", subject.name),
                ("ServiceAccount", own) => format!("{}/{own}", subject.name),
                _ => subject.name.clone(),
            };
            format!("{} {}", subject.kind, quote(&name))
        });
        format!(
            "{kind} {} of {} {} to {}",
            quote(&binding),
            role_ref.kind,
            quote(&role_ref.name),
            whom.unwrap_or_default()
        )
    }
}

/// Roles that bindings name and that are not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing(BTreeSet<String>);

impl Missing {
    /// What refusals say about it; nothing where nothing is missing.
    #[must_use]
    pub fn reason(&self) -> String {
        self.error().map(|error| format!("RBAC: {error}")).unwrap_or_default()
    }

    /// What is missing.
    #[must_use]
    pub fn error(&self) -> Option<String> {
        let all: Vec<&str> = self.0.iter().map(String::as_str).collect();
        match all.as_slice() {
            [] => None,
            [one] => Some((*one).to_owned()),
            several => Some(format!("[{}]", several.join(", "))),
        }
    }

    fn add(&mut self, role: &RoleRef) {
        self.0.insert(format!("{}.{GROUP} {} not found", role.kind.to_lowercase(), quote(&role.name)));
    }
}

/// All roles and bindings.
#[derive(Debug, Default)]
pub struct Policy {
    /// Rules by namespace and name; of cluster roles in the empty namespace.
    roles: HashMap<String, HashMap<String, Arc<[Rule]>>>,
    /// Bindings by namespace; cluster role bindings in the empty one.
    bindings: HashMap<String, Bindings>,
}

/// The bindings of one namespace.
#[derive(Debug, Default)]
struct Bindings {
    all: HashMap<String, Arc<Binding>>,
    of_users: Subjects,
    of_groups: Subjects,
}

/// Bindings by the name of whom they are for, and by their own.
type Subjects = HashMap<String, BTreeMap<String, Arc<Binding>>>;

#[derive(Debug)]
struct Binding {
    name: String,
    namespace: String,
    role_ref: RoleRef,
    subjects: Vec<Subject>,
}

/// Which role a binding grants.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RoleRef {
    /// The group of the role.
    pub api_group: String,
    /// `Role` or `ClusterRole`.
    pub kind: String,
    /// The name of the role.
    pub name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Subject {
    kind: String,
    name: String,
    namespace: String,
}

impl Subject {
    /// The user name that a subject of a binding in that namespace is, where it is one.
    fn user(&self, namespace: &str) -> Option<String> {
        match (self.kind.as_str(), self.namespace.as_str()) {
            ("User", _) => Some(self.name.clone()),
            ("ServiceAccount", "") if namespace.is_empty() => None,
            ("ServiceAccount", "") => Some(account_name(namespace, &self.name)),
            ("ServiceAccount", own) => Some(account_name(own, &self.name)),
            _ => None,
        }
    }
}

impl Policy {
    /// Whether roles let the user do that.
    #[must_use]
    pub fn decide(&self, user: &User, wanted: &Attributes<'_>) -> Decision {
        let mut missing = Missing::default();
        for binding in self.applying(user, wanted.namespace()) {
            match self.rules_of(&binding.role_ref, &binding.namespace) {
                Some(rules) if rules.iter().any(|rule| rule.allows(wanted)) => {
                    return Decision::Granted(Grant(Arc::clone(binding)));
                }
                Some(_) => {}
                None => missing.add(&binding.role_ref),
            }
        }
        Decision::Denied(missing)
    }

    /// Everything that roles let a user do in a namespace and across the cluster.
    #[must_use]
    pub fn rules_for(&self, user: &User, namespace: &str) -> (Vec<Rule>, Missing) {
        let mut rules = Vec::new();
        let mut missing = Missing::default();
        let mut seen = BTreeSet::new();
        for binding in self.applying(user, namespace) {
            if !seen.insert((&binding.namespace, &binding.name)) {
                continue;
            }
            match self.rules_of(&binding.role_ref, &binding.namespace) {
                Some(own) => rules.extend_from_slice(own),
                None => missing.add(&binding.role_ref),
            }
        }
        (rules, missing)
    }

    /// The rules of the role that a binding in that namespace names.
    #[must_use]
    pub fn rules_of(&self, role: &RoleRef, namespace: &str) -> Option<&[Rule]> {
        let namespace = match role.kind.as_str() {
            "ClusterRole" => "",
            "Role" if !namespace.is_empty() => namespace,
            _ => return None,
        };
        self.roles.get(namespace)?.get(&role.name).map(|rules| &**rules)
    }

    /// The bindings for a user; one that is for several of its groups comes several times.
    fn applying<'p>(&'p self, user: &'p User, namespace: &'p str) -> impl Iterator<Item = &'p Arc<Binding>> {
        let namespaces = ["", namespace].into_iter().take(if namespace.is_empty() { 1 } else { 2 });
        namespaces.filter_map(|namespace| self.bindings.get(namespace)).flat_map(|bindings| {
            let own = bindings.of_users.get(&user.name);
            let groups = user.groups.iter().filter_map(|group| bindings.of_groups.get(group));
            own.into_iter().chain(groups).flat_map(BTreeMap::values)
        })
    }

    /// Brings what is known of a role or binding to what the store has now.
    pub(super) fn refresh(&mut self, store: &Store, resource: &Resource, key: &Key) {
        let stored = store.get(resource.table, key);
        let body = stored.as_ref().map(|stored| &stored.body[..]);
        match resource.plural.as_str() {
            "roles" | "clusterroles" => {
                let rules = body.map(|body| read::<RoleBody>(body).rules);
                self.set_role(&key.namespace, &key.name, rules);
            }
            "rolebindings" | "clusterrolebindings" => {
                let binding = body.map(read::<BindingBody>);
                self.set_binding(&key.namespace, &key.name, binding);
            }
            _ => {}
        }
    }

    fn set_role(&mut self, namespace: &str, name: &str, rules: Option<Vec<Rule>>) {
        match rules {
            Some(rules) => {
                let roles = self.roles.entry(namespace.to_owned()).or_default();
                roles.insert(name.to_owned(), rules.into());
            }
            None => {
                let Some(roles) = self.roles.get_mut(namespace) else {
                    return;
                };
                roles.remove(name);
                if roles.is_empty() {
                    self.roles.remove(namespace);
                }
            }
        }
    }

    fn set_binding(&mut self, namespace: &str, name: &str, body: Option<BindingBody>) {
        let bindings = self.bindings.entry(namespace.to_owned()).or_default();
        bindings.remove(name);
        if let Some(BindingBody { role_ref, subjects }) = body {
            let binding =
                Binding { name: name.to_owned(), namespace: namespace.to_owned(), role_ref, subjects };
            bindings.add(Arc::new(binding));
        }
        if bindings.all.is_empty() {
            self.bindings.remove(namespace);
        }
    }
}

impl Bindings {
    fn add(&mut self, binding: Arc<Binding>) {
        for subject in &binding.subjects {
            let (index, subject) = match subject.user(&binding.namespace) {
                Some(user) => (&mut self.of_users, user),
                None if subject.kind == "Group" => (&mut self.of_groups, subject.name.clone()),
                None => continue,
            };
            index.entry(subject).or_default().insert(binding.name.clone(), Arc::clone(&binding));
        }
        self.all.insert(binding.name.clone(), binding);
    }

    fn remove(&mut self, name: &str) {
        let Some(binding) = self.all.remove(name) else {
            return;
        };
        for subject in &binding.subjects {
            let (index, subject) = match subject.user(&binding.namespace) {
                Some(user) => (&mut self.of_users, user),
                None => (&mut self.of_groups, subject.name.clone()),
            };
            if let Some(bindings) = index.get_mut(&subject) {
                bindings.remove(name);
                if bindings.is_empty() {
                    index.remove(&subject);
                }
            }
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RoleBody {
    #[serde(deserialize_with = "or_empty")]
    rules: Vec<Rule>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct BindingBody {
    role_ref: RoleRef,
    #[serde(deserialize_with = "or_empty")]
    subjects: Vec<Subject>,
}

/// A list that may be null.
fn or_empty<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::<Vec<T>>::deserialize(deserializer)?.unwrap_or_default())
}

/// A stored object; one that cannot be read grants nothing.
fn read<T: DeserializeOwned + Default>(body: &[u8]) -> T {
    serde_json::from_slice(body).unwrap_or_else(|error| {
        tracing::warn!(%error, "failed to read a stored role or binding");
        T::default()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{ResourceTarget, Target};
    use super::*;

    fn policy() -> Policy {
        let mut policy = Policy::default();
        let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]);
        policy.set_role("a", "reader", Some(serde_json::from_value(rules).unwrap()));
        let body = json!({
            "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": "reader"},
            "subjects": [{"kind": "Group", "name": "crew"}, {"kind": "ServiceAccount", "name": "robot"}],
        });
        policy.set_binding("a", "readers", Some(serde_json::from_value(body).unwrap()));
        policy
    }

    fn get<'a>(namespace: &'a str) -> Attributes<'a> {
        let target =
            ResourceTarget { resource: "configmaps", namespace, name: "x", ..ResourceTarget::default() };
        Attributes { verb: "get", target: Target::Resource(target) }
    }

    #[test]
    fn a_binding_grants_its_role_in_its_namespace() {
        let policy = policy();
        let (crew, robot) = (User::new("ann", &["crew"]), User::service_account("a", "robot"));
        assert_eq!(
            policy.decide(&crew, &get("a")).reason(&crew),
            "RBAC: allowed by RoleBinding \"readers/a\" of Role \"reader\" to Group \"crew\""
        );
        assert!(!policy.decide(&crew, &get("b")).is_allowed());
        assert!(!policy.decide(&User::new("bob", &[]), &get("a")).is_allowed());
        assert_eq!(
            policy.decide(&robot, &get("a")).reason(&robot),
            "RBAC: allowed by RoleBinding \"readers/a\" of Role \"reader\" to ServiceAccount \"robot/a\""
        );
    }

    #[test]
    fn a_role_that_is_not_there_is_told() {
        let mut policy = policy();
        policy.set_role("a", "reader", None);
        let crew = User::new("ann", &["crew"]);
        let decision = policy.decide(&crew, &get("a"));
        assert_eq!(decision.reason(&crew), "RBAC: role.rbac.authorization.k8s.io \"reader\" not found");
        policy.set_binding("a", "readers", None);
        assert!(policy.bindings.is_empty() && policy.roles.is_empty());
    }
}
