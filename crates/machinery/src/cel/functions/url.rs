//! URLs, split as Go splits them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::Error;
use super::super::value::{Key, Map, Value};
use super::Found;
use crate::go::quote;

/// A URL that is absolute, or a path.
#[derive(Clone, Debug)]
pub struct Url {
    pub(in super::super) text: Box<str>,
    scheme: Box<str>,
    host: Box<str>,
    path: Box<str>,
    query: Box<str>,
}

impl Url {
    /// # Errors
    /// What Go says about it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("parse {}: {why}", quote(text));
        if text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
            return Err(wrong("net/url: invalid control character in URL"));
        }
        if text.is_empty() {
            return Err(wrong("empty url"));
        }
        let (scheme, rest) = scheme(text).map_err(wrong)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        if !rest.starts_with('/') && scheme.is_empty() {
            return Err(wrong("invalid URI for request"));
        }
        let (host, path) = match rest.strip_prefix("//") {
            Some(rest) if !scheme.is_empty() || !rest.starts_with('/') => {
                let end = rest.find('/').unwrap_or(rest.len());
                let authority = &rest[..end];
                let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
                check_host(host).map_err(|why| wrong(&why))?;
                (host, &rest[end..])
            }
            _ => ("", rest),
        };
        let mut bytes = path.bytes();
        while let Some(byte) = bytes.next() {
            if byte == b'%' {
                let hex: Vec<u8> = bytes.by_ref().take(2).collect();
                if hex.len() < 2 || !hex.iter().all(u8::is_ascii_hexdigit) {
                    let shown = String::from_utf8_lossy(&[b"%", hex.as_slice()].concat()).into_owned();
                    return Err(wrong(&format!("invalid URL escape {}", quote(&shown))));
                }
            }
        }
        Ok(Self {
            text: text.into(),
            scheme: scheme.to_ascii_lowercase().into(),
            host: host.into(),
            path: path.into(),
            query: query.into(),
        })
    }

    fn hostname(&self) -> &str {
        match self.host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((inside, _)) => inside,
            None => self.host.rsplit_once(':').map_or(&*self.host, |(name, _)| name),
        }
    }

    fn port(&self) -> &str {
        let after = self.host.rsplit_once(']').map_or(&*self.host, |(_, after)| after);
        after.rsplit_once(':').map_or("", |(_, port)| port)
    }

    fn query<'a>(&self) -> Value<'a> {
        let mut all: BTreeMap<String, Vec<Value<'a>>> = BTreeMap::new();
        for pair in self.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if let (Some(key), Some(value)) = (unescape(key), unescape(value)) {
                all.entry(key).or_default().push(value.into());
            }
        }
        let entry = |(key, values): (String, Vec<Value<'a>>)| {
            let key: Arc<str> = key.into();
            (Key::String(Arc::clone(&key)), (Value::text(key), Value::list(values)))
        };
        Value::Map(Map::Made(Arc::new(all.into_iter().map(entry).collect())))
    }
}

fn scheme(text: &str) -> Result<(&str, &str), &'static str> {
    for (index, character) in text.char_indices() {
        match character {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if index > 0 => {}
            ':' if index == 0 => return Err("missing protocol scheme"),
            ':' => return Ok((&text[..index], &text[index + 1..])),
            _ => break,
        }
    }
    let before = &text[..text.find('/').unwrap_or(text.len())];
    if before.contains(':') && !text.starts_with('/') {
        return Err("first path segment in URL cannot contain colon");
    }
    Ok(("", text))
}

fn check_host(host: &str) -> Result<(), String> {
    if host.starts_with('[') {
        let Some((_, after)) = host.rsplit_once(']') else {
            return Err("missing ']' in host".to_owned());
        };
        return check_port(after);
    }
    if let Some(at) = host.find(':') {
        check_port(&host[at..])?;
    }
    match host.find([' ', '<', '>', '"', '\\', '^', '`', '{', '}', '|']) {
        Some(at) => Err(format!("invalid character {} in host name", quote(&host[at..=at]))),
        None => Ok(()),
    }
}

fn check_port(text: &str) -> Result<(), String> {
    match text.strip_prefix(':') {
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => Ok(()),
        None if text.is_empty() => Ok(()),
        _ => Err(format!("invalid port {} after host", quote(text))),
    }
}

fn unescape(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let hex: Vec<u8> = bytes.by_ref().take(2).collect();
                out.push(
                    u8::from_str_radix(std::str::from_utf8(&hex).ok().filter(|hex| hex.len() == 2)?, 16)
                        .ok()?,
                );
            }
            other => out.push(other),
        }
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}

pub(super) fn call<'a>(function: &str, one: &Value<'a>) -> Found<'a> {
    let result = match (function, one) {
        ("url", Value::String(text)) => Url::parse(text)
            .map(|url| Value::Url(Arc::new(url)))
            .map_err(|why| Error::new(format!("URL parse error during conversion from string: {why}"))),
        ("isURL", Value::String(text)) => Ok(Url::parse(text).is_ok().into()),
        ("getScheme", Value::Url(url)) => Ok(Value::text(&*url.scheme)),
        ("getHost", Value::Url(url)) => Ok(Value::text(&*url.host)),
        ("getHostname", Value::Url(url)) => Ok(Value::text(url.hostname())),
        ("getPort", Value::Url(url)) => Ok(Value::text(url.port())),
        ("getEscapedPath", Value::Url(url)) => Ok(Value::text(&*url.path)),
        ("getQuery", Value::Url(url)) => Ok(url.query()),
        _ => return None,
    };
    Some(result)
}
