//! Webhooks: the API server asks the operator about each write of its kinds, over TLS with certificates that the operator
//! makes and replaces by itself. What is invalid is refused at the door, defaults are filled in at once, and whoever writes
//! is warned. The rules are those that the reconciler holds to anyway.
//!
//! Run it with `cargo run -p windlass-examples --example webhooks`.

use std::net::TcpListener;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::CustomResource;
use kube::api::{Api, PostParams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::admission::Webhooks;
use windlass::{Halt, Invalid, Kind, ObjectName, Operator, Plan, Primary, Runtime, Status, World};
use windlass_drydock::{Drydock, Options};

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "Ticket", namespaced, status = "Status")]
struct TicketSpec {
    seats: u32,
    class: Option<String>,
}

impl Primary for Ticket {
    fn owns() -> Vec<Kind> {
        vec![Kind::of::<ConfigMap>()]
    }

    fn defaults(&mut self) {
        self.spec.class.get_or_insert_with(|| "second".into());
    }

    fn validity(&self) -> Vec<Invalid> {
        let many = self.spec.seats > 4;
        many.then(|| Invalid::new("spec.seats", "are more than 4; buy several tickets")).into_iter().collect()
    }

    fn plan(&self, _world: &World, _plan: &mut Plan) -> Result<(), Halt> {
        Ok(())
    }
}

fn ticket(name: &str, seats: u32) -> Ticket {
    Ticket::new(name, TicketSpec { seats, class: None })
}

// In real time: the API server calls through a socket.
#[tokio::main(flavor = "current_thread")]
pub async fn main() {
    let drydock = Drydock::start(Options::live()).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    // On a cluster it is `Webhooks::service`, and the Secret is shared by all replicas.
    let webhooks = Webhooks::url(&url, ObjectName::new("default", "tickets-webhooks")).unwrap();
    let runtime = Runtime::new(drydock.client("operator"), drydock.context().clone())
        .install_crds()
        .host(Operator::new("tickets").manages::<Ticket>())
        .webhooks(webhooks)
        .listen_webhooks(listener);
    let running = tokio::spawn(runtime.run(std::future::pending()));

    let tickets: Api<Ticket> = Api::default_namespaced(drydock.client("test"));
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let refused = loop {
        // Let through until the operator has told the API server about its webhooks.
        match tickets.create(&dry_run, &ticket("bus", 40)).await {
            Err(kube::Error::Api(status)) if status.code == 422 => break status.message.clone(),
            _ => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    };
    println!("refused: {refused}");
    assert!(refused.contains("spec.seats: are more than 4; buy several tickets"));

    let bought = tickets.create(&PostParams::default(), &ticket("family", 4)).await.unwrap();
    println!("with the default: {:?}", bought.spec.class);
    assert_eq!(bought.spec.class.as_deref(), Some("second"));
    running.abort();
}
