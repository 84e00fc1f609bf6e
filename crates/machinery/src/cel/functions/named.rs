//! Named formats: `format.dns1123Label().validate(text)`.

use super::super::value::Value;
use super::Found;
use super::url::Url;
use crate::names;
use crate::structural::format;

const ALL: [&str; 13] = [
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
];

pub(super) fn constant(name: &str) -> Option<&'static str> {
    ALL.into_iter().find(|known| *known == name)
}

pub(super) fn call<'a>(function: &str, args: &[Value<'a>]) -> Found<'a> {
    match (function, args) {
        ("format.named", [Value::String(name)]) => {
            Some(Ok(constant(name).map_or(Value::Optional(None), |name| Value::present(Value::Format(name)))))
        }
        ("validate", [Value::Format(name), Value::String(text)]) => {
            let wrong = validate(name, text);
            Some(Ok(if wrong.is_empty() {
                Value::Optional(None)
            } else {
                Value::present(Value::list(wrong.into_iter().map(Into::into).collect()))
            }))
        }
        _ => None,
    }
}

fn validate(name: &str, text: &str) -> Vec<String> {
    let known = |format: &str, why: &str| {
        if format::holds(format, text) { Vec::new() } else { vec![why.to_owned()] }
    };
    match name {
        "dns1123Label" => names::label_name(text, false),
        "dns1123Subdomain" => names::subdomain_name(text, false),
        "dns1035Label" => names::dns1035_name(text, false),
        "qualifiedName" => names::qualified_name(text),
        "dns1123LabelPrefix" => names::label_name(text, true),
        "dns1123SubdomainPrefix" => names::subdomain_name(text, true),
        "dns1035LabelPrefix" => names::dns1035_name(text, true),
        "labelValue" => names::label_value(text),
        "uri" => Url::parse(text).err().into_iter().collect(),
        "uuid" => known("uuid", "does not match the UUID format"),
        "byte" => known("byte", "invalid base64"),
        "date" => known("date", "invalid date"),
        _ => known("datetime", "invalid datetime"),
    }
}
