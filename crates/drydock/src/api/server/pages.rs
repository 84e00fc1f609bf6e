//! What is no resource: health, version, discovery, schemas.

use http::header::{ACCEPT, ETAG, IF_NONE_MATCH, LOCATION};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::super::auth::{self, Attributes};
use super::super::negotiation::{self, Answered};
use super::super::status::Failure;
use super::super::{discovery, openapi, read};
use super::answer::Answer;
use super::{Call, Server};

/// What a healthy server is asked about one by one, under the names that the real server has for it. All of it is
/// done by the time that this server answers at all.
const CHECKS: &str = "ping log
    livez:loopback-serving-certificate etcd readyz:etcd-readiness readyz:informer-sync
    poststarthook/start-apiserver-admission-initializer poststarthook/generic-apiserver-start-informers
    poststarthook/priority-and-fairness-config-consumer poststarthook/priority-and-fairness-filter
    poststarthook/storage-object-count-tracker-hook poststarthook/start-apiextensions-informers
    poststarthook/start-apiextensions-controllers poststarthook/crd-informer-synced
    poststarthook/start-system-namespaces-controller poststarthook/peer-endpoint-reconciler-controller
    poststarthook/start-cluster-authentication-info-controller
    poststarthook/start-kube-apiserver-identity-lease-controller
    poststarthook/start-kube-apiserver-identity-lease-garbage-collector poststarthook/storage-readiness
    poststarthook/start-legacy-token-tracking-controller poststarthook/start-service-ip-repair-controllers
    poststarthook/rbac/bootstrap-roles poststarthook/scheduling/bootstrap-system-priority-classes
    poststarthook/priority-and-fairness-config-producer poststarthook/bootstrap-controller
    poststarthook/start-kubernetes-service-cidr-controller poststarthook/start-kube-aggregator-informers
    poststarthook/apiservice-status-local-available-controller
    poststarthook/apiservice-status-remote-available-controller poststarthook/apiservice-registration-controller
    poststarthook/apiservice-discovery-controller poststarthook/kube-apiserver-autoregistration
    autoregister-completion poststarthook/apiservice-openapi-controller
    poststarthook/apiservice-openapiv3-controller readyz:shutdown";

/// The checks of a page: being ready is asked for in other words than being alive.
fn checks(page: &str) -> impl Iterator<Item = &'static str> {
    let ready = page.trim_start_matches('/') == "readyz";
    CHECKS.split_whitespace().filter_map(move |check| match check.split_once(':') {
        None => Some(check),
        Some(("readyz", check)) => ready.then_some(check),
        Some((_, check)) => (!ready).then_some(check),
    })
}

impl Server {
    pub(super) fn page(&self, call: &Call, path: &str) -> Answer {
        let verb = call.method.as_str().to_lowercase();
        let wanted = Attributes { verb: &verb, target: auth::Target::Path(path) };
        if let Err(failure) = self.auth.authorize(&call.user, &wanted) {
            return Answer::failure(&failure, &call.headers);
        }
        self.fixed_page(call, path)
            .or_else(|| self.schema_page(call, path))
            .or_else(|| self.discovery_page(call, path))
            .unwrap_or_else(Answer::no_page)
    }

    fn fixed_page(&self, call: &Call, path: &str) -> Option<Answer> {
        let lead = ["/healthz", "/livez", "/readyz"].into_iter().find(|lead| path.starts_with(lead));
        let health = lead.and_then(|lead| path.strip_prefix(lead));
        let checks = || checks(lead.unwrap_or_default());
        match (path, health) {
            (_, Some("")) if call.query.first("verbose").is_some() => {
                let excluded: Vec<&str> = call.query.all("exclude").collect();
                let line = |check: &str| match excluded.contains(&check) {
                    true => format!("[+]{check} excluded: ok\n"),
                    false => format!("[+]{check} ok\n"),
                };
                let lines: String = checks().map(line).collect();
                let name = path.trim_start_matches('/');
                Some(Answer::text(StatusCode::OK, &format!("{lines}{name} check passed\n")))
            }
            (_, Some("")) => Some(Answer::text(StatusCode::OK, "ok")),
            (_, Some(check))
                if check.strip_prefix('/').is_some_and(|check| checks().any(|known| known == check)) =>
            {
                Some(Answer::text(StatusCode::OK, "ok"))
            }
            ("/" | "/index.html", _) => Some(Answer::json(StatusCode::OK, &self.paths())),
            ("/.well-known/openid-configuration", _) => {
                Some(Answer::json(StatusCode::OK, &auth::token::discovery()))
            }
            ("/openid/v1/jwks", _) => {
                let keys = Answer::json(StatusCode::OK, &self.auth.signer.key_set());
                Some(Answer { kind: "application/jwk-set+json", ..keys })
            }
            ("/version" | "/version/", _) if call.method == Method::GET => {
                Some(Answer::json(StatusCode::OK, &version()))
            }
            ("/version" | "/version/", _) => {
                Some(Answer::failure(&Failure::method_not_allowed(), &call.headers))
            }
            _ if path.starts_with("/version/") => {
                Some(Answer::failure(&Failure::no_such_resource(), &call.headers))
            }
            _ => None,
        }
    }

    /// All pages there are.
    fn paths(&self) -> Value {
        let registry = self.registry();
        let mut paths: Vec<String> = [
            "/.well-known/openid-configuration",
            "/apis",
            "/apis/",
            "/openapi/v2",
            "/openapi/v3",
            "/openapi/v3/",
        ]
        .iter()
        .chain(&["/openid/v1/jwks", "/version"])
        .map(|path| (*path).to_owned())
        .collect();
        for lead in ["/healthz", "/livez", "/readyz"] {
            paths.push(lead.to_owned());
            paths.extend(checks(lead).map(|check| format!("{lead}/{check}")));
        }
        for resource in registry.all() {
            let lead = match resource.group.as_str() {
                "" => "/api".to_owned(),
                group => format!("/apis/{group}"),
            };
            paths.push(format!("{lead}/{}", resource.version));
            paths.push(lead);
        }
        paths.sort();
        paths.dedup();
        json!({"paths": paths})
    }

    fn schema_page(&self, call: &Call, path: &str) -> Option<Answer> {
        let page = path.strip_suffix('/').unwrap_or(path);
        let registry = self.registry();
        if page == "/openapi/v2" {
            let accept = call.headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("*/*");
            if !["*/*", "application/json", "application/*"].iter().any(|known| accept.contains(known)) {
                return Some(Answer::bare(StatusCode::NOT_ACCEPTABLE));
            }
            return Some(tagged(call, &openapi::v2::whole(self, &registry)));
        }
        if page == "/openapi/v3" {
            let index = Answer::json(StatusCode::OK, &openapi::index(&registry));
            return Some(Answer { kind: "text/plain; charset=utf-8", ..index });
        }
        let place = page.strip_prefix("/openapi/v3/")?;
        let Some(document) = openapi::document(self, &registry, place) else {
            return Some(Answer::bare(StatusCode::NOT_FOUND));
        };
        // A document that has changed since the index named it is where the index names it now.
        let stamp = openapi::stamp(&registry, place);
        match call.query.get("hash") {
            Some(asked) if asked != stamp => {
                let place = format!("/openapi/v3/{place}?hash={stamp}");
                Some(Answer::bare(StatusCode::MOVED_PERMANENTLY).with_header(LOCATION, place))
            }
            _ => Some(tagged(call, &document)),
        }
    }

    fn discovery_page(&self, call: &Call, path: &str) -> Option<Answer> {
        let page = path.strip_suffix('/').unwrap_or(path);
        let parts: Vec<&str> = page.split('/').skip(1).collect();
        let registry = self.registry();
        let fail = |failure: &Failure| Some(Answer::failure(failure, &call.headers));
        let whole = matches!(page, "/api" | "/apis");
        let aggregated = whole && discovery::wants_aggregated(&call.headers);
        let Some(answer) = discovery::answer(&registry, page, aggregated) else {
            // A version that a group does not have is no page of nothing.
            return match parts.as_slice() {
                ["api", ..] => fail(&Failure::no_such_resource()),
                ["apis", group, _] if registry.knows(group, "").0 && !registry.is_custom(group) => {
                    fail(&Failure::no_such_resource())
                }
                _ => None,
            };
        };
        // The lists of groups answer to any method.
        if !matches!(parts.as_slice(), ["apis"] | ["apis", _]) && call.method != Method::GET {
            return fail(&Failure::method_not_allowed());
        }
        if aggregated {
            let answer = tagged(call, &answer);
            return Some(Answer { kind: discovery::AGGREGATED, ..answer });
        }
        match negotiation::accepted(&call.headers, Answered::Object) {
            Ok(form) if form.view == negotiation::View::Whole => {
                let body = read::encode(answer.to_string().into(), form).ok()?;
                Some(Answer::bytes(StatusCode::OK, form, body))
            }
            Err(failure) if !whole => fail(&failure),
            _ => fail(&negotiation::refused()),
        }
    }
}

/// A document with its tag, or no more than that it is what the client has.
fn tagged(call: &Call, document: &Value) -> Answer {
    let text = document.to_string();
    let tag: String = Sha256::digest(&text).iter().map(|byte| format!("{byte:02X}")).collect();
    let tag = format!("\"{tag}\"");
    let known = call.headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    if known.is_some_and(|known| known.split(',').any(|one| one.trim() == tag)) {
        return Answer::bare(StatusCode::NOT_MODIFIED).with_header(ETAG, tag);
    }
    Answer::bytes(StatusCode::OK, negotiation::Form::PLAIN, text.into()).with_header(ETAG, tag)
}

fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "emulationMajor": "1", "emulationMinor": "36",
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
        "gitVersion": "v1.36.3+windlass", "gitCommit": "", "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        }),
    })
}
