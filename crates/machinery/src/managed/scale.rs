//! Managed fields of the scale subresource, which are those of the object's field for replicas.
//!
//! Updaters are told apart by API version, and the Scale has another one than the object: an updater that keeps
//! the field is listed a second time, for that field alone and without a time, as the API server lists it.

use serde_json::Value;

use super::ManagedFieldsError;
use super::record::Records;
use crate::fields::{FieldSet, PathElement};

const SCALE_VERSION: &str = "autoscaling/v1";

/// The managed fields of a Scale, made from those of its object.
///
/// `replicas` is the path of the field for replicas (`spec`, `replicas`).
///
/// # Errors
/// When the object's managed fields cannot be read.
pub fn scale_view(parent: &Value, replicas: &[&str]) -> Result<Option<Value>, ManagedFieldsError> {
    let path = path(replicas);
    let mut view = Records::default();
    for record in Records::parse(parent)?.iter().filter(|record| record.set.contains(&path)) {
        let mut record = record.clone();
        record.api_version = SCALE_VERSION.into();
        record.replace(FieldSet::of(&[&["spec", "replicas"]]));
        view.push(record);
    }
    Ok(view.into_json(None))
}

/// The managed fields of an object after its Scale was written by [`update`](fn@super::update) or
/// [`apply`](fn@super::apply).
///
/// `api_version` is the object's.
///
/// # Errors
/// When managed fields cannot be read.
pub fn scale_to_parent(
    source: &Value,
    scale: &Value,
    replicas: &[&str],
    api_version: &str,
) -> Result<Option<Value>, ManagedFieldsError> {
    let path = path(replicas);
    let parent = Records::parse(source)?;
    let mut scale = Records::parse(scale)?;
    let mut out = Records::default();
    for record in parent.iter() {
        let mut record = record.clone();
        if record.set.contains(&path) && scale.take(&record).is_none() {
            // The field was taken from this manager.
            record.replace(record.set.difference(&FieldSet::of(&[replicas])));
        }
        if !record.set.is_empty() {
            out.push(record);
        }
    }
    let in_scale = self::path(&["spec", "replicas"]);
    for record in scale.iter().filter(|record| record.set.contains(&in_scale)) {
        let mut record = record.clone();
        record.time =
            parent.iter().find(|known| known.same_manager(&record)).and_then(|known| known.time.clone());
        record.api_version = api_version.into();
        record.replace(FieldSet::of(&[replicas]));
        out.push(record);
    }
    Ok(out.into_json(Some(source)))
}

fn path(names: &[&str]) -> Vec<PathElement> {
    names.iter().map(|name| PathElement::field(name)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(
        manager: &str,
        operation: &str,
        subresource: Option<&str>,
        version: &str,
        fields: Value,
    ) -> Value {
        let mut entry = json!({
            "manager": manager, "operation": operation, "apiVersion": version, "fieldsType": "FieldsV1",
            "fieldsV1": fields
        });
        if let Some(subresource) = subresource {
            entry["subresource"] = subresource.into();
        }
        entry
    }

    #[test]
    fn the_field_moves_with_the_scale() {
        let replicas = json!({"f:spec": {"f:replicas": {}}});
        let parent = json!([
            entry("one", "Apply", None, "apps/v1", json!({"f:spec": {"f:selector": {}}})),
            entry("hpa", "Apply", None, "apps/v1", replicas.clone()),
        ]);
        let view = scale_view(&parent, &["spec", "replicas"]).unwrap().unwrap();
        assert_eq!(view, json!([entry("hpa", "Apply", None, "autoscaling/v1", replicas.clone())]));
        let scale = json!([entry("scaler", "Update", Some("scale"), "autoscaling/v1", replicas.clone())]);
        let after = scale_to_parent(&parent, &scale, &["spec", "replicas"], "apps/v1").unwrap().unwrap();
        assert_eq!(
            after,
            json!([
                entry("one", "Apply", None, "apps/v1", json!({"f:spec": {"f:selector": {}}})),
                entry("scaler", "Update", Some("scale"), "apps/v1", replicas),
            ])
        );
    }
}
