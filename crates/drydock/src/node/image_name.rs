//! Names of images, as container registries have them: `[HOST[:PORT]/]PATH[:TAG][@DIGEST]`.

/// What is wrong with an image's name, as a kubelet says it.
pub(super) fn fault(image: &str) -> Option<String> {
    let why = parse(image).err()?;
    Some(format!("Failed to apply default image tag {image:?}: couldn't parse image name {image:?}: {why}"))
}

fn parse(image: &str) -> Result<(), String> {
    let malformed = || "invalid reference format".to_owned();
    if image.len() == 64 && image.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return Err(format!("invalid repository name ({image}), cannot specify 64-byte hexadecimal strings"));
    }
    // What looks like no host is part of the path, on the usual registry.
    let is_host =
        |host: &str| host.contains(['.', ':']) || host == "localhost" || host != host.to_lowercase();
    let (host, rest) = match image.split_once('/') {
        Some((host, rest)) if is_host(host) => (Some(host), rest),
        _ => (None, image),
    };
    let path = rest.split(':').next().unwrap_or_default();
    let remote =
        if host.is_none() && !path.contains('/') { format!("library/{path}") } else { path.to_owned() };
    if remote.to_lowercase() != remote {
        return Err(format!("invalid reference format: repository name ({remote}) must be lowercase"));
    }
    let (rest, digest) = match rest.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (rest, None),
    };
    let (path, tag) = match rest.split_once(':') {
        Some((path, tag)) => (path, Some(tag)),
        None => (rest, None),
    };
    let fits = host.is_none_or(is_domain)
        && path.split('/').all(is_component)
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest);
    if fits { Ok(()) } else { Err(malformed()) }
}

fn is_domain(host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    };
    let is_label = |label: &str| {
        let letters = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        letters && !label.is_empty() && !label.starts_with('-') && !label.ends_with('-')
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let named = match address {
        Some(address) => {
            !address.is_empty() && address.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':')
        }
        None => name.split('.').all(is_label),
    };
    named && port.is_none_or(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Small letters and digits, with one of `.`, `_`, `__` or any number of `-` between them.
fn is_component(text: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let separators = text.split(plain).filter(|between| !between.is_empty());
    let known =
        |between: &str| matches!(between, "." | "_" | "__") || between.chars().all(|letter| letter == '-');
    text.starts_with(plain) && text.ends_with(plain) && separators.into_iter().all(known)
}

fn is_tag(tag: &str) -> bool {
    let word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    tag.len() <= 128
        && tag.starts_with(word)
        && tag.chars().all(|letter| word(letter) || ".-".contains(letter))
}

fn is_digest(digest: &str) -> bool {
    let Some((algorithm, hex)) = digest.split_once(':') else { return false };
    let is_part = |part: &str| {
        part.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && part.chars().all(|letter| letter.is_ascii_alphanumeric())
    };
    algorithm.split(['-', '_', '+', '.']).all(is_part)
        && hex.len() >= 32
        && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_or_refused_as_a_kubelet_does() {
        let digest = format!("a@sha256:{}", "0".repeat(64));
        for good in [
            "nginx",
            "nginx:1.27",
            "localhost:5000/a/b:v1",
            "quay.io/me/a__b.c---d_e:Tag_1.0-x",
            "[2001:db8::1]:5000/a",
            "HOST/a",
            digest.as_str(),
        ] {
            assert_eq!(fault(good), None, "{good}");
        }
        for bad in
            ["", "a b", "a/", "/a", "a:", "a:b c", "a..b", "a.", "-a", "a@sha256:12", "a//b", "x:y/z", "a_-b"]
        {
            assert!(fault(bad).is_some_and(|why| why.ends_with("invalid reference format")), "{bad}");
        }
        assert_eq!(
            fault("Foo:v1").as_deref(),
            Some(
                "Failed to apply default image tag \"Foo:v1\": couldn't parse image name \"Foo:v1\": invalid reference \
                 format: repository name (library/Foo) must be lowercase"
            )
        );
        assert!(fault(&"a".repeat(64)).is_some_and(|why| why.contains("64-byte hexadecimal")));
    }
}
