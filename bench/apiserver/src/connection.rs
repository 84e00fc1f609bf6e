//! One client's connection: HTTP/1.1 over TLS, one request after the other.
//!
//! It does no more than the protocol asks for, so that the processor time that client and server share goes to the
//! server. It trusts the server to speak HTTP as it should.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use kube::client::ConfigExt as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A server that can be connected to. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Address {
    authority: String,
    name: ServerName<'static>,
    connector: TlsConnector,
}

impl Address {
    /// The server of a kubeconfig.
    pub(crate) async fn read(path: &Path) -> Result<Self> {
        let read =
            Kubeconfig::read_from(path).with_context(|| format!("failed to read {}", path.display()))?;
        let config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
        let host = config.cluster_url.host().unwrap_or_default().to_owned();
        let authority = format!("{host}:{}", config.cluster_url.port_u16().unwrap_or(443));
        let connector = TlsConnector::from(Arc::new(config.rustls_client_config()?));
        Ok(Self { authority, name: ServerName::try_from(host)?, connector })
    }

    /// A new connection.
    pub(crate) async fn connect(&self) -> Result<Connection> {
        let stream = TcpStream::connect(&self.authority).await?;
        stream.set_nodelay(true)?;
        let stream = self.connector.connect(self.name.clone(), stream).await?;
        Ok(Connection { stream, buffer: Vec::new(), used: 0, text: Vec::new() })
    }
}

/// A connection with one request at a time.
pub(crate) struct Connection {
    stream: TlsStream<TcpStream>,
    /// What was read; the first `used` bytes have been dealt with.
    buffer: Vec<u8>,
    used: usize,
    /// The request being made, kept for its memory.
    text: Vec<u8>,
}

/// What is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) method: &'static str,
    pub(crate) path: &'a str,
    /// The media type of the body; empty for none.
    pub(crate) kind: &'static str,
    pub(crate) body: &'a [u8],
}

impl<'a> Ask<'a> {
    /// A read.
    pub(crate) fn get(path: &'a str) -> Self {
        Self { method: "GET", path, kind: "", body: b"" }
    }

    /// A write of JSON.
    pub(crate) fn json(method: &'static str, path: &'a str, body: &'a [u8]) -> Self {
        Self { method, path, kind: "application/json", body }
    }
}

/// The head of an answer.
struct Head {
    /// Its bytes, with the empty line.
    length: usize,
    /// Bytes of the body; none where it comes in chunks.
    body: Option<usize>,
}

impl Connection {
    /// The body of the answer; an answer that is no success is an error.
    pub(crate) async fn ask(&mut self, ask: Ask<'_>) -> Result<Vec<u8>> {
        self.send(ask).await?;
        let head = self.head(ask).await?;
        self.used += head.length;
        let Some(length) = head.body else {
            let mut body = Vec::new();
            while let Some(chunk) = self.chunk().await? {
                body.extend_from_slice(&self.buffer[chunk]);
            }
            return Ok(body);
        };
        self.need(length).await?;
        let body = self.buffer[self.used..self.used + length].to_vec();
        self.used += length;
        Ok(body)
    }

    /// Starts a watch; its events are read with [`Connection::event_with`].
    pub(crate) async fn watch(&mut self, path: &str) -> Result<()> {
        let ask = Ask::get(path);
        self.send(ask).await?;
        let head = self.head(ask).await?;
        self.used += head.length;
        match head.body {
            None => Ok(()),
            Some(_) => bail!("the watch of {path} does not come in chunks"),
        }
    }

    /// Reads on until an event that holds this text has come.
    pub(crate) async fn event_with(&mut self, text: &[u8]) -> Result<()> {
        while let Some(chunk) = self.chunk().await? {
            // Servers write an event into one chunk, or several into one.
            if find(&self.buffer[chunk], text).is_some() {
                return Ok(());
            }
        }
        bail!("the watch ended")
    }

    async fn send(&mut self, ask: Ask<'_>) -> Result<()> {
        use std::io::Write as _;
        self.text.clear();
        write!(
            self.text,
            "{} {} HTTP/1.1\r\nhost: localhost\r\nuser-agent: bench\r\naccept: application/json\r\n",
            ask.method, ask.path
        )?;
        if !ask.kind.is_empty() {
            write!(self.text, "content-type: {}\r\ncontent-length: {}\r\n", ask.kind, ask.body.len())?;
        }
        self.text.extend_from_slice(b"\r\n");
        self.text.extend_from_slice(ask.body);
        self.stream.write_all(&self.text).await?;
        Ok(self.stream.flush().await?)
    }

    /// Reads until the head of an answer is there, and complains where it is no success.
    async fn head(&mut self, ask: Ask<'_>) -> Result<Head> {
        let length = loop {
            match find(&self.buffer[self.used..], b"\r\n\r\n") {
                Some(end) => break end + 4,
                None => self.more().await?,
            }
        };
        let text = std::str::from_utf8(&self.buffer[self.used..self.used + length])?;
        let mut lines = text.split("\r\n");
        let code = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
        let mut body = Some(0);
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            if name.eq_ignore_ascii_case("content-length") {
                body = Some(value.trim().parse()?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                body = None;
            }
        }
        if !code.starts_with('2') {
            let told = String::from_utf8_lossy(&self.buffer[self.used + length..]);
            bail!("{} {}: {code} {told}", ask.method, ask.path);
        }
        Ok(Head { length, body })
    }

    /// The next chunk's place in the buffer; none after the last one.
    async fn chunk(&mut self) -> Result<Option<Range<usize>>> {
        let line = loop {
            match find(&self.buffer[self.used..], b"\r\n") {
                Some(end) => break end,
                None => self.more().await?,
            }
        };
        let length = std::str::from_utf8(&self.buffer[self.used..self.used + line])?;
        let length = usize::from_str_radix(length, 16)?;
        self.need(line + 2 + length + 2).await?;
        let start = self.used + line + 2;
        self.used = start + length + 2;
        Ok((length > 0).then_some(start..start + length))
    }

    /// Reads until so many bytes are there that have not been dealt with.
    async fn need(&mut self, bytes: usize) -> Result<()> {
        self.buffer.reserve((self.used + bytes).saturating_sub(self.buffer.len()));
        while self.buffer.len() - self.used < bytes {
            self.more().await?;
        }
        Ok(())
    }

    async fn more(&mut self) -> Result<()> {
        if self.used > 0 {
            self.buffer.drain(..self.used);
            self.used = 0;
        }
        if self.buffer.capacity() == self.buffer.len() {
            self.buffer.reserve(4096.max(self.buffer.len()));
        }
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => bail!("the server closed the connection"),
            _ => Ok(()),
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
