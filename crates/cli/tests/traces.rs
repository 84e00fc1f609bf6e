//! The traces of the program as a collector gets them: `cargo test -p windlass-cli --features opentelemetry --test traces`.

#![cfg(feature = "opentelemetry")]
// A test that cannot go on should say so and stop.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};

/// A collector that keeps the bodies that are posted to it, with their paths.
fn collector() -> (String, Arc<Mutex<Vec<(String, Vec<u8>)>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let received = Arc::<Mutex<Vec<(String, Vec<u8>)>>>::default();
    let keep = Arc::clone(&received);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let keep = Arc::clone(&keep);
            std::thread::spawn(move || {
                while let Some(one) = receive(stream.as_ref().unwrap()) {
                    keep.lock().unwrap().push(one);
                }
            });
        }
    });
    (address, received)
}

/// One request of a connection: its path and body.
fn receive(stream: &TcpStream) -> Option<(String, Vec<u8>)> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok().filter(|read| *read > 0)?;
        let header = header.trim().to_ascii_lowercase();
        if let Some(text) = header.strip_prefix("content-length:") {
            length = text.trim().parse().ok()?;
        }
        if header.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut stream = stream;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").ok()?;
    Some((path, body))
}

fn has(body: &[u8], text: &str) -> bool {
    body.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn the_spans_of_a_reconcile_arrive_with_their_attributes() {
    let (address, received) = collector();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("traces");
    std::fs::create_dir_all(&folder).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["up", "--until-ready", "--operators", "monocle", "--kubeconfig"])
        .arg(folder.join("kubeconfig"))
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &address)
        .env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let received = received.lock().unwrap();
    assert!(!received.is_empty() && received.iter().all(|(path, _)| path == "/v1/traces"));
    let all: Vec<u8> = received.iter().flat_map(|(_, body)| body.clone()).collect();
    for text in [
        "service.name",
        "windlass",
        "deployment.environment",
        "reconcile",
        "monocle-operator",
        "monocle-sample",
        "Monocle default/monocle-sample changed",
        "settled",
        "plan",
        "dependents",
        "write",
        "StatefulSet",
        "monocle-sample-elastic",
        "status",
    ] {
        assert!(has(&all, text), "no {text} in the traces");
    }
    assert!(!has(&all, "CRAWLERS_API_KEY"), "nothing of what is written is in the traces");
}
