//! The ConfigMap with Monocle's `config.yaml`: made once with an empty workspace, then the user's to edit.

use k8s_openapi::api::core::v1::ConfigMap;

use super::{Monocle, pod};

/// The key in the ConfigMap.
pub(super) const KEY: &str = "config.yaml";

const FIRST: &str = "\
workspaces:
  - name: demo
    crawlers: []
";

pub(super) fn build(monocle: &Monocle) -> ConfigMap {
    ConfigMap {
        metadata: pod::metadata(monocle, "api", "api"),
        data: Some([(KEY.to_owned(), FIRST.to_owned())].into()),
        ..ConfigMap::default()
    }
}

/// The text of `config.yaml`, or what is wrong with it and where.
pub(super) fn text(config: &ConfigMap) -> Result<&str, String> {
    let text = config.data.as_ref().and_then(|data| data.get(KEY));
    let text = text.ok_or_else(|| format!("has no {KEY}; add it"))?;
    match serde_saphyr::from_str::<serde_json::Value>(text) {
        Ok(_) => Ok(text),
        // The first line says what and where; a picture of the place follows.
        Err(error) => {
            let error = error.to_string();
            Err(format!("{KEY}: {}", error.lines().next().unwrap_or_default().trim_start_matches("error: ")))
        }
    }
}
