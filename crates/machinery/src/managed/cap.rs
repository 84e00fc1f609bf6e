//! Keeps the number of updaters small: the oldest are merged into one entry per API version.

use std::collections::BTreeMap;

use super::record::{Record, Records};
use crate::fields::FieldSet;

const MOST: usize = 10;
const BUCKET: &str = "ancient-changes";

pub(super) fn cap(records: &mut Records) {
    if records.len() <= MOST {
        return;
    }
    let mut updaters: Vec<Record> = records.iter().filter(|record| !record.applied).cloned().collect();
    let mut left = updaters.len();
    if left <= MOST {
        return;
    }
    updaters.sort_by_cached_key(|record| (record.time.clone(), record.identifier()));
    let mut first: BTreeMap<Box<str>, Record> = BTreeMap::new();
    for updater in updaters {
        if left <= MOST {
            return;
        }
        let version = updater.api_version.clone();
        let Some(oldest) = first.get(&version) else {
            first.insert(version, updater);
            continue;
        };
        let bucket = Record::update(BUCKET, &version, "", FieldSet::new());
        let merged = match records.take(&bucket) {
            Some(bucket) => bucket.set,
            None => records.take(oldest).map(|oldest| oldest.set).unwrap_or_default(),
        };
        let mut bucket = bucket;
        bucket.set = updater.set.clone().union(merged);
        bucket.time = updater.time.clone();
        records.put(bucket);
        records.retain(|record| !record.same_manager(&updater));
        left -= 1;
    }
}
