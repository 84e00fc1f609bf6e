//! The tokens of service accounts: signed by a key that the server makes when it starts, and good for as long
//! as they have not expired and what they are bound to exists.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING};
use ring::signature::{EcdsaKeyPair, KeyPair as _, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::super::server::Server;
use super::rule::quoted;
use super::{CREDENTIAL, User};
use crate::store::Key;

/// Who the tokens are from.
pub const ISSUER: &str = "https://kubernetes.default.svc";
/// Whom the tokens are for unless somebody asks for others: the API server.
pub const AUDIENCE: &str = ISSUER;

/// How far clocks may differ, in seconds.
const LEEWAY: i64 = 60;
/// Tokens whose signature is remembered to be good.
const REMEMBERED: usize = 4096;
/// What a P-256 public key begins with in the form that is hashed to name it.
const KEY_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// There is no key to sign tokens with.
#[derive(Debug, thiserror::Error)]
#[error("failed to make a key for the tokens of service accounts")]
pub struct KeyError;

/// What a token says.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Claims {
    /// Whom it is for.
    #[serde(default)]
    pub aud: Vec<String>,
    /// Until when it is good, in seconds since 1970.
    pub exp: i64,
    /// When it was made.
    pub iat: i64,
    /// By whom.
    pub iss: String,
    /// What tells it from other tokens.
    #[serde(default)]
    pub jti: String,
    /// What it is bound to.
    #[serde(rename = "kubernetes.io")]
    pub bound: Bound,
    /// From when on it is good.
    pub nbf: i64,
    /// The user.
    pub sub: String,
}

/// What a token is bound to.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Bound {
    /// The namespace of the service account and of the objects.
    pub namespace: String,
    /// The node of the pod, or a node by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Reference>,
    /// A pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<Reference>,
    /// A secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Reference>,
    /// The service account.
    pub serviceaccount: Reference,
    /// When a client should have asked for a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warnafter: Option<i64>,
}

/// An object.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Reference {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its uid.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// Signs tokens and checks them.
pub struct Signer {
    key: EcdsaKeyPair,
    document: Vec<u8>,
    id: String,
    random: SystemRandom,
    good: Mutex<HashMap<[u8; 32], Arc<Claims>>>,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Signer").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Signer {
    /// With a new key.
    ///
    /// # Errors
    /// When the machine has no randomness.
    pub fn new() -> Result<Self, KeyError> {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(|_| KeyError)?;
        Self::from_pkcs8(document.as_ref())
    }

    /// With the key of another.
    ///
    /// # Errors
    /// When that is no key for it.
    pub fn from_pkcs8(document: &[u8]) -> Result<Self, KeyError> {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let key = EcdsaKeyPair::from_pkcs8(algorithm, document, &random).map_err(|_| KeyError)?;
        let public = [&KEY_PREFIX[..], key.public_key().as_ref()].concat();
        let id = URL_SAFE_NO_PAD.encode(Sha256::digest(public));
        Ok(Self { key, document: document.to_vec(), id, random, good: Mutex::default() })
    }

    /// Its private key.
    #[must_use]
    pub fn pkcs8(&self) -> &[u8] {
        &self.document
    }

    /// A token that says that.
    ///
    /// # Errors
    /// When the machine has no randomness.
    pub fn sign(&self, claims: &Claims) -> Result<String, KeyError> {
        let header = json!({"alg": "ES256", "kid": self.id}).to_string();
        let claims = serde_json::to_vec(claims).map_err(|_| KeyError)?;
        let text = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let signature = self.key.sign(&self.random, text.as_bytes()).map_err(|_| KeyError)?;
        Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// The public key as a JSON Web Key Set, for who checks tokens without asking the server.
    #[must_use]
    pub fn key_set(&self) -> Value {
        let public = self.key.public_key().as_ref();
        let part = |from: usize, to: usize| URL_SAFE_NO_PAD.encode(public.get(from..to).unwrap_or_default());
        json!({"keys": [{
            "use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": "ES256",
            "x": part(1, 33), "y": part(33, 65),
        }]})
    }

    /// What a token says, where it is one of ours.
    fn verify(&self, token: &str) -> Result<Arc<Claims>, Refusal> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        let memory = || self.good.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(claims) = memory().get(&digest) {
            return Ok(Arc::clone(claims));
        }
        let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| Refusal::Unknown);
        let parts: Vec<&str> = token.split('.').collect();
        let [header, body, signature] = parts.as_slice() else {
            return Err(Refusal::Unknown);
        };
        let body = decoded(body)?;
        let issuer: Value = serde_json::from_slice(&body).map_err(|_| Refusal::Unknown)?;
        if issuer["iss"] != ISSUER {
            return Err(Refusal::Unknown);
        }
        let header: Value = serde_json::from_slice(&decoded(header)?).map_err(|_| Refusal::Unknown)?;
        if header["kid"].as_str().is_some_and(|id| !id.is_empty() && id != self.id) {
            return Err(Refusal::because("invalid signature, no keys found"));
        }
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.key.public_key().as_ref());
        let signed = token.rsplit_once('.').map(|(signed, _)| signed).unwrap_or_default();
        if header["alg"] != "ES256" || key.verify(signed.as_bytes(), &decoded(signature)?).is_err() {
            return Err(Refusal::because("go-jose/go-jose: error in cryptographic primitive"));
        }
        let claims: Claims = serde_json::from_slice(&body).map_err(|_| Refusal::Unknown)?;
        let claims = Arc::new(claims);
        let mut memory = memory();
        if memory.len() >= REMEMBERED {
            memory.clear();
        }
        memory.insert(digest, Arc::clone(&claims));
        Ok(claims)
    }
}

/// Where the keys for tokens are, as OpenID Connect tells it.
#[must_use]
pub fn discovery() -> Value {
    json!({
        "issuer": ISSUER, "jwks_uri": format!("{ISSUER}/openid/v1/jwks"),
        "response_types_supported": ["id_token"], "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    })
}

/// Why a token is not good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is none of ours.
    Unknown,
    /// It is, but.
    Because(String),
}

impl Refusal {
    fn because(why: impl Into<String>) -> Self {
        Self::Because(why.into())
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown => out.write_str("invalid bearer token"),
            Self::Because(why) => write!(out, "[invalid bearer token, {why}]"),
        }
    }
}

/// Who a token is, and which of the audiences it is for.
///
/// # Errors
/// When it is not good for any of them, or not any more.
pub fn authenticate(
    server: &Server,
    token: &str,
    audiences: &[&str],
) -> Result<(User, Vec<String>), Refusal> {
    let claims = server.auth.signer.verify(token)?;
    let fitting: Vec<String> =
        claims.aud.iter().filter(|own| audiences.contains(&own.as_str())).cloned().collect();
    if fitting.is_empty() {
        let wanted: Vec<String> = audiences.iter().map(|audience| (*audience).to_owned()).collect();
        return Err(Refusal::because(format!(
            "token audiences {} is invalid for the target audiences {}",
            quoted(&claims.aud),
            quoted(&wanted)
        )));
    }
    let now = server.context.now().as_second();
    if now - LEEWAY > claims.exp {
        return Err(Refusal::because("service account token has expired"));
    }
    if now + LEEWAY < claims.nbf {
        return Err(Refusal::because("service account token is not valid yet"));
    }
    check_bound(server, &claims.bound, now)?;
    Ok((user(&claims), fitting))
}

/// Whether everything that a token is bound to is there.
fn check_bound(server: &Server, bound: &Bound, now: i64) -> Result<(), Refusal> {
    let gone = || Refusal::because("service account token has been invalidated");
    let (namespace, account) = (&bound.namespace, &bound.serviceaccount);
    let found = Head::of(server, "serviceaccounts", namespace, &account.name)
        .ok_or_else(|| Refusal::because(format!("serviceaccounts {:?} not found", account.name)))?;
    if found.metadata.uid != account.uid {
        let (own, claim) = (&found.metadata.uid, &account.uid);
        return Err(Refusal::because(format!("service account UID ({own}) does not match claim ({claim})")));
    }
    if found.is_deleted(now) {
        let name = &account.name;
        return Err(Refusal::because(format!("service account {namespace}/{name} has been deleted")));
    }
    // The node of a pod's token is only told, not checked.
    let node = bound.node.as_ref().filter(|_| bound.pod.is_none());
    let objects = [
        ("secrets", "secret", namespace.as_str(), bound.secret.as_ref()),
        ("pods", "pod", namespace.as_str(), bound.pod.as_ref()),
        ("nodes", "node", "", node),
    ];
    for (plural, kind, namespace, reference) in objects {
        let Some(reference) = reference else { continue };
        let found = Head::of(server, plural, namespace, &reference.name).ok_or_else(gone)?;
        if found.metadata.uid != reference.uid {
            let (own, claim) = (&found.metadata.uid, &reference.uid);
            return Err(Refusal::because(format!(
                "{kind} UID ({own}) does not match service account {kind} ref claim ({claim})"
            )));
        }
        if found.is_deleted(now) {
            return Err(gone());
        }
    }
    Ok(())
}

fn user(claims: &Claims) -> User {
    let Bound { namespace, node, pod, serviceaccount, .. } = &claims.bound;
    let mut user = User::service_account(namespace, &serviceaccount.name);
    user.uid.clone_from(&serviceaccount.uid);
    let mut add = |key: &str, value: &str| {
        if !value.is_empty() {
            let key = if key.contains('/') {
                key.to_owned()
            } else {
                format!("authentication.kubernetes.io/{key}")
            };
            user.extra.insert(key, vec![value.to_owned()]);
        }
    };
    if !claims.jti.is_empty() {
        add(CREDENTIAL, &format!("JTI={}", claims.jti));
    }
    if let Some(pod) = pod {
        add("pod-name", &pod.name);
        add("pod-uid", &pod.uid);
    }
    if let Some(node) = node {
        add("node-name", &node.name);
        add("node-uid", &node.uid);
    }
    user
}

/// As much of a stored object as says which one it is.
#[derive(Default, Deserialize)]
struct Head {
    metadata: HeadMetadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HeadMetadata {
    uid: String,
    deletion_timestamp: Option<jiff::Timestamp>,
}

impl Head {
    fn of(server: &Server, plural: &str, namespace: &str, name: &str) -> Option<Self> {
        let registry = server.registry();
        let resource = registry.core(plural)?;
        let stored = server.store.get(resource.table, &Key::new(namespace, name))?;
        serde_json::from_slice(&stored.body).ok()
    }

    fn is_deleted(&self, now: i64) -> bool {
        self.metadata.deletion_timestamp.is_some_and(|at| at.as_second() < now - LEEWAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> Claims {
        let serviceaccount = Reference { name: "b".into(), uid: "u".into() };
        Claims {
            aud: vec![AUDIENCE.to_owned()],
            exp: 600,
            iat: 0,
            iss: ISSUER.to_owned(),
            jti: "j".to_owned(),
            bound: Bound { namespace: "a".into(), serviceaccount, ..Bound::default() },
            nbf: 0,
            sub: "system:serviceaccount:a:b".to_owned(),
        }
    }

    #[test]
    fn only_tokens_of_the_own_key_are_good() {
        let (signer, other) = (Signer::new().unwrap(), Signer::new().unwrap());
        let token = signer.sign(&claims()).unwrap();
        assert_eq!(signer.verify(&token).unwrap().jti, "j");
        assert_eq!(signer.verify(&token).unwrap().jti, "j", "remembered");
        assert!(matches!(other.verify(&token), Err(Refusal::Because(_))));
        assert_eq!(signer.verify("a.b.c").unwrap_err(), Refusal::Unknown);
        let (signed, _) = token.rsplit_once('.').unwrap();
        assert!(matches!(signer.verify(&format!("{signed}.AAAA")), Err(Refusal::Because(_))));
    }

    #[test]
    fn a_token_is_its_service_account() {
        let found = user(&claims());
        assert_eq!((found.name.as_str(), found.uid.as_str()), ("system:serviceaccount:a:b", "u"));
        assert_eq!(found.groups[1], "system:serviceaccounts:a");
        assert_eq!(found.extra[CREDENTIAL], ["JTI=j"]);
    }
}
