//! `windlass up`: the drydock, the operators and their samples, on this machine.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures::stream::{SelectAll, StreamExt as _};
use kube::api::DynamicObject;
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt as _};
use tokio::sync::watch;
use windlass::{Kind, ObjectName, Runtime};
use windlass_drydock::Options;

use crate::catalog::{self, Entry};
use crate::cluster::DEFAULT_KUBECONFIG;
use crate::images::ImageArguments;
use crate::progress::{Board, State};
use crate::webhooks::WebhookArguments;
use crate::{drydock, manifest, port, signal};

/// How long operators may take to stop.
const STOP_TIME: Duration = Duration::from_secs(5);
/// The namespace of the samples.
const NAMESPACE: &str = "default";

/// Start the drydock with the operators and their samples
///
/// Everything runs in this process and is gone when it stops (Ctrl-C). A kubeconfig is written, so that kubectl
/// or `windlass get` can look at it meanwhile.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Exit once every sample is ready: 0 if they are, 1 if not in time
    #[arg(long)]
    until_ready: bool,
    /// How long --until-ready waits
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    timeout: Duration,
    /// Where to write the kubeconfig
    #[arg(long, value_name = "FILE", default_value = DEFAULT_KUBECONFIG)]
    kubeconfig: PathBuf,
    /// The port of the API server; 0 takes any free one
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// Only these operators, separated by commas; all without it
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    operators: Vec<String>,
    /// Do not apply the operators' samples
    #[arg(long)]
    no_samples: bool,
    #[command(flatten)]
    images: ImageArguments,
    #[command(flatten)]
    webhooks: WebhookArguments,
}

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode> {
    let operators = catalog::select(&arguments.operators)?;
    let options = Options::live();
    arguments.images.apply(&options.node)?;
    let (drydock, endpoint) = drydock::start(options, arguments.port, &arguments.kubeconfig).await?;
    eprintln!("drydock on https://{} (for developing and testing, never for production)", endpoint.address);
    prepare(&operators, &drydock.client("windlass-up")).await?;
    let (stop, stopped) = watch::channel(false);
    let client = drydock.client("windlass-operators");
    let runtime = Runtime::new(client, drydock.context().clone()).install_crds();
    let group = ObjectName::new(NAMESPACE, "windlass-up");
    let (runtime, webhooks) = arguments.webhooks.apply(runtime, &group)?;
    if !webhooks.is_empty() {
        eprintln!("operators with{}", webhooks.trim_start_matches(','));
    }
    let mut running = tokio::spawn(host(&operators, runtime, stopped));
    let ended = tokio::select! {
        outcome = attend(&arguments, &operators, drydock.client("windlass-up")) => outcome,
        outcome = &mut running => match outcome {
            Ok(Ok(())) => bail!("the operators ended by themselves"),
            Ok(Err(error)) => Err(error),
            Err(error) => Err(error).context("the operators broke down"),
        },
        () = signal::stop() => Ok(ExitCode::SUCCESS),
    };
    stop.send_replace(true);
    if !running.is_finished() && tokio::time::timeout(STOP_TIME, &mut running).await.is_err() {
        running.abort();
    }
    drop(endpoint);
    drydock.stop().await;
    ended
}

/// Makes what has to be there before the operators start; what is there already is left as it is.
pub(crate) async fn prepare(operators: &[&'static Entry], client: &Client) -> Result<()> {
    for entry in operators {
        for text in entry.preparation {
            for object in manifest::read(text, &format!("the preparation of {}", entry.name))? {
                let (api, _) = manifest::api(client, &object, NAMESPACE).await?;
                if api.get_metadata_opt(&object.name_any()).await?.is_none() {
                    manifest::apply(client, &object, NAMESPACE).await?;
                }
            }
        }
    }
    Ok(())
}

/// Runs the operators until they are stopped.
fn host(
    operators: &[&'static Entry],
    mut runtime: Runtime,
    mut stopped: watch::Receiver<bool>,
) -> impl Future<Output = Result<()>> + use<> {
    // For `windlass explain`; where another has it already, this one does without.
    if let Ok(listener) = TcpListener::bind(port::ADDRESS) {
        runtime = runtime.listen(listener);
    }
    for entry in operators {
        runtime = runtime.host((entry.operator)());
    }
    async move {
        let stop = async move {
            let _ = stopped.wait_for(|stop| *stop).await;
        };
        runtime.run(stop).await.context("failed to run the operators")
    }
}

/// Applies the samples, shows how they come up, and says what to try.
async fn attend(arguments: &Arguments, operators: &[&'static Entry], client: Client) -> Result<ExitCode> {
    let mut samples = Vec::new();
    if !arguments.no_samples {
        for entry in operators {
            for text in entry.samples {
                samples.extend(manifest::read(text, &format!("the sample of {}", entry.name))?);
            }
        }
    }
    let waited = async {
        let mut board = Board::new(samples.iter().map(manifest::title));
        let reported = operators.iter().flat_map(|entry| (entry.kinds)().reports()).collect();
        let outcome = come_up(&samples, &reported, &client, &mut board, arguments).await;
        outcome.map(|()| board)
    };
    let board = waited.await?;
    if arguments.until_ready {
        if board.ready() {
            eprintln!("everything is ready");
            return Ok(ExitCode::SUCCESS);
        }
        eprintln!("not ready after {:?}:", arguments.timeout);
        for line in board.waiting() {
            eprintln!("  {line}");
        }
        return Ok(ExitCode::FAILURE);
    }
    println!("{}", hints(&arguments.kubeconfig, if arguments.no_samples { &[] } else { operators }));
    std::future::pending().await
}

/// Applies the samples and waits until they are ready; with --until-ready, no longer than its time.
async fn come_up(
    samples: &[DynamicObject],
    reported: &BTreeSet<Kind>,
    client: &Client,
    board: &mut Board,
    arguments: &Arguments,
) -> Result<()> {
    let work = async {
        let mut watches = SelectAll::new();
        for sample in samples {
            wait_for_kind(client, sample).await?;
            manifest::apply(client, sample, NAMESPACE).await?;
            let (api, _) = manifest::api(client, sample, NAMESPACE).await?;
            watches.push(states(api, sample, is_of(sample, reported)).boxed());
        }
        while !board.ready() {
            match watches.next().await {
                Some((name, state)) => board.update(&name, state),
                None => bail!("the watches of the samples ended"),
            }
        }
        Ok(())
    };
    if !arguments.until_ready {
        return work.await;
    }
    match tokio::time::timeout(arguments.timeout, work).await {
        Ok(outcome) => outcome,
        // What is not ready is told by whoever asked.
        Err(_) => Ok(()),
    }
}

fn states(
    api: Api<DynamicObject>,
    sample: &DynamicObject,
    reported: bool,
) -> impl futures::Stream<Item = (String, State)> + use<> {
    let title = manifest::title(sample);
    let name = sample.name_any();
    watcher::watch_object(api, &name).filter_map(move |event| {
        let update = event.ok().map(|object| match object {
            // No operator reports on a Secret, nor on what is quiet as long as it is well.
            Some(object) if !reported && object.data["status"]["conditions"].is_null() => {
                (title.clone(), State { ready: true, text: "there".to_owned() })
            }
            object => (title.clone(), State::of(object.as_ref())),
        });
        std::future::ready(update)
    })
}

/// Waits until the operator has installed the definition of a sample's kind.
async fn wait_for_kind(client: &Client, sample: &DynamicObject) -> Result<()> {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    if is_builtin(sample) {
        return Ok(());
    }
    let Some(types) = &sample.types else { bail!("a sample without a type") };
    let (group, kind) = (types.api_version.split('/').next().unwrap_or_default(), types.kind.as_str());
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut events = watcher::watcher(definitions, watcher::Config::default()).boxed();
    while let Some(event) = events.next().await {
        let (watcher::Event::Apply(definition) | watcher::Event::InitApply(definition)) = event? else {
            continue;
        };
        let conditions = definition.status.and_then(|status| status.conditions).unwrap_or_default();
        let established = conditions.iter().any(|c| c.type_ == "Established" && c.status == "True");
        if definition.spec.group == group && definition.spec.names.kind == kind && established {
            return Ok(());
        }
    }
    bail!("the watch of definitions ended");
}

/// Whether its kind is one of these.
fn is_of(sample: &DynamicObject, kinds: &BTreeSet<Kind>) -> bool {
    let types = sample.types.as_ref();
    types.is_some_and(|types| {
        kinds.iter().any(|kind| kind.name() == types.kind && kind.api_version() == types.api_version)
    })
}

/// Whether its kind is Kubernetes' own: groups of custom kinds have a dot.
fn is_builtin(sample: &DynamicObject) -> bool {
    sample.types.as_ref().is_some_and(|types| !types.api_version.contains('.'))
}

/// What to try next.
fn hints(kubeconfig: &Path, operators: &[&'static Entry]) -> String {
    let kubectl = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join("kubectl").is_file()));
    let file = std::path::absolute(kubeconfig).unwrap_or_else(|_| kubeconfig.to_owned());
    let program = if kubectl { "kubectl" } else { "windlass" };
    let tries: Vec<_> = operators
        .iter()
        .flat_map(|entry| entry.tries)
        .filter(|one| kubectl || !one.kubectl)
        .map(|one| (format!("{program} {}", one.command), one.shows))
        .collect();
    let width = tries.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
    let mut out = format!("\nTry, in another terminal:\n  export KUBECONFIG={}\n", file.display());
    for (command, shows) in tries {
        out.push_str(&format!("  {command:width$}  # {shows}\n"));
    }
    out.push_str("Ctrl-C stops everything.");
    out
}

fn duration(text: &str) -> Result<Duration, String> {
    let parsed = text.parse::<jiff::SignedDuration>().map_err(|error| error.to_string())?;
    Duration::try_from(parsed).map_err(|_| "a time cannot be negative".to_owned())
}
