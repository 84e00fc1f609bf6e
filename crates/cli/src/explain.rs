//! `windlass explain`: why an object is as it is, from the record of its operator.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};
use windlass::explain::{Change, Explanation, Pass, Write};

use crate::{output, port};

/// Show what an operator did about an object, and why
///
/// The operator's own record of its last passes: what caused each, what it compared and what it wrote. Values of
/// Secrets are not in it. For an operator in a cluster: kubectl port-forward deployment/NAME 9446
///
/// For example: windlass explain monocle monocle-sample
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The kind of the object
    kind: String,
    /// Its name
    name: String,
    /// Its namespace; empty for kinds without one
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// The operator's port
    #[arg(long, value_name = "URL", default_value_t = format!("http://{}", port::ADDRESS))]
    address: String,
    /// The record as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let Arguments { kind, name, namespace, address, json } = &arguments;
    for part in [kind, name, namespace] {
        if !part.chars().all(|letter| letter.is_ascii_alphanumeric() || "-.".contains(letter)) {
            bail!("{part:?} is no name");
        }
    }
    let (status, body) = port::get(address, &format!("/explain/{kind}/{namespace}/{name}")).await?;
    if status != 200 {
        bail!("{}", body.trim_end());
    }
    if *json {
        return output::print(format!("{body}\n"));
    }
    let all: Vec<Explanation> =
        serde_json::from_str(&body).context("failed to read the operator's record")?;
    output::print(all.iter().map(text).collect::<String>())
}

/// The record for people, the newest pass last.
fn text(explanation: &Explanation) -> String {
    let Explanation { operator, kind, namespace, name, passes } = explanation;
    let mut out = String::new();
    let place = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
    let _ = writeln!(out, "{kind} {place}{name}, kept by {operator}; its last {} passes:", passes.len());
    for pass in passes {
        describe(&mut out, pass);
    }
    out
}

fn describe(out: &mut String, pass: &Pass) {
    let _ = writeln!(
        out,
        "\n{}  {} (waited {} ms, took {} ms)",
        pass.at, pass.result, pass.waited_ms, pass.took_ms
    );
    for cause in &pass.causes {
        let _ = writeln!(out, "  because  {cause}");
    }
    // A dependent is read too, and named below.
    let is_dependent = |read: &&String| pass.compared.iter().any(|one| one.object == **read);
    for read in pass.reads.iter().filter(|read| !is_dependent(read)) {
        let _ = writeln!(out, "  read     {read}");
    }
    let (same, other): (Vec<_>, Vec<_>) = pass.compared.iter().partition(|one| one.found == "as planned");
    for one in other {
        let _ = writeln!(out, "  found    {}: {}", one.object, one.found);
    }
    if !same.is_empty() {
        let _ = writeln!(out, "  found    {} as planned", same.len());
    }
    for write in &pass.writes {
        describe_write(out, write);
    }
    for problem in &pass.problems {
        let _ = writeln!(out, "  problem  {problem}");
    }
}

fn describe_write(out: &mut String, write: &Write) {
    let _ = writeln!(out, "  wrote    {} {}", write.verb, write.object);
    for Change { path, from, to } in &write.changes {
        let _ = match (from, to) {
            (Some(from), Some(to)) => writeln!(out, "             {path}: {from} -> {to}"),
            (None, Some(to)) => writeln!(out, "             {path}: + {to}"),
            (Some(from), None) => writeln!(out, "             {path}: - {from}"),
            (None, None) => writeln!(out, "             {path}"),
        };
    }
    if let Some(error) = &write.error {
        let _ = writeln!(out, "             failed: {error}");
    }
}

#[cfg(test)]
mod tests {
    use windlass::explain::Comparison;

    use super::*;

    #[test]
    fn a_record_reads_like_a_story() {
        let change = |path: &str, from: Option<&str>, to: Option<&str>| Change {
            path: path.into(),
            from: from.map(str::to_owned),
            to: to.map(str::to_owned),
        };
        let compared = |object: &str, found: &str| Comparison { object: object.into(), found: found.into() };
        let pass = Pass {
            at: "2026-01-01T00:00:00Z".into(),
            waited_ms: 1,
            took_ms: 12,
            causes: vec!["Secret default/tokens changed".into()],
            reads: vec!["Secret default/tokens".into()],
            compared: vec![
                compared("Deployment default/api", "differs at spec.replicas"),
                compared("Service default/api", "as planned"),
            ],
            writes: vec![Write {
                verb: "apply".into(),
                object: "Deployment default/api".into(),
                changes: vec![
                    change("spec.replicas", Some("1"), Some("2")),
                    change("spec.paused", None, Some("true")),
                ],
                error: Some("quota".into()),
            }],
            problems: vec!["Refused: quota".into()],
            result: "failed; tries again in 500ms".into(),
        };
        let explanation = Explanation {
            operator: "monocle".into(),
            kind: "Monocle".into(),
            namespace: "default".into(),
            name: "sample".into(),
            passes: vec![pass],
        };
        let expected = "\
Monocle default/sample, kept by monocle; its last 1 passes:

2026-01-01T00:00:00Z  failed; tries again in 500ms (waited 1 ms, took 12 ms)
  because  Secret default/tokens changed
  read     Secret default/tokens
  found    Deployment default/api: differs at spec.replicas
  found    1 as planned
  wrote    apply Deployment default/api
             spec.replicas: 1 -> 2
             spec.paused: + true
             failed: quota
  problem  Refused: quota
";
        assert_eq!(text(&explanation), expected);
    }
}
