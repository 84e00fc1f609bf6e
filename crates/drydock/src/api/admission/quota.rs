//! ResourceQuota: what is written is charged to the quotas of its namespace, or refused.
//!
//! The charge is a write of the quota's status before the object itself is written. What was charged for an object
//! that was then not written is given back by the quota controller, which counts what there is. A quota counts from
//! when that controller has first looked at it: `status.hard` is what is limited.

mod usage;

use serde_json::Value;

use super::super::auth::User;
use super::super::options::WriteOptions;
use super::super::status::{Failure, Outcome};
use super::super::write::{Edit, Write, decoded, name_of};
use super::amounts::{Amounts, listed};
use super::{Admission, Operation};
use crate::store::Scope;

/// Charges a new or changed object to the quotas of its namespace.
pub(super) async fn charge(admission: &Admission<'_>, object: &Value) -> Outcome<()> {
    let resource = admission.resource;
    let counts = match (admission.operation, admission.old) {
        (Operation::Create, _) => true,
        (Operation::Update, Some(old)) => usage::changes(resource, object, old),
        _ => false,
    };
    if !counts || admission.subresource.is_some() || !resource.namespaced {
        return Ok(());
    }
    let registry = admission.server.registry();
    let quotas =
        registry.core("resourcequotas").filter(|quotas| admission.server.store.is_used(quotas.table));
    let Some(quotas) = quotas else { return Ok(()) };
    let scope = Scope::Namespace(admission.namespace.into());
    let stored = admission.server.store.list(quotas.table, &scope).1;
    let mut charged = Vec::new();
    for stored in &stored {
        let quota = decoded(stored)?;
        let hard = listed(&quota["status"]["hard"]);
        let limited = usage::limited(resource, hard.keys());
        if limited.is_empty() || !usage::in_scope(resource, &quota, object) {
            continue;
        }
        let refused = |why: String| Failure::forbidden(resource, name_of(object), why);
        if let Some(unsaid) = usage::unsaid(resource, &limited, object) {
            return Err(refused(format!("failed quota: {}: {unsaid}", name_of(&quota))));
        }
        let used = listed(&quota["status"]["used"]);
        if limited.iter().any(|name| !used.contains_key(*name)) {
            let why =
                format!("status unknown for quota: {}, resources: {}", name_of(&quota), limited.join(","));
            return Err(refused(why));
        }
        charged.push(quota);
    }
    let user = User::master("system:apiserver");
    for quota in charged {
        let requested = requested(admission, object, &quota);
        if requested.is_empty() {
            continue;
        }
        let mut write = Write {
            server: admission.server,
            resource: quotas,
            subresource: Some("status"),
            namespace: admission.namespace,
            user: &user,
            options: WriteOptions { dry_run: admission.dry_run, ..WriteOptions::internal() },
            warnings: Vec::new(),
        };
        let take = |quota: &mut Value| {
            for (name, amount) in add(admission, object, quota, &requested)? {
                quota["status"]["used"][name] = amount.to_string().into();
            }
            Ok(())
        };
        // A quota that was deleted meanwhile limits nothing.
        match Box::pin(write.update(name_of(&quota), &Edit(take))).await {
            Err(failure) if failure.reason == "NotFound" => {}
            other => drop(other?),
        }
    }
    Ok(())
}

/// What the write takes more of what a quota limits.
fn requested(admission: &Admission<'_>, object: &Value, quota: &Value) -> Amounts {
    let hard = listed(&quota["status"]["hard"]);
    let mut wanted = usage::of(admission.resource, object);
    if let Some(old) = admission.old
        && usage::in_scope(admission.resource, quota, old)
    {
        for (name, amount) in usage::of(admission.resource, old) {
            if let Some(now) = wanted.get_mut(&name) {
                *now = now.subtract(&amount);
            }
        }
    }
    wanted.retain(|name, amount| hard.contains_key(name) && amount.sign() > 0);
    wanted
}

/// What a quota has in use once the object is there.
fn add(admission: &Admission<'_>, object: &Value, quota: &Value, requested: &Amounts) -> Outcome<Amounts> {
    let (hard, used) = (listed(&quota["status"]["hard"]), listed(&quota["status"]["used"]));
    let mut charged = Amounts::new();
    let mut exceeded: Vec<&String> = Vec::new();
    for (key, amount) in requested {
        let total = used.get(key).map_or_else(|| amount.clone(), |used| used.add(amount));
        if hard.get(key).is_some_and(|hard| total > *hard) {
            exceeded.push(key);
        }
        charged.insert(key.clone(), total);
    }
    if exceeded.is_empty() {
        return Ok(charged);
    }
    let shown = |amounts: &Amounts| {
        let parts = exceeded.iter().filter_map(|key| Some(format!("{key}={}", amounts.get(*key)?)));
        parts.collect::<Vec<_>>().join(",")
    };
    let why = format!(
        "exceeded quota: {}, requested: {}, used: {}, limited: {}",
        name_of(quota),
        shown(requested),
        shown(&used),
        shown(&hard)
    );
    Err(Failure::forbidden(admission.resource, name_of(object), why))
}
