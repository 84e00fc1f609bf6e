//! Deleting: at once, after a grace period, or once the finalizers are gone.

use serde_json::Value;

use super::super::admission::{self, Admission, Operation};
use super::super::definitions::conversion;
use super::super::options::{DeleteOptions, Propagation};
use super::super::status::{self, Failure, Outcome};
use super::super::{strategy, view};
use super::{Write, committed, encoded, metadata_mut, metadata_of};
use crate::store::Expect;

const ORPHAN: &str = "orphan";
const ORPHANS: &str = "child pods are preserved by default when jobs are deleted; set \
    propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";
const FOREGROUND: &str = "foregroundDeletion";

/// What is left of a deleted object.
pub enum Deleted {
    /// It is gone; a `Status` says so.
    Gone(Value),
    /// It is still there, marked, or it was and is shown a last time.
    Object(bytes::Bytes),
}

impl Write<'_> {
    /// Deletes an object.
    ///
    /// # Errors
    /// When it is not there, or not as expected.
    pub async fn delete(&mut self, name: &str, options: &DeleteOptions) -> Outcome<Deleted> {
        let key = self.key(name);
        self.warn_about_orphans(options);
        loop {
            let current = self
                .server
                .store
                .get(self.resource.table, &key)
                .ok_or_else(|| Failure::not_found(self.resource, name))?;
            let old = conversion::current(self.server, self.resource, &current).await?;
            self.check_delete(&old, options)?;
            let mut admission = Admission {
                server: self.server,
                resource: self.resource,
                subresource: self.subresource,
                namespace: self.namespace,
                operation: Operation::Delete,
                user: self.user,
                old: Some(&old),
                name: Some(if options.collection { "" } else { name }),
                part: None,
                shown: None,
                put_back: None,
                options: &options.given,
                dry_run: options.dry_run,
                warnings: Vec::new(),
            };
            let validated = admission::validate(&mut admission, &Value::Null).await;
            self.warnings.append(&mut admission.warnings);
            drop(admission);
            validated?;
            let strategy = self.strategy();
            let mut new = old.clone();
            let marked = metadata_of(&old).contains_key("deletionTimestamp");
            if marked && (strategy.held)(&old) {
                // What waits for others than its finalizers is not marked otherwise any more.
                return Ok(Deleted::Object(encoded(&old)));
            }
            let before = new.clone();
            self.mark_finalizers(&mut new, options);
            let grace = (strategy.grace)(&old, options.grace);
            let held =
                metadata_of(&new).get("finalizers").and_then(Value::as_array).is_some_and(|f| !f.is_empty())
                    || (strategy.held)(&new);
            let pending = metadata_of(&old).get("deletionGracePeriodSeconds").and_then(Value::as_i64);
            // A grace period that runs may only get shorter.
            let grace = if marked { grace.min(pending.unwrap_or(0)) } else { grace };
            if held || grace > 0 {
                if !marked || pending.is_some_and(|pending| grace < pending) {
                    self.mark_deleted(&mut new, grace, marked);
                    (strategy.mark)(&mut new, &self.server.context);
                }
                if new == before || options.dry_run {
                    return Ok(Deleted::Object(encoded(&new)));
                }
                let table = self.resource.table;
                let mut form = self.form(&new).await?;
                let written =
                    self.server.store.write(table, &key, Expect::At(current.revision), |revision| {
                        let (body, labels) = committed(form.as_mut().unwrap_or(&mut new), revision);
                        if form.is_some() {
                            committed(&mut new, revision);
                        }
                        (body, labels)
                    });
                if written.is_err() {
                    continue;
                }
                self.server.after_write(self.resource, Some(&old), Some(&new)).await;
                return Ok(Deleted::Object(encoded(&new)));
            }
            let uid = metadata_of(&old).get("uid").and_then(Value::as_str).unwrap_or_default().to_owned();
            let mut last = new;
            let mut seen = current.revision;
            if strategy.graceful && (!marked || pending.is_some_and(|pending| pending > 0)) {
                self.mark_deleted(&mut last, 0, marked);
                if !options.dry_run {
                    // The mark is written before the object goes, so that watchers see both.
                    let written =
                        self.server.store.write(self.resource.table, &key, Expect::At(seen), |revision| {
                            committed(&mut last, revision)
                        });
                    match written {
                        Ok(written) => seen = written.revision,
                        Err(_) => continue,
                    }
                }
            }
            if !options.dry_run {
                let mut form = self.form(&last).await?;
                let removed = self.server.store.remove(self.resource.table, &key, seen, |revision| {
                    committed(form.as_mut().unwrap_or(&mut last), revision)
                });
                if removed.is_err() {
                    continue;
                }
                self.server.after_write(self.resource, Some(&old), None).await;
            }
            return Ok(if strategy.returns_deleted {
                Deleted::Object(encoded(&last))
            } else {
                Deleted::Gone(status::deleted(self.resource, name, &uid))
            });
        }
    }

    /// Who deletes a job, say, without saying what becomes of its pods may not expect that they stay.
    fn warn_about_orphans(&mut self, options: &DeleteOptions) {
        let orphans = self.strategy().tells_of_orphans;
        let warned = self.warnings.iter().any(|warning| warning == ORPHANS);
        if orphans && options.propagation.is_none() && !warned {
            self.warnings.push(ORPHANS.to_owned());
        }
    }

    fn check_delete(&self, old: &Value, options: &DeleteOptions) -> Outcome<()> {
        let metadata = metadata_of(old);
        let text = |field: &str| metadata.get(field).and_then(Value::as_str).unwrap_or_default();
        let conflict = |why: String| {
            let kind = &self.resource.kind;
            let group = view::storage_group(&self.resource.group, &self.resource.plural);
            Failure::conflict_name(group, kind, text("name"), &why)
        };
        // Kinds that have a way of their own to go have words of their own too.
        let own = |what: &str, wanted: &str, found: &str| {
            let why = format!(
                "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
            );
            Failure::conflict(self.resource, text("name"), &why)
        };
        if let Some(wanted) = &options.uid
            && *wanted != text("uid")
        {
            if !self.strategy().dated {
                return Err(own("UID", wanted, text("uid")));
            }
            return Err(conflict(format!(
                "the UID in the precondition ({wanted}) does not match the UID in record ({}). The object might \
                 have been deleted and then recreated",
                text("uid")
            )));
        }
        if let Some(wanted) = &options.resource_version
            && *wanted != text("resourceVersion")
        {
            if !self.strategy().dated {
                return Err(own("ResourceVersion", wanted, text("resourceVersion")));
            }
            return Err(conflict(format!(
                "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record \
                 ({}). The object might have been modified",
                text("resourceVersion")
            )));
        }
        Ok(())
    }

    /// Adds or removes the garbage collector's own finalizers, as the propagation policy says.
    fn mark_finalizers(&self, object: &mut Value, options: &DeleteOptions) {
        if !strategy::collects(self.resource) {
            return;
        }
        let finalizers = metadata_of(object).get("finalizers").and_then(Value::as_array).cloned();
        let mut finalizers = finalizers.unwrap_or_default();
        let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
        let policy = options.propagation.unwrap_or({
            if has(ORPHAN) {
                Propagation::Orphan
            } else if has(FOREGROUND) {
                Propagation::Foreground
            } else {
                self.strategy().propagation
            }
        });
        finalizers.retain(|finalizer| finalizer != ORPHAN && finalizer != FOREGROUND);
        match policy {
            Propagation::Orphan => finalizers.push(ORPHAN.into()),
            Propagation::Foreground => finalizers.push(FOREGROUND.into()),
            Propagation::Background => {}
        }
        let value = (!finalizers.is_empty()).then_some(Value::Array(finalizers));
        super::replace(metadata_mut(object), "finalizers", value);
    }

    fn mark_deleted(&self, object: &mut Value, grace: i64, marked: bool) {
        let context = &self.server.context;
        let at = context.now() + jiff::SignedDuration::from_secs(grace);
        let metadata = metadata_mut(object);
        metadata.insert("deletionTimestamp".into(), windlass_machinery::context::seconds_text(at).into());
        if self.strategy().dated {
            metadata.insert("deletionGracePeriodSeconds".into(), grace.into());
        }
        if self.strategy().dated
            && !marked
            && let Some(generation) = metadata.get("generation").and_then(Value::as_i64)
        {
            metadata.insert("generation".into(), (generation + 1).into());
        }
    }
}
