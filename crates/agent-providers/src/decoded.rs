//! A whole response, decoded in one go into the shape that programs print.

use agent_core::{
    AssistantPart, Finish, ModelError, ModelErrorKind, ModelEvent, ProviderPart, ToolCall, ToolInput, Usage,
};
use serde::ser::{SerializeStruct, Serializer};
use serde::{Deserialize, Serialize};

use crate::classify::ResponseHead;
use crate::names::ToolNames;
use crate::wire::{Events, StreamDecoder, WireFormat, decode_body};

/// What a response says. A failed one still holds what arrived before the failure.
///
/// As JSON: `{"text","reasoning","calls":[{"id","name","input","state"}],"finish":{"kind","raw"}|null,
/// "usage":{"input","output","reasoning","cache_read","cache_write"},
/// "error":null|{"kind","retryable","retry_after_ms","message"}}`. An `input` is the model's JSON unchanged, or a
/// JSON string of what it wrote when that is no JSON; `state` is `complete`, `invalid` or `truncated`.
#[derive(Debug, Clone, Default)]
#[expect(clippy::exhaustive_structs, reason = "a report of plain data, read field by field")]
pub struct Decoded {
    /// All words, partial ones included. The summary of a compaction block counts too: here one looks at
    /// everything the model wrote, while in a conversation the block stays with its provider.
    pub text: String,
    /// All visible thinking.
    pub reasoning: String,
    /// The calls this side must run, in order; calls the provider ran are not among them.
    pub calls: Vec<ToolCall>,
    /// Why the model stopped; `None` when the answer did not end.
    pub finish: Option<Finish>,
    /// What it cost, as far as reported.
    pub usage: Usage,
    /// Why there is no whole answer.
    pub error: Option<ModelError>,
}

/// Decodes recorded bytes, streamed or plain, cut into any chunks.
///
/// The content type decides between the two; without one, the first byte does.
///
/// ```
/// use agent_providers::{ResponseHead, WireFormat, decode_response};
///
/// let body = br#"{"id":"m","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn"}"#;
/// let answer = decode_response(WireFormat::Anthropic, &[body.to_vec()], &ResponseHead::unknown());
/// assert_eq!(answer.text, "hi");
/// assert!(answer.error.is_none());
/// ```
pub fn decode_response<C: AsRef<[u8]>>(format: WireFormat, chunks: &[C], head: &ResponseHead<'_>) -> Decoded {
    let names = ToolNames::default();
    let failed = head.status.is_some_and(|status| status >= 300);
    let events = if failed || !is_stream(chunks, head) {
        let body: Vec<u8> = chunks.iter().flat_map(|chunk| chunk.as_ref()).copied().collect();
        decode_body(format, &names, head, &body)
    } else {
        let mut decoder = StreamDecoder::new(format, names);
        let mut events: Events = chunks.iter().flat_map(|chunk| decoder.push(chunk.as_ref())).collect();
        events.extend(decoder.finish());
        events
    };
    let mut decoded = Decoded::default();
    for event in events {
        decoded.take(event);
    }
    decoded
}

impl Decoded {
    /// Takes the next item of an answer.
    pub fn take(&mut self, event: Result<ModelEvent, ModelError>) {
        match event {
            Ok(ModelEvent::TextDelta { text, .. }) => self.text.push_str(&text),
            Ok(ModelEvent::ReasoningDelta { text, .. }) => self.reasoning.push_str(&text),
            Ok(ModelEvent::Part(AssistantPart::ToolCall(call))) => self.calls.push(call),
            Ok(ModelEvent::Part(AssistantPart::Provider(part))) => self.text.push_str(&summary_in(&part)),
            Ok(ModelEvent::Usage(usage)) => self.usage = usage,
            Ok(ModelEvent::Finish(finish)) => self.finish = Some(finish),
            Ok(_) => {}
            Err(error) => self.error = Some(error),
        }
    }
}

/// The words of a compaction block; other blocks of the provider have none.
fn summary_in(part: &ProviderPart) -> String {
    #[derive(Deserialize)]
    struct Compaction {
        content: Option<String>,
    }
    if part.kind != "compaction" {
        return String::new();
    }
    part.raw.to::<Compaction>().ok().and_then(|block| block.content).unwrap_or_default()
}

/// Whether the bytes are a stream of events rather than one JSON value or a page.
pub(crate) fn is_stream<C: AsRef<[u8]>>(chunks: &[C], head: &ResponseHead<'_>) -> bool {
    let content_type = head.header("content-type").unwrap_or_default().to_ascii_lowercase();
    if content_type.contains("event-stream") {
        return true;
    }
    if content_type.contains("json") {
        return false;
    }
    let bytes = chunks.iter().flat_map(|chunk| chunk.as_ref());
    let first = bytes.copied().find(|byte| !byte.is_ascii_whitespace() && !BOM.contains(byte));
    !matches!(first, Some(b'{' | b'[' | b'<'))
}

impl Serialize for Decoded {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Decoded", 6)?;
        out.serialize_field("text", &self.text)?;
        out.serialize_field("reasoning", &self.reasoning)?;
        out.serialize_field("calls", &self.calls.iter().map(Call).collect::<Vec<_>>())?;
        out.serialize_field("finish", &self.finish)?;
        out.serialize_field("usage", &Counts::of(&self.usage))?;
        out.serialize_field("error", &self.error.as_ref().map(Failure::of))?;
        out.end()
    }
}

struct Call<'d>(&'d ToolCall);

impl Serialize for Call<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Call", 4)?;
        out.serialize_field("id", &self.0.id)?;
        out.serialize_field("name", &self.0.name)?;
        match &self.0.input {
            ToolInput::Json(json) => out.serialize_field("input", json)?,
            ToolInput::Invalid(text) | ToolInput::Truncated(text) => out.serialize_field("input", text)?,
        }
        out.serialize_field("state", state(&self.0.input))?;
        out.end()
    }
}

fn state(input: &ToolInput) -> &'static str {
    match input {
        ToolInput::Json(_) => "complete",
        ToolInput::Invalid(_) => "invalid",
        ToolInput::Truncated(_) => "truncated",
    }
}

#[derive(Serialize)]
struct Counts {
    input: u64,
    output: u64,
    reasoning: u64,
    cache_read: u64,
    cache_write: u64,
}

impl Counts {
    fn of(usage: &Usage) -> Self {
        let Usage { input, output, reasoning, cache_read, .. } = *usage;
        Self { input, output, reasoning, cache_read, cache_write: usage.cache_write() }
    }
}

#[derive(Serialize)]
struct Failure<'d> {
    kind: ModelErrorKind,
    retryable: bool,
    retry_after_ms: Option<u64>,
    message: &'d str,
}

impl<'d> Failure<'d> {
    fn of(error: &'d ModelError) -> Self {
        let ModelError { kind, retryable, retry_after_ms, message } = error;
        Self { kind: *kind, retryable: *retryable, retry_after_ms: *retry_after_ms, message }
    }
}

const BOM: [u8; 3] = [0xEF, 0xBB, 0xBF];

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(body: &str, head: &ResponseHead<'_>) -> Decoded {
        decode_response(WireFormat::Anthropic, &[body], head)
    }

    #[test]
    fn the_printed_shape() {
        let body = r#"{"id":"m","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"hi"},
            {"type":"server_tool_use","id":"s1","name":"web_search","input":{}},
            {"type":"tool_use","id":"c1","name":"f","input":{"z":12345678901234567890,"a":1.0}}],
            "stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2,"cache_creation_input_tokens":3}}"#;
        let printed = serde_json::to_string(&decode(body, &ResponseHead::unknown())).unwrap();
        assert_eq!(
            printed,
            r#"{"text":"hi","reasoning":"hm","calls":[{"id":"c1","name":"f","input":{"z":12345678901234567890,"a":1.0},"state":"complete"}],"finish":{"kind":"tool_calls","raw":"tool_use"},"usage":{"input":1,"output":2,"reasoning":0,"cache_read":0,"cache_write":3},"error":null}"#
        );
        let call = ToolCall {
            id: agent_core::CallId::positional(0),
            name: "f".into(),
            input: ToolInput::Truncated("{\"a".into()),
        };
        let text = serde_json::to_string(&Call(&call)).unwrap();
        assert_eq!(text, r#"{"id":"call_0","name":"f","input":"{\"a","state":"truncated"}"#);
    }

    #[test]
    fn the_kind_of_response_is_found() {
        let stream = "data: {\"type\":\"message_stop\"}\n\n";
        let headers = |value: &str| vec![("Content-Type".to_owned(), value.to_owned())];
        let check = |body: &str, content_type: Option<&str>, expect: bool| {
            let headers = content_type.map(headers).unwrap_or_default();
            let head = ResponseHead { headers: &headers, ..ResponseHead::unknown() };
            assert_eq!(is_stream(&[body], &head), expect, "{body} {content_type:?}");
        };
        check(stream, None, true);
        check(" \n{}", None, false);
        check("<html>", Some("text/html"), false);
        check("\u{feff}{}", None, false);
        check(": x\n\n", Some("text/plain"), true);
        check("{}", Some("text/event-stream; charset=utf-8"), true);
        check("", Some("application/json"), false);
    }

    #[test]
    fn a_failed_response_is_classified_and_a_cut_one_keeps_its_words() {
        let head = ResponseHead { status: Some(401), ..ResponseHead::unknown() };
        let error = decode("{\"error\":{\"type\":\"authentication_error\",\"message\":\"no\"}}", &head)
            .error
            .unwrap();
        assert_eq!(error.kind, ModelErrorKind::Authentication);
        let cut = decode(
            "data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\",\"text\":\"he\"}}\n\ndata: {\"type\":\"mess",
            &ResponseHead::unknown(),
        );
        assert_eq!((cut.text.as_str(), cut.error.unwrap().kind), ("he", ModelErrorKind::Interrupted));
        assert_eq!(
            decode("{\"content\":[", &ResponseHead::unknown()).error.unwrap().kind,
            ModelErrorKind::Interrupted
        );
    }
}
