//! A whole response, decoded in one go into the shape that programs print.

use agent_core::{
    AssistantPart, Finish, ModelError, ModelErrorKind, ModelEvent, ProviderPart, ToolCall, ToolInput, Usage,
};
use serde::ser::{SerializeStruct, Serializer};
use serde::{Deserialize, Serialize};

use crate::classify::{ResponseHead, with_head};
use crate::names::ToolNames;
use crate::wire::{Dialect, Events, StreamDecoder, decode_body};

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
/// The first byte that is no blank decides between the two; the content type does not, since gateways send errors
/// under any.
///
/// ```
/// use agent_providers::{ResponseHead, WireFormat, decode_response};
///
/// let body = br#"{"id":"m","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn"}"#;
/// let answer = decode_response(&WireFormat::Anthropic.into(), &[body.to_vec()], &ResponseHead::unknown());
/// assert_eq!(answer.text, "hi");
/// assert!(answer.error.is_none());
/// ```
pub fn decode_response<C: AsRef<[u8]>>(dialect: &Dialect, chunks: &[C], head: &ResponseHead<'_>) -> Decoded {
    let names = ToolNames::default();
    let events = if head.status.is_some_and(|status| status >= 300) {
        let body: Vec<u8> = chunks.iter().flat_map(|chunk| chunk.as_ref()).copied().collect();
        decode_body(dialect, &names, head, &body)
    } else {
        let mut decoder = StreamDecoder::new(dialect, names);
        let mut events: Events = chunks.iter().flat_map(|chunk| decoder.push(chunk.as_ref())).collect();
        events.extend(decoder.finish());
        events
    };
    let mut decoded = Decoded::default();
    for event in events {
        decoded.take(event.map_err(|error| with_head(error, head)));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WireFormat;

    fn decode(body: &str, head: &ResponseHead<'_>) -> Decoded {
        decode_response(&WireFormat::Anthropic.into(), &[body], head)
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
            data: None,
        };
        let text = serde_json::to_string(&Call(&call)).unwrap();
        assert_eq!(text, r#"{"id":"call_0","name":"f","input":"{\"a","state":"truncated"}"#);
    }

    /// A successful response with this content type and encoding: its words, the class of its error, and the
    /// message of that.
    fn given(content_type: &str, encoding: &str, body: &[u8]) -> (String, Option<ModelErrorKind>, String) {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let headers = [header("Content-Type", content_type), header("Content-Encoding", encoding)];
        let head = ResponseHead { status: Some(200), headers: &headers, ..ResponseHead::unknown() };
        let whole = decode_response(&WireFormat::Anthropic.into(), &[body], &head);
        let bytes: Vec<&[u8]> = body.chunks(1).collect();
        let cut = decode_response(&WireFormat::Anthropic.into(), &bytes, &head);
        assert_eq!(serde_json::to_string(&whole).unwrap(), serde_json::to_string(&cut).unwrap());
        let message = whole.error.as_ref().map(|error| error.message.clone()).unwrap_or_default();
        (whole.text, whole.error.map(|error| error.kind), message)
    }

    #[test]
    fn the_first_byte_and_not_the_content_type_tells_what_a_response_is() {
        use ModelErrorKind as K;
        let stream = concat!(
            "data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\",\"text\":\"hi\"}}\n\n",
            "data: {\"type\":\"message_stop\"}\n\n"
        );
        let message = " \n{\"id\":\"m\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"}],\"stop_reason\":\"end_turn\"}";
        let marked = format!("\u{feff}{message}");
        let refusal = r#"{"type":"error","error":{"type":"overloaded_error","message":"no room left"}}"#;
        let page = format!("<html>{}</html>", "\u{e9}".repeat(500));
        for content_type in ["", "text/event-stream; charset=utf-8", "application/json", "text/plain"] {
            let check = |body: &str, words: &str, kind: Option<ModelErrorKind>, said: &str| {
                let (text, error, message) = given(content_type, "identity", body.as_bytes());
                assert_eq!((text.as_str(), error), (words, kind), "{content_type} {body}: {message}");
                assert!(message.contains(said) && message.len() < 400, "{content_type} {body}: {message}");
            };
            check(stream, "hi", None, "");
            check(&format!(": x\n\n{stream}"), "hi", None, "");
            check(message, "hi", None, "");
            check(&marked, "hi", None, "");
            check(refusal, "", Some(K::Overloaded), "no room left");
            check(&page, "", Some(K::Protocol), "<html>\u{e9}");
            check("[1]", "", Some(K::Protocol), "[1]");
            check("error code: 502", "", Some(K::Protocol), "error code: 502");
            check("{\"content\":[", "", Some(K::Interrupted), "");
            check("", "", Some(K::Interrupted), "");
            check("dat", "", Some(K::Interrupted), "");
            check("event: x\n", "", Some(K::Interrupted), "");
        }
    }

    #[test]
    fn an_encoding_that_nobody_asked_for_is_named() {
        // The first bytes of a gzip member, and brotli that happens to begin like JSON.
        for body in [&b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xab"[..], b"[\xff\x03\0"] {
            for content_type in ["text/event-stream", "application/json", ""] {
                let (_, kind, message) = given(content_type, "gzip", body);
                assert_eq!(kind, Some(ModelErrorKind::Protocol), "{message}");
                assert!(message.contains("content-encoding gzip"), "{message}");
            }
            let (_, _, message) = given("text/event-stream", "Identity", body);
            assert!(!message.contains("content-encoding"), "{message}");
        }
        let headers = [("content-encoding".to_owned(), "br".to_owned())];
        let head = ResponseHead { status: Some(429), headers: &headers, ..ResponseHead::unknown() };
        let error = decode("\u{1}\u{2}", &head).error.unwrap();
        assert_eq!(error.kind, ModelErrorKind::RateLimited);
        assert!(error.message.contains("content-encoding br"), "{error}");
        let body = r#"{"error":{"type":"rate_limit_error","message":"slow"}}"#;
        assert!(!decode(body, &head).error.unwrap().message.contains("content-encoding"), "it was readable");
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
