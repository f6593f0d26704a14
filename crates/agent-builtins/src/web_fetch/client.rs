//! The way to a page: addresses are checked where they are looked up, and each redirect is looked at before it is followed.

use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use agent_tools::ToolError;
use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;
use url::{Host, Url};

use super::address::plain;
use super::{PrivateAddresses, WebFetchConfig};

/// Finds the addresses of a name. A program with a name service of its own brings one; the address that was found here
/// and checked is the one that is connected to.
#[async_trait]
pub trait Lookup: Debug + Send + Sync {
    /// The addresses.
    ///
    /// # Errors
    /// When the name has none, or nobody can be asked.
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// Asks the system.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "a value to write down, with nothing in it")]
pub struct SystemLookup;

#[async_trait]
impl Lookup for SystemLookup {
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// Clients are made when they are first needed: reading the system's certificates takes time.
#[derive(Debug, Default)]
pub(super) struct Clients {
    plain: OnceLock<Client>,
    tls: OnceLock<Client>,
}

/// Looks a name up once and checks every address of it.
#[derive(Debug)]
struct Checked {
    lookup: Arc<dyn Lookup>,
    private: PrivateAddresses,
}

/// A name leads where no agent may go.
#[derive(Debug, thiserror::Error)]
#[error("{host} leads to {address}, an address of the {range} range")]
struct Forbidden {
    host: String,
    address: IpAddr,
    range: &'static str,
}

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let (lookup, private) = (Arc::clone(&self.lookup), self.private.clone());
        Box::pin(async move {
            let host = name.as_str();
            let found = lookup.lookup(host).await?;
            let refused = |address: &IpAddr| private.refusal(*address).map(|range| (*address, range));
            // One forbidden address among public ones is what an attempt to get past the check looks like.
            let bad = found.iter().find_map(refused).filter(|_| !private.allows_host(host));
            if let Some((address, range)) = bad {
                return Err(Forbidden { host: host.to_owned(), address, range }.into());
            }
            Ok(Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}

/// Reads an address as it will be fetched.
pub(super) fn parse(given: &str) -> Result<Url, ToolError> {
    let given = given.trim();
    let fault = |why: &str| ToolError::failed(format!("`{}` {why}", super::clip(given, 300)));
    let mut url = Url::parse(given).map_err(|error| {
        fault(&format!("is no address ({error}). Give the whole of it, such as https://docs.rs/serde."))
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(fault(
            "cannot be fetched: only http and https can. For a file of the workspace use read_file.",
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ToolError::failed(
            "The address holds a user name or a password before `@`, and such are never sent. Call again without them.",
        ));
    }
    if url.port().is_some_and(|port| BAD_PORTS.contains(&port)) {
        return Err(fault("names a port that belongs to another protocol than HTTP. Check the address."));
    }
    url.set_fragment(None);
    Ok(url)
}

/// Follows redirects of one origin to a response that is none. Gives the address that answered.
pub(super) async fn follow(
    config: &WebFetchConfig,
    clients: &Clients,
    mut url: Url,
    accept: &str,
) -> Result<(Url, Response), ToolError> {
    let mut seen = vec![url.clone()];
    loop {
        literal(config, &url)?;
        let client = clients.get(config, url.scheme() == "https")?;
        let request = client.get(url.clone()).header(ACCEPT, accept).header(ACCEPT_ENCODING, "gzip");
        let response = request.send().await.map_err(|error| unreached(&url, &error))?;
        arrived(config, &url, &response)?;
        let location = response.headers().get(LOCATION).filter(|_| is_redirect(&response));
        let Some(location) = location else { return Ok((url, response)) };
        let next = target(&url, &String::from_utf8_lossy(location.as_bytes()))?;
        if seen.contains(&next) {
            return Err(ToolError::failed(format!(
                "{} redirects in a circle, back to {next}. It may want cookies, which are never kept; look for another address.",
                seen[0]
            )));
        }
        if seen.len() > config.max_redirects {
            return Err(ToolError::failed(format!(
                "{} redirects more than {} times. Call again with the address it came to: {next}",
                seen[0], config.max_redirects
            )));
        }
        seen.push(next.clone());
        url = next;
    }
}

fn is_redirect(response: &Response) -> bool {
    matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Where a redirect leads, when that may be followed under the permission that was given for the first address.
fn target(from: &Url, location: &str) -> Result<Url, ToolError> {
    let bad = |why: String| ToolError::failed(format!("{from} redirects, and that was not followed. {why}"));
    let joined = from.join(location.trim());
    let joined =
        joined.map_err(|_| bad("What it redirects to is no address; look for another page.".to_owned()))?;
    let next = parse(joined.as_str()).map_err(|error| bad(error.to_string()))?;
    if next.host_str().map(plain) != from.host_str().map(plain) {
        return Err(bad(format!(
            "It leads to another host, for which there is no permission yet. If that is the page you want, call web_fetch again with: {next}"
        )));
    }
    let is_upgrade = from.scheme() == "http" && next.scheme() == "https";
    let is_same = from.scheme() == next.scheme() && from.port() == next.port();
    if is_same || is_upgrade && from.port().is_none() && next.port().is_none() {
        return Ok(next);
    }
    Err(bad(format!(
        "It leads to another scheme or port of the same host. If that is the page you want, call web_fetch again with: {next}"
    )))
}

/// An address in place of a name is never looked up, so that it is checked here, however it was spelled.
fn literal(config: &WebFetchConfig, url: &Url) -> Result<(), ToolError> {
    let address = match url.host() {
        Some(Host::Ipv4(address)) => IpAddr::V4(address),
        Some(Host::Ipv6(address)) => IpAddr::V6(address),
        Some(Host::Domain(_)) | None => return Ok(()),
    };
    config.private.refusal(address).map_or(Ok(()), |range| Err(forbidden(&address.to_string(), range)))
}

/// Whether what answered is what was checked: a second look at what the client promised.
fn arrived(config: &WebFetchConfig, url: &Url, response: &Response) -> Result<(), ToolError> {
    let address = response.remote_addr().map(|address| address.ip());
    let range = address.and_then(|address| config.private.refusal(address));
    match range {
        Some(range) if !config.private.allows_host(url.host_str().unwrap_or_default()) => {
            Err(forbidden(url.host_str().unwrap_or_default(), range))
        }
        Some(_) | None => Ok(()),
    }
}

fn forbidden(what: &str, range: &str) -> ToolError {
    ToolError::failed(format!(
        "{what} is an address of the {range} range, and only public addresses may be fetched; nothing was sent. Do not try another spelling: ask the user to allow this host, or use a public page."
    ))
}

/// What went wrong before an answer came.
fn unreached(url: &Url, error: &reqwest::Error) -> ToolError {
    let mut causes = Vec::new();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        if let Some(Forbidden { host, address, range }) = cause.downcast_ref() {
            return forbidden(&format!("{host} leads to {address}, which"), range);
        }
        causes.push(cause.to_string());
        next = cause.source();
    }
    let cause = causes.pop().unwrap_or_else(|| "no cause is known".to_owned());
    ToolError::failed(format!(
        "{url} could not be reached: {cause}. Check the spelling of the host and whether it serves {}.",
        url.scheme()
    ))
}

impl Clients {
    fn get(&self, config: &WebFetchConfig, with_tls: bool) -> Result<&Client, ToolError> {
        let cell = if with_tls { &self.tls } else { &self.plain };
        if let Some(client) = cell.get() {
            return Ok(client);
        }
        let client = build(config, with_tls)?;
        Ok(cell.get_or_init(|| client))
    }
}

/// Nothing of the surroundings gets in: no proxy, no cookie, no credentials; and nothing is kept open between calls.
fn build(config: &WebFetchConfig, with_tls: bool) -> Result<Client, ToolError> {
    let fault = |cause: &dyn std::fmt::Display| {
        ToolError::failed(format!(
            "No page can be fetched on this machine: {cause}. This is a fault of its set-up; tell the user."
        ))
    };
    let tls = tls(with_tls).map_err(|error| fault(&error))?;
    let checked = Checked { lookup: Arc::clone(&config.lookup), private: config.private.clone() };
    Client::builder()
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .referer(false)
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .pool_max_idle_per_host(0)
        .user_agent(&config.user_agent)
        .dns_resolver(Arc::new(checked))
        .tls_backend_preconfigured(tls)
        .build()
        .map_err(|error| fault(&error))
}

fn tls(is_needed: bool) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    if !is_needed {
        return Ok(config.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
    }
    let verifier = Arc::new(Verifier::new(provider)?);
    Ok(config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// Ports of protocols that a request could be taken for: mail, news, chat, shells, directories, printers.
const BAD_PORTS: [u16; 45] = [
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103,
    104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 6667,
];
