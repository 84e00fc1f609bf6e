//! The operators' port: where it is served, and how it is asked.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Where the port is unless told otherwise.
pub(crate) const ADDRESS: &str = "127.0.0.1:9446";
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Takes the port, for operators in this process. Where none was asked for, it is done without if it is taken.
pub(crate) fn bind(asked: Option<SocketAddr>) -> Result<Option<TcpListener>> {
    match asked {
        Some(address) => {
            let listener = TcpListener::bind(address);
            listener.map(Some).with_context(|| format!("failed to listen on {address}"))
        }
        None => match TcpListener::bind(ADDRESS) {
            Ok(listener) => Ok(Some(listener)),
            Err(error) => {
                eprintln!("no metrics and no explain: failed to listen on {ADDRESS}: {error}; see --listen");
                Ok(None)
            }
        },
    }
}

/// Gets a page from the port at `address`: the HTTP status and the text.
pub(crate) async fn get(address: &str, path: &str) -> Result<(u16, String)> {
    if address.starts_with("https://") {
        bail!("the operators' port speaks plain HTTP: give an address like http://{ADDRESS}");
    }
    let host = address.trim_start_matches("http://").trim_end_matches('/');
    let asked = async {
        let mut stream = TcpStream::connect(host).await?;
        // HTTP/1.0: one answer, then the end.
        let request = format!("GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = tokio::time::timeout(PATIENCE, asked).await.context("no answer in time");
    let answer = answer.and_then(|answer| answer.map_err(Into::into)).with_context(|| {
        format!("failed to ask the operators at http://{host}; is `windlass run` or `windlass up` running? see --address")
    })?;
    let Some((head, body)) = answer.split_once("\r\n\r\n") else { bail!("{host} does not speak HTTP") };
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok((status.with_context(|| format!("{host} does not speak HTTP"))?, body.to_owned()))
}
