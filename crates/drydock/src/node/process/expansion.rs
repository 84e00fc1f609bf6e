//! `$(VARIABLE)` in commands, arguments and environment values, as the kubelet expands it.

/// Replaces `$(NAME)` by what `value` has for it; unknown names and `$$(NAME)`, less a dollar, stay.
pub(super) fn expand<'a>(text: &str, value: impl Fn(&str) -> Option<&'a str>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            match value(name) {
                Some(value) => out.push_str(value),
                None => {
                    out.push_str("$(");
                    out.push_str(name);
                    out.push(')');
                }
            }
            rest = after;
        } else {
            out.push('$');
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_expanded_as_the_kubelet_does() {
        let value = |name: &str| match name {
            "A" => Some("a"),
            "EMPTY" => Some(""),
            _ => None,
        };
        for (text, wanted) in [
            ("$(A)-$(A)", "a-a"),
            ("$(EMPTY)x", "x"),
            ("$(B)", "$(B)"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$a"),
            ("$A ${A} $", "$A ${A} $"),
            ("$(A", "$(A"),
            ("café $(A)", "café a"),
        ] {
            assert_eq!(expand(text, value), wanted, "{text}");
        }
    }
}
