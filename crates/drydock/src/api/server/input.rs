//! What Go's reader of JSON makes of bytes that others refuse.

use bytes::Bytes;
use http::HeaderMap;

use super::super::negotiation::content_type;

/// How deep JSON may be nested.
const DEEPEST: usize = 10_000;

/// A body in which halves of characters stand for themselves: Go reads them as the mark of what cannot be shown.
pub(super) fn mended(headers: &HeaderMap, body: Bytes) -> Bytes {
    let halves = |at: usize| escape(&body, at).filter(|code| (0xD800..0xE000).contains(code));
    let mut places = body.windows(2).enumerate().filter(|(_, pair)| *pair == b"\\u").map(|(at, _)| at);
    if content_type(headers).contains("yaml") || !places.any(|at| halves(at).is_some()) {
        return body;
    }
    let mut out = body.to_vec();
    let mut at = 0;
    while at + 1 < out.len() {
        match (out[at], out[at + 1]) {
            (b'\\', b'u') => match (escape(&out, at), escape(&out, at + 6)) {
                (Some(0xD800..0xDC00), Some(0xDC00..0xE000)) => at += 12,
                (Some(0xD800..0xE000), _) => {
                    out[at + 2..at + 6].copy_from_slice(b"fffd");
                    at += 6;
                }
                _ => at += 2,
            },
            (b'\\', _) => at += 2,
            _ => at += 1,
        }
    }
    out.into()
}

/// The code of the escape that stands at a place.
fn escape(text: &[u8], at: usize) -> Option<u32> {
    let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The bracket that is one too deep, if there is one.
#[must_use]
pub(in super::super) fn too_deep(json: &[u8]) -> Option<char> {
    if json.len() <= DEEPEST {
        return None;
    }
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => {
                depth += 1;
                if depth > DEEPEST {
                    return Some(char::from(*byte));
                }
            }
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_characters_are_replaced() {
        let mend = |text: &str| mended(&HeaderMap::new(), Bytes::from(text.to_owned()));
        assert_eq!(mend(r#""u\ud800x""#), r#""u\ufffdx""#);
        assert_eq!(mend(r#""\ud83d\ude00 \udc00""#), r#""\ud83d\ude00 \ufffd""#);
        assert_eq!(mend(r#""\\ud800""#), r#""\\ud800""#);
    }

    #[test]
    fn nesting_has_an_end() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(too_deep(nested(10_000).as_bytes()), None);
        assert_eq!(too_deep(nested(10_001).as_bytes()), Some('['));
    }
}
