//! The agent's configuration grammar, as far as it is rendered: it refuses keys that it does not know.

use std::fs;
use std::path::Path;

use serde_json::Value;
use windlass_grafana_agent::manifests::{Manifests, Type};

/// What a name in the grammar consists of. `*` is any name, `[x]` a list of x, `-` a plain value or anything.
const GRAMMAR: &[(&str, &[(&str, &str)])] = &[
    ("root", &[("server", "server"), ("metrics", "metrics"), ("logs", "logs"), ("integrations", "-")]),
    ("server", &[("log_level", "-"), ("log_format", "-")]),
    ("metrics", &[("wal_directory", "-"), ("global", "global"), ("configs", "[instance]")]),
    (
        "global",
        &[
            ("external_labels", "-"),
            ("scrape_interval", "-"),
            ("scrape_timeout", "-"),
            ("remote_write", "[write]"),
        ],
    ),
    (
        "instance",
        &[
            ("name", "-"),
            ("wal_truncate_frequency", "-"),
            ("min_wal_time", "-"),
            ("max_wal_time", "-"),
            ("remote_flush_deadline", "-"),
            ("write_stale_on_shutdown", "-"),
            ("remote_write", "[write]"),
            ("scrape_configs", "[scrape]"),
        ],
    ),
    (
        "write",
        &[
            ("url", "-"),
            ("name", "-"),
            ("remote_timeout", "-"),
            ("headers", "-"),
            ("proxy_url", "-"),
            ("write_relabel_configs", "[relabel]"),
            ("tls_config", "tls"),
            ("basic_auth", "basic"),
            ("oauth2", "oauth2"),
            ("authorization", "authorization"),
            ("sigv4", "sigv4"),
            ("queue_config", "queue"),
            ("metadata_config", "metadata"),
        ],
    ),
    (
        "tls",
        &[
            ("ca_file", "-"),
            ("cert_file", "-"),
            ("key_file", "-"),
            ("server_name", "-"),
            ("insecure_skip_verify", "-"),
        ],
    ),
    ("basic", &[("username", "-"), ("password", "-"), ("password_file", "-")]),
    (
        "oauth2",
        &[
            ("client_id", "-"),
            ("client_secret_file", "-"),
            ("scopes", "-"),
            ("token_url", "-"),
            ("endpoint_params", "-"),
        ],
    ),
    ("authorization", &[("type", "-"), ("credentials", "-"), ("credentials_file", "-")]),
    (
        "sigv4",
        &[("region", "-"), ("access_key", "-"), ("secret_key", "-"), ("profile", "-"), ("role_arn", "-")],
    ),
    (
        "queue",
        &[
            ("capacity", "-"),
            ("max_shards", "-"),
            ("min_shards", "-"),
            ("max_samples_per_send", "-"),
            ("batch_send_deadline", "-"),
            ("min_backoff", "-"),
            ("max_backoff", "-"),
            ("retry_on_http_429", "-"),
            // Prometheus dropped this long ago; it is written because the API has it.
            ("max_retries", "-"),
        ],
    ),
    ("metadata", &[("send", "-"), ("send_interval", "-")]),
    (
        "relabel",
        &[
            ("source_labels", "-"),
            ("separator", "-"),
            ("target_label", "-"),
            ("regex", "-"),
            ("modulus", "-"),
            ("replacement", "-"),
            ("action", "-"),
        ],
    ),
    (
        "scrape",
        &[
            ("job_name", "-"),
            ("honor_labels", "-"),
            ("honor_timestamps", "-"),
            ("scrape_interval", "-"),
            ("scrape_timeout", "-"),
            ("metrics_path", "-"),
            ("scheme", "-"),
            ("params", "-"),
            ("proxy_url", "-"),
            ("follow_redirects", "-"),
            ("enable_http2", "-"),
            ("tls_config", "tls"),
            ("bearer_token", "-"),
            ("bearer_token_file", "-"),
            ("basic_auth", "basic"),
            ("authorization", "authorization"),
            ("oauth2", "oauth2"),
            ("sample_limit", "-"),
            ("target_limit", "-"),
            ("label_limit", "-"),
            ("label_name_length_limit", "-"),
            ("label_value_length_limit", "-"),
            ("kubernetes_sd_configs", "[discovery]"),
            ("static_configs", "[hosts]"),
            ("ec2_sd_configs", "-"),
            ("relabel_configs", "[relabel]"),
            ("metric_relabel_configs", "[relabel]"),
        ],
    ),
    (
        "discovery",
        &[
            ("role", "-"),
            ("api_server", "-"),
            ("namespaces", "namespaces"),
            ("basic_auth", "basic"),
            ("authorization", "authorization"),
            ("tls_config", "tls"),
            ("attach_metadata", "attach"),
        ],
    ),
    ("namespaces", &[("names", "-")]),
    ("attach", &[("node", "-")]),
    ("hosts", &[("targets", "-"), ("labels", "-")]),
    ("logs", &[("positions_directory", "-"), ("configs", "[follower]")]),
    (
        "follower",
        &[
            ("name", "-"),
            ("clients", "[client]"),
            ("scrape_configs", "[follow]"),
            ("target_config", "target"),
        ],
    ),
    ("target", &[("sync_period", "-")]),
    (
        "client",
        &[
            ("url", "-"),
            ("tls_config", "tls"),
            ("proxy_url", "-"),
            ("tenant_id", "-"),
            ("timeout", "-"),
            ("batchwait", "-"),
            ("batchsize", "-"),
            ("basic_auth", "basic"),
            ("oauth2", "oauth2"),
            ("bearer_token", "-"),
            ("bearer_token_file", "-"),
            ("backoff_config", "backoff"),
            ("external_labels", "-"),
        ],
    ),
    ("backoff", &[("min_period", "-"), ("max_period", "-"), ("max_retries", "-")]),
    (
        "follow",
        &[
            ("job_name", "-"),
            ("kubernetes_sd_configs", "[discovery]"),
            ("pipeline_stages", "[stage]"),
            ("relabel_configs", "[relabel]"),
        ],
    ),
    (
        "stage",
        &[
            ("cri", "empty"),
            ("docker", "empty"),
            ("drop", "drop"),
            ("json", "json"),
            ("labelallow", "-"),
            ("labeldrop", "-"),
            ("labels", "-"),
            ("limit", "limit"),
            ("match", "match"),
            ("metrics", "measures"),
            ("multiline", "multiline"),
            ("output", "output"),
            ("pack", "pack"),
            ("regex", "regex"),
            ("replace", "replace"),
            ("static_labels", "-"),
            ("template", "template"),
            ("tenant", "tenant"),
            ("timestamp", "timestamp"),
        ],
    ),
    ("empty", &[]),
    (
        "drop",
        &[
            ("source", "-"),
            ("expression", "-"),
            ("value", "-"),
            ("older_than", "-"),
            ("longer_than", "-"),
            ("drop_counter_reason", "-"),
        ],
    ),
    ("json", &[("expressions", "-"), ("source", "-")]),
    ("limit", &[("rate", "-"), ("burst", "-"), ("drop", "-")]),
    (
        "match",
        &[
            ("selector", "-"),
            ("pipeline_name", "-"),
            ("action", "-"),
            ("drop_counter_reason", "-"),
            ("stages", "[stage]"),
        ],
    ),
    ("measures", &[("*", "measure")]),
    (
        "measure",
        &[
            ("type", "-"),
            ("description", "-"),
            ("prefix", "-"),
            ("source", "-"),
            ("max_idle_duration", "-"),
            ("config", "measuring"),
        ],
    ),
    (
        "measuring",
        &[("match_all", "-"), ("count_entry_bytes", "-"), ("value", "-"), ("action", "-"), ("buckets", "-")],
    ),
    ("multiline", &[("firstline", "-"), ("max_wait_time", "-"), ("max_lines", "-")]),
    ("output", &[("source", "-")]),
    ("pack", &[("labels", "-"), ("ingest_timestamp", "-")]),
    ("regex", &[("expression", "-"), ("source", "-")]),
    ("replace", &[("expression", "-"), ("source", "-"), ("replace", "-")]),
    ("template", &[("source", "-"), ("template", "-")]),
    ("tenant", &[("label", "-"), ("source", "-"), ("value", "-")]),
    (
        "timestamp",
        &[
            ("source", "-"),
            ("format", "-"),
            ("fallback_formats", "-"),
            ("location", "-"),
            ("action_on_failure", "-"),
        ],
    ),
];

#[test]
fn every_fixture_renders_within_the_grammar() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/conformance");
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let mut manifests = Manifests::default();
        manifests.add(&fs::read_to_string(path.join("input.yaml")).unwrap(), "input.yaml").unwrap();
        for which in [Type::Metrics, Type::Logs, Type::Integrations] {
            let rendered = manifests.render(which).unwrap();
            let tree = serde_saphyr::from_str(&rendered.yaml).unwrap();
            check(&tree, "root", &path.display().to_string());
        }
    }
}

pub(crate) fn check(value: &Value, name: &str, place: &str) {
    if name == "-" {
        return;
    }
    if let Some(inner) = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        for (index, item) in
            value.as_array().unwrap_or_else(|| panic!("{place} is no list")).iter().enumerate()
        {
            check(item, inner, &format!("{place}[{index}]"));
        }
        return;
    }
    let (_, known) = GRAMMAR.iter().find(|(known, _)| *known == name).unwrap();
    for (key, inner) in value.as_object().unwrap_or_else(|| panic!("{place} is no map")) {
        let found = known.iter().find(|(known, _)| known == key || *known == "*");
        let (_, next) = found.unwrap_or_else(|| panic!("{place}: the agent knows no {key}"));
        check(inner, next, &format!("{place}.{key}"));
    }
}
