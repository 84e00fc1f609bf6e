//! What OperatorHub wants of a bundle, and good manners.

use serde_json::Value;

use super::super::version::Version;
use super::bundle::{Bundle, Manifest, text_at};
use super::layout::CHANNELS;
use super::{Finding, Rule, error, finding, warning};

const CAPABILITIES: [&str; 5] =
    ["Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"];
const CATEGORIES: [&str; 16] = [
    "AI/Machine Learning",
    "Application Runtime",
    "Big Data",
    "Cloud Provider",
    "Database",
    "Developer Tools",
    "Integration & Delivery",
    "Logging & Tracing",
    "Modernization & Migration",
    "Monitoring",
    "Networking",
    "Observability",
    "OpenShift Optional",
    "Security",
    "Storage",
    "Streaming & Messaging",
];
const ICONS: [&str; 4] = ["image/gif", "image/jpeg", "image/png", "image/svg+xml"];
const CHANNEL_NAMES: [&str; 3] = ["candidate", "fast", "stable"];

pub(super) const RULES: &[Rule] = &[
    error("provider", "it says who publishes it", provider),
    error("maintainers", "maintainers have names and addresses", maintainers),
    error("links", "links have names and URLs", links),
    error("icon", "there is one icon, of a known type", icon),
    warning("icon-missing", "there is an icon", icon_missing),
    error("capabilities", "the level of capabilities is one that OperatorHub knows", capabilities),
    error("categories", "categories are those of OperatorHub", categories),
    warning("csv-name-form", "the name is PACKAGE.vVERSION", csv_name_form),
    warning(
        "channel-names",
        "channels are called candidate, fast or stable, perhaps with more",
        channel_names,
    ),
];

fn of_csv(bundle: &Bundle, violations: impl FnOnce(&Manifest) -> Vec<Finding>) -> Vec<Finding> {
    bundle.csv().map(violations).unwrap_or_default()
}

fn provider(bundle: &Bundle) -> Vec<Finding> {
    of_csv(bundle, |csv| match csv.text("/spec/provider/name").trim() {
        "" => vec![csv.finding("spec.provider.name", "it is missing; say who publishes the operator")],
        _ => Vec::new(),
    })
}

/// What is wrong with the elements of a list, each by its own rule.
fn elements(csv: &Manifest, list: &str, wrong: impl Fn(&Value) -> Option<String>) -> Vec<Finding> {
    let elements = csv.list(&format!("/spec/{list}")).iter().enumerate();
    elements
        .filter_map(|(index, one)| Some(csv.finding(format!("spec.{list}[{index}]"), wrong(one)?)))
        .collect()
}

fn maintainers(bundle: &Bundle) -> Vec<Finding> {
    of_csv(bundle, |csv| {
        elements(csv, "maintainers", |one| {
            let (name, email) = (text_at(one, "/name"), text_at(one, "/email"));
            let address =
                email.split_once('@').is_some_and(|(who, place)| !who.is_empty() && !place.is_empty());
            let plain = !email.contains(char::is_whitespace);
            let bad = name.is_empty() || !address || !plain;
            bad.then(|| format!("a maintainer needs a name and an email address, not {name:?} and {email:?}"))
        })
    })
}

fn links(bundle: &Bundle) -> Vec<Finding> {
    of_csv(bundle, |csv| {
        elements(csv, "links", |one| {
            let (name, url) = (text_at(one, "/name"), text_at(one, "/url"));
            let whole = url.starts_with('/')
                || url.split_once(':').is_some_and(|(scheme, rest)| {
                    scheme.starts_with(|one: char| one.is_ascii_alphabetic()) && !rest.is_empty()
                });
            let bad = name.is_empty() || !whole || url.contains(char::is_whitespace);
            bad.then(|| format!("a link needs a name and a whole URL, not {name:?} and {url:?}"))
        })
    })
}

fn icon(bundle: &Bundle) -> Vec<Finding> {
    of_csv(bundle, |csv| {
        let icons = csv.list("/spec/icon");
        let say = |message: String| csv.finding("spec.icon", message);
        let mut wrong = Vec::new();
        if icons.len() > 1 {
            wrong.push(say(format!("there are {} icons; leave one", icons.len())));
        }
        if let Some(icon) = icons.first() {
            let kind = text_at(icon, "/mediatype");
            if text_at(icon, "/base64data").is_empty() || kind.is_empty() {
                wrong.push(say("it needs base64data and a mediatype".into()));
            } else if !ICONS.contains(&kind) {
                wrong.push(say(format!("{kind:?} is none of {ICONS:?}")));
            }
        }
        wrong
    })
}

fn icon_missing(bundle: &Bundle) -> Vec<Finding> {
    of_csv(bundle, |csv| match csv.list("/spec/icon") {
        [] => vec![csv.finding("spec.icon", "there is none; catalogs show a blank")],
        _ => Vec::new(),
    })
}

fn capabilities(bundle: &Bundle) -> Vec<Finding> {
    of_csv(bundle, |csv| match csv.annotation("capabilities") {
        Some(level) if !CAPABILITIES.contains(&level) => {
            vec![csv.finding(
                "metadata.annotations.capabilities",
                format!("{level:?} is none of {CAPABILITIES:?}"),
            )]
        }
        _ => Vec::new(),
    })
}

fn categories(bundle: &Bundle) -> Vec<Finding> {
    of_csv(bundle, |csv| {
        let given = csv.annotation("categories").into_iter().flat_map(|list| list.split(',')).map(str::trim);
        let unknown = given.filter(|category| !CATEGORIES.contains(category));
        let message = |category: &str| format!("{category:?} is none of {CATEGORIES:?}");
        unknown.map(|category| csv.finding("metadata.annotations.categories", message(category))).collect()
    })
}

fn csv_name_form(bundle: &Bundle) -> Vec<Finding> {
    of_csv(bundle, |csv| {
        let name = csv.text("/metadata/name");
        let fits = name.split_once(".v").is_some_and(|(_, version)| Version::parse(version).is_ok());
        let message = format!("{name:?} is not of the form PACKAGE.vVERSION, such as example.v1.2.3");
        if fits { Vec::new() } else { vec![csv.finding("metadata.name", message)] }
    })
}

fn channel_names(bundle: &Bundle) -> Vec<Finding> {
    let Some((file, _)) = &bundle.annotations else { return Vec::new() };
    let known = |channel: &&str| CHANNEL_NAMES.iter().any(|name| channel.starts_with(name));
    let odd = bundle.channels().into_iter().filter(|channel| !known(channel));
    let message = |channel: &str| {
        format!("people expect channels whose names begin with {CHANNEL_NAMES:?}, not {channel:?}")
    };
    odd.map(|channel| finding(file, CHANNELS, message(channel))).collect()
}
