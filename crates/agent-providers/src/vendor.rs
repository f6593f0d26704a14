//! Vendors as data: where a service lives, which format it speaks, how it is given a key.

use agent_core::ModelProfile;
use serde::{Deserialize, Serialize};

use crate::Catalog;
use crate::wire::{Dialect, WireFormat};

/// A service that answers model calls. Plain data: take a known one, change what differs, or write your own.
///
/// The default is Anthropic's.
///
/// ```
/// use agent_providers::{Auth, Vendor};
///
/// let known = Vendor::named("anthropic").ok_or("not built in")?;
/// assert_eq!((known.base_url.as_str(), known.key_env[0].as_str()), ("https://api.anthropic.com", "ANTHROPIC_API_KEY"));
///
/// let gateway = Vendor {
///     name: "our-gateway".into(),
///     base_url: "https://models.example/anthropic".into(),
///     auth: Auth::Bearer,
///     key_env: vec!["GATEWAY_TOKEN".into()],
///     ..known
/// };
/// let file = serde_json::to_string(&gateway)?;
/// assert_eq!(serde_json::from_str::<Vendor>(&file)?, gateway);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "plain data, written as a literal with ..Vendor::default()")]
pub struct Vendor {
    /// The name it is chosen by, for example `groq`.
    pub name: String,
    /// The format it speaks, and how.
    pub dialect: Dialect,
    /// Address of the server, without what [`Self::path`] adds.
    pub base_url: String,
    /// What is asked there: `{model}` stands for the model's name, and `{method}` for Gemini's `generateContent` or, with
    /// `alt=sse`, `streamGenerateContent`. A base address that already ends in it, in a part of it or in another version
    /// is completed, not repeated.
    pub path: String,
    /// How the key is sent.
    pub auth: Auth,
    /// Headers of every request.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// Environment variables that by custom hold the key, the first that is set first; none where no key is needed.
    /// Programs read them, this crate never does.
    #[serde(default)]
    pub key_env: Vec<String>,
}

/// How a key is sent. An empty key is not sent at all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Auth {
    /// Never.
    None,
    /// As `authorization: Bearer KEY`.
    Bearer,
    /// As the value of this header, for example `x-api-key`.
    Header(String),
}

impl Vendor {
    /// A vendor by its name: one of [`Self::names`].
    pub fn named(name: &str) -> Option<Self> {
        ROWS.iter().find(|row| row.name == name).map(Row::vendor)
    }

    /// The names of the vendors that are built in.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ROWS.iter().map(|row| row.name)
    }

    /// What is known of a model of this vendor; little is assumed of one that is not known.
    pub fn profile(&self, model: &str) -> ModelProfile {
        Catalog::builtin().profile(&self.dialect.provider, model)
    }
}

impl Default for Vendor {
    fn default() -> Self {
        ANTHROPIC.vendor()
    }
}

/// A line of the table.
#[derive(Debug, Clone, Copy)]
struct Row {
    name: &'static str,
    format: WireFormat,
    /// The tag of parts that only this vendor understands.
    provider: &'static str,
    base_url: &'static str,
    path: &'static str,
    /// The header of the key; `authorization` takes it as a bearer token.
    auth: &'static str,
    key_env: &'static [&'static str],
}

impl Row {
    fn vendor(&self) -> Vendor {
        let headers = if self.format == WireFormat::Anthropic { VERSION } else { &[] };
        let owned = |text: &&str| (*text).to_owned();
        Vendor {
            name: self.name.to_owned(),
            dialect: Dialect::of(self.format, self.provider),
            base_url: self.base_url.to_owned(),
            path: self.path.to_owned(),
            auth: match self.auth {
                BEARER => Auth::Bearer,
                header => Auth::Header(header.to_owned()),
            },
            headers: headers.iter().map(|(name, value)| (owned(name), owned(value))).collect(),
            key_env: self.key_env.iter().map(owned).collect(),
        }
    }
}

const BEARER: &str = "authorization";
const VERSION: &[(&str, &str)] = &[("anthropic-version", "2023-06-01")];
const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";

const ANTHROPIC: Row = Row {
    name: "anthropic",
    format: WireFormat::Anthropic,
    provider: "anthropic",
    base_url: "https://api.anthropic.com",
    path: "/v1/messages",
    auth: "x-api-key",
    key_env: &["ANTHROPIC_API_KEY"],
};

/// A service, or a server of one's own, that speaks Chat Completions.
const fn chat(name: &'static str, base_url: &'static str, key_env: &'static [&'static str]) -> Row {
    Row { name, format: WireFormat::OpenAiChat, provider: name, base_url, path: CHAT, auth: BEARER, key_env }
}

const ROWS: &[Row] = &[
    ANTHROPIC,
    Row {
        format: WireFormat::OpenAiResponses,
        provider: "openai-responses",
        path: RESPONSES,
        ..chat("openai", "https://api.openai.com", &["OPENAI_API_KEY"])
    },
    chat("openai-chat", "https://api.openai.com", &["OPENAI_API_KEY"]),
    Row {
        name: "gemini",
        format: WireFormat::Gemini,
        provider: "gemini",
        base_url: "https://generativelanguage.googleapis.com",
        path: "/v1beta/models/{model}:{method}",
        auth: "x-goog-api-key",
        key_env: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    },
    Row { path: "/chat/completions", ..chat("deepseek", "https://api.deepseek.com", &["DEEPSEEK_API_KEY"]) },
    chat("groq", "https://api.groq.com/openai", &["GROQ_API_KEY"]),
    chat("mistral", "https://api.mistral.ai", &["MISTRAL_API_KEY"]),
    chat("openrouter", "https://openrouter.ai/api", &["OPENROUTER_API_KEY"]),
    Row {
        format: WireFormat::OpenAiResponses,
        path: RESPONSES,
        ..chat("xai", "https://api.x.ai", &["XAI_API_KEY"])
    },
    Row { format: WireFormat::Ollama, path: "/api/chat", ..chat("ollama", "http://localhost:11434", &[]) },
    chat("ollama-chat", "http://localhost:11434", &[]),
    chat("llamacpp", "http://localhost:8080", &[]),
    chat("vllm", "http://localhost:8000", &[]),
    chat("lmstudio", "http://localhost:1234", &[]),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_whole_table() {
        let lines: Vec<String> = ROWS
            .iter()
            .map(|Row { name, format, provider, base_url, path, auth, key_env }| {
                let format = format.as_str();
                format!("{name}: {format} as {provider}, {base_url} {path}, {auth}, [{}]", key_env.join(" "))
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        anthropic: anthropic as anthropic, https://api.anthropic.com /v1/messages, x-api-key, [ANTHROPIC_API_KEY]
        openai: openai-responses as openai-responses, https://api.openai.com /v1/responses, authorization, [OPENAI_API_KEY]
        openai-chat: openai-chat as openai-chat, https://api.openai.com /v1/chat/completions, authorization, [OPENAI_API_KEY]
        gemini: gemini as gemini, https://generativelanguage.googleapis.com /v1beta/models/{model}:{method}, x-goog-api-key, [GEMINI_API_KEY GOOGLE_API_KEY]
        deepseek: openai-chat as deepseek, https://api.deepseek.com /chat/completions, authorization, [DEEPSEEK_API_KEY]
        groq: openai-chat as groq, https://api.groq.com/openai /v1/chat/completions, authorization, [GROQ_API_KEY]
        mistral: openai-chat as mistral, https://api.mistral.ai /v1/chat/completions, authorization, [MISTRAL_API_KEY]
        openrouter: openai-chat as openrouter, https://openrouter.ai/api /v1/chat/completions, authorization, [OPENROUTER_API_KEY]
        xai: openai-responses as xai, https://api.x.ai /v1/responses, authorization, [XAI_API_KEY]
        ollama: ollama as ollama, http://localhost:11434 /api/chat, authorization, []
        ollama-chat: openai-chat as ollama-chat, http://localhost:11434 /v1/chat/completions, authorization, []
        llamacpp: openai-chat as llamacpp, http://localhost:8080 /v1/chat/completions, authorization, []
        vllm: openai-chat as vllm, http://localhost:8000 /v1/chat/completions, authorization, []
        lmstudio: openai-chat as lmstudio, http://localhost:1234 /v1/chat/completions, authorization, []
        ");
    }

    #[test]
    fn each_is_there_by_a_name_of_its_own_and_every_format_is_spoken() {
        let names: BTreeSet<&str> = Vendor::names().collect();
        assert_eq!(names.len(), ROWS.len());
        for row in ROWS {
            let vendor = Vendor::named(row.name).unwrap();
            let provider = &vendor.dialect.provider;
            assert_eq!((vendor.name.as_str(), provider.as_str()), (row.name, row.provider));
            assert_eq!(vendor.profile("some-model").provider, *provider, "a part's tag is the profile's");
        }
        for format in WireFormat::ALL {
            assert!(ROWS.iter().any(|row| row.format == format), "nobody speaks {format:?}");
        }
        assert_eq!(Vendor::named("nobody"), None);
        assert_eq!(Vendor::named("anthropic"), Some(Vendor::default()));
    }
}
