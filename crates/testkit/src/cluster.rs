//! Where tests run: on the drydock in this process, or on a real cluster that is named from outside.

use std::sync::OnceLock;
use std::time::Duration;

use http::header::{HeaderValue, USER_AGENT};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::sync::{Mutex, MutexGuard};
use windlass::Context;
use windlass_drydock::node::{self, Behaviours, NodeOptions};
use windlass_drydock::{Drydock, Options};

/// Names the kubeconfig of a real cluster without nodes; without it tests run on the drydock.
pub const KUBECONFIG: &str = "WINDLASS_E2E_KUBECONFIG";

/// A cluster for one test.
///
/// On the drydock time is virtual. On a real cluster it is not, tests take turns, since two operators for one kind
/// would be in each other's way, and the drydock's node runs the pods: the cluster must have none of its own.
pub struct Cluster {
    place: Place,
    context: Context,
    behaviours: Behaviours,
}

enum Place {
    Drydock(Box<Drydock>),
    Real { config: Box<Config>, _turn: MutexGuard<'static, ()> },
}

static TURN: Mutex<()> = Mutex::const_new(());

impl Cluster {
    /// The cluster that [`KUBECONFIG`] names, or else a new drydock. Call it in a test with real time.
    pub async fn start() -> Self {
        match std::env::var_os(KUBECONFIG).filter(|path| !path.is_empty()) {
            Some(path) => {
                let turn = TURN.lock().await;
                let read = Kubeconfig::read_from(&path).unwrap();
                let config =
                    Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.unwrap();
                let behaviours = node_of(&config);
                let place = Place::Real { config: Box::new(config), _turn: turn };
                Self { place, context: Context::live(), behaviours }
            }
            None => {
                tokio::time::pause();
                let options = Options::seeded(1);
                let behaviours = options.node.behaviours.clone();
                let drydock = Drydock::start(options).await.unwrap();
                let context = drydock.context().clone();
                Self { place: Place::Drydock(Box::new(drydock)), context, behaviours }
            }
        }
    }

    /// A client that may do everything, under a name of its own.
    #[must_use]
    pub fn client(&self, name: &str) -> Client {
        match &self.place {
            Place::Drydock(drydock) => drydock.client(name),
            Place::Real { config, .. } => client_of(config, name),
        }
    }

    /// The source of time and names.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// How the node treats images. All tests on a real cluster share it: let images have names of their own.
    #[must_use]
    pub fn behaviours(&self) -> &Behaviours {
        &self.behaviours
    }

    /// Whether this is the drydock.
    #[must_use]
    pub fn is_drydock(&self) -> bool {
        matches!(self.place, Place::Drydock(_))
    }

    /// How long anything is waited for.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_secs(if self.is_drydock() { 3600 } else { 180 })
    }

    /// So long nothing must change for things to be at rest.
    pub(crate) fn rest(&self) -> Duration {
        Duration::from_secs(if self.is_drydock() { 120 } else { 8 })
    }
}

fn client_of(config: &Config, name: &str) -> Client {
    let mut config = config.clone();
    config.headers.push((USER_AGENT, HeaderValue::from_str(name).unwrap()));
    Client::try_from(config).unwrap()
}

/// The node of a real cluster, one for all tests of this process: started once, on a thread of its own, since each
/// test has a runtime that ends with it.
fn node_of(config: &Config) -> Behaviours {
    static NODE: OnceLock<Behaviours> = OnceLock::new();
    let start = || {
        let options = NodeOptions::default();
        let behaviours = options.behaviours.clone();
        let config = config.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let client = client_of(&config, "windlass-node");
                node::run(client, Context::live(), options, std::future::pending()).await;
            });
        });
        behaviours
    };
    NODE.get_or_init(start).clone()
}
