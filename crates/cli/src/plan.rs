//! `windlass plan`: what operators would change, and nothing changed.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use kube::api::DynamicObject;
use windlass::preview::{Preview, Verb, preview};
use windlass::{Context, Operator};

use crate::cluster::Target;
use crate::{catalog, manifest, output};

/// The exit code that says that something would change.
const WOULD_CHANGE: u8 = 2;

/// Show what operators would change, and change nothing
///
/// With -f, as if the file were applied; else for everything that is in the cluster. What would be made is shown in
/// whole, what would change by its fields. Nothing is written, not even a dry run: only rights to read are needed.
/// Values of Secrets are masked.
/// Exits with 0 if nothing would change, 2 if something would, 1 on errors.
///
/// For example: windlass plan -f monocle.yaml
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,
    /// A manifest of custom resources; - reads standard input
    #[arg(short, long, value_name = "FILE")]
    filename: Option<PathBuf>,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t = Form::Text)]
    output: Form,
    /// Only these operators; all without it
    #[arg(value_name = "OPERATOR")]
    operators: Vec<String>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Form {
    /// For people
    Text,
    /// For people, a line for each object that would be made
    Short,
    /// A list of what would be done for each custom resource
    Json,
    /// The same
    Yaml,
}

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode> {
    let operators: Vec<Operator> =
        catalog::select(&arguments.operators)?.iter().map(|entry| (entry.operator)()).collect();
    let objects = arguments.filename.as_deref().map(read).transpose()?;
    let client = arguments.target.client().await?;
    let mut previews = Vec::new();
    match objects {
        None => {
            for operator in &operators {
                previews.extend(preview(&client, &Context::live(), operator, None).await?);
            }
        }
        Some(objects) => {
            for object in objects {
                let operator = manager_of(&operators, &object)?;
                previews.extend(preview(&client, &Context::live(), operator, Some(&[object])).await?);
            }
        }
    }
    output::print(match arguments.output {
        Form::Text => render(&previews, true),
        Form::Short => render(&previews, false),
        Form::Json => format!("{}\n", serde_json::to_string_pretty(&previews)?),
        Form::Yaml => format!("{}\n", serde_saphyr::to_string(&previews)?.trim_end()),
    })?;
    Ok(exit_code(&previews))
}

fn read(file: &Path) -> Result<Vec<DynamicObject>> {
    let source = file.display().to_string();
    let text = if source == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("failed to read standard input")?;
        text
    } else {
        std::fs::read_to_string(file).with_context(|| format!("failed to read {source}"))?
    };
    manifest::read(&text, &source)
}

fn manager_of<'a>(operators: &'a [Operator], object: &DynamicObject) -> Result<&'a Operator> {
    let types = object.types.clone().unwrap_or_default();
    let group = types.api_version.split('/').next().unwrap_or_default();
    let manages = |operator: &&Operator| {
        let crds = operator.crds().iter();
        crds.map(|crd| &crd.spec).any(|spec| spec.group == group && spec.names.kind == types.kind)
    };
    match operators.iter().find(manages) {
        Some(operator) => Ok(operator),
        None => bail!(
            "{}: none of the operators manages {} in {}",
            manifest::title(object),
            types.kind,
            types.api_version
        ),
    }
}

fn exit_code(previews: &[Preview]) -> ExitCode {
    match previews.iter().any(Preview::changes_something) {
        true => ExitCode::from(WOULD_CHANGE),
        false => ExitCode::SUCCESS,
    }
}

/// What would be done, for people; `whole` shows all of what would be made.
fn render(previews: &[Preview], whole: bool) -> String {
    let mut out = String::new();
    let mut counts = [0; 3];
    for preview in previews {
        let _ = writeln!(out, "{}", preview.primary);
        for step in &preview.steps {
            let (sign, count) = match step.verb {
                Verb::Create => ("+ create", Some(0)),
                Verb::Change => ("~ change", Some(1)),
                Verb::Delete => ("- delete", Some(2)),
                Verb::Leave => ("! leave ", None),
            };
            if let Some(count) = count {
                counts[count] += 1;
            }
            let note = step.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
            let _ = writeln!(out, "  {sign} {}{note}", step.object);
            if let Some(manifest) = step.manifest.as_ref().filter(|_| whole) {
                let manifest = serde_saphyr::to_string(manifest).unwrap_or_default();
                for line in manifest.trim_end().lines() {
                    let _ = writeln!(out, "      {line}");
                }
            }
            for change in &step.changes {
                let none = || "(not set)".to_owned();
                let (from, to) =
                    (change.from.clone().unwrap_or_else(none), change.to.clone().unwrap_or_else(none));
                let _ = writeln!(out, "      {}: {from} -> {to}", change.path);
            }
        }
        for note in &preview.notes {
            let _ = writeln!(out, "  {note}");
        }
        if preview.steps.is_empty() && preview.notes.is_empty() {
            let _ = writeln!(out, "  nothing would change");
        }
    }
    let [create, change, delete] = counts;
    if previews.is_empty() {
        out.push_str("there is nothing to plan for\n");
    } else {
        let _ = writeln!(out, "{create} to create, {change} to change, {delete} to delete");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use windlass::explain::Change;
    use windlass::preview::Step;

    fn step(verb: Verb, object: &str) -> Step {
        Step { verb, object: object.into(), changes: Vec::new(), manifest: None, note: None }
    }

    #[test]
    fn it_is_rendered_for_people() {
        let change = Change { path: "spec.replicas".into(), from: Some("3".into()), to: Some("1".into()) };
        let previews = [Preview {
            primary: "Monocle default/m".into(),
            steps: vec![
                Step {
                    note: Some("once it is ready".into()),
                    manifest: Some(json!({"kind": "Service", "spec": {"clusterIP": "None"}})),
                    ..step(Verb::Create, "Service default/a")
                },
                Step { changes: vec![change], ..step(Verb::Change, "Deployment default/b") },
                step(Verb::Delete, "Ingress default/c"),
            ],
            notes: vec!["the plan goes no further yet: Secret d is not there".into()],
        }];
        let text = "\
Monocle default/m
  + create Service default/a (once it is ready)
      kind: Service
      spec:
        clusterIP: None
  ~ change Deployment default/b
      spec.replicas: 3 -> 1
  - delete Ingress default/c
  the plan goes no further yet: Secret d is not there
1 to create, 1 to change, 1 to delete
";
        assert_eq!(render(&previews, true), text);
        assert_eq!(render(&previews, false).lines().count(), text.lines().count() - 3);
        let json = serde_json::to_value(&previews).unwrap();
        assert_eq!(json[0]["steps"][1]["verb"], "change");
        assert_eq!(json[0]["steps"][0]["manifest"]["kind"], "Service");
        assert_eq!(exit_code(&previews), ExitCode::from(2));
    }

    #[test]
    fn what_must_not_be_touched_is_no_change() {
        let steps = vec![step(Verb::Leave, "ConfigMap default/a")];
        let previews = [Preview { primary: "X n/x".into(), steps, notes: Vec::new() }];
        assert_eq!(exit_code(&previews), ExitCode::SUCCESS);
    }
}
