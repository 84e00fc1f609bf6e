//! Names of images.

/// Whether a text can be the name of an image: `[host[:port]/]path[:tag][@digest]`.
pub(super) fn is_image(text: &str) -> bool {
    let (name, digest) = text.split_once('@').map_or((text, None), |(name, digest)| (name, Some(digest)));
    if digest.is_some_and(|digest| {
        !digest.split_once(':').is_some_and(|(kind, hex)| !kind.is_empty() && hex.len() >= 32)
    }) {
        return false;
    }
    let (path, tag) = match name.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
        _ => (name, None),
    };
    let tag_char = |one: char| one.is_ascii_alphanumeric() || "_.-".contains(one);
    if tag.is_some_and(|tag| {
        tag.is_empty() || tag.len() > 128 || !tag.chars().all(tag_char) || tag.starts_with(['.', '-'])
    }) {
        return false;
    }
    // The first part is a host where it looks like one.
    let host = |part: &str| part.contains(['.', ':']) || part == "localhost";
    let rest = path.split_once('/').filter(|(first, _)| host(first)).map_or(path, |(_, rest)| rest);
    let part = |part: &str| {
        let fits =
            part.chars().all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || "._-".contains(one));
        let ends = |one: char| one.is_ascii_alphanumeric();
        fits && part.starts_with(ends) && part.ends_with(ends)
    };
    rest.split('/').all(part)
}

#[cfg(test)]
mod tests {
    use super::is_image;

    #[test]
    fn images_are_told_from_other_texts() {
        for image in [
            "windlass:0.1.0",
            "quay.io/a/b",
            "localhost:5000/a:v1",
            "elasticsearch:7.17.5",
            "registry.example.org:443/a/b-c",
        ] {
            assert!(is_image(image), "{image}");
        }
        let digest = format!("quay.io/a/b@sha256:{}", "0".repeat(64));
        assert!(is_image(&digest));
        for text in ["", "UPPER/case", "a b", "a:", "a//b", "quay.io/", "a@sha256:1", "-a"] {
            assert!(!is_image(text), "{text}");
        }
    }
}
