//! `windlass manifests`: what to deploy on a cluster so that an operator runs there.

use anyhow::{Result, bail};
use serde_json::{Value, json};
use windlass::Operator;
use windlass::manifests::{self, PORT, Setup, WEBHOOKS_PORT};
use windlass_grafana_agent::kubelet::KubeletService;

use crate::{catalog, output, run};

/// The image that has this program, unless told otherwise.
const IMAGE: &str = concat!("windlass:", env!("CARGO_PKG_VERSION"));

/// Print what to deploy on a cluster so that an operator runs there
///
/// Definitions of its kinds, a service account with the permissions that the operator needs and no others, and a
/// Deployment. One replica works and the others stand by, or, with --shards, all share the objects.
///
/// For example: windlass manifests monocle --image registry.example.org/windlass:1.0 | kubectl apply --server-side -f -
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The operator
    #[arg(value_name = "OPERATOR")]
    operator: String,
    #[command(flatten)]
    deployed: Deployed,
    /// Only the definitions of the operator's kinds
    #[arg(long, conflicts_with = "no_crds")]
    crds_only: bool,
    /// Everything but the definitions: somebody else installs them
    #[arg(long)]
    no_crds: bool,
    /// The form in which they are printed
    #[arg(short, long, value_name = "FORM", value_enum, default_value = "yaml")]
    output: Form,
}

/// How an operator is deployed.
#[derive(Debug, clap::Args)]
pub(crate) struct Deployed {
    /// The namespace to run in, which is there already; without it, one of the operator's own name, which is made
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Work only in these namespaces, with roles in them instead of a cluster role; in all without it
    #[arg(long = "watch-namespace", value_name = "A,B", value_delimiter = ',')]
    watch_namespaces: Vec<String>,
    /// The image with this program; without it windlass, or the operator's own where it has one, of this version
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// How many replicas run
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    replicas: u32,
    /// All replicas work, each on its part of the objects
    #[arg(long)]
    shards: bool,
    /// Have the API server ask the operator about each write: defaults at once, invalid objects refused
    #[arg(long)]
    webhooks: bool,
    /// Keep a Service with the kubelets of all nodes, for a ServiceMonitor to select; for grafana-agent
    #[arg(long, value_name = "NAMESPACE/NAME")]
    kubelet_service: Option<KubeletService>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Form {
    Yaml,
    Json,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    output::print(printed(arguments)?)
}

fn printed(arguments: &Arguments) -> Result<String> {
    let (operator, setup) = arguments.deployed.resolve(&arguments.operator)?;
    let mut objects = Vec::new();
    if !arguments.crds_only {
        objects = manifests::objects(&operator, &setup);
    }
    if !arguments.no_crds {
        // A namespace first, so that all of it can be applied in one go; definitions before whoever uses them.
        let at = usize::from(objects.first().is_some_and(|first| first["kind"] == "Namespace"));
        objects.splice(at..at, manifests::definitions(&operator));
    }
    match arguments.output {
        Form::Json => {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
            Ok(format!("{}\n", serde_json::to_string_pretty(&list)?))
        }
        Form::Yaml => yaml(&objects),
    }
}

/// One document for each object.
pub(crate) fn yaml(objects: &[Value]) -> Result<String> {
    let documents: Result<Vec<String>, _> = objects.iter().map(serde_saphyr::to_string).collect();
    Ok(documents?.iter().map(|document| format!("---\n{}\n", document.trim_end())).collect())
}

impl Deployed {
    /// The operator of this name, and how it is deployed.
    pub(crate) fn resolve(&self, name: &str) -> Result<(Operator, Setup)> {
        self.resolved(name, false)
    }

    /// The same for a bundle, where OLM chooses the namespace and brings the definitions.
    pub(crate) fn resolve_bundled(&self, name: &str) -> Result<(Operator, Setup)> {
        if !self.watch_namespaces.is_empty() {
            bail!("--watch-namespace is not for bundles: they work in all namespaces");
        }
        self.resolved(name, true)
    }

    fn resolved(&self, name: &str, bundled: bool) -> Result<(Operator, Setup)> {
        let entries = catalog::select(&[name.to_owned()])?;
        let mut operators = run::hosted(&entries, bundled, self.kubelet_service.as_ref())?;
        let Some(operator) = operators.pop() else { bail!("there is no operator {name:?}") };
        let image_variables = entries.iter().filter_map(|entry| entry.image_variable);
        let own = entries.iter().find_map(|entry| entry.image);
        let image = self.image.clone().unwrap_or_else(|| own.map_or_else(|| IMAGE.to_owned(), |own| own()));
        let mut setup = Setup {
            namespace: self.namespace.clone().unwrap_or_else(|| name.to_owned()),
            watch_namespaces: self.watch_namespaces.clone(),
            make_namespace: self.namespace.is_none(),
            image: image.clone(),
            command: entries.iter().filter_map(|entry| entry.program).map(ToOwned::to_owned).collect(),
            args: Vec::new(),
            env: image_variables.map(|variable| (variable.to_owned(), image.clone())).collect(),
            replicas: self.replicas,
            shards: self.shards,
            webhooks: self.webhooks,
        };
        setup.args = self.run_arguments(name, &operator, &setup);
        if bundled {
            setup.args.retain(|argument| !argument.starts_with("--lease-namespace="));
            setup
                .args
                .extend(entries.iter().filter_map(|entry| entry.bundled).map(|_| "--bundled".to_owned()));
        }
        Ok((operator, setup))
    }

    /// The arguments of `windlass run`, or of a program that is called by a name of its own.
    fn run_arguments(&self, name: &str, operator: &Operator, setup: &Setup) -> Vec<String> {
        let lease = setup.lease(operator);
        let mut arguments = Vec::new();
        if setup.command.is_empty() {
            arguments.extend(["run".to_owned(), name.to_owned()]);
        }
        arguments.extend([
            if setup.shards { "--shards" } else { "--leader-elect" }.to_owned(),
            format!("--lease-namespace={}", lease.namespace),
            format!("--lease-name={}", lease.name),
            format!("--listen=$(POD_IP):{PORT}"),
        ]);
        if !setup.watch_namespaces.is_empty() {
            arguments.push(format!("--watch-namespace={}", setup.watch_namespaces.join(",")));
        }
        if setup.webhooks {
            arguments.extend([
                "--webhooks".to_owned(),
                format!("--webhooks-listen=0.0.0.0:{WEBHOOKS_PORT}"),
                format!("--webhooks-service={}", setup.webhook_service(operator).name),
            ]);
        }
        arguments.extend(self.kubelet_service.as_ref().map(|service| format!("--kubelet-service={service}")));
        arguments
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::Path;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Manifests {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[derive(Parser)]
    struct Run {
        #[command(flatten)]
        _arguments: run::Arguments,
    }

    fn printed(words: &[&str]) -> String {
        let words = ["manifests"].into_iter().chain(words.iter().copied());
        super::printed(&Manifests::try_parse_from(words).unwrap().arguments).unwrap()
    }

    fn objects(words: &[&str]) -> Vec<Value> {
        let list: Value = serde_json::from_str(&printed(&[words, &["-o", "json"]].concat())).unwrap();
        list["items"].as_array().unwrap().clone()
    }

    /// The files show in a review what a change does to what people deploy.
    #[test]
    fn what_is_printed_is_what_the_fixtures_say() {
        for entry in catalog::OPERATORS {
            let variants: [(&str, &[&str]); 2] = [
                ("", &["--no-crds"]),
                ("-webhooks", &["--no-crds", "--webhooks", "--replicas=2", "--shards"]),
            ];
            for (suffix, flags) in variants {
                let text = printed(&[&[entry.name], flags].concat());
                assert_eq!(text, printed(&[&[entry.name], flags].concat()), "two runs differ");
                let file = format!("fixtures/manifests/{}{suffix}.yaml", entry.name);
                let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(&file);
                if std::env::var_os("WINDLASS_UPDATE_FIXTURES").is_some() {
                    std::fs::write(&path, &text).unwrap();
                }
                let known = std::fs::read_to_string(&path).unwrap_or_default();
                assert!(
                    text == known,
                    "{file} is out of date: WINDLASS_UPDATE_FIXTURES=1 cargo test -p windlass-cli fixtures"
                );
            }
        }
    }

    #[test]
    fn the_deployment_runs_this_program_with_arguments_that_it_takes() {
        for entry in catalog::OPERATORS {
            for flags in [&[][..], &["--webhooks"], &["--shards"], &["--watch-namespace=a,b"]] {
                let objects = objects(&[&[entry.name], flags].concat());
                let deployment = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
                let container = &deployment["spec"]["template"]["spec"]["containers"][0];
                let words = |field: &str| -> Vec<String> {
                    serde_json::from_value(container[field].clone()).unwrap_or_default()
                };
                // As the program reads them: called by another name, it is a command.
                let called = words("command").pop().unwrap_or_else(|| "windlass".to_owned());
                let told = words("args").into_iter().map(|word| word.replace("$(POD_IP)", "10.0.0.7"));
                let arguments = crate::command::words([called].into_iter().chain(told).map(OsString::from));
                let arguments: Vec<OsString> = arguments.skip(1).collect();
                assert_eq!(arguments[..2], ["run", entry.name]);
                Run::try_parse_from(&arguments).unwrap_or_else(|error| panic!("{error}"));
            }
        }
    }

    #[test]
    fn the_namespace_is_made_only_where_it_is_the_operators_own() {
        let first = |words: &[&str]| objects(words)[0]["kind"].as_str().unwrap().to_owned();
        assert_eq!(first(&["monocle"]), "Namespace");
        assert_eq!(first(&["monocle", "--namespace", "ops"]), "CustomResourceDefinition");
        assert_eq!(first(&["monocle", "--namespace", "ops", "--no-crds"]), "ServiceAccount");
        let definitions = objects(&["grafana-agent", "--crds-only"]);
        assert!(definitions.iter().all(|object| object["kind"] == "CustomResourceDefinition"));
        assert!(definitions.len() > 1);
    }

    #[test]
    fn in_single_namespaces_it_has_roles_and_no_cluster_role() {
        let objects = objects(&["monocle", "--namespace=ops", "--watch-namespace=a,b", "--no-crds"]);
        let named = |kind: &str| -> Vec<&str> {
            let of_kind = objects.iter().filter(|object| object["kind"] == kind);
            of_kind.map(|object| object["metadata"]["namespace"].as_str().unwrap()).collect()
        };
        assert_eq!(named("Role"), ["a", "b", "ops"]);
        assert_eq!(named("RoleBinding"), ["a", "b", "ops"]);
        assert!(objects.iter().all(|object| !object["kind"].as_str().unwrap().starts_with("Cluster")));
    }

    #[test]
    fn yaml_and_json_say_the_same() {
        let documents: Vec<Value> = serde_saphyr::from_multiple(&printed(&["grafana-agent"])).unwrap();
        assert_eq!(documents, objects(&["grafana-agent"]));
    }
}
