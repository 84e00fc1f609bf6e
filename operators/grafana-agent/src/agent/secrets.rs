//! The agent's own Secrets: the configurations, and copies of what they name.

use std::io::Write as _;

use flate2::{Compression, GzBuilder};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

use super::labels;
use crate::kinds::GrafanaAgent;
use crate::outcome::Outcome;

/// The key that a configuration is under.
const KEY: &str = "agent.yml";
/// A configuration beyond this is compressed; the config reloader notices.
const PLAIN: usize = 100 * 1024;

/// Copies of what the configurations name as files.
pub(super) fn copies(agent: &GrafanaAgent, outcome: &Outcome) -> Secret {
    Secret {
        metadata: labels::metadata(agent, labels::child(agent, "secrets")),
        data: Some(outcome.copies.clone()),
        ..Secret::default()
    }
}

/// A configuration.
pub(super) fn config(agent: &GrafanaAgent, suffix: &str, yaml: &str) -> Secret {
    Secret {
        metadata: labels::metadata(agent, labels::child(agent, suffix)),
        data: Some([(KEY.to_owned(), ByteString(packed(yaml)))].into()),
        ..Secret::default()
    }
}

/// As it is, or compressed. The same text always gives the same bytes: no time is in them.
fn packed(yaml: &str) -> Vec<u8> {
    if yaml.len() <= PLAIN {
        return yaml.as_bytes().to_vec();
    }
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::default());
    // Writing into memory does not fail; if it did, the plain text is right as well.
    match encoder.write_all(yaml.as_bytes()).and_then(|()| encoder.finish()) {
        Ok(packed) => packed,
        Err(_) => yaml.as_bytes().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_long_text_is_compressed_and_the_same_each_time() {
        let text = "- job_name: x\n".repeat(10_000);
        let bytes = packed(&text);
        assert!(bytes.len() < text.len() / 10);
        assert_eq!(bytes, packed(&text));
        let mut again = String::new();
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut again).unwrap();
        assert_eq!(again, text);
        assert_eq!(packed("short"), b"short");
    }
}
