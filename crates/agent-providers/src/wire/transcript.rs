//! A conversation with all that a request needs, as JSON that no provider owns.

use agent_core::{
    Encoded, Entry, EntryId, History, ModelProfile, ModelRequest, RawJson, Repair, RequestSettings,
    SystemBlock, ToolCard, ToolChoice, UnreadableEntry,
};
use serde::{Deserialize, Serialize};

use super::{Dialect, Imported, encoder};
use crate::names::ToolNames;

/// A conversation with all that a request needs.
///
/// As JSON: `{"model", "system": ["…"], "tools": [{"name","description","input_schema"}], "settings": {…},
/// "tool_choice", "stream", "history": [entry, …]}`; only `history` must be there. An entry is
/// `{"user": [{"text": "…"}]}`, `{"step": {"response": {"parts", "finish"}, "results"}}` or `{"note": {…}}`, as stores
/// hold it: see [`Entry`].
///
/// ```
/// use agent_providers::{Catalog, Transcript, WireFormat};
///
/// let text = br#"{"model":"claude-haiku-4-5","settings":{"max_output":99},"history":[{"user":[{"text":"hi"}]}]}"#;
/// let (transcript, repairs) = Transcript::read(text)?;
/// assert!(repairs.is_empty());
/// let profile = Catalog::builtin().profile("anthropic", &transcript.model);
/// let encoded = transcript.encode(&WireFormat::Anthropic.into(), profile);
/// assert!(String::from_utf8(encoded.request.body.to_vec())?.starts_with(r#"{"model":"claude-haiku-4-5""#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "plain data, taken apart by its readers")]
pub struct Transcript {
    /// The model's name; empty where the address of a request names it.
    pub model: String,
    /// The system prompt.
    pub system: Vec<SystemBlock>,
    /// The tools.
    pub tools: Vec<ToolCard>,
    /// Limits, sampling, thinking.
    pub settings: RequestSettings,
    /// Whether and which tool must be called.
    pub tool_choice: ToolChoice,
    /// Whether the answer is streamed.
    pub stream: bool,
    /// The conversation, every call paired with its result.
    #[serde(serialize_with = "entries")]
    pub history: History,
}

/// Bytes that are no transcript.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TranscriptError {
    /// Not JSON, or not an object with the fields of a transcript.
    #[error(
        "the bytes are no transcript ({0}); one is {{\"history\": [{{\"user\": [{{\"text\": \"…\"}}]}}, …]}}, and `agent wire convert --from FORMAT --to transcript` makes one of a request"
    )]
    Json(#[from] serde_json::Error),
    /// An entry that no repair makes readable.
    #[error(transparent)]
    Entry(#[from] UnreadableEntry),
}

#[derive(Deserialize)]
struct Stored {
    #[serde(default)]
    model: String,
    #[serde(default)]
    system: Vec<SystemBlock>,
    #[serde(default)]
    tools: Vec<ToolCard>,
    #[serde(default)]
    settings: RequestSettings,
    #[serde(default)]
    tool_choice: ToolChoice,
    #[serde(default)]
    stream: bool,
    history: Vec<RawJson>,
}

impl Transcript {
    /// Reads a transcript, mending calls without results, results without calls and ids used twice (requirement M4).
    pub fn read(json: &[u8]) -> Result<(Self, Vec<(EntryId, Repair)>), TranscriptError> {
        let Stored { model, system, tools, settings, tool_choice, stream, history } =
            serde_json::from_slice(json)?;
        let (history, repairs) = History::load(&history)?;
        Ok((Self { model, system, tools, settings, tool_choice, stream, history }, repairs))
    }

    /// The request in a provider's format, and what it cannot take.
    pub fn encode(&self, dialect: &Dialect, profile: ModelProfile) -> Encoded {
        encoder(dialect, profile, ToolNames::default()).encode(&ModelRequest {
            system: &self.system,
            tools: &self.tools,
            draft: &self.history.draft(),
            settings: &self.settings,
            tool_choice: &self.tool_choice,
            marks: &[],
            stream: self.stream,
        })
    }
}

/// What was imported, without the account of what could not be.
impl From<Imported> for Transcript {
    fn from(imported: Imported) -> Self {
        let Imported { model, system, tools, settings, tool_choice, stream, history, .. } = imported;
        Self { model, system, tools, settings, tool_choice, stream, history }
    }
}

fn entries<S: serde::Serializer>(history: &History, serializer: S) -> Result<S::Ok, S::Error> {
    let entries: &[Entry] = history.entries();
    entries.serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let body = br#"{"model":"m","max_tokens":9,"system":"s","tools":[{"name":"f","input_schema":{"type":"object"}}],
            "messages":[{"role":"user","content":"go"},
            {"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"n":1.0,"b":12345678901234567890}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"}]}]}"#;
        let dialect = super::super::WireFormat::Anthropic.into();
        let given = Transcript::from(super::super::import_request(&dialect, body).unwrap());
        let text = serde_json::to_string(&given).unwrap();
        let (again, repairs) = Transcript::read(text.as_bytes()).unwrap();
        assert_eq!((serde_json::to_string(&again).unwrap(), repairs), (text, vec![]));
        let sent = again.encode(&dialect, ModelProfile::conservative("anthropic", "m")).request.body.to_vec();
        assert!(String::from_utf8(sent).unwrap().contains(r#""input":{"n":1.0,"b":12345678901234567890}"#));
    }

    #[test]
    fn damage_is_mended_and_told() {
        let call = r#"{"step":{"response":{"parts":[{"tool_call":{"id":"a","name":"f","input":{"json":{}}}}],"finish":{"kind":"tool_calls","raw":"x"}},"results":[]}}"#;
        let (transcript, repairs) =
            Transcript::read(format!(r#"{{"history":[{call}]}}"#).as_bytes()).unwrap();
        assert_eq!((transcript.history.len(), repairs.len()), (1, 1));
        assert!(matches!(Transcript::read(b"[]"), Err(TranscriptError::Json(_))));
        assert!(matches!(Transcript::read(br#"{"history":[{"user":[]}]}"#), Err(TranscriptError::Entry(_))));
        assert!(matches!(Transcript::read(br#"{"messages":[]}"#), Err(TranscriptError::Json(_))));
    }
}
