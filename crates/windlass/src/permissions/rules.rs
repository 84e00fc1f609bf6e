//! Rules of a role as a set: what is allowed twice is there once, and the order is always the same.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::Kind;

/// What is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rules(BTreeMap<Subject, BTreeSet<String>>);

/// What something is allowed on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    /// Objects of a resource; only the one of this name, if there is one.
    Resource { group: String, resource: String, name: Option<String> },
    /// A path that is no resource.
    Path(String),
}

impl Rules {
    pub(super) fn allow(&mut self, kind: &Kind, verbs: &[&str]) {
        self.allow_on(resource(kind, None, None), verbs);
    }

    pub(super) fn allow_part(&mut self, kind: &Kind, part: &str, verbs: &[&str]) {
        self.allow_on(resource(kind, Some(part), None), verbs);
    }

    pub(super) fn allow_named(&mut self, kind: &Kind, name: &str, verbs: &[&str]) {
        self.allow_on(resource(kind, None, Some(name)), verbs);
    }

    /// Takes in a rule in the API's form.
    pub(super) fn add(&mut self, rule: &PolicyRule) {
        let verbs: Vec<&str> = rule.verbs.iter().map(String::as_str).collect();
        for path in rule.non_resource_urls.iter().flatten() {
            self.allow_on(Subject::Path(path.clone()), &verbs);
        }
        let names = rule.resource_names.clone().filter(|names| !names.is_empty());
        let names: Vec<_> = names.map_or(vec![None], |names| names.into_iter().map(Some).collect());
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                for name in &names {
                    let (group, resource, name) = (group.clone(), resource.clone(), name.clone());
                    self.allow_on(Subject::Resource { group, resource, name }, &verbs);
                }
            }
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (subject, verbs) in &other.0 {
            self.0.entry(subject.clone()).or_default().extend(verbs.iter().cloned());
        }
    }

    /// In the API's form: resources of a group that allow the same are one rule.
    pub(super) fn to_policy(&self) -> Vec<PolicyRule> {
        let mut rules: Vec<PolicyRule> = Vec::new();
        for (subject, verbs) in self.concise() {
            let verbs: Vec<String> = verbs.into_iter().collect();
            let rule = match subject {
                Subject::Path(path) => {
                    PolicyRule { non_resource_urls: Some(vec![path]), verbs, ..PolicyRule::default() }
                }
                Subject::Resource { group, resource, name } => PolicyRule {
                    api_groups: Some(vec![group]),
                    resources: Some(vec![resource]),
                    resource_names: name.map(|name| vec![name]),
                    verbs,
                    ..PolicyRule::default()
                },
            };
            match rules.iter_mut().find(|other| fits(other, &rule)) {
                Some(other) if other.resources == rule.resources => {
                    extend(&mut other.resource_names, rule.resource_names)
                }
                Some(other) => extend(&mut other.resources, rule.resources),
                None => rules.push(rule),
            }
        }
        rules
    }

    pub(super) fn requests(&self) -> impl Iterator<Item = String> {
        self.concise().into_iter().flat_map(|(subject, verbs)| {
            let resource = match subject {
                Subject::Resource { resource, .. } | Subject::Path(resource) => resource,
            };
            verbs.into_iter().map(move |verb| format!("{verb} {resource}"))
        })
    }

    fn allow_on(&mut self, subject: Subject, verbs: &[&str]) {
        self.0.entry(subject).or_default().extend(verbs.iter().map(|verb| (*verb).to_owned()));
    }

    /// Without what is allowed for one name and for all.
    fn concise(&self) -> BTreeMap<Subject, BTreeSet<String>> {
        let mut concise = self.0.clone();
        for (subject, verbs) in &mut concise {
            if let Subject::Resource { group, resource, name: Some(_) } = subject {
                let all = Subject::Resource { group: group.clone(), resource: resource.clone(), name: None };
                let all = self.0.get(&all);
                verbs.retain(|verb| !all.is_some_and(|all| all.contains(verb)));
            }
        }
        concise.retain(|_, verbs| !verbs.is_empty());
        concise
    }
}

/// Whether two rules can be one: the same but for the resources, or the same but for the names.
fn fits(one: &PolicyRule, other: &PolicyRule) -> bool {
    let same = one.verbs == other.verbs && one.api_groups == other.api_groups && one.api_groups.is_some();
    same && (one.resource_names == other.resource_names
        || one.resources == other.resources && one.resource_names.is_some() && other.resource_names.is_some())
}

fn extend(list: &mut Option<Vec<String>>, more: Option<Vec<String>>) {
    list.get_or_insert_default().extend(more.unwrap_or_default());
}

fn resource(kind: &Kind, part: Option<&str>, name: Option<&str>) -> Subject {
    let plural = kind.plural();
    Subject::Resource {
        group: kind.group().to_owned(),
        resource: part.map_or_else(|| plural.to_owned(), |part| format!("{plural}/{part}")),
        name: name.map(str::to_owned),
    }
}
