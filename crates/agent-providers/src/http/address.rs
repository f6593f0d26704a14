//! Addresses: what a vendor's path adds to a base address, however much of it is written there already.

use std::fmt;
use std::sync::Arc;

use reqwest::Url;

use super::ConfigError;

/// Where the answers of one model are asked for.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) plain: Url,
    /// Written out, for answers that are not streamed and for those that are: every request shares one.
    pub(super) written: [Arc<str>; 2],
}

impl Address {
    pub(super) fn new(base: &str, path: &str, model: &str) -> Result<Self, ConfigError> {
        let mut url = parse(base)?;
        let full = complete(url.path(), path);
        let full = full.replace("{model}", &escaped(model.strip_prefix("models/").unwrap_or(model)));
        url.set_path(&full.replace("{method}", "generateContent"));
        let mut streamed = url.clone();
        if full.contains("{method}") {
            streamed.set_path(&full.replace("{method}", "streamGenerateContent"));
            let query = match url.query() {
                Some(query) if !query.is_empty() => format!("{query}&alt=sse"),
                _ => "alt=sse".to_owned(),
            };
            streamed.set_query(Some(&query));
        }
        let written = [url.as_str().into(), streamed.as_str().into()];
        Ok(Self { plain: url, written })
    }
}

/// A query may hold a key, and so may what stands in front of the host.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}{}", self.plain.host_str().unwrap_or_default(), self.plain.path())
    }
}

/// The address without a user and a query, where passwords and keys stand: to be shown.
///
/// ```
/// assert_eq!(agent_providers::without_secrets("https://me:word@host/v1?key=word"), "https://host/v1");
/// ```
pub fn without_secrets(base: &str) -> String {
    let (scheme, rest) = base.split_once("://").map_or(("", base), |(scheme, rest)| (scheme, rest));
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let end = rest.find('/').unwrap_or(rest.len());
    let host = rest[..end].rfind('@').map_or(rest, |at| &rest[at + 1..]);
    if scheme.is_empty() { host.to_owned() } else { format!("{scheme}://{host}") }
}

/// A web address; what is behind `#` is never sent.
pub(super) fn parse(base: &str) -> Result<Url, ConfigError> {
    let bad = || ConfigError::BaseUrl { given: without_secrets(base) };
    let mut url = Url::parse(base.trim()).map_err(|_| bad())?;
    url.set_fragment(None);
    // `http:name` would be read as a host, and nobody means that.
    let is_web = matches!(url.scheme(), "http" | "https") && base.contains("://");
    if is_web { Ok(url) } else { Err(bad()) }
}

pub(super) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

/// The path of a base address with what is missing of `path`.
fn complete(base: &str, path: &str) -> String {
    let base = base.trim_end_matches('/');
    // `/models/{model}:…` with any model in it is as good as without.
    let fixed = path.split('{').next().unwrap_or_default().trim_end_matches('/');
    let last = fixed.rsplit('/').next().unwrap_or_default();
    let base = match base.split_once(&format!("/{last}/")) {
        Some((before, _)) if fixed.len() < path.len() => before,
        _ => base,
    };
    let (version, operation) = match path.trim_start_matches('/').split_once('/') {
        Some((first, rest)) if is_version(first) => (first, &path[path.len() - rest.len() - 1..]),
        _ => ("", path),
    };
    if base.ends_with(operation) {
        return base.to_owned();
    }
    let overlap = path.match_indices('/').map(|(at, _)| &path[..at]).filter(|head| !head.is_empty());
    if let Some(head) = overlap.rev().find(|head| base.ends_with(head)) {
        return format!("{base}{}", &path[head.len()..]);
    }
    let has_version = !version.is_empty() && base.rsplit('/').next().is_some_and(is_version);
    format!("{base}{}", if has_version { operation } else { path })
}

/// Whether a piece of a path names a version, as `v1`, `v4` or `v1beta`.
fn is_version(piece: &str) -> bool {
    piece
        .strip_prefix('v')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()) && rest.len() < 8)
}

/// A model's name as a part of a path: only what could end the path is escaped.
fn escaped(model: &str) -> String {
    let mut out = String::new();
    for byte in model.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' | b'@' | b':' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, base: &str, expect: &str) {
        assert_eq!(Address::new(base, path, "m-1").unwrap().plain.as_str(), expect, "{base}");
    }

    #[test]
    fn what_is_quoted_of_a_bad_address_holds_no_secret() {
        let check = |base: &str, expect: &str| {
            let ConfigError::BaseUrl { given } = parse(base).unwrap_err() else { panic!("{base}") };
            assert_eq!(given, expect);
        };
        check("api.example/v1?key=s3cret", "api.example/v1");
        check("ftp://me:s3cret@files.example/a@b?c#d", "ftp://files.example/a@b");
        check("me:s3cret@host", "host");
        check("http://", "http://");
        check("", "");
    }

    #[test]
    fn addresses_end_in_one_path() {
        let messages = |base: &str, expect: &str| check("/v1/messages", base, expect);
        messages("https://api.anthropic.com", "https://api.anthropic.com/v1/messages");
        messages(" https://api.anthropic.com/ ", "https://api.anthropic.com/v1/messages");
        messages("http://127.0.0.1:80/proxy/anthropic/", "http://127.0.0.1/proxy/anthropic/v1/messages");
        messages("https://gateway.example/v1", "https://gateway.example/v1/messages");
        messages("https://gateway.example/v1/messages/", "https://gateway.example/v1/messages");
        messages("https://gateway.example/v1?k=a/b#x", "https://gateway.example/v1/messages?k=a/b");
        messages("https://gateway.example/anthropic/messages", "https://gateway.example/anthropic/messages");
        for bad in ["", "api.anthropic.com", "ftp://a", "http://", "http:a", "/v1"] {
            assert!(Address::new(bad, "/v1/messages", "m").is_err(), "{bad}");
        }
    }

    #[test]
    fn each_path_is_completed() {
        let chat = |base: &str, expect: &str| check("/v1/chat/completions", base, expect);
        chat("https://api.groq.com/openai", "https://api.groq.com/openai/v1/chat/completions");
        chat("https://api.groq.com/openai/v1", "https://api.groq.com/openai/v1/chat/completions");
        chat("https://a.example/api/v4/", "https://a.example/api/v4/chat/completions");
        chat("https://a.example/v1/chat", "https://a.example/v1/chat/completions");
        chat(
            "https://a.example/deploy/x/chat/completions?api-version=1",
            "https://a.example/deploy/x/chat/completions?api-version=1",
        );
        check("/chat/completions", "https://a.example/v1", "https://a.example/v1/chat/completions");
        check("/api/chat", "http://localhost:11434", "http://localhost:11434/api/chat");
        check("/api/chat", "http://localhost:11434/api/", "http://localhost:11434/api/chat");
    }

    #[test]
    fn gemini_is_asked_by_the_address() {
        let path = "/v1beta/models/{model}:{method}";
        let gemini = |base: &str, model: &str| {
            let Address { written: [plain, streamed], .. } = Address::new(base, path, model).unwrap();
            format!("{plain} | {}", streamed.trim_start_matches("https://g.example"))
        };
        let expect = |model: &str, version: &str| {
            format!(
                "https://g.example/{version}/models/{model}:generateContent | /{version}/models/{model}:streamGenerateContent?alt=sse"
            )
        };
        assert_eq!(gemini("https://g.example", "m"), expect("m", "v1beta"));
        assert_eq!(gemini("https://g.example/v1/", "models/m"), expect("m", "v1"));
        assert_eq!(gemini("https://g.example/v1beta/models", "m"), expect("m", "v1beta"));
        assert_eq!(gemini("https://g.example/v1beta/models/old:generateContent", "m"), expect("m", "v1beta"));
        assert_eq!(gemini("https://g.example", "a b?c#d"), expect("a%20b%3Fc%23d", "v1beta"));
        let keyed = Address::new("https://g.example?key=k", path, "m").unwrap();
        assert!(keyed.written[1].ends_with(":streamGenerateContent?key=k&alt=sse"));
    }

    #[test]
    fn addresses_of_this_machine() {
        let local = |base: &str| parse(base).is_ok_and(|url| is_loopback(&url));
        for near in [
            "http://127.0.0.1:11434",
            "http://localhost/v1",
            "http://LOCALHOST:8080",
            "http://[::1]:8080/",
            "http://user@localhost:1",
        ] {
            assert!(local(near), "{near}");
        }
        for far in [
            "https://api.anthropic.com",
            "http://127.0.0.1.example.com",
            "http://localhost.example.com",
            "http://localhost@example.com",
            "localhost:8080",
            "",
        ] {
            assert!(!local(far), "{far}");
        }
    }
}
