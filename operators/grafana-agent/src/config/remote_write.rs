//! Where metrics are sent.

use super::access::{Access, bearer};
use super::relabel;
use crate::document::{Document, Fields};
use crate::fault::Fault;
use crate::kinds::{QueueConfig, RemoteWrite, SigV4};

pub(super) fn render(access: Access<'_>, write: &RemoteWrite) -> Result<Document, Fault> {
    let metadata = write.metadata_config.as_ref().map(|metadata| {
        Fields::new().with("send", metadata.send == Some(true)).text("send_interval", &metadata.send_interval)
    });
    let fields = Fields::new()
        .with("url", write.url.as_str())
        .text("name", &write.name)
        .text("remote_timeout", &write.remote_timeout)
        .filled("headers", &write.headers)
        .text("proxy_url", &write.proxy_url)
        .filled("write_relabel_configs", relabel::rules("writeRelabelConfigs", &write.write_relabel_configs)?)
        .maybe("tls_config", access.tls(&write.tls_config)?)
        .maybe("basic_auth", access.basic_auth_file(&write.basic_auth)?)
        .maybe("oauth2", access.oauth2(&write.oauth2)?)
        .maybe("authorization", bearer(&write.bearer_token, &write.bearer_token_file))
        .maybe("sigv4", write.sigv4.as_ref().map(|sigv4| sign(access, sigv4)).transpose()?)
        .maybe("queue_config", write.queue_config.as_ref().map(queue))
        .maybe("metadata_config", metadata);
    Ok(fields.into())
}

fn sign(access: Access<'_>, sigv4: &SigV4) -> Result<Fields, Fault> {
    Ok(Fields::new()
        .text("region", &sigv4.region)
        .text("profile", &sigv4.profile)
        .text("role_arn", &sigv4.role_arn)
        .maybe("access_key", access.value(&sigv4.access_key)?)
        .maybe("secret_key", access.value(&sigv4.secret_key)?))
}

fn queue(queue: &QueueConfig) -> Fields {
    Fields::new()
        .number("capacity", queue.capacity)
        .number("min_shards", queue.min_shards)
        .number("max_shards", queue.max_shards)
        .number("max_samples_per_send", queue.max_samples_per_send)
        .text("batch_send_deadline", &queue.batch_send_deadline)
        .number("max_retries", queue.max_retries)
        .text("min_backoff", &queue.min_backoff)
        .text("max_backoff", &queue.max_backoff)
        .flag("retry_on_http_429", queue.retry_on_rate_limit)
}
