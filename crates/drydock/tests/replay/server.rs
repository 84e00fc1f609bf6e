//! What recordings are played against.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use tower::{Service, ServiceExt as _};
use windlass_drydock::controllers::Selection;
use windlass_drydock::{Drydock, Options, User};

/// A request on its way.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Vec<u8>>,
}

/// An answer as it came.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// Anything that answers requests.
pub(crate) trait Server {
    /// Sends one request and waits for the whole answer, a watch's included.
    async fn send(&mut self, request: Request) -> anyhow::Result<Response>;
}

/// A fresh drydock for one scenario, called as an administrator. The recordings were made without controllers.
pub(crate) async fn start() -> impl Server {
    let options = Options { controllers: Selection::none(), ..Options::seeded(1) };
    let drydock = Drydock::start(options).await.expect("a drydock starts");
    let server = drydock.server().clone();
    InProcess(server.map_request(|mut request: http::Request<Full<Bytes>>| {
        request.extensions_mut().insert(User::master("admin"));
        request
    }))
}

/// A server in this process.
pub(crate) struct InProcess<S>(pub(crate) S);

impl<S, B> Server for InProcess<S>
where
    S: Service<http::Request<Full<Bytes>>, Response = http::Response<B>> + Clone,
    S::Error: std::fmt::Debug,
    B: http_body::Body,
    B::Error: std::fmt::Debug,
{
    async fn send(&mut self, request: Request) -> anyhow::Result<Response> {
        let mut builder = http::Request::builder().method(request.method.as_str()).uri(&request.path);
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        let request = builder.body(Full::new(Bytes::from(request.body.unwrap_or_default())))?;
        let response = self.0.clone().oneshot(request).await;
        let response = response.map_err(|error| anyhow::anyhow!("failed to call the server: {error:?}"))?;
        let (parts, body) = response.into_parts();
        let body =
            body.collect().await.map_err(|error| anyhow::anyhow!("failed to read the answer: {error:?}"))?;
        let headers = parts
            .headers
            .iter()
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
        Ok(Response {
            status: parts.status.as_u16(),
            headers: headers.collect(),
            body: body.to_bytes().to_vec(),
        })
    }
}
