//! The HTTP client: no redirects, no retries, TLS only where it is needed.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_core::{ModelError, ModelErrorKind};
use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt, stream};
use reqwest::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Request, Url};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

use super::ConfigError;
use super::address::{is_loopback, parse};
use crate::transport::{Transport, TransportRequest, TransportResponse};

/// The network: requests go out over HTTP or HTTPS, with connections kept and used again.
///
/// Content is neither compressed nor decompressed.
#[derive(Debug, Clone)]
pub struct HttpTransport {
    client: Client,
    /// How the last request began, since the next one mostly begins in the same way.
    last: Arc<Mutex<Option<Prepared>>>,
}

/// Method, address and headers as they were given.
type Head = (Cow<'static, str>, Arc<str>, Arc<[(String, String)]>);

/// A request but for its body, checked and ready to be sent.
#[derive(Clone)]
struct Prepared {
    of: Head,
    method: Method,
    url: Url,
    headers: HeaderMap,
}

impl HttpTransport {
    /// A transport for servers at this address. It needs certificates only for `https`, and no proxy on this machine.
    pub fn new(base_url: &str, connect_timeout: Duration) -> Result<Self, ConfigError> {
        build(&parse(base_url)?, connect_timeout).map(Self::from)
    }

    /// The request but for its body; words for what of it cannot be sent.
    fn prepared(&self, request: &TransportRequest) -> Result<Prepared, &'static str> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last.as_ref().filter(|last| last.fits(request)) {
            return Ok(last.clone());
        }
        let prepared = Prepared::new(request)?;
        *last = Some(prepared.clone());
        Ok(prepared)
    }
}

impl Prepared {
    fn new(request: &TransportRequest) -> Result<Self, &'static str> {
        let TransportRequest { method, url, headers, .. } = request;
        Ok(Self {
            of: (method.clone(), Arc::clone(url), Arc::clone(headers)),
            method: Method::from_bytes(method.as_bytes()).map_err(|_| "method")?,
            url: Url::parse(url).map_err(|_| "address")?,
            headers: headers_of(headers).ok_or("headers")?,
        })
    }

    fn fits(&self, request: &TransportRequest) -> bool {
        let (method, url, headers) = &self.of;
        let is_same = Arc::ptr_eq(url, &request.url) && Arc::ptr_eq(headers, &request.headers);
        *method == request.method && (is_same || (*url == request.url && *headers == request.headers))
    }
}

/// Headers and the address may hold secrets.
impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").field("method", &self.method).finish_non_exhaustive()
    }
}

/// A client of your own. It should follow no redirects, which would carry the key along, and retry nothing.
impl From<Client> for HttpTransport {
    fn from(client: Client) -> Self {
        Self { client, last: Arc::default() }
    }
}

#[async_trait]
impl Transport for HttpTransport {
    async fn send(&self, request: TransportRequest) -> Result<TransportResponse, ModelError> {
        let Prepared { method, url, mut headers, .. } = self.prepared(&request).map_err(|what| {
            let message = format!("the {what} of the request cannot be sent over HTTP");
            ModelError::new(ModelErrorKind::InvalidRequest, message)
        })?;
        headers.insert(CONTENT_LENGTH, request.body.len().into());
        let mut sent = Request::new(method, url);
        *sent.headers_mut() = headers;
        let buffers = request.body.into_buffers().map(Ok::<_, Infallible>);
        *sent.body_mut() = Some(reqwest::Body::wrap_stream(stream::iter(buffers)));
        let sent = self.client.execute(sent).await;
        let response = sent.map_err(|error| failed("the request could not be sent", error))?;
        let headers = response.headers().iter().map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        });
        Ok(TransportResponse {
            status: response.status().as_u16(),
            headers: headers.collect(),
            body: response.bytes_stream().map_err(|error| failed("the connection failed", error)).boxed(),
        })
    }
}

/// Every value is kept out of logs.
fn headers_of(pairs: &[(String, String)]) -> Option<HeaderMap> {
    let pairs = pairs.iter().map(|(name, value)| {
        let mut value = HeaderValue::from_str(value).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::try_from(name).ok()?, value))
    });
    pairs.collect()
}

/// What went wrong below HTTP, without the address, whose query may hold secrets.
fn failed(what: &str, error: reqwest::Error) -> ModelError {
    use std::error::Error as _;
    let refused = error.is_connect().then(|| error.url().and_then(no_server)).flatten();
    let error = error.without_url();
    let mut message = refused.unwrap_or_else(|| format!("{what}: {error}"));
    let mut cause = error.source();
    while let Some(deeper) = cause {
        message.push_str(&format!(": {deeper}"));
        cause = deeper.source();
    }
    ModelError::new(ModelErrorKind::Transport, message)
}

/// The commonest failure, of a server of one's own.
fn no_server(url: &Url) -> Option<String> {
    let (host, port) = (url.host_str()?, url.port_or_known_default()?);
    Some(format!("no server answers at {host}:{port}; start it, or give the address it has (base_url)"))
}

/// A client for one address. A redirect would carry the key to another host, and a retry here would multiply with
/// those of the harness: both are off.
fn build(url: &Url, connect_timeout: Duration) -> Result<Client, ConfigError> {
    let builder = Client::builder()
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(connect_timeout)
        .tcp_nodelay(true)
        .tls_backend_preconfigured(tls(url.scheme() == "https").map_err(ConfigError::Tls)?);
    let builder = if is_loopback(url) { builder.no_proxy() } else { builder };
    builder.build().map_err(ConfigError::Client)
}

/// Plain HTTP needs no certificates: reading the system's takes time, and a small container has none.
fn tls(is_needed: bool) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    if !is_needed {
        return Ok(config.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
    }
    let verifier = Arc::new(Verifier::new(provider)?);
    Ok(config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}
