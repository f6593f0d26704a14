//! What may not be in a recording: keys wherever they stand, and headers that say who asked.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use agent_providers::TransportRequest;
use bytes::Bytes;

use crate::quote::quote;

/// Texts to keep out of a recording.
#[derive(Default)]
pub(super) struct Secrets(Mutex<Vec<Secret>>);

/// A text in one of the forms it may stand in.
struct Secret {
    form: String,
    /// What is written in its place.
    mark: String,
    /// What is put back in place of the mark when it is played; nothing for keys.
    restored: Option<String>,
}

impl Secrets {
    /// Keeps a text out that is put back when the recording is played: the n-th one is `[hidden n]`.
    pub(super) fn hide(&self, text: &str) {
        let mut all = self.all();
        let known = all.iter().filter_map(|secret| secret.restored.as_ref().map(|_| &secret.mark));
        let number = known.collect::<std::collections::BTreeSet<_>>().len() + 1;
        add(&mut all, text, &format!("[hidden {number}]"), Some(inside(text)));
    }

    /// Learns the keys of a request. Short ones, as tests and local servers are given, are words that a text may hold.
    pub(super) fn learn(&self, request: &TransportRequest) {
        let headers = request.headers.iter().filter(|(name, _)| is_secret(name));
        // `authorization` names its scheme first.
        let values =
            headers.flat_map(|(_, value)| [Some(value.as_str()), value.split_once(' ').map(|(_, key)| key)]);
        let query = request.url.split_once('?').map_or("", |(_, query)| query);
        let named = query.split('&').filter_map(|pair| pair.split_once('=')).filter(|(name, _)| is_key(name));
        for value in values.flatten().chain(named.map(|(_, value)| value)).map(str::trim) {
            if value.len() >= SHORTEST_KEY {
                add(&mut self.all(), value, REDACTED, None);
            }
        }
    }

    pub(super) fn hidden(&self, text: &str) -> String {
        self.all().iter().fold(text.to_owned(), |text, secret| text.replace(&secret.form, &secret.mark))
    }

    pub(super) fn hidden_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        if let Ok(text) = std::str::from_utf8(bytes) {
            return self.hidden(text).into_bytes();
        }
        let all = self.all();
        all.iter().fold(bytes.to_vec(), |bytes, secret| {
            replaced(&bytes, secret.form.as_bytes(), secret.mark.as_bytes())
        })
    }

    /// The bytes of a recorded answer, with what was hidden put back.
    pub(super) fn restored(&self, bytes: Bytes) -> Bytes {
        let all = self.all();
        all.iter().fold(bytes, |bytes, secret| match &secret.restored {
            Some(text) => replaced(&bytes, secret.mark.as_bytes(), text.as_bytes()).into(),
            None => bytes,
        })
    }

    fn all(&self) -> MutexGuard<'_, Vec<Secret>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Path and query of an address, without keys.
    pub(super) fn path(&self, url: &str) -> String {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let start = rest.find(['/', '?']).unwrap_or(rest.len());
        let path = self.hidden(&rest[start..]);
        let path = if path.starts_with('/') { path } else { format!("/{path}") };
        open_query(&path)
    }

    /// Headers by name; of those that are not known to be harmless, only the name. Those about framing are left out.
    pub(super) fn headers(&self, headers: &[(String, String)]) -> BTreeMap<String, String> {
        let mut shown: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in headers {
            let name = name.to_ascii_lowercase();
            if FRAMING.contains(&name.as_str()) {
                continue;
            }
            let value = if is_open(&name) { self.hidden(value) } else { REDACTED.to_owned() };
            match shown.get_mut(&name) {
                Some(before) if *before != value => *before = format!("{before}, {value}"),
                Some(_) => {}
                None => drop(shown.insert(name, value)),
            }
        }
        shown
    }
}

/// Adds a text as it is, as it stands inside a JSON string, and inside one that is itself in one, and in an address.
fn add(all: &mut Vec<Secret>, text: &str, mark: &str, restored: Option<String>) {
    for form in [text.to_owned(), inside(text), inside(&inside(text)), escaped(text)] {
        if !form.is_empty() && all.iter().all(|known| known.form != form) {
            all.push(Secret { form, mark: mark.to_owned(), restored: restored.clone() });
        }
    }
    // One may be a part of another.
    all.sort_by_key(|secret| std::cmp::Reverse(secret.form.len()));
}

/// A text as it stands between the quotes of a JSON string.
fn inside(text: &str) -> String {
    let quoted = quote(text);
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets")
    }
}

/// A path whose query says of keys only their names.
pub(super) fn open_query(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else { return path.to_owned() };
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if is_key(name) => format!("{name}={REDACTED}"),
        Some(_) | None => pair.to_owned(),
    });
    format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"))
}

/// Whether a header says nothing about who asked.
fn is_open(name: &str) -> bool {
    OPEN.iter().any(|open| name.eq_ignore_ascii_case(open)) || name.to_ascii_lowercase().contains("ratelimit")
}

/// Whether a header holds a key by its name, so that its value may be in no body either.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["auth", "key", "token", "secret", "cookie", "password"].iter().any(|part| name.contains(part))
}

/// Whether a part of a query holds a key by its name.
fn is_key(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["key", "token", "secret", "signature", "sig"].iter().any(|ending| name.ends_with(ending))
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

fn replaced(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = rest.windows(old.len()).position(|window| window == old) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(new);
        rest = &rest[at + old.len()..];
    }
    out.extend_from_slice(rest);
    out
}

pub(super) const REDACTED: &str = "[redacted]";
const SHORTEST_KEY: usize = 8;
/// Headers that are made anew for every answer that is played.
const FRAMING: &[&str] = &["content-length", "transfer-encoding", "connection", "keep-alive"];
const OPEN: &[&str] = &[
    "accept",
    "anthropic-beta",
    "anthropic-version",
    "content-encoding",
    "content-type",
    "openai-beta",
    "openai-version",
    "request-id",
    "retry-after",
    "retry-after-ms",
    "x-request-id",
    "x-should-retry",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn keys_are_learnt_from_headers_and_address_and_found_everywhere() {
        let secrets = Secrets::default();
        let url = "https://a.example/v1/x?alt=sse&key=query-secret-1".to_owned();
        let headers = pairs(&[
            ("authorization", "Bearer sk-token-22"),
            ("x-goog-api-key", "goog/secret+3"),
            ("cookie", "any"),
            ("x-application", "a-feature-of-the-api"),
        ]);
        secrets.learn(&TransportRequest {
            method: "POST".into(),
            url: url.as_str().into(),
            headers: headers.into(),
            body: Default::default(),
        });
        let text = "many sk-token-22 query-secret-1 goog/secret+3 goog%2Fsecret%2B3 a-feature-of-the-api";
        let shown = "many [redacted] [redacted] [redacted] [redacted] a-feature-of-the-api";
        assert_eq!(secrets.hidden(text), shown);
        assert_eq!(secrets.hidden_bytes(b"\xff sk-token-22 \xfe"), b"\xff [redacted] \xfe");
        assert_eq!(secrets.path(&url), "/v1/x?alt=sse&key=[redacted]");
    }

    #[test]
    fn hidden_texts_are_put_back_as_what_they_are_then() {
        let (then, now) = (Secrets::default(), Secrets::default());
        for (secrets, home, user) in [(&then, "/srv/ada", "ada"), (&now, "/srv/bob\t", "bob")] {
            secrets.hide(home);
            secrets.hide(user);
            secrets.hide(user);
        }
        let file = then.hidden(r#"{"path":"/srv/ada/x","user":"ada"}"#);
        assert_eq!(file, r#"{"path":"[hidden 1]/x","user":"[hidden 2]"}"#);
        assert_eq!(now.hidden(r#"{"path":"/srv/bob\t/x","user":"bob"}"#), file, "requests are equal");
        assert_eq!(now.restored(file.into()), r#"{"path":"/srv/bob\t/x","user":"bob"}"#);
        assert_eq!(now.restored(Bytes::from_static(b"[redacted] \xff")), b"[redacted] \xff".as_slice());
    }

    #[test]
    fn paths_of_addresses() {
        let path = |url: &str| Secrets::default().path(url);
        assert_eq!(path("https://a.example"), "/");
        assert_eq!(path("https://a.example?token=9&b"), "/?token=[redacted]&b");
        assert_eq!(path("http://user:pass@a.example/v1/messages"), "/v1/messages");
    }

    #[test]
    fn headers_that_say_who_asked_keep_their_name_only() {
        let shown = Secrets::default().headers(&pairs(&[
            ("Content-Type", "text/event-stream"),
            ("X-RateLimit-Remaining", "7"),
            ("set-cookie", "a=1"),
            ("set-cookie", "b=2"),
            ("openai-organization", "org-1"),
            ("user-agent", "of mine"),
            ("transfer-encoding", "chunked"),
            ("request-id", "r1"),
            ("request-id", "r2"),
        ]));
        let lines: Vec<String> = shown.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        content-type: text/event-stream
        openai-organization: [redacted]
        request-id: r1, r2
        set-cookie: [redacted]
        user-agent: [redacted]
        x-ratelimit-remaining: 7
        ");
    }
}
