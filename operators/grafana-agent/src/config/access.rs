//! Authentication and TLS.
//!
//! Of an agent or an instance, what is named as a file is written even if it is missing: the agent then fails in that
//! one place and recovers by itself. Of a monitor, everything must be there.

use k8s_openapi::api::core::v1::SecretKeySelector;

use super::Scene;
use crate::assets::{Assets, Reference};
use crate::document::{Document, Fields};
use crate::fault::Fault;
use crate::kinds::{Authorization, BasicAuth, Named, OAuth2, SecretOrConfigMap, Tls};

/// How strictly files are looked at.
#[derive(Clone, Copy)]
pub(super) struct Access<'a> {
    assets: &'a Assets<'a>,
    namespace: &'a str,
    /// Told of files that are missing; without it, a missing file is a fault.
    lenient: Option<&'a dyn Fn(Fault)>,
}

impl<'a> Access<'a> {
    /// Everything must be there.
    pub(super) fn strict(assets: &'a Assets<'a>, namespace: &'a str) -> Self {
        Self { assets, namespace, lenient: None }
    }

    /// Files may be missing.
    pub(super) fn lenient(assets: &'a Assets<'a>, namespace: &'a str, tell: &'a dyn Fn(Fault)) -> Self {
        Self { assets, namespace, lenient: Some(tell) }
    }

    pub(super) fn value(&self, selector: &Option<SecretKeySelector>) -> Result<Option<Document>, Fault> {
        let reference = selector.as_ref().and_then(|selector| Reference::secret(self.namespace, selector));
        self.assets.value(reference)
    }

    pub(super) fn file(&self, selector: &Option<SecretKeySelector>) -> Result<Option<String>, Fault> {
        self.path(selector.as_ref().and_then(|selector| Reference::secret(self.namespace, selector)))
    }

    fn either(&self, selector: &Option<SecretOrConfigMap>) -> Result<Option<String>, Fault> {
        self.path(selector.as_ref().and_then(|selector| Reference::either(self.namespace, selector)))
    }

    fn path(&self, reference: Option<Reference>) -> Result<Option<String>, Fault> {
        let path = reference.as_ref().map(|reference| self.assets.path_of(reference));
        match (self.assets.path(reference), self.lenient) {
            (Err(fault), Some(tell)) => {
                tell(fault);
                Ok(path)
            }
            (found, _) => found,
        }
    }

    /// User name and password, both as values.
    pub(super) fn basic_auth(&self, auth: &Option<BasicAuth>) -> Result<Option<Fields>, Fault> {
        let Some(auth) = auth else { return Ok(None) };
        let fields = Fields::new()
            .maybe("username", self.value(&auth.username)?)
            .maybe("password", self.value(&auth.password)?);
        Ok(Some(fields))
    }

    /// User name as a value, password as a file.
    pub(super) fn basic_auth_file(&self, auth: &Option<BasicAuth>) -> Result<Option<Fields>, Fault> {
        let Some(auth) = auth else { return Ok(None) };
        let fields = Fields::new()
            .maybe("username", self.value(&auth.username)?)
            .maybe("password_file", self.file(&auth.password)?);
        Ok(Some(fields))
    }

    pub(super) fn authorization(
        &self,
        authorization: &Option<Authorization>,
    ) -> Result<Option<Fields>, Fault> {
        let Some(authorization) = authorization else { return Ok(None) };
        check_scheme(&authorization.scheme)?;
        let fields = Fields::new()
            .text("type", &authorization.scheme)
            .maybe("credentials_file", self.file(&authorization.credentials)?);
        Ok(Some(fields).filter(|fields| !fields.is_empty()))
    }

    pub(super) fn oauth2(&self, oauth2: &Option<OAuth2>) -> Result<Option<Fields>, Fault> {
        let Some(oauth2) = oauth2 else { return Ok(None) };
        let id = Reference::either(self.namespace, &oauth2.client_id);
        let secret = Reference::secret(self.namespace, &oauth2.client_secret);
        let missing = [
            ("clientId", id.is_none()),
            ("clientSecret", secret.is_none()),
            ("tokenUrl", oauth2.token_url.is_empty()),
        ];
        if let Some((field, _)) = missing.iter().find(|(_, missing)| *missing) {
            let message = format!("oauth2.{field}: is not given, and the agent refuses OAuth 2.0 without it");
            return Err(Fault::new("BadOAuth2", message));
        }
        let (Some(id), Some(secret)) = (self.assets.value(id)?, self.path(secret)?) else { return Ok(None) };
        let fields = Fields::new()
            .with("client_id", id)
            .with("client_secret_file", secret)
            .filled("endpoint_params", &oauth2.endpoint_params)
            .filled("scopes", oauth2.scopes.clone())
            .with("token_url", oauth2.token_url.as_str());
        Ok(Some(fields))
    }

    pub(super) fn tls(&self, tls: &Option<Tls>) -> Result<Option<Fields>, Fault> {
        let Some(tls) = tls else { return Ok(None) };
        let given = |file: &Option<String>| file.clone().filter(|file| !file.is_empty());
        let ca = given(&tls.ca_file).map_or_else(|| self.either(&tls.safe.ca), |file| Ok(Some(file)))?;
        let cert =
            given(&tls.cert_file).map_or_else(|| self.either(&tls.safe.cert), |file| Ok(Some(file)))?;
        let key =
            given(&tls.key_file).map_or_else(|| self.file(&tls.safe.key_secret), |file| Ok(Some(file)))?;
        let fields = Fields::new()
            .maybe("ca_file", ca)
            .maybe("cert_file", cert)
            .maybe("key_file", key)
            .text("server_name", &tls.safe.server_name)
            .flag("insecure_skip_verify", tls.safe.insecure_skip_verify);
        Ok(Some(fields))
    }
}

/// A bearer token as the `authorization` of it.
pub(super) fn bearer(token: &Option<String>, file: &Option<String>) -> Option<Fields> {
    let fields = Fields::new().text("credentials", token).text("credentials_file", file);
    (!fields.is_empty()).then(|| fields.with("type", "Bearer"))
}

/// What `kubernetes_sd_configs` say of the API server. What is wrong with it is told of the agent, once.
pub(super) fn api_server(scene: &Scene<'_>) -> Fields {
    let agent = scene.agent;
    let Some(server) = &agent.spec.api_server else { return Fields::new() };
    let tell = |fault: Fault| {
        scene.part::<_, ()>(agent, Err(fault.within("spec.apiServer")));
    };
    let access = Access::lenient(scene.assets, agent.space(), &tell);
    let authorization = server.authorization.as_ref().map(|authorization| {
        Fields::new()
            .text("type", &authorization.safe.scheme)
            .maybe("credentials_file", told(&tell, access.file(&authorization.safe.credentials)))
            .text("credentials_file", &authorization.credentials_file)
    });
    let authorization = authorization.filter(|fields| !fields.is_empty());
    Fields::new()
        .filled("api_server", server.host.as_str())
        .maybe("basic_auth", told(&tell, access.basic_auth(&server.basic_auth)))
        .maybe("authorization", authorization)
        .maybe("authorization", bearer(&server.bearer_token, &server.bearer_token_file))
        .maybe("tls_config", told(&tell, access.tls(&server.tls_config)))
}

fn told<T>(tell: &dyn Fn(Fault), outcome: Result<Option<T>, Fault>) -> Option<T> {
    outcome.map_err(tell).ok().flatten()
}

fn check_scheme(scheme: &Option<String>) -> Result<(), Fault> {
    match scheme.as_deref() {
        Some(scheme) if scheme.trim().eq_ignore_ascii_case("basic") => {
            let message = "authorization.type: is Basic, which the agent refuses here; use basicAuth";
            Err(Fault::new("BadAuthorization", message))
        }
        _ => Ok(()),
    }
}
