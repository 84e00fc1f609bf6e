//! Whether a catalog is whole: each package has its channels, each channel one way up through its bundles.
//!
//! The rules are those of `opm validate`; each problem names where it is and the way out.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_machinery::names;

use super::image::is_image;
use super::version::{Version, check_range};

/// One step of a channel.
struct Entry<'a> {
    name: &'a str,
    replaces: &'a str,
    skips: Vec<&'a str>,
    range: &'a str,
}

/// All that is wrong with the documents of a catalog.
pub(super) fn problems(documents: &[Value]) -> Vec<String> {
    let mut problems = Vec::new();
    let packages: BTreeSet<&str> = documents.iter().map(package_of).collect();
    for package in packages {
        let own: Vec<&Value> = documents.iter().filter(|document| package_of(document) == package).collect();
        problems.extend(
            of_package(package, &own).into_iter().map(|problem| format!("package {package}: {problem}")),
        );
    }
    problems
}

/// The package that a document is about.
pub(super) fn package_of(document: &Value) -> &str {
    let field = if document["schema"] == "olm.package" { "name" } else { "package" };
    document[field].as_str().unwrap_or_default()
}

/// The documents of a schema.
pub(super) fn of_schema<'a>(documents: &[&'a Value], schema: &str) -> Vec<&'a Value> {
    documents.iter().filter(|document| document["schema"] == schema).copied().collect()
}

fn text<'a>(tree: &'a Value, field: &str) -> &'a str {
    tree[field].as_str().unwrap_or_default()
}

fn of_package(package: &str, documents: &[&Value]) -> Vec<String> {
    let mut problems = Vec::new();
    if let Some(wrong) = names::dns1123_label(package).into_iter().next() {
        problems.push(format!("the name cannot be that of a package: {wrong}"));
    }
    let channels = of_schema(documents, "olm.channel");
    match of_schema(documents, "olm.package").as_slice() {
        [one] => {
            let default = text(one, "defaultChannel");
            if !channels.iter().any(|channel| text(channel, "name") == default) {
                problems.push(format!("the default channel {default:?} is not there; name one that is"));
            }
        }
        [] => problems.push(
            "there is no olm.package document; add its first bundle with `windlass catalog add`".into(),
        ),
        _ => problems.push("there are several olm.package documents; leave one".into()),
    }
    let versions = of_bundles(documents, &mut problems);
    let mut seen = BTreeSet::new();
    let mut published = BTreeSet::new();
    for channel in channels {
        let name = text(channel, "name");
        if !seen.insert(name) {
            problems.push(format!("channel {name} is there twice; put their entries together"));
        }
        let entries = entries(channel);
        published.extend(entries.iter().map(|entry| entry.name));
        problems.extend(
            of_channel(&entries, &versions).into_iter().map(|problem| format!("channel {name}: {problem}")),
        );
    }
    let unpublished = versions.keys().filter(|name| !published.contains(**name));
    problems.extend(unpublished.map(|name| format!("bundle {name} is in no channel; add an entry for it")));
    problems
}

/// The versions of the bundles, by name; what is wrong with them is added to the problems.
fn of_bundles<'a>(documents: &[&'a Value], problems: &mut Vec<String>) -> BTreeMap<&'a str, Option<Version>> {
    let mut versions: BTreeMap<&str, Option<Version>> = BTreeMap::new();
    for bundle in of_schema(documents, "olm.bundle") {
        let name = text(bundle, "name");
        let of_type = |property: &&Value| property["type"] == "olm.package";
        let properties: Vec<&Value> =
            bundle["properties"].as_array().into_iter().flatten().filter(of_type).collect();
        let version = match properties.as_slice() {
            [one] if one["value"]["packageName"] != bundle["package"] => {
                problems.push(format!("bundle {name} says it is of package {}", one["value"]["packageName"]));
                None
            }
            [one] => Version::parse(text(&one["value"], "version"))
                .map_err(|wrong| problems.push(format!("bundle {name}: {wrong}")))
                .ok(),
            _ => {
                problems
                    .push(format!("bundle {name} needs exactly one property olm.package, with its version"));
                None
            }
        };
        if !is_image(text(bundle, "image")) {
            problems.push(format!(
                "bundle {name}: {:?} is no image; write it as registry/name:tag",
                text(bundle, "image")
            ));
        }
        let same = versions.iter().find(|(_, known)| version.is_some() && **known == version);
        if let Some((other, _)) = same {
            problems
                .push(format!("bundles {other} and {name} are of the same version; raise that of the newer"));
        }
        if versions.insert(name, version).is_some() {
            problems.push(format!("bundle {name} is there twice; leave one"));
        }
    }
    versions
}

fn entries(channel: &Value) -> Vec<Entry<'_>> {
    let entry = |one| {
        let skips = one_list(one, "skips");
        Entry {
            name: text(one, "name"),
            replaces: text(one, "replaces"),
            skips,
            range: text(one, "skipRange"),
        }
    };
    channel["entries"].as_array().into_iter().flatten().map(entry).collect()
}

fn one_list<'a>(tree: &'a Value, field: &str) -> Vec<&'a str> {
    tree[field].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn of_channel(entries: &[Entry<'_>], versions: &BTreeMap<&str, Option<Version>>) -> Vec<String> {
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for entry in entries {
        let name = entry.name;
        if !seen.insert(name) {
            problems.push(format!("{name} is there twice; leave one entry"));
        }
        if !versions.contains_key(name) {
            problems.push(format!("there is no bundle {name}; add it, or remove the entry"));
        }
        if !entry.range.is_empty()
            && let Err(wrong) = check_range(entry.range)
        {
            problems.push(format!("skipRange of {name}: {wrong}"));
        }
        let version = |name: &str| versions.get(name).and_then(Option::as_ref);
        if let (Some(own), Some(replaced)) = (version(name), version(entry.replaces))
            && replaced > own
        {
            problems.push(format!("{name} replaces {}, which is newer; turn it round", entry.replaces));
        }
    }
    problems.extend(way_up(entries));
    problems
}

/// What is wrong with the way from the oldest entry to the newest: it must be one.
fn way_up(entries: &[Entry<'_>]) -> Option<String> {
    let Some(first) = entries.first() else {
        return Some("it has no entries; add a bundle to it, or remove it".into());
    };
    let skipped: BTreeSet<&str> = entries.iter().flat_map(|entry| entry.skips.iter().copied()).collect();
    let replaced: BTreeSet<&str> = entries.iter().map(|entry| entry.replaces).collect();
    let heads: Vec<&Entry<'_>> = entries
        .iter()
        .filter(|entry| !skipped.contains(entry.name) && !replaced.contains(entry.name))
        .collect();
    let head = match heads.as_slice() {
        [head] => head,
        [] => {
            return Some(format!(
                "each entry is replaced by another, in a circle with {}; break it",
                first.name
            ));
        }
        several => {
            let names: Vec<&str> = several.iter().map(|entry| entry.name).collect();
            return Some(format!(
                "nothing leads from one to the other of {}; make the bundle of the newer with --replaces the older",
                names.join(", ")
            ));
        }
    };
    let mut passed = BTreeSet::from([head.name]);
    let mut current = Some(*head);
    while let Some(entry) = current {
        if entry.replaces.is_empty() || skipped.contains(entry.replaces) {
            break;
        }
        if !passed.insert(entry.replaces) {
            return Some(format!(
                "{} replaces {}, which is newer in a circle; break it",
                entry.name, entry.replaces
            ));
        }
        current = entries.iter().find(|one| one.name == entry.replaces);
    }
    let stranded: Vec<&str> = entries
        .iter()
        .map(|entry| entry.name)
        .filter(|name| !passed.contains(name) && !skipped.contains(name))
        .collect();
    (!stranded.is_empty()).then(|| {
        format!(
            "no way leads from {} to {}; have an entry replace or skip them",
            stranded.join(", "),
            head.name
        )
    })
}

#[cfg(test)]
mod tests;
