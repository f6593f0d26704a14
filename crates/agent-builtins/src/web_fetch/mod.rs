//! The tool that fetches a page of the public web and shows it as text.

mod address;
mod body;
mod client;
mod kind;
mod page;
mod show;
mod sink;

use std::sync::Arc;
use std::time::Duration;

use agent_tools::{Access, Call, Concurrency, OutputCap, Subject, Tool, ToolConfig, ToolError};
use reqwest::StatusCode;
use reqwest::header::CONTENT_TYPE;
use url::Url;

pub use address::{AllowedHost, AllowedHostError, PrivateAddresses};
pub use client::{Lookup, SystemLookup};

use crate::built;
use body::Overflow;
use client::Clients;
use kind::{Kind, Media};
use show::MOST_CHARS;

/// What `web_fetch` may reach, and how much it takes.
///
/// Proxies of the environment are not used: what a proxy connects to cannot be checked here.
///
/// ```
/// use agent_builtins::{PrivateAddresses, WebFetchConfig, web_fetch};
///
/// let private = PrivateAddresses::Only(vec!["localhost".parse()?, "10.1.0.0/16".parse()?]);
/// let tool = web_fetch(WebFetchConfig { private, ..WebFetchConfig::default() });
/// assert_eq!(tool.card().name(), "web_fetch");
/// # Ok::<(), agent_builtins::AllowedHostError>(())
/// ```
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..Default")]
pub struct WebFetchConfig {
    /// Addresses beside the public ones. Default: none.
    pub private: PrivateAddresses,
    /// From the call to the last byte. Default: 30 s.
    pub timeout: Duration,
    /// Most bytes of a body, unpacked. Default: 5 MiB.
    pub max_bytes: usize,
    /// Most redirects that are followed; all of them stay on the host that was asked for. Default: 10.
    pub max_redirects: usize,
    /// What servers are told. Default: the name and version of this crate.
    pub user_agent: String,
    /// Who finds the addresses of a name. Default: the system.
    pub lookup: Arc<dyn Lookup>,
}

/// Fetches a page and shows it as Markdown, plain text or HTML (requirement T8).
///
/// Every address that a name has is checked where it is looked up, and that very address is connected to. A redirect to
/// another host is not followed but told, so that a rule such as `web_fetch(domain:docs.rs)` holds.
pub fn web_fetch(config: WebFetchConfig) -> Arc<dyn Tool> {
    let shared = Arc::new((config, Clients::default()));
    let fetch = move |call: Call, input: Input| {
        let shared = Arc::clone(&shared);
        async move { run(&shared.0, &shared.1, &call, input).await }
    };
    let config = ToolConfig::new("web_fetch", DESCRIPTION.trim_end(), Access::Network, fetch);
    // Above what a page can have: it is cut at `max_chars`, with words that say how to go on.
    let cap = OutputCap { lines: MOST_CHARS, bytes: 5 * MOST_CHARS, line_chars: 2 * MOST_CHARS };
    built(
        config
            .cap(cap)
            .idempotent()
            .concurrency(Concurrency::Parallel)
            .subject(|input: Input| subject(&input.url)),
    )
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Input {
    /// The whole address, with http or https.
    url: String,
    /// How an HTML page is shown: `markdown` (default), `text` for its words alone, `html` as it came.
    format: Option<Format>,
    /// How many characters to show. Default 40000, most 100000.
    max_chars: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Format {
    Markdown,
    Text,
    Html,
}

/// A body that arrived.
struct Fetched {
    url: Url,
    status: StatusCode,
    media: Media,
    kind: Kind,
    bytes: Vec<u8>,
}

impl Default for WebFetchConfig {
    fn default() -> Self {
        Self {
            private: PrivateAddresses::default(),
            timeout: Duration::from_secs(30),
            max_bytes: 5 * 1024 * 1024,
            max_redirects: 10,
            user_agent: concat!("agent-builtins/", env!("CARGO_PKG_VERSION")).to_owned(),
            lookup: Arc::new(SystemLookup),
        }
    }
}

/// What rules look at is what will be fetched. What cannot be read has no host, and the tool itself says why.
fn subject(given: &str) -> Subject {
    match client::parse(given) {
        Ok(url) => {
            let host = url.host_str().unwrap_or_default().to_owned();
            Subject::Url { url: url.into(), host }
        }
        Err(_) => Subject::Url { url: given.to_owned(), host: String::new() },
    }
}

async fn run(
    config: &WebFetchConfig,
    clients: &Clients,
    call: &Call,
    input: Input,
) -> Result<String, ToolError> {
    call.permit.allows(Access::Network)?;
    let url = client::parse(&input.url)?;
    if input.max_chars == Some(0) {
        return Err(ToolError::failed(
            "A max_chars of 0 shows nothing; ask for at least 1, or leave it out.",
        ));
    }
    let cancel = &call.cx.cancel;
    let fetching = async {
        let fetched = fetch(config, clients, url.clone(), accept(input.format)).await?;
        show::show(fetched, &input, cancel).await
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(ToolError::Cancelled),
        shown = tokio::time::timeout(config.timeout, fetching) => shown.unwrap_or_else(|_| Err(late(config, &url))),
    }
}

fn late(config: &WebFetchConfig, url: &Url) -> ToolError {
    ToolError::failed(format!(
        "{url} gave no whole answer within {:?}, so nothing of it is shown. Call again later, or look for another page.",
        config.timeout
    ))
}

async fn fetch(
    config: &WebFetchConfig,
    clients: &Clients,
    url: Url,
    accept: &str,
) -> Result<Fetched, ToolError> {
    let (url, response) = client::follow(config, clients, url, accept).await?;
    let status = response.status();
    let header = response.headers().get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let media = Media::parse(&header.unwrap_or_default());
    if !status.is_success() {
        return Err(show::failure(&url, status, &media, response).await);
    }
    let size = response.content_length();
    if media.kind() == Kind::Binary {
        let size = size.map_or_else(|| "of unknown size".to_owned(), |bytes| format!("{bytes} bytes"));
        return Err(show::binary(&url, &media, &size));
    }
    let bytes = body::read(response, config.max_bytes, Overflow::Refuse).await?;
    let kind = media.kind_of(&bytes);
    if kind == Kind::Binary {
        return Err(show::binary(&url, &media, &format!("{} bytes", bytes.len())));
    }
    Ok(Fetched { url, status, media, kind, bytes })
}

/// Many sites of documentation give Markdown to who asks for it.
fn accept(format: Option<Format>) -> &'static str {
    match format {
        Some(Format::Markdown) | None => "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5",
        Some(Format::Text) => "text/plain, text/html;q=0.9, */*;q=0.5",
        Some(Format::Html) => "text/html, */*;q=0.5",
    }
}

/// The first characters.
fn clip(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(at, _)| &text[..at])
}

const DESCRIPTION: &str = include_str!("../../prompt/web_fetch.md");
