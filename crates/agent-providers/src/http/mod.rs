//! The HTTP transport: one request, one answer, no retries; behind feature `http`.

mod answer;
mod client;

use std::fmt;
use std::time::Duration;

use agent_core::{
    Cancel, Encoder, LanguageModel, ModelError, ModelErrorKind, ModelProfile, ModelStream, Outgoing,
};
use async_trait::async_trait;
use futures_util::{TryStreamExt, stream};
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};

use crate::anthropic::profiles;
use crate::names::ToolNames;
use crate::sse::DEFAULT_EVENT_LIMIT;
use crate::wire::{WireFormat, encoder};
use answer::{Limits, Wire};

/// How to reach an Anthropic-compatible server.
#[derive(Clone)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..Default")]
pub struct AnthropicConfig {
    /// Address of the server; `/v1/messages` is appended. A path in front of it is kept.
    pub base_url: String,
    /// The key, sent as `x-api-key`; an empty one is not sent.
    pub api_key: ApiKey,
    /// The model's name on the wire.
    pub model: String,
    /// Further headers, for example `anthropic-beta`; they replace ours of the same name.
    pub headers: Vec<(String, String)>,
    /// What the model can do; by default looked up by its name.
    pub profile: Option<ModelProfile>,
    /// A client to use instead of one of our own. It should follow no redirects and retry nothing.
    pub client: Option<Client>,
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
pub struct ApiKey(String);

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

/// A Claude model behind HTTP.
///
/// ```no_run
/// use agent_core::LanguageModel;
/// use agent_providers::{AnthropicConfig, AnthropicModel, ApiKey};
///
/// let model = AnthropicModel::new(AnthropicConfig {
///     api_key: ApiKey::new("sk-ant-…"),
///     model: "claude-opus-5-5".into(),
///     ..AnthropicConfig::default()
/// })?;
/// assert_eq!(model.profile().context_window, 1_000_000);
/// # Ok::<(), agent_providers::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct AnthropicModel {
    client: Client,
    url: Url,
    headers: HeaderMap,
    profile: ModelProfile,
    names: ToolNames,
    api_key: ApiKey,
    limits: Limits,
}

impl Default for AnthropicConfig {
    fn default() -> Self {
        Self {
            base_url: "https://api.anthropic.com".into(),
            api_key: ApiKey::default(),
            model: String::new(),
            headers: Vec::new(),
            profile: None,
            client: None,
            connect_timeout: Duration::from_secs(30),
            response_timeout: Duration::from_secs(600),
            idle_timeout: Duration::from_secs(300),
            progress_timeout: Duration::from_secs(600),
            event_limit: DEFAULT_EVENT_LIMIT,
        }
    }
}

/// Values of headers may be secrets too: only their names are shown.
impl fmt::Debug for AnthropicConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("AnthropicConfig")
            .field("base_url", &self.base_url)
            .field("api_key", &self.api_key)
            .field("model", &self.model)
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}

impl ApiKey {
    /// Takes over a key.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    /// A text without the key in it.
    pub(crate) fn hidden_in(&self, text: String) -> String {
        if self.0.is_empty() { text } else { text.replace(&self.0, "[redacted]") }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "ApiKey(none)" } else { "ApiKey([redacted])" })
    }
}

impl AnthropicModel {
    /// Checks the configuration; nothing is sent yet.
    pub fn new(config: AnthropicConfig) -> Result<Self, ConfigError> {
        let url = messages_url(&config.base_url)?;
        let headers = headers(&config)?;
        let client = match config.client {
            Some(client) => client,
            None => client::build(&url, config.connect_timeout)?,
        };
        Ok(Self {
            client,
            url,
            headers,
            profile: config.profile.unwrap_or_else(|| profiles::profile(&config.model)),
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

    fn request(&self, request: Outgoing) -> reqwest::RequestBuilder {
        let Outgoing { body, headers, .. } = request;
        let length = body.len();
        let buffers = body.into_buffers().map(Ok::<_, std::convert::Infallible>);
        self.client
            .post(self.url.clone())
            .headers(with_needed(self.headers.clone(), &headers))
            .header(header::CONTENT_LENGTH, length)
            .body(reqwest::Body::wrap_stream(stream::iter(buffers)))
    }
}

#[async_trait]
impl LanguageModel for AnthropicModel {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        encoder(&WireFormat::Anthropic.into(), self.profile.clone(), self.names.clone())
    }

    async fn stream(&self, request: Outgoing, cancel: &Cancel) -> Result<ModelStream, ModelError> {
        let wire =
            Wire { dialect: WireFormat::Anthropic.into(), names: self.names.clone(), limits: self.limits };
        let key = self.api_key.clone();
        let hide = move |error: ModelError| ModelError { message: key.hidden_in(error.message), ..error };
        let answer = answer::open(self.request(request), wire, cancel).await.map_err(&hide)?;
        Ok(Box::pin(answer.map_err(hide)))
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
    messages_url(base_url).is_ok_and(|url| client::is_loopback(&url))
}

fn messages_url(base: &str) -> Result<Url, ConfigError> {
    let bad = || ConfigError::BaseUrl { given: base.to_owned() };
    let trimmed = base.trim().trim_end_matches('/');
    let trimmed = trimmed.strip_suffix("/messages").unwrap_or(trimmed);
    let root = trimmed.strip_suffix("/v1").unwrap_or(trimmed);
    let url = Url::parse(&format!("{root}/v1/messages")).map_err(|_| bad())?;
    // `http://` without a host would make the path its host.
    let is_web = matches!(url.scheme(), "http" | "https") && root.contains("://");
    if is_web { Ok(url) } else { Err(bad()) }
}

/// Our headers and those that the body needs; a list of both where both have one of the same name.
fn with_needed(mut ours: HeaderMap, needed: &[(String, String)]) -> HeaderMap {
    for (name, value) in needed {
        let known = ours.get(name.as_str()).and_then(|known| known.to_str().ok()).unwrap_or_default();
        let mut items: Vec<&str> = known.split(',').map(str::trim).filter(|item| !item.is_empty()).collect();
        items.extend(value.split(',').filter(|item| !known.split(',').any(|known| known.trim() == *item)));
        let both = (HeaderName::try_from(name.as_str()), HeaderValue::try_from(items.join(",")));
        if let (Ok(name), Ok(value)) = both {
            ours.insert(name, value);
        }
    }
    ours
}

fn headers(config: &AnthropicConfig) -> Result<HeaderMap, ConfigError> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    if !config.api_key.0.is_empty() {
        let mut key = HeaderValue::from_str(&config.api_key.0).map_err(|_| ConfigError::ApiKey)?;
        key.set_sensitive(true);
        headers.insert("x-api-key", key);
    }
    for (name, value) in &config.headers {
        let bad = || ConfigError::Header { name: name.clone() };
        let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
        value.set_sensitive(true);
        headers.insert(HeaderName::try_from(name.as_str()).map_err(|_| bad())?, value);
    }
    Ok(headers)
}

/// What went wrong below HTTP, without the address, whose query may hold secrets.
pub(crate) fn transport(what: &str, error: reqwest::Error) -> ModelError {
    use std::error::Error as _;
    let error = error.without_url();
    let mut message = format!("{what}: {error}");
    let mut cause = error.source();
    while let Some(deeper) = cause {
        message.push_str(&format!(": {deeper}"));
        cause = deeper.source();
    }
    ModelError::new(ModelErrorKind::Transport, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_end_in_one_path() {
        let check = |base: &str, expect: &str| assert_eq!(messages_url(base).unwrap().as_str(), expect);
        check("https://api.anthropic.com", "https://api.anthropic.com/v1/messages");
        check("https://api.anthropic.com/", "https://api.anthropic.com/v1/messages");
        check("http://127.0.0.1:8080/proxy/anthropic/", "http://127.0.0.1:8080/proxy/anthropic/v1/messages");
        check("https://gateway.example/v1", "https://gateway.example/v1/messages");
        check("https://gateway.example/v1/messages/", "https://gateway.example/v1/messages");
        for bad in ["", "api.anthropic.com", "ftp://a", "http://"] {
            assert!(messages_url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn addresses_of_this_machine() {
        for local in [
            "http://127.0.0.1:11434",
            "http://localhost/v1",
            "http://LOCALHOST:8080",
            "http://[::1]:8080/",
            "http://user@localhost:1",
        ] {
            assert!(is_loopback(local), "{local}");
        }
        for far in [
            "https://api.anthropic.com",
            "http://127.0.0.1.example.com",
            "http://localhost.example.com",
            "http://localhost@example.com",
            "localhost:8080",
            "",
        ] {
            assert!(!is_loopback(far), "{far}");
        }
    }

    #[test]
    fn a_key_is_never_printed() {
        let extra = vec![("authorization".to_owned(), "Bearer secret-9".to_owned())];
        let config = AnthropicConfig {
            api_key: ApiKey::new("secret-7"),
            headers: extra,
            ..AnthropicConfig::default()
        };
        assert!(!format!("{config:?} {:?}", headers(&config).unwrap()).contains("secret-"));
        assert!(
            !format!(
                "{:?}",
                AnthropicModel::new(AnthropicConfig {
                    base_url: "http://127.0.0.1".into(),
                    ..config.clone()
                })
                .unwrap()
            )
            .contains("secret-")
        );
        assert_eq!(config.api_key.hidden_in("bad key secret-7".into()), "bad key [redacted]");
        let broken = AnthropicConfig { api_key: ApiKey::new("secret\n8"), ..AnthropicConfig::default() };
        let error = AnthropicModel::new(broken).unwrap_err();
        assert!(matches!(error, ConfigError::ApiKey) && !error.to_string().contains("secret"));
    }

    #[test]
    fn headers_that_a_body_needs_join_those_of_the_user() {
        let check = |ours: &str, needed: &str, expect: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("anthropic-beta", HeaderValue::try_from(ours).unwrap());
            let needed = [("anthropic-beta".to_owned(), needed.to_owned())];
            assert_eq!(with_needed(headers, &needed)["anthropic-beta"], expect);
        };
        check("a, b", "b,c", "a,b,c");
        check("", "c", "c");
        assert_eq!(
            with_needed(HeaderMap::new(), &[("x-needed".to_owned(), "1".to_owned())])["x-needed"],
            "1"
        );
    }

    #[test]
    fn headers_of_the_user_win() {
        let extra = vec![("Anthropic-Version".to_owned(), "2030-01-01".to_owned())];
        let config = AnthropicConfig { headers: extra, ..AnthropicConfig::default() };
        assert_eq!(headers(&config).unwrap()["anthropic-version"], "2030-01-01");
        let bad = AnthropicConfig { headers: vec![("a b".into(), "x".into())], ..AnthropicConfig::default() };
        assert!(matches!(headers(&bad), Err(ConfigError::Header { .. })));
    }
}
