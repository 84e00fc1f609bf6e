//! How an operator's webhooks are reached and what is told to the API server about them. Pure.

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::{CONVERT, MUTATE, VALIDATE};
use crate::controller::Controller;
use crate::{Kind, MANAGED_BY, ObjectName, Operator};

/// What becomes of a write when nobody answers for it.
///
/// The reconciler holds to the same defaults and validity, so that what slips through is reported all the same, only
/// later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailurePolicy {
    /// It is let through: an operator that is down hinders nobody. What is invalid then shows in the object's
    /// conditions.
    #[default]
    Ignore,
    /// It is refused: nothing invalid is ever stored, and while no replica runs nobody can change the operator's kinds.
    Fail,
}

/// How the webhooks of a process are reached, and where their certificates are kept; see
/// [`Runtime::webhooks`](crate::Runtime::webhooks).
///
/// ```
/// use windlass::ObjectName;
/// use windlass::admission::{FailurePolicy, Webhooks};
///
/// let on_a_cluster = Webhooks::service(ObjectName::new("operators", "monocle"), 443)
///     .failure_policy(FailurePolicy::Fail);
/// let on_a_laptop = Webhooks::url("https://127.0.0.1:9443", ObjectName::new("default", "monocle-webhooks"))?;
/// # Ok::<(), windlass::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Webhooks {
    place: Place,
    secret: ObjectName,
    failure_policy: FailurePolicy,
    timeout: u8,
    namespaces: Vec<String>,
}

#[derive(Clone, Debug)]
enum Place {
    Service(ObjectName, u16),
    Url { base: String, host: String },
}

/// The label that every namespace has, and that is its name.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// What a role has to allow for webhooks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Permissions {
    /// In the namespace of the Secret.
    pub namespace: String,
    /// What is needed there.
    pub in_namespace: Vec<PolicyRule>,
    /// What is needed in the whole cluster.
    pub in_cluster: Vec<PolicyRule>,
}

impl Webhooks {
    /// On a cluster: the API server reaches them through a Service, at this port of it. Their certificates are in a
    /// Secret beside it, `<service>-webhooks`.
    ///
    /// The Service has to publish addresses that are not ready: to become ready, a replica may have to read objects that
    /// the API server can only show after a conversion.
    #[must_use]
    pub fn service(service: ObjectName, port: u16) -> Self {
        let secret = ObjectName::new(service.namespace.clone(), format!("{}-webhooks", service.name));
        Self::at(Place::Service(service, port), secret)
    }

    /// On a laptop: the API server reaches them at this URL, as with `https://127.0.0.1:9443`. Their certificates are in
    /// this Secret.
    ///
    /// # Errors
    /// If it is not a URL that an API server takes: `https://`, a host, perhaps a port and a path.
    pub fn url(base: &str, secret: ObjectName) -> Result<Self, crate::Error> {
        let wrong = || crate::Error::WebhookUrl(base.to_owned());
        let uri: http::Uri = base.parse().map_err(|_| wrong())?;
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(wrong)?;
        if uri.scheme_str() != Some("https") || uri.query().is_some() || base.contains(['@', '#']) {
            return Err(wrong());
        }
        let host = host.trim_matches(['[', ']']).to_owned();
        Ok(Self::at(Place::Url { base: base.trim_end_matches('/').to_owned(), host }, secret))
    }

    fn at(place: Place, secret: ObjectName) -> Self {
        Self { place, secret, failure_policy: FailurePolicy::default(), timeout: 5, namespaces: Vec::new() }
    }

    /// Keeps the certificates in another Secret.
    #[must_use]
    pub fn secret(self, secret: ObjectName) -> Self {
        Self { secret, ..self }
    }

    /// Asks only about objects in these namespaces, if there are any, and in none.
    pub(crate) fn within<'a>(self, namespaces: impl IntoIterator<Item = &'a String>) -> Self {
        Self { namespaces: namespaces.into_iter().cloned().collect(), ..self }
    }

    /// What becomes of a write when nobody answers for it.
    #[must_use]
    pub fn failure_policy(self, failure_policy: FailurePolicy) -> Self {
        Self { failure_policy, ..self }
    }

    /// How many seconds the API server waits for an answer; 5 if it is not said, 30 at most.
    #[must_use]
    pub fn timeout(self, seconds: u8) -> Self {
        Self { timeout: seconds.clamp(1, 30), ..self }
    }

    /// What a role has to allow, by the names of the objects, so that these operators can keep their webhooks.
    #[must_use]
    pub fn permissions(&self, operators: &[Operator]) -> Permissions {
        let rule = |group: &str, resource: &str, names: Vec<String>, verbs: &[&str]| PolicyRule {
            api_groups: Some(vec![group.into()]),
            resources: Some(vec![resource.into()]),
            resource_names: Some(names),
            verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
            ..PolicyRule::default()
        };
        let names: Vec<String> = operators.iter().map(|operator| operator.name().to_owned()).collect();
        let converted = operators.iter().flat_map(Operator::crds).filter(|crd| has_versions(crd));
        let converted: Vec<String> = converted.map(|crd| crd.name_any()).collect();
        let kept = ["get", "list", "watch", "create", "patch"];
        let mut in_cluster: Vec<_> = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]
            .map(|resource| rule("admissionregistration.k8s.io", resource, names.clone(), &kept))
            .into();
        if !converted.is_empty() {
            let verbs = ["get", "list", "watch", "patch"];
            in_cluster.push(rule("apiextensions.k8s.io", "customresourcedefinitions", converted, &verbs));
        }
        let secret = vec![self.secret.name.clone()];
        let verbs = ["get", "list", "watch", "create", "patch", "update"];
        Permissions {
            namespace: self.secret.namespace.clone(),
            in_namespace: vec![rule("", "secrets", secret, &verbs)],
            in_cluster,
        }
    }

    pub(crate) fn secret_name(&self) -> &ObjectName {
        &self.secret
    }

    /// The names that the server's certificate has to have.
    pub(crate) fn names(&self) -> Vec<String> {
        match &self.place {
            Place::Service(service, _) => {
                let (namespace, name) = (&service.namespace, &service.name);
                vec![format!("{name}.{namespace}.svc"), format!("{name}.{namespace}.svc.cluster.local")]
            }
            Place::Url { host, .. } => vec![host.clone()],
        }
    }

    /// All that the API server has to know of an operator's webhooks: objects of which these fields are ours.
    pub(crate) fn registrations(&self, operator: &Operator, bundle: &str) -> Vec<Registration> {
        let configuration = |kind: Kind, verb: &'static str, path: &'static str| {
            let webhooks: Vec<Value> = operator
                .controllers()
                .iter()
                .map(|one| self.webhook(one.as_ref(), verb, path, bundle))
                .collect();
            let name = ObjectName::new("", operator.name());
            let metadata = json!({"name": name.name, "labels": {MANAGED_BY: operator.name()}});
            let body = json!({"apiVersion": kind.api_version(), "kind": kind.name(), "metadata": metadata,
                "webhooks": webhooks});
            Registration { kind, name, body, manager: operator.name().to_owned(), part: false }
        };
        let mut all = Vec::new();
        if !operator.controllers().is_empty() {
            all.push(configuration(Kind::of::<MutatingWebhookConfiguration>(), "mutate", MUTATE));
            all.push(configuration(Kind::of::<ValidatingWebhookConfiguration>(), "validate", VALIDATE));
        }
        let converted = operator.crds().iter().filter(|crd| has_versions(crd));
        all.extend(converted.map(|crd| self.conversion(operator, crd, bundle)));
        all
    }

    /// The part of a definition that says how its versions are converted.
    pub(crate) fn conversion(
        &self,
        operator: &Operator,
        crd: &CustomResourceDefinition,
        bundle: &str,
    ) -> Registration {
        let kind = Kind::of::<CustomResourceDefinition>();
        let name = ObjectName::new("", crd.name_any());
        let client = self.client(&format!("{CONVERT}/{}/{}", operator.name(), name.name), bundle);
        let webhook = json!({"clientConfig": client, "conversionReviewVersions": ["v1"]});
        let body = json!({"apiVersion": kind.api_version(), "kind": kind.name(), "metadata": {"name": name.name},
            "spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}}});
        // Another manager than that of the definition, which may be somebody else's.
        let manager = format!("{}-webhooks", operator.name());
        Registration { kind, name, body, manager, part: true }
    }

    fn webhook(&self, controller: &dyn Controller, verb: &str, path: &str, bundle: &str) -> Value {
        let kind = controller.kind();
        let resource = format!("{}.{}", kind.plural(), kind.group());
        let path = format!("{path}/{}/{resource}", controller.operator());
        // What is deleted is never asked about, nor what only has a new status.
        let mut entry = json!({
            "name": format!("{verb}.{resource}"),
            "admissionReviewVersions": ["v1"],
            "clientConfig": self.client(&path, bundle),
            "rules": [{
                "apiGroups": [kind.group()],
                "apiVersions": [kind.version()],
                "resources": [kind.plural()],
                "operations": ["CREATE", "UPDATE"],
                "scope": if kind.namespaced() { "Namespaced" } else { "Cluster" },
            }],
            // Other versions are converted into this one first.
            "matchPolicy": "Equivalent",
            "failurePolicy": match self.failure_policy {
                FailurePolicy::Ignore => "Ignore",
                FailurePolicy::Fail => "Fail",
            },
            "sideEffects": "None",
            "timeoutSeconds": self.timeout,
        });
        if !self.namespaces.is_empty() && kind.namespaced() {
            entry["namespaceSelector"] = json!({"matchExpressions": [
                {"key": NAMESPACE_NAME, "operator": "In", "values": self.namespaces},
            ]});
        }
        entry
    }

    fn client(&self, path: &str, bundle: &str) -> Value {
        let bundle = ByteString(bundle.as_bytes().to_vec());
        match &self.place {
            Place::Service(service, port) => json!({
                "service": {"namespace": service.namespace, "name": service.name, "port": port, "path": path},
                "caBundle": bundle,
            }),
            Place::Url { base, .. } => json!({"url": format!("{base}{path}"), "caBundle": bundle}),
        }
    }
}

/// An object that tells the API server of webhooks.
#[derive(Clone, Debug)]
pub(crate) struct Registration {
    pub(crate) kind: Kind,
    pub(crate) name: ObjectName,
    /// The fields that are ours.
    pub(crate) body: Value,
    pub(crate) manager: String,
    /// Whether the rest of the object is somebody else's, so that it is nothing without that.
    pub(crate) part: bool,
}

/// Whether objects of a definition are ever converted.
pub(crate) fn has_versions(crd: &CustomResourceDefinition) -> bool {
    crd.spec.versions.len() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_that_no_api_server_takes_are_refused() {
        let url = |text: &str| Webhooks::url(text, ObjectName::new("default", "x"));
        assert_eq!(url("https://127.0.0.1:9443/").unwrap().names(), ["127.0.0.1"]);
        assert_eq!(url("https://[::1]:9443/base").unwrap().names(), ["::1"]);
        for wrong in [
            "http://127.0.0.1:1",
            "https://",
            "127.0.0.1:9443",
            "https://a/?b",
            "https://u@a/",
            "https://a/#b",
        ] {
            assert!(url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_service_is_reached_by_its_name() {
        let webhooks = Webhooks::service(ObjectName::new("operators", "monocle"), 443);
        assert_eq!(webhooks.names()[0], "monocle.operators.svc");
        assert_eq!(webhooks.secret_name().to_string(), "operators/monocle-webhooks");
        let client = webhooks.client("/validate/x", "bundle");
        assert_eq!(client["service"]["path"], "/validate/x");
        assert_eq!(client["caBundle"], "YnVuZGxl");
    }
}
