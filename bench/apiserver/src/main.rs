//! Drives an API server, and a peer, with the same load; prints one line a figure with the ratio.
//!
//! The client is one thread with a connection for each simulated client, and as lean as it can be: what it takes of
//! the processor is missing to the server. Servers are measured in turns, so that a noisy moment of the machine meets
//! both, and the middle of the rounds counts.

mod connection;
mod crowd;
mod figure;
mod load;
mod process;

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;

use crate::connection::Address;
use crate::figure::Figure;
use crate::process::Processes;

/// Compare the speed of API servers
#[derive(Parser)]
struct Arguments {
    /// The server to measure
    kubeconfig: PathBuf,
    /// Its processes, for processor time and memory
    #[arg(long, value_delimiter = ',')]
    pid: Vec<u32>,
    /// What to compare it with
    #[arg(long)]
    peer: Option<PathBuf>,
    /// The peer's processes
    #[arg(long, value_delimiter = ',')]
    peer_pid: Vec<u32>,
    /// Requests for each figure
    #[arg(long, default_value_t = 4000)]
    requests: usize,
    /// How often everything is measured; the middle counts
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Objects to hold at the end; 0 leaves the crowd out
    #[arg(long, default_value_t = 100_000)]
    objects: usize,
    /// Watchers to hold besides, with a connection each
    #[arg(long, default_value_t = 10_000)]
    watchers: usize,
}

struct Server {
    address: Address,
    processes: Processes,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let mut servers = vec![Server {
        address: Address::read(&arguments.kubeconfig).await?,
        processes: Processes(arguments.pid),
    }];
    if let Some(peer) = &arguments.peer {
        servers
            .push(Server { address: Address::read(peer).await?, processes: Processes(arguments.peer_pid) });
    }
    let mut measured: Vec<Vec<Vec<Figure>>> = servers.iter().map(|_| Vec::new()).collect();
    for round in 0..arguments.rounds {
        for (server, measured) in servers.iter().zip(&mut measured) {
            measured.push(load::measure(server, round, arguments.requests).await?);
        }
    }
    figure::print(measured.into_iter().map(figure::middle).collect());
    if arguments.objects > 0 {
        let mut held = Vec::new();
        for server in &servers {
            held.push(crowd::measure(server, arguments.objects, arguments.watchers).await?);
        }
        println!();
        figure::print(held);
    }
    Ok(())
}
