//! What an error body says, whichever shape it has.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::excerpt::{QUOTE, excerpt};
use super::wait;
use crate::wire::json::{Fields, Loose, object};

/// What an error body says.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Codes, types and statuses by name, the innermost first.
    pub(super) names: Vec<String>,
    pub(super) message: String,
    pub(super) request: String,
    /// An HTTP status told in the body.
    pub(super) status: Option<u16>,
    /// A wait told as a detail, in milliseconds.
    pub(super) retry_ms: Option<u64>,
    /// When the limit is filled again, as written.
    pub(super) reset_at: Option<String>,
    /// The quota that was exceeded.
    pub(super) quota: Option<Quota>,
}

/// How long a quota lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Quota {
    /// Minutes: waiting helps.
    Short,
    /// A day.
    Daily,
}

/// The fields of every shape. An error object, its envelope and its details hold one another in any order:
/// `{"error": {…}}`, `{"response": {"error": {…}}}`, `{"message": {"detail": […]}}`.
#[derive(Deserialize)]
struct Shape<'a> {
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    detail: Option<&'a RawValue>,
    #[serde(borrow, default)]
    details: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    code: Loose<'a>,
    #[serde(borrow, default, rename = "type")]
    kind: Loose<'a>,
    #[serde(borrow, default)]
    status: Loose<'a>,
    #[serde(borrow, default)]
    raw_status_code: Loose<'a>,
    #[serde(borrow, default)]
    request_id: Loose<'a>,
}

/// An entry of `details` (Google), or the one object there (Anthropic).
#[derive(Deserialize)]
struct Detail<'a> {
    #[serde(borrow, default)]
    reason: Loose<'a>,
    #[serde(borrow, default)]
    error_code: Loose<'a>,
    #[serde(borrow, default, rename = "retryDelay")]
    retry_delay: Loose<'a>,
    #[serde(borrow, default)]
    violations: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Violation<'a> {
    #[serde(borrow, default, rename = "quotaId")]
    quota: Loose<'a>,
}

/// A field that a server written with FastAPI refuses.
#[derive(Deserialize)]
struct Refused<'a> {
    #[serde(borrow, default)]
    loc: Option<&'a RawValue>,
    #[serde(borrow, default)]
    msg: Loose<'a>,
}

/// What OpenRouter adds: the error of the provider behind it.
#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow, default)]
    raw: Option<&'a RawValue>,
    #[serde(borrow, default)]
    provider_name: Loose<'a>,
    #[serde(borrow, default)]
    headers: Option<&'a RawValue>,
}

impl Said {
    pub(super) fn read(text: &str) -> Self {
        let mut said = Self::default();
        said.take(text, DEEPEST);
        said
    }

    /// Takes what a value says; what is said first, from the inside out, stands.
    fn take(&mut self, text: &str, depth: usize) {
        let text = text.trim();
        let Some(depth) = depth.checked_sub(1) else { return };
        if text.starts_with('{') {
            if let Ok(shape) = object::<Shape<'_>>(text) {
                self.take_shape(&shape, depth);
            }
        } else if text.starts_with('[') {
            let list = serde_json::from_str::<Vec<&RawValue>>(text).unwrap_or_default();
            list.into_iter().for_each(|one| self.take(one.get(), depth));
        } else if let Ok(Loose(Some(words))) = serde_json::from_str::<Loose<'_>>(text) {
            self.say(&words);
        } else if let Some(data) = text.lines().find_map(|line| line.strip_prefix("data:")) {
            self.take(data, depth);
        } else if let Some(words) = page_title(text).or_else(|| plain(text)) {
            self.say(words);
        }
    }

    fn take_shape(&mut self, shape: &Shape<'_>, depth: usize) {
        let inner = [shape.error, shape.response, shape.message].into_iter().flatten();
        inner.filter(|raw| raw.get() != "null").for_each(|raw| self.take(raw.get(), depth));
        for name in [&shape.code, &shape.kind, &shape.status, &shape.raw_status_code] {
            self.name(name.as_str());
        }
        if let Some(detail) = shape.detail {
            self.refused(detail, depth);
        }
        if let Some(details) = shape.details {
            self.details(details);
        }
        if let Some(metadata) = shape.metadata.and_then(|raw| object::<Metadata<'_>>(raw.get()).ok()) {
            self.behind(&metadata, depth);
        }
        if self.request.is_empty() {
            self.request = shape.request_id.as_str().to_owned();
        }
    }

    fn say(&mut self, words: &str) {
        if self.message.trim().is_empty() {
            self.message = words.trim().to_owned();
        }
    }

    /// A name, or a status written as a number.
    fn name(&mut self, name: &str) {
        if let Ok(number) = name.parse::<u64>() {
            let status = u16::try_from(number).ok().filter(|status| (400..600).contains(status));
            self.status = self.status.or(status);
        } else if !name.is_empty() && name != "error" && !name.starts_with("response.") {
            self.names.push(name.to_owned());
        }
    }

    fn refused(&mut self, detail: &RawValue, depth: usize) {
        let Ok(list) = serde_json::from_str::<Vec<Refused<'_>>>(detail.get()) else {
            return self.take(detail.get(), depth);
        };
        let lines = list.iter().map(|one| match one.loc {
            Some(loc) => format!("{}: {}", loc.get(), one.msg.as_str()),
            None => one.msg.as_str().to_owned(),
        });
        self.say(&lines.collect::<Vec<_>>().join("; "));
    }

    fn details(&mut self, details: &RawValue) {
        let list = serde_json::from_str::<Vec<&RawValue>>(details.get()).unwrap_or_else(|_| vec![details]);
        for detail in list.into_iter().filter_map(|raw| object::<Detail<'_>>(raw.get()).ok()) {
            self.name(detail.reason.as_str());
            self.name(detail.error_code.as_str());
            self.retry_ms = self.retry_ms.or_else(|| wait::span(detail.retry_delay.as_str()));
            let violations = detail.violations.map_or("[]", |raw| raw.get());
            for violation in serde_json::from_str::<Vec<Violation<'_>>>(violations).unwrap_or_default() {
                let id = violation.quota.as_str().to_ascii_lowercase();
                let quota = if id.contains("perday") { Quota::Daily } else { Quota::Short };
                self.quota = self.quota.max(Some(quota));
            }
        }
    }

    fn behind(&mut self, metadata: &Metadata<'_>, depth: usize) {
        if let Some(headers) = metadata.headers.and_then(|raw| Fields::read(raw.get())) {
            let reset = headers.0.iter().find(|(name, _)| name.eq_ignore_ascii_case("x-ratelimit-reset"));
            let reset = reset.and_then(|(_, raw)| serde_json::from_str::<Loose<'_>>(raw.get()).ok());
            self.reset_at = reset.and_then(|value| value.0).map(|value| value.into_owned());
        }
        let Some(raw) = metadata.raw else { return };
        // The provider's body is quoted as a text, mostly.
        let quoted = serde_json::from_str::<String>(raw.get());
        let mut inner = Self::default();
        inner.take(quoted.as_deref().unwrap_or(raw.get()), depth);
        self.names.extend(inner.names);
        self.retry_ms = self.retry_ms.or(inner.retry_ms);
        self.quota = self.quota.max(inner.quota);
        if !inner.message.is_empty() {
            let name = metadata.provider_name.0.as_deref().unwrap_or("the provider behind it");
            let words = excerpt(&inner.message, QUOTE);
            self.message = format!("{}: {name}: {words}", self.message);
        }
    }
}

/// What a page of a proxy is called.
fn page_title(text: &str) -> Option<&str> {
    let (_, after) = text.split_once("<title>")?;
    let (title, _) = after.split_once("</title>")?;
    Some(title.trim()).filter(|title| !title.is_empty())
}

/// A text that people can read, and no page.
fn plain(text: &str) -> Option<&str> {
    let is_garbled = |c: char| c == char::REPLACEMENT_CHARACTER || (c.is_control() && !c.is_whitespace());
    Some(text).filter(|text| !text.starts_with('<') && !text.contains(is_garbled))
}

/// How many values may hold one another; no honest body comes close.
const DEEPEST: usize = 8;
