//! A model behind HTTP: one request, one answer, no retries; behind feature `http`.

mod address;
mod answer;
mod client;
mod headers;

pub use address::without_secrets;
pub use client::HttpTransport;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use agent_core::{Cancel, Encoder, LanguageModel, ModelError, ModelProfile, ModelStream, Outgoing};
use async_trait::async_trait;

use crate::Catalog;
use crate::names::ToolNames;
use crate::sse::DEFAULT_EVENT_LIMIT;
use crate::transport::{Transport, TransportRequest};
use crate::vendor::Vendor;
use crate::wire::{Dialect, encoder};
use address::Address;
use answer::{Limits, Wire};
use headers::Headers;

/// How to reach a model of any vendor.
#[derive(Clone)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..Default")]
pub struct HttpConfig {
    /// Whose model it is; default Anthropic's.
    pub vendor: Vendor,
    /// Address of the server in place of the vendor's. A path in front of the vendor's path is kept, and so is a query.
    pub base_url: Option<String>,
    /// The key, sent as the vendor wants it; an empty one is not sent.
    pub api_key: ApiKey,
    /// The model's name on the wire.
    pub model: String,
    /// Further headers; they replace ours of the same name, but features in `anthropic-beta` are added to ours.
    pub headers: Vec<(String, String)>,
    /// What is known of models; default [`Catalog::builtin`]. Lay a table of your own over it once, and give it to every
    /// model.
    pub catalog: Catalog,
    /// What this model can do, in place of what [`Self::catalog`] has under its name.
    pub profile: Option<ModelProfile>,
    /// What carries requests, in place of [`Self::network`]: a client of your own, or a recorded one in tests.
    pub transport: Option<Arc<dyn Transport>>,
    /// Longest wait for a connection; default 30 s.
    pub connect_timeout: Duration,
    /// Longest wait for the response to begin; default 600 s, since an answer that is not streamed begins late.
    pub response_timeout: Duration,
    /// Longest silence between two reads of a streamed answer; default 300 s. Any byte ends it.
    pub idle_timeout: Duration,
    /// Longest wait for the next event of a streamed answer; default 600 s. A `ping` is an event; a comment is none,
    /// so that comments cannot keep a dead stream alive (case S07).
    pub progress_timeout: Duration,
    /// Most bytes of one event of a streamed answer; default [`DEFAULT_EVENT_LIMIT`]. A larger one ends the answer
    /// with an error of kind `protocol`, so that no server can fill the memory.
    pub event_limit: usize,
}

/// A secret key. Nothing prints it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ApiKey(Arc<str>);

/// A configuration that cannot work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Not an address.
    #[error("{given:?} is not a web address; write it like https://api.anthropic.com")]
    BaseUrl {
        /// What was given.
        given: String,
    },
    /// The key cannot be a header.
    #[error("the API key holds a character that no header may have; copy it again, without line breaks")]
    ApiKey,
    /// A header that cannot be sent.
    #[error(
        "the header {name:?} cannot be sent; use letters, digits and dashes, and a value without line breaks"
    )]
    Header {
        /// Its name.
        name: String,
    },
    /// The TLS stack found no usable certificates.
    #[error("the system's certificates cannot be used; install the CA certificates of the system")]
    Tls(#[source] rustls::Error),
    /// The client refused its settings.
    #[error("the HTTP client cannot be set up")]
    Client(#[source] reqwest::Error),
}

/// A model behind HTTP.
///
/// ```no_run
/// use agent_core::LanguageModel;
/// use agent_providers::{ApiKey, HttpConfig, HttpModel, Vendor};
///
/// let model = HttpModel::new(HttpConfig {
///     vendor: Vendor::named("anthropic").ok_or("no such vendor")?,
///     api_key: ApiKey::new("sk-ant-…"),
///     model: "claude-opus-5-5".into(),
///     ..HttpConfig::default()
/// })?;
/// assert_eq!(model.profile().context_window, 1_000_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct HttpModel {
    transport: Arc<dyn Transport>,
    dialect: Dialect,
    address: Address,
    headers: Headers,
    profile: ModelProfile,
    names: ToolNames,
    api_key: ApiKey,
    limits: Limits,
}

impl HttpConfig {
    /// The address in use: the one given, or else the vendor's.
    pub fn base_url(&self) -> &str {
        self.base_url.as_deref().unwrap_or(&self.vendor.base_url)
    }

    /// The real network to that address, which a model takes when it is given no other transport.
    pub fn network(&self) -> Result<HttpTransport, ConfigError> {
        HttpTransport::new(self.base_url(), self.connect_timeout)
    }
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            vendor: Vendor::default(),
            base_url: None,
            api_key: ApiKey::default(),
            model: String::new(),
            headers: Vec::new(),
            catalog: Catalog::builtin(),
            profile: None,
            transport: None,
            connect_timeout: Duration::from_secs(30),
            response_timeout: Duration::from_secs(600),
            idle_timeout: Duration::from_secs(300),
            progress_timeout: Duration::from_secs(600),
            event_limit: DEFAULT_EVENT_LIMIT,
        }
    }
}

/// Values of headers may be secrets too, and so may a query: only names are shown.
impl fmt::Debug for HttpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("HttpConfig")
            .field("vendor", &self.vendor.name)
            .field("base_url", &Address::new(self.base_url(), "", "").ok())
            .field("api_key", &self.api_key)
            .field("model", &self.model)
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}

impl ApiKey {
    /// Takes over a key.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into().into())
    }

    fn as_str(&self) -> &str {
        &self.0
    }

    /// A failure that does not quote the key.
    fn hidden_from(&self, error: ModelError) -> ModelError {
        ModelError { message: self.hidden_in(error.message), ..error }
    }

    /// A text without the key in it.
    fn hidden_in(&self, text: String) -> String {
        if self.0.is_empty() { text } else { text.replace(&*self.0, "[redacted]") }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "ApiKey(none)" } else { "ApiKey([redacted])" })
    }
}

impl HttpModel {
    /// Checks the configuration; nothing is sent yet.
    pub fn new(config: HttpConfig) -> Result<Self, ConfigError> {
        let address = Address::new(config.base_url(), &config.vendor.path, &config.model)?;
        let headers = Headers::new(&config)?;
        let transport = match &config.transport {
            Some(transport) => Arc::clone(transport),
            None => Arc::new(config.network()?),
        };
        Ok(Self {
            transport,
            address,
            headers,
            profile: config
                .profile
                .unwrap_or_else(|| config.catalog.profile(&config.vendor.dialect.provider, &config.model)),
            dialect: config.vendor.dialect,
            names: ToolNames::default(),
            api_key: config.api_key,
            limits: Limits {
                response: config.response_timeout,
                idle: config.idle_timeout,
                progress: config.progress_timeout,
                event: config.event_limit,
            },
        })
    }

    fn request(&self, request: Outgoing) -> TransportRequest {
        let Outgoing { body, stream, headers } = request;
        let [plain, streamed] = &self.address.written;
        TransportRequest {
            method: "POST".into(),
            url: Arc::clone(if stream { streamed } else { plain }),
            headers: self.headers.with(&headers),
            body,
        }
    }
}

#[async_trait]
impl LanguageModel for HttpModel {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        encoder(&self.dialect, self.profile.clone(), self.names.clone())
    }

    async fn stream(&self, request: Outgoing, cancel: &Cancel) -> Result<ModelStream, ModelError> {
        let wire = Wire {
            dialect: &self.dialect,
            names: self.names.clone(),
            limits: self.limits,
            key: self.api_key.clone(),
        };
        let sent = self.transport.send(self.request(request));
        let answer = answer::open(sent, wire, cancel).await;
        answer.map_err(|error| self.api_key.hidden_from(error))
    }
}

/// Whether a server's base address is this machine's own: nothing leaves it, and no key is needed.
///
/// ```
/// use agent_providers::is_loopback;
///
/// assert!(is_loopback("http://127.0.0.1:11434"));
/// assert!(!is_loopback("http://127.0.0.1.example.com"));
/// ```
pub fn is_loopback(base_url: &str) -> bool {
    address::parse(base_url).is_ok_and(|url| address::is_loopback(&url))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_printed() {
        let config = HttpConfig {
            base_url: Some("http://user:secret-6@127.0.0.1?key=secret-8".into()),
            api_key: ApiKey::new("secret-7"),
            headers: vec![("x-session".to_owned(), "secret-9".to_owned())],
            ..HttpConfig::default()
        };
        let model = HttpModel::new(config.clone()).unwrap();
        let request = model.request(Outgoing::default());
        let printed = format!("{config:?} {:?} {request:?}", model.headers);
        assert!(!printed.contains("secret-"), "{printed}");
        assert!(!format!("{model:?}").contains("secret-"), "{model:?}");
        assert_eq!(config.api_key.hidden_in("bad key secret-7".into()), "bad key [redacted]");
        let broken = HttpConfig { api_key: ApiKey::new("secret\n8"), ..HttpConfig::default() };
        let error = HttpModel::new(broken).unwrap_err();
        assert!(matches!(error, ConfigError::ApiKey) && !error.to_string().contains("secret"));
    }

    #[test]
    fn a_format_is_asked_for_streams_in_its_own_way() {
        let vendor = Vendor { path: "/v1beta/models/{model}:{method}".into(), ..Vendor::default() };
        let config = HttpConfig {
            vendor,
            base_url: Some("http://127.0.0.1:9".into()),
            model: "m".into(),
            ..HttpConfig::default()
        };
        let model = HttpModel::new(config).unwrap();
        let url = |stream| model.request(Outgoing { stream, ..Outgoing::default() }).url;
        assert_eq!(&*url(true), "http://127.0.0.1:9/v1beta/models/m:streamGenerateContent?alt=sse");
        assert_eq!(&*url(false), "http://127.0.0.1:9/v1beta/models/m:generateContent");
    }
}
