//! One rule of a role: what it allows, and what of another rule it covers.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use windlass_machinery::go::quote;

use super::{Attributes, Target};

/// Everything of its kind.
const ALL: &str = "*";

/// A rule of a role.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    /// What may be done.
    pub verbs: Vec<String>,
    /// In which API groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    /// To which resources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// To which objects; all where it is empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// To which paths that are no resources.
    #[serde(skip_serializing_if = "Vec::is_empty", rename = "nonResourceURLs")]
    pub non_resource_urls: Vec<String>,
}

impl Rule {
    /// Whether the rule allows that.
    #[must_use]
    pub fn allows(&self, wanted: &Attributes<'_>) -> bool {
        if !has(&self.verbs, ALL) && !has(&self.verbs, wanted.verb) {
            return false;
        }
        match wanted.target {
            Target::Path(path) => self.non_resource_urls.iter().any(|url| url_covers(url, path)),
            Target::Resource(target) => {
                (has(&self.api_groups, ALL) || has(&self.api_groups, target.group))
                    && self
                        .resources
                        .iter()
                        .any(|own| resource_matches(own, target.resource, target.subresource))
                    && (self.resource_names.is_empty() || has(&self.resource_names, target.name))
            }
        }
    }

    /// The rule as many of one verb, resource and name each.
    fn atoms(&self) -> Vec<Self> {
        let one = |text: &String| vec![text.clone()];
        let mut atoms = Vec::new();
        for group in &self.api_groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let atom = Self {
                        verbs: one(verb),
                        api_groups: one(group),
                        resources: one(resource),
                        ..Self::default()
                    };
                    if self.resource_names.is_empty() {
                        atoms.push(atom);
                    } else {
                        let names = self.resource_names.iter();
                        atoms.extend(names.map(|name| Self { resource_names: one(name), ..atom.clone() }));
                    }
                }
            }
        }
        for url in &self.non_resource_urls {
            for verb in &self.verbs {
                atoms.push(Self { verbs: one(verb), non_resource_urls: one(url), ..Self::default() });
            }
        }
        atoms
    }

    /// Whether everything that an atom allows, this rule allows.
    fn covers(&self, atom: &Self) -> bool {
        let all = |own: &[String], wanted: &[String]| has(own, ALL) || wanted.iter().all(|one| has(own, one));
        let resource = |wanted: &String| {
            has(&self.resources, ALL)
                || has(&self.resources, wanted)
                || wanted.split_once('/').is_some_and(|(_, sub)| has(&self.resources, &format!("*/{sub}")))
        };
        let named = if atom.resource_names.is_empty() {
            self.resource_names.is_empty()
        } else {
            self.resource_names.is_empty()
                || atom.resource_names.iter().all(|name| has(&self.resource_names, name))
        };
        all(&self.verbs, &atom.verbs)
            && all(&self.api_groups, &atom.api_groups)
            && atom.resources.iter().all(resource)
            && named
            && atom
                .non_resource_urls
                .iter()
                .all(|path| self.non_resource_urls.iter().any(|own| url_covers(own, path)))
    }

    /// The rule as messages show it.
    fn compact(&self) -> String {
        let parts = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(_, values)| !values.is_empty())
            .map(|(name, values)| format!("{name}:{}", quoted(values)))
            .collect();
        format!("{{{}}}", parts.join(", "))
    }
}

/// Strings as Go's `%q` shows a slice of them.
#[must_use]
pub fn quoted(values: &[String]) -> String {
    format!("[{}]", values.iter().map(|value| quote(value)).collect::<Vec<_>>().join(" "))
}

/// What `wanted` allows that `held` does not, one line each as messages show it.
#[must_use]
pub fn missing(held: &[Rule], wanted: &[Rule]) -> BTreeSet<String> {
    let atoms = wanted.iter().flat_map(Rule::atoms);
    let uncovered = atoms.filter(|atom| !held.iter().any(|rule| rule.covers(atom)));
    let mut lines = BTreeSet::new();
    // Atoms that differ in their verb alone are shown as one.
    let mut simple = BTreeMap::<_, Rule>::new();
    for atom in uncovered {
        if atom.non_resource_urls.is_empty() {
            let key = (atom.api_groups.clone(), atom.resources.clone(), atom.resource_names.clone());
            match simple.get_mut(&key) {
                Some(rule) => rule.verbs.extend(atom.verbs),
                None => drop(simple.insert(key, atom)),
            }
        } else {
            lines.insert(atom.compact());
        }
    }
    lines.extend(simple.values().map(Rule::compact));
    lines
}

fn has(values: &[String], wanted: &str) -> bool {
    values.iter().any(|value| value == wanted)
}

fn resource_matches(own: &str, resource: &str, subresource: &str) -> bool {
    if own == ALL {
        return true;
    }
    match own.split_once('/') {
        None => subresource.is_empty() && own == resource,
        Some((kind, sub)) => {
            !subresource.is_empty() && sub == subresource && (kind == ALL || kind == resource)
        }
    }
}

fn url_covers(own: &str, path: &str) -> bool {
    own == path || (own.ends_with('*') && path.starts_with(own.trim_end_matches('*')))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::ResourceTarget;
    use super::*;

    fn rule(value: serde_json::Value) -> Rule {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn rules_allow_by_verb_group_resource_and_name() {
        let own = rule(json!({"apiGroups": [""], "resources": ["pods/log", "*/status", "secrets"],
            "resourceNames": ["one"], "verbs": ["get"]}));
        let allows = |verb, resource, subresource, name| {
            let target = ResourceTarget { resource, subresource, name, ..ResourceTarget::default() };
            own.allows(&Attributes { verb, target: Target::Resource(target) })
        };
        assert!(allows("get", "secrets", "", "one") && allows("get", "pods", "log", "one"));
        assert!(allows("get", "nodes", "status", "one"));
        assert!(!allows("get", "secrets", "", "two") && !allows("get", "pods", "", "one"));
        assert!(!allows("list", "secrets", "", ""));
    }

    #[test]
    fn paths_match_up_to_a_star() {
        let own = rule(json!({"nonResourceURLs": ["/healthz", "/api/*"], "verbs": ["get"]}));
        let allows = |path| own.allows(&Attributes { verb: "get", target: Target::Path(path) });
        assert!(allows("/healthz") && allows("/api/v1"));
        assert!(!allows("/healthz/") && !allows("/api"));
    }

    #[test]
    fn what_is_missing_is_told_by_resource() {
        let held = [rule(json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}))];
        let wanted = [
            rule(
                json!({"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["get", "watch"]}),
            ),
            rule(json!({"nonResourceURLs": ["/x/*"], "verbs": ["get"]})),
        ];
        let lines: Vec<String> = missing(&held, &wanted).into_iter().collect();
        assert_eq!(
            lines,
            [
                "{APIGroups:[\"\"], Resources:[\"configmaps\"], Verbs:[\"watch\"]}",
                "{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\" \"watch\"]}",
                "{NonResourceURLs:[\"/x/*\"], Verbs:[\"get\"]}",
            ]
        );
        assert!(missing(&wanted, &wanted).is_empty());
    }
}
