//! What names, label keys and label values may look like, and what is said about those that do not.
//!
//! Each rule returns what is wrong with a value, in the API server's words; no words mean that it is right.
//! Which field has to follow which rule is decided elsewhere, except for the metadata that all objects share
//! ([`object_meta`]).

mod metadata;

use crate::go;

pub use metadata::{finalizers_qualified, labels, object_meta, object_meta_update};

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const QUALIFIED_TEXT: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

/// A rule for the names of a kind. The flag tells that something will be appended, so that a dash may end it.
pub type NameRule = fn(&str, bool) -> Vec<String>;

/// Names that are DNS subdomains: most kinds.
#[must_use]
pub fn subdomain_name(name: &str, prefix: bool) -> Vec<String> {
    dns1123_subdomain(&masked(name, prefix))
}

/// Names that are DNS labels: namespaces, and kinds whose names become host names.
#[must_use]
pub fn label_name(name: &str, prefix: bool) -> Vec<String> {
    dns1123_label(&masked(name, prefix))
}

/// Names that are DNS labels of the old kind, which begin with a letter.
#[must_use]
pub fn dns1035_name(name: &str, prefix: bool) -> Vec<String> {
    dns1035_label(&masked(name, prefix))
}

/// Names that only have to fit into a path: roles and their bindings.
#[must_use]
pub fn path_segment_name(name: &str, prefix: bool) -> Vec<String> {
    if !prefix && matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    let forbidden = ['/', '%'].into_iter().filter(|c| name.contains(*c));
    forbidden.map(|c| format!("may not contain '{c}'")).collect()
}

/// A DNS label after RFC 1123.
#[must_use]
pub fn dns1123_label(value: &str) -> Vec<String> {
    let mut out = too_long(value, 63);
    if !is_label(value) {
        out.push(if is_subdomain(value) {
            "must not contain dots".to_owned()
        } else {
            regex_text(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
                LABEL,
                &["my-name", "123-abc"],
            )
        });
    }
    out
}

/// A DNS subdomain after RFC 1123.
#[must_use]
pub fn dns1123_subdomain(value: &str) -> Vec<String> {
    let mut out = too_long(value, 253);
    if !is_subdomain(value) {
        out.push(regex_text(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
            SUBDOMAIN,
            &["example.com"],
        ));
    }
    out
}

/// The name of an object as declared rules have it, which count bytes.
#[must_use]
pub fn long_name(name: &str, prefix: bool) -> Vec<String> {
    let mut out = subdomain_name(name, prefix);
    for why in &mut out {
        if why.starts_with("must be no more than") {
            *why = why.replace("characters", "bytes");
        }
    }
    out
}

/// A DNS subdomain whose first label is `*`.
#[must_use]
pub fn wildcard_subdomain(value: &str) -> Vec<String> {
    let mut out = too_long(value, 253);
    if !value.strip_prefix("*.").is_some_and(is_subdomain) {
        out.push(regex_text(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
            &format!("\\*\\.{SUBDOMAIN}"),
            &["*.example.com"],
        ));
    }
    out
}

/// A DNS label after RFC 1035, which begins with a letter.
#[must_use]
pub fn dns1035_label(value: &str) -> Vec<String> {
    let mut out = too_long(value, 63);
    if !(is_label(value) && value.starts_with(|c: char| c.is_ascii_lowercase())) {
        out.push(regex_text(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    out
}

/// A qualified name: a label key, an annotation key, a finalizer, a condition type.
#[must_use]
pub fn qualified_name(value: &str) -> Vec<String> {
    let regex = || regex_text(QUALIFIED_TEXT, QUALIFIED, &["MyName", "my.name", "123-abc"]);
    let mut out = Vec::new();
    let name = match value.split('/').collect::<Vec<_>>().as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                out.push("prefix part must be non-empty".to_owned());
            } else {
                out.extend(
                    dns1123_subdomain(prefix)
                        .into_iter()
                        .map(|text| format!("prefix part {}", text.replace("253 characters", "253 bytes"))),
                );
            }
            *name
        }
        _ => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                regex()
            )];
        }
    };
    if name.is_empty() {
        out.push("name part must be non-empty".to_owned());
    } else {
        out.extend(too_many_bytes(name, 63).into_iter().map(|text| format!("name part {text}")));
    }
    if !is_qualified(name) {
        out.push(format!("name part {}", regex()));
    }
    out
}

/// The value of a label.
#[must_use]
pub fn label_value(value: &str) -> Vec<String> {
    let mut out = too_many_bytes(value, 63);
    if !value.is_empty() && !is_qualified(value) {
        out.push(regex_text(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
            "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
            &["MyValue", "my_value", "12345"],
        ));
    }
    out
}

/// A C identifier.
#[must_use]
pub fn c_identifier(value: &str) -> Vec<String> {
    let good = value.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && value.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    unless(good, || {
        regex_text(
            "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'",
            "[A-Za-z_][A-Za-z0-9_]*",
            &["my_name", "MY_NAME", "MyName"],
        )
    })
}

/// The name of an environment variable, as it has been since Kubernetes 1.34: printable ASCII without `=`.
#[must_use]
pub fn env_var_name(value: &str) -> Vec<String> {
    if value.is_empty() {
        return vec!["environment variable name must be non-empty".to_owned()];
    }
    unless(value.chars().all(|c| matches!(c, ' '..='~') && c != '='), || {
        "a valid environment variable name must consist only of printable ASCII characters other than '='"
            .to_owned()
    })
}

/// The name of an environment variable, in the stricter form that prefixes still follow.
#[must_use]
pub fn strict_env_var_name(value: &str) -> Vec<String> {
    let good = !value.is_empty()
        && !value.starts_with(|c: char| c.is_ascii_digit())
        && value.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    let mut out = unless(good, || {
        regex_text(
            "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit",
            "[-._a-zA-Z][-._a-zA-Z0-9]*",
            &["my.env-name", "MY_ENV.NAME", "MyEnvName1"],
        )
    });
    out.extend(parent_directory(value));
    out
}

/// A key of a ConfigMap or Secret.
#[must_use]
pub fn config_map_key(value: &str) -> Vec<String> {
    let mut out = too_long(value, 253);
    if value.is_empty() || !value.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c)) {
        out.push(regex_text(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    out.extend(parent_directory(value));
    out
}

/// The name of an HTTP header.
#[must_use]
pub fn http_header_name(value: &str) -> Vec<String> {
    let good = !value.is_empty() && value.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    unless(good, || {
        regex_text(
            "a valid HTTP header must consist of alphanumeric characters or '-'",
            "[-A-Za-z0-9]+",
            &["X-Header-Name"],
        )
    })
}

/// A percentage.
#[must_use]
pub fn percent(value: &str) -> Vec<String> {
    let digits = value.strip_suffix('%').unwrap_or_default();
    let good = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
    unless(good, || {
        regex_text(
            "a valid percent string must be a numeric string followed by an ending '%'",
            "[0-9]+%",
            &["1%", "93%"],
        )
    })
}

/// The number of a port.
#[must_use]
pub fn port_number(port: i64) -> Vec<String> {
    in_range(port, 1, 65535)
}

/// A number with bounds.
#[must_use]
pub fn in_range(value: i64, least: i64, most: i64) -> Vec<String> {
    unless((least..=most).contains(&value), || format!("must be between {least} and {most}, inclusive"))
}

/// The name of a port.
#[must_use]
pub fn port_name(name: &str) -> Vec<String> {
    let mut out = too_long(name, 15);
    let mut rule = |good: bool, text: &str| {
        if !good {
            out.push(text.to_owned());
        }
    };
    let charset =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    rule(charset, "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    rule(name.contains(|c: char| c.is_ascii_lowercase()), "must contain at least one letter (a-z)");
    rule(!name.contains("--"), "must not contain consecutive hyphens");
    rule(!name.starts_with('-') && !name.ends_with('-'), "must not begin or end with a hyphen");
    out
}

/// `text (e.g. 'one',  or 'two', regex used for validation is '…')`.
#[must_use]
pub fn regex_text(text: &str, regex: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{text} (regex used for validation is '{regex}')");
    }
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{text} (e.g. {}regex used for validation is '{regex}')", examples.join(" or "))
}

/// Whether Go would print a character as it is.
pub(crate) fn is_print(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    matches!(c, '"' | '\\') || !go::quote(c.encode_utf8(&mut [0; 4])).starts_with("\"\\")
}

fn masked(name: &str, prefix: bool) -> String {
    match name.strip_suffix('-') {
        // The server cuts the last two characters, not one; who are we to differ.
        Some(rest) if prefix && !rest.is_empty() => {
            let mut shorter = rest.to_owned();
            shorter.pop();
            shorter + "a"
        }
        _ => name.to_owned(),
    }
}

fn is_label(value: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !value.is_empty() && value.chars().all(inner) && !value.starts_with('-') && !value.ends_with('-')
}

fn is_subdomain(value: &str) -> bool {
    value.split('.').all(is_label)
}

fn is_qualified(value: &str) -> bool {
    value.starts_with(|c: char| c.is_ascii_alphanumeric())
        && value.ends_with(|c: char| c.is_ascii_alphanumeric())
        && value.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

fn too_long(value: &str, most: usize) -> Vec<String> {
    unless(value.len() <= most, || format!("must be no more than {most} characters"))
}

/// As [`too_long`], in the words of the newer rules.
fn too_many_bytes(value: &str, most: usize) -> Vec<String> {
    unless(value.len() <= most, || format!("must be no more than {most} bytes"))
}

fn parent_directory(value: &str) -> Option<String> {
    match value {
        "." | ".." => Some(format!("must not be '{value}'")),
        _ if value.starts_with("..") => Some("must not start with '..'".to_owned()),
        _ => None,
    }
}

fn unless(good: bool, text: impl FnOnce() -> String) -> Vec<String> {
    if good { Vec::new() } else { vec![text()] }
}

#[cfg(test)]
mod tests;
