//! The tool that fetches a page of the public web and shows it as text.

mod address;
mod body;
mod client;
mod kind;
mod page;
mod sink;

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use agent_core::Cancel;
use agent_tools::{Access, Call, Concurrency, OutputCap, Subject, Tool, ToolConfig, ToolError};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Response, StatusCode};
use url::Url;

pub use address::{AllowedHost, AllowedHostError, PrivateAddresses};
pub use client::{Lookup, SystemLookup};

use crate::blocking::blocking;
use crate::built;
use body::Overflow;
use client::Clients;
use kind::{Kind, Media};
use page::Form;

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
        show(fetched, &input, cancel).await
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
        return Err(failure(&url, status, &media, response).await);
    }
    let size = response.content_length();
    if media.kind() == Kind::Binary {
        let size = size.map_or_else(|| "of unknown size".to_owned(), |bytes| format!("{bytes} bytes"));
        return Err(binary(&url, &media, &size));
    }
    let bytes = body::read(response, config.max_bytes, Overflow::Refuse).await?;
    let kind = media.kind_of(&bytes);
    if kind == Kind::Binary {
        return Err(binary(&url, &media, &format!("{} bytes", bytes.len())));
    }
    Ok(Fetched { url, status, media, kind, bytes })
}

fn binary(url: &Url, media: &Media, size: &str) -> ToolError {
    let name = if media.name.is_empty() { "no type that is named" } else { clip(&media.name, 100) };
    ToolError::failed(format!(
        "{url} is no text but {name}, {size}, so it cannot be shown. Look for the same as a web page, or download it into a file with bash and use a program for its kind."
    ))
}

/// An error status, with the beginning of what the server says of it.
async fn failure(url: &Url, status: StatusCode, media: &Media, response: Response) -> ToolError {
    let next = match status.as_u16() {
        401 | 403 | 407 => "It wants a login or refuses programs, and none is sent: look for a public page.",
        404 | 410 => "Check the address, or begin at a page above it.",
        429 => "Wait before you ask this host again.",
        500..=599 => "The server has a fault: call again later, or look for another page.",
        _ => "Check the address.",
    };
    let mut words = format!("{url} answered {status}. {next}");
    // The status alone is an answer, whatever becomes of the words behind it.
    let bytes = match body::read(response, ERROR_BYTES, Overflow::Cut).await {
        Ok(bytes) if media.kind_of(&bytes) != Kind::Binary => bytes,
        Ok(_) | Err(_) => return ToolError::failed(words),
    };
    let text = media.decode(&bytes, media.kind_of(&bytes));
    let text = match media.kind_of(&bytes) {
        Kind::Html => {
            let base = url.clone();
            let converted =
                blocking(&Cancel::new(), move |told| page::convert(text, base, Form::Text, told)).await;
            converted.ok().and_then(Result::ok).map(|page| page.text).unwrap_or_default()
        }
        Kind::Text | Kind::Binary | Kind::Unknown => text,
    };
    let text = clip(text.trim(), ERROR_CHARS);
    if !text.is_empty() {
        // Writing to a String cannot fail.
        let _ = write!(words, " The body begins:\n\n{text}");
    }
    ToolError::failed(words)
}

async fn show(fetched: Fetched, input: &Input, cancel: &Cancel) -> Result<String, ToolError> {
    let Fetched { url, status, media, kind, bytes } = fetched;
    let text = media.decode(&bytes, kind);
    let form = match input.format.unwrap_or(Format::Markdown) {
        Format::Markdown => Some(Form::Markdown),
        Format::Text => Some(Form::Text),
        Format::Html => None,
    };
    let name = if media.name.is_empty() { "not named" } else { clip(&media.name, 100) };
    let mut out = format!("URL: {url}\nStatus: {status}\nContent type: {name}\n");
    let (text, is_cut) = match form.filter(|_| kind == Kind::Html) {
        Some(form) => {
            let work = move |told: &Cancel| page::convert(text, url, form, told);
            let page = blocking(cancel, work).await?.map_err(unconverted)?;
            if !page.title.is_empty() {
                // Writing to a String cannot fail.
                let _ = writeln!(out, "Title: {}", clip(&page.title, TITLE_CHARS));
            }
            (page.text, page.is_cut)
        }
        None => (text, false),
    };
    out.push('\n');
    if text.trim().is_empty() {
        out.push_str("[the page has no text; a page that a program in the browser fills cannot be read, so look for its data or for another page]");
        return Ok(out);
    }
    let most = input.max_chars.unwrap_or(CHARS).min(MOST_CHARS);
    let shown = clip(&text, most);
    out.push_str(shown);
    if shown.len() < text.len() {
        let _ = write!(out, "\n\n{}", rest(text.chars().count(), most));
    }
    if is_cut {
        out.push_str(
            "\n\n[the page goes on, but nests too deeply to be converted; call again with format html]",
        );
    }
    Ok(out)
}

fn unconverted(error: std::io::Error) -> ToolError {
    ToolError::failed(format!("The page cannot be converted: {error}. Call again with format html."))
}

/// How much is not shown, and how to see more.
fn rest(total: usize, shown: usize) -> String {
    let left = total - shown;
    let next = match total {
        total if total <= MOST_CHARS => format!("call again with max_chars {total} to see all"),
        _ if shown < MOST_CHARS => {
            format!("call again with max_chars up to {MOST_CHARS}, or fetch a page that says less")
        }
        _ => "fetch a page that says less, or download it into a file with bash and search that".to_owned(),
    };
    format!("[{left} of {total} characters left; {next}]")
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
const CHARS: usize = 40_000;
const MOST_CHARS: usize = 100_000;
const ERROR_BYTES: usize = 64 * 1024;
const ERROR_CHARS: usize = 2_000;
const TITLE_CHARS: usize = 300;
