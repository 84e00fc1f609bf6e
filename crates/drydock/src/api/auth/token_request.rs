//! `serviceaccounts/NAME/token`: makes a token for a service account.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use serde_json::{Value, json};
use windlass_machinery::context::seconds_text;
use windlass_machinery::invalid::FieldError;

use super::super::admission::{self, Admission, Operation};
use super::super::registry::Resource;
use super::super::status::{Failure, Outcome};
use super::super::write::{Write, decoded, encoded, metadata_mut, metadata_of, name_of};
use super::account_name;
use super::token::{AUDIENCE, Bound, Claims, ISSUER, Reference};
use crate::store::Key;

/// The name of the subresource.
pub const SUBRESOURCE: &str = "token";

const LEAST_SECONDS: i64 = 600;
const MOST_SECONDS: i64 = 1 << 32;
const DEFAULT_SECONDS: i64 = 3600;
/// What pods ask for without having been asked; their tokens are good for a year, with a warning, so that
/// programs that never read them again go on.
const POD_SECONDS: i64 = 3607;
const YEAR_SECONDS: i64 = 365 * 24 * 3600;

/// Makes a token for the service account `name`; the answer is a TokenRequest with it, and its kind.
///
/// # Errors
/// When the account or what the token is to be bound to is not there, or the request makes no sense.
pub async fn create(
    write: &mut Write<'_>,
    headers: &HeaderMap,
    body: &Bytes,
    name: &str,
) -> Outcome<(Arc<Resource>, Bytes)> {
    let part = write.resource.part(SUBRESOURCE).ok_or_else(Failure::no_such_resource)?;
    let part = Arc::new(part);
    let mut own = Write {
        server: write.server,
        resource: &part,
        subresource: Some(SUBRESOURCE),
        namespace: write.namespace,
        user: write.user,
        options: write.options.clone(),
        warnings: Vec::new(),
    };
    let read = own.read_body(headers, body);
    write.warnings.append(&mut own.warnings);
    let mut request = read?;
    if request["spec"]["expirationSeconds"].is_null() {
        request["spec"]["expirationSeconds"] = DEFAULT_SECONDS.into();
    }
    own.draft(&mut request)?;
    let mut admission = Admission {
        server: write.server,
        resource: write.resource,
        subresource: Some(SUBRESOURCE),
        namespace: write.namespace,
        operation: Operation::Create,
        user: write.user,
        old: None,
        name: Some(name),
        part: Some(&part),
        shown: None,
        put_back: None,
        options: &write.options.given,
        dry_run: write.options.dry_run,
        warnings: Vec::new(),
    };
    admission::mutate(&mut admission, &mut request).await?;
    // It is looked at as if it were stored.
    let mut whole = request.clone();
    let metadata = metadata_mut(&mut whole);
    metadata.insert("name".into(), name.into());
    let account = write.server.store.get(write.resource.table, &write.key(name));
    let account = account.and_then(|stored| decoded(&stored).ok()).unwrap_or_default();
    metadata.insert("uid".into(), uid_of(&account).into());
    metadata.insert("creationTimestamp".into(), write.server.context.now_text().into());
    admission::validate(&mut admission, &whole).await?;
    write.warnings.append(&mut admission.warnings);
    issue(&own, write.resource, name, &mut request)?;
    own.normalise(&mut request);
    Ok((part, encoded(&request)))
}

fn issue(write: &Write<'_>, accounts: &Resource, name: &str, request: &mut Value) -> Outcome<()> {
    let given = name_of(request);
    if !given.is_empty() && given != name {
        let detail = "must match the service account name if specified";
        let error = FieldError::invalid("metadata.name", given, detail);
        return Err(Failure::invalid(&write.resource.group, "TokenRequest", name, &[error]));
    }
    let stored = write.server.store.get(accounts.table, &Key::new(write.namespace, name));
    let account = decoded(&*stored.ok_or_else(|| Failure::not_found(accounts, name))?)?;
    let uid = uid_of(&account);
    let wanted = uid_of(request);
    if !wanted.is_empty() && wanted != uid {
        let why = format!(
            "the UID in the token request ({wanted}) does not match the UID of the service account ({uid})"
        );
        return Err(conflict("TokenRequest.authentication.k8s.io", name, &why)
            .with_details(json!({"name": name, "group": "authentication.k8s.io", "kind": "TokenRequest"})));
    }
    let audiences = request["spec"]["audiences"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut audiences: Vec<String> =
        audiences.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect();
    if audiences.is_empty() {
        audiences.push(AUDIENCE.to_owned());
    }
    let seconds = request["spec"]["expirationSeconds"].as_i64().unwrap_or(DEFAULT_SECONDS);
    check_seconds(seconds)?;
    let serviceaccount = Reference { name: name.to_owned(), uid: uid.clone() };
    let mut bound = Bound { namespace: write.namespace.to_owned(), serviceaccount, ..Bound::default() };
    bind(write, name, &request["spec"]["boundObjectRef"], &mut bound)?;

    let context = &write.server.context;
    let now = context.now();
    let second = now.as_second();
    let mut lasts = seconds;
    if bound.pod.is_some() && seconds == POD_SECONDS && audiences == [AUDIENCE] {
        bound.warnafter = Some(second + seconds);
        lasts = YEAR_SECONDS;
    }
    let claims = Claims {
        aud: audiences.clone(),
        exp: second + lasts,
        iat: second,
        iss: ISSUER.to_owned(),
        jti: context.uid(),
        bound,
        nbf: second,
        sub: account_name(write.namespace, name),
    };
    let token = write.server.auth.signer.sign(&claims);
    let token = token.map_err(|error| Failure::internal(format!("failed to generate token: {error}")))?;
    let metadata = metadata_mut(request);
    metadata.insert("name".into(), name.into());
    metadata.insert("uid".into(), uid.into());
    metadata.insert("creationTimestamp".into(), seconds_text(now).into());
    request["spec"]["audiences"] = audiences.into();
    let until = seconds_text(now + jiff::SignedDuration::from_secs(seconds));
    request["status"] = json!({"token": token, "expirationTimestamp": until});
    Ok(())
}

fn check_seconds(seconds: i64) -> Outcome<()> {
    let detail = if seconds < LEAST_SECONDS {
        "may not specify a duration less than 10 minutes"
    } else if seconds > MOST_SECONDS {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(());
    };
    let error = FieldError::invalid("spec.expirationSeconds", seconds, detail);
    Err(Failure::invalid("authentication.k8s.io", "TokenRequest", "", &[error]))
}

/// Binds the token to the object that the request names, where it names one.
fn bind(write: &Write<'_>, account: &str, reference: &Value, bound: &mut Bound) -> Outcome<()> {
    if reference.is_null() {
        return Ok(());
    }
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let (group, version) = text("apiVersion").rsplit_once('/').unwrap_or(("", text("apiVersion")));
    let (kind, name) = (text("kind"), text("name"));
    let (plural, namespace) = match (group, kind) {
        ("", "Pod") => ("pods", write.namespace),
        ("", "Secret") => ("secrets", write.namespace),
        ("", "Node") => ("nodes", ""),
        _ => {
            let message = format!("cannot bind token to object of type {group}/{version}, Kind={kind}");
            return Err(Failure::bad_request(message));
        }
    };
    if name.is_empty() {
        return Err(Failure::bad_request("Name parameter required."));
    }
    let object = find(write, plural, namespace, name)?;
    let found = Reference { name: name.to_owned(), uid: uid_of(&object) };
    if kind == "Pod" && object["spec"]["serviceAccountName"] != account {
        return Err(Failure::bad_request(format!(
            "cannot bind token for serviceaccount {account:?} to pod running with different serviceaccount name."
        )));
    }
    let wanted = text("uid");
    if !wanted.is_empty() && wanted != found.uid {
        let why = format!(
            "the UID in the bound object reference ({wanted}) does not match the UID in record. The object might \
             have been deleted and then recreated"
        );
        return Err(conflict(kind, name, &why).with_details(json!({"name": name, "kind": kind})));
    }
    match kind {
        "Secret" => bound.secret = Some(found),
        "Node" => bound.node = Some(found),
        _ => {
            bound.pod = Some(found);
            if let Some(node) = object["spec"]["nodeName"].as_str().filter(|node| !node.is_empty()) {
                // A node that is gone is still worth telling.
                let uid = find(write, "nodes", "", node).map(|node| uid_of(&node)).unwrap_or_default();
                bound.node = Some(Reference { name: node.to_owned(), uid });
            }
        }
    }
    Ok(())
}

fn find(write: &Write<'_>, plural: &str, namespace: &str, name: &str) -> Outcome<Value> {
    let registry = write.server.registry();
    let resource = registry.core(plural).ok_or_else(Failure::no_such_resource)?;
    let stored = write.server.store.get(resource.table, &Key::new(namespace, name));
    decoded(&*stored.ok_or_else(|| Failure::not_found(resource, name))?)
}

fn uid_of(object: &Value) -> String {
    metadata_of(object).get("uid").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn conflict(what: &str, name: &str, why: &str) -> Failure {
    Failure {
        code: http::StatusCode::CONFLICT,
        reason: "Conflict",
        message: format!("Operation cannot be fulfilled on {what} {name:?}: {why}"),
        details: None,
        from: None,
        passed: None,
    }
}
