//! Decoders: any chunking gives the same events, nothing follows an error, and there is at most one end.

use agent_core::{ModelEvent, ResponseBuilder};
use agent_providers::{
    DEFAULT_EVENT_LIMIT, Dialect, Events, ResponseHead, StreamDecoder, ToolNames, WireFormat, decode_body,
};

use crate::cuts::{cuts, seed};

/// Anthropic Messages.
pub fn anthropic(data: &[u8]) {
    check(WireFormat::Anthropic, data);
}

/// OpenAI Chat Completions.
pub fn openai_chat(data: &[u8]) {
    check(WireFormat::OpenAiChat, data);
}

/// OpenAI Responses.
pub fn openai_responses(data: &[u8]) {
    check(WireFormat::OpenAiResponses, data);
}

/// Google Gemini.
pub fn gemini(data: &[u8]) {
    check(WireFormat::Gemini, data);
}

/// Ollama's own chat.
pub fn ollama(data: &[u8]) {
    check(WireFormat::Ollama, data);
}

/// Checks the decoder of a format.
fn check(format: WireFormat, data: &[u8]) {
    let dialect = Dialect::from(format);
    for limit in [DEFAULT_EVENT_LIMIT, 16 + (seed(data) % 500) as usize] {
        let (whole, complete) = decode(&dialect, limit, &[data]);
        is_one_answer(&whole, complete);
        for pieces in cuts(data) {
            let cut = decode(&dialect, limit, &pieces);
            assert_eq!(cut, (whole.clone(), complete), "another chunking gave another answer");
        }
    }
    a_body_is_the_same_answer(&dialect, data);
}

/// The events of the chunks, and whether the terminal one arrived.
fn decode(dialect: &Dialect, limit: usize, chunks: &[&[u8]]) -> (Events, bool) {
    let mut decoder = StreamDecoder::with_event_limit(dialect, ToolNames::default(), limit);
    let mut events: Events = chunks.iter().flat_map(|chunk| decoder.push(chunk)).collect();
    events.extend(decoder.finish());
    let complete = decoder.is_complete();
    let mut late = decoder.push(b"data: {}\n\n");
    late.extend(decoder.finish());
    late.extend(decoder.interrupt("late"));
    assert_eq!(late, [], "something came after the end");
    (events, complete)
}

/// The events are a whole answer with one end, or a broken one with one error, which is last.
fn is_one_answer(events: &Events, complete: bool) {
    let errors = events.iter().filter(|event| event.is_err()).count();
    assert_eq!(errors, usize::from(!complete), "an answer is complete or has one error: {events:?}");
    if !complete {
        assert!(events.last().is_some_and(Result::is_err), "something follows the error: {events:?}");
    }
    let ends = events.iter().filter(|event| matches!(event, Ok(ModelEvent::Finish(_)))).count();
    assert!(ends <= 1, "two ends: {events:?}");
    if complete {
        assert!(matches!(events.last(), Some(Ok(ModelEvent::Finish(_)))), "complete, but not at its end");
    }
    let mut fold = ResponseBuilder::default();
    for event in events.iter().flatten() {
        fold.take(event.clone());
    }
    assert_eq!(fold.finish().is_some(), ends == 1);
}

/// A plain body decodes as it does when it comes through the decoder of streams.
fn a_body_is_the_same_answer(dialect: &Dialect, data: &[u8]) {
    let body = decode_body(dialect, &ToolNames::default(), &ResponseHead::unknown(), data);
    assert!(!body.is_empty(), "a body without an outcome");
    if data.first() == Some(&b'{') {
        assert_eq!(decode(dialect, DEFAULT_EVENT_LIMIT, &[data]).0, body);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::{Finish, FinishKind, ModelError};

    fn end() -> Result<ModelEvent, ModelError> {
        Ok(ModelEvent::Finish(Finish { kind: FinishKind::Stop, raw: "stop".into() }))
    }

    fn error() -> Result<ModelEvent, ModelError> {
        Err(ModelError::interrupted("here"))
    }

    #[test]
    fn whole_and_broken_answers_are_taken() {
        is_one_answer(&vec![end()], true);
        is_one_answer(&vec![error()], false);
        anthropic(b"data: {\"type\":\"message_stop\"}\n\n");
        anthropic(b"\xff\r\n\r\rdata: {");
    }

    #[test]
    fn broken_promises_are_seen() {
        let seen =
            |events: Events, complete| std::panic::catch_unwind(|| is_one_answer(&events, complete)).is_err();
        assert!(seen(vec![end(), end()], true), "two ends");
        assert!(seen(vec![error(), end()], false), "something after an error");
        assert!(seen(vec![error(), error()], false), "two errors");
        assert!(seen(vec![], false), "no outcome");
        assert!(seen(vec![], true), "complete without an end");
        assert!(seen(vec![end(), error()], true), "complete and broken");
    }
}
