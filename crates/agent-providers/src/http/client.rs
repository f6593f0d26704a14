//! The HTTP client: no redirects, no retries, TLS only where it is needed.

use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

use super::ConfigError;

/// A client for one address. A redirect would carry the key to another host, and a retry here would multiply with
/// those of the harness: both are off.
pub(super) fn build(url: &Url, connect_timeout: Duration) -> Result<Client, ConfigError> {
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

pub(super) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}
