//! `windlass get`: what is in a cluster, for machines without kubectl.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};
use http::Request;
use http::header::ACCEPT;
use kube::api::DynamicObject;
use kube::discovery::{ApiCapabilities, ApiResource, Discovery, Scope};
use kube::{Api, Client};
use serde_json::Value;

use crate::cluster::Target;
use crate::output;

/// Show objects, as `kubectl get` does
///
/// For example: windlass get monocle; windlass get statefulset,deployment,secret -n team; windlass get pod -o yaml
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,
    /// The types to show, by any of their names, separated by commas
    kinds: String,
    /// Only the object of this name
    name: Option<String>,
    /// The namespace
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// All namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Only objects with these labels
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
    /// How to print them
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    /// A table
    Table,
    /// A table with all columns
    Wide,
    /// JSON
    Json,
    /// YAML
    Yaml,
}

/// A resource and what can be done with it.
pub(crate) type Resource = (ApiResource, ApiCapabilities);

pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let client = arguments.target.client().await?;
    let kinds: Vec<&str> = arguments.kinds.split(',').filter(|kind| !kind.is_empty()).collect();
    let mut out = String::new();
    for (index, kind) in kinds.iter().enumerate() {
        let resource = find(&client, kind).await?;
        let value = fetch(&client, &resource, &arguments).await?;
        match arguments.output {
            Output::Json => writeln!(out, "{}", serde_json::to_string_pretty(&value)?)?,
            Output::Yaml => writeln!(out, "---\n{}", serde_saphyr::to_string(&value)?.trim_end())?,
            Output::Table | Output::Wide => {
                if index > 0 {
                    out.push('\n');
                }
                let prefix = (kinds.len() > 1).then(|| resource.0.kind.to_lowercase());
                out += &table(&value, arguments.output == Output::Wide, prefix.as_deref(), kind);
            }
        }
    }
    output::print(out)
}

/// The resource that goes by a name: plural, singular, short or kind.
pub(crate) async fn find(client: &Client, name: &str) -> Result<Resource> {
    let wanted = name.to_lowercase();
    let (wanted, group) = match wanted.split_once('.') {
        Some((name, group)) => (name.to_owned(), Some(group.to_owned())),
        None => (wanted, None),
    };
    // Short names are only in the discovery documents themselves.
    let short = short_names(client).await?;
    let plural =
        short.iter().find(|(short, _)| *short == wanted).map_or(wanted.clone(), |(_, plural)| plural.clone());
    let discovery = Discovery::new(client.clone())
        .run_aggregated()
        .await
        .context("failed to ask what the cluster has")?;
    for group_of in discovery.groups() {
        if group.as_ref().is_some_and(|group| group_of.name() != group) {
            continue;
        }
        for resource in group_of.recommended_resources() {
            let kind = resource.0.kind.to_lowercase();
            if resource.0.plural == plural || kind == wanted {
                return Ok(resource);
            }
        }
    }
    bail!("the cluster has no resource {name:?}");
}

async fn short_names(client: &Client) -> Result<Vec<(String, String)>> {
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let mut names = Vec::new();
    for path in ["/api", "/apis"] {
        let request = Request::get(path).header(ACCEPT, accept).body(Vec::new())?;
        let document: Value = client.request(request).await.context("failed to ask what the cluster has")?;
        let versions = document["items"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|group| group["versions"].as_array().into_iter().flatten());
        for resource in versions.flat_map(|version| version["resources"].as_array().into_iter().flatten()) {
            let plural = resource["resource"].as_str().unwrap_or_default();
            for short in resource["shortNames"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                names.push((short.to_owned(), plural.to_owned()));
            }
        }
    }
    Ok(names)
}

/// The API of a resource.
pub(crate) fn api(client: &Client, resource: &Resource, namespace: Option<&str>) -> Api<DynamicObject> {
    match (&resource.1.scope, namespace) {
        (Scope::Namespaced, Some(namespace)) => Api::namespaced_with(client.clone(), namespace, &resource.0),
        _ => Api::all_with(client.clone(), &resource.0),
    }
}

async fn fetch(client: &Client, resource: &Resource, arguments: &Arguments) -> Result<Value> {
    let namespace = (!arguments.all_namespaces).then_some(arguments.namespace.as_str());
    let mut path = api(client, resource, namespace).resource_url().to_owned();
    if let Some(name) = &arguments.name {
        path = format!("{path}/{name}");
    }
    if let Some(selector) = &arguments.selector {
        let escaped: String = selector
            .bytes()
            .map(|byte| {
                if byte.is_ascii_alphanumeric() {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            })
            .collect();
        path = format!("{path}?labelSelector={escaped}");
    }
    let accept = match arguments.output {
        Output::Table | Output::Wide => "application/json;as=Table;g=meta.k8s.io;v=v1,application/json",
        Output::Json | Output::Yaml => "application/json",
    };
    let request = Request::get(path).header(ACCEPT, accept).body(Vec::new())?;
    client.request(request).await.with_context(|| format!("failed to get {}", resource.0.plural))
}

fn table(table: &Value, wide: bool, prefix: Option<&str>, kind: &str) -> String {
    let columns = table["columnDefinitions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let shown: Vec<usize> = (0..columns.len())
        .filter(|index| wide || columns[*index]["priority"].as_i64().unwrap_or(0) == 0)
        .collect();
    let rows = table["rows"].as_array().map(Vec::as_slice).unwrap_or_default();
    if rows.is_empty() {
        return format!("No {kind} found.\n");
    }
    let mut lines: Vec<Vec<String>> = vec![
        shown
            .iter()
            .map(|index| columns[*index]["name"].as_str().unwrap_or_default().to_uppercase())
            .collect(),
    ];
    for row in rows {
        lines.push(
            shown
                .iter()
                .map(|index| {
                    let cell = match &row["cells"][*index] {
                        Value::String(text) => text.clone(),
                        Value::Null => "<none>".to_owned(),
                        other => other.to_string(),
                    };
                    match prefix {
                        Some(prefix) if *index == 0 => format!("{prefix}/{cell}"),
                        _ => cell,
                    }
                })
                .collect(),
        );
    }
    let widths: Vec<usize> = (0..shown.len())
        .map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0))
        .collect();
    let line = |line: &Vec<String>| {
        let cells: Vec<String> =
            line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        format!("{}\n", cells.join("   ").trim_end())
    };
    lines.iter().map(line).collect()
}
