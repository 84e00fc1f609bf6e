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

impl Request {
    fn with_body<B>(self, body: impl FnOnce(Vec<u8>) -> B) -> http::Result<http::Request<B>> {
        let mut builder = http::Request::builder().method(self.method.as_str()).uri(&self.path);
        for (name, value) in &self.headers {
            builder = builder.header(name, value);
        }
        builder.body(body(self.body.unwrap_or_default()))
    }
}

/// An answer as it came.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    async fn collected<B>(response: http::Response<B>) -> anyhow::Result<Self>
    where
        B: http_body::Body,
        B::Error: std::fmt::Debug,
    {
        let (parts, body) = response.into_parts();
        let body =
            body.collect().await.map_err(|error| anyhow::anyhow!("failed to read the answer: {error:?}"))?;
        let headers = parts
            .headers
            .iter()
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
        Ok(Self { status: parts.status.as_u16(), headers: headers.collect(), body: body.to_bytes().to_vec() })
    }
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

/// The server that a kubeconfig names, reached as its user.
pub(crate) struct Remote(kube::Client);

impl Remote {
    /// Connects to the server that the file names.
    pub(crate) async fn connect(kubeconfig: &str) -> anyhow::Result<Self> {
        let file = kube::config::Kubeconfig::read_from(kubeconfig)?;
        let options = kube::config::KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(file, &options).await?;
        Ok(Self(kube::Client::try_from(config)?))
    }
}

impl Server for Remote {
    async fn send(&mut self, request: Request) -> anyhow::Result<Response> {
        let response = self.0.send(request.with_body(kube::client::Body::from)?).await?;
        Response::collected(response).await
    }
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
        let request = request.with_body(|body| Full::new(Bytes::from(body)))?;
        let response = self.0.clone().oneshot(request).await;
        let response = response.map_err(|error| anyhow::anyhow!("failed to call the server: {error:?}"))?;
        Response::collected(response).await
    }
}
