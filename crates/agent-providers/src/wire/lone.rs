//! What leaves a decoder holds no stand-ins for halves of surrogate pairs (case M15).

use std::borrow::Cow;
use std::sync::Arc;

use agent_core::{
    AssistantPart, CallId, ModelError, ModelEvent, ProviderData, RawJson, Reasoning, Seal, ToolCall,
    ToolInput,
};

use super::json::without_stand_ins;

/// An event whose stand-ins are U+FFFD. Texts were joined before; this is for what no text is: ids, names, seals,
/// inputs that came whole, and what is kept for the provider.
pub(super) fn event(mut event: ModelEvent) -> ModelEvent {
    match &mut event {
        ModelEvent::Start(origin) => {
            text(&mut origin.model);
            origin.message.iter_mut().for_each(text);
        }
        ModelEvent::TextDelta { text: piece, .. } | ModelEvent::ReasoningDelta { text: piece, .. } => {
            text(piece)
        }
        ModelEvent::ToolInputDelta { call: id, tool, json, .. } => {
            call_id(id);
            shared(tool);
            text(json);
        }
        ModelEvent::Part(said) => part(said),
        ModelEvent::Usage(usage) => usage.raw.iter_mut().for_each(raw),
        ModelEvent::Finish(finish) => text(&mut finish.raw),
        ModelEvent::Cleared { .. } | _ => {}
    }
    event
}

/// A failure whose stand-ins are U+FFFD.
pub(super) fn error(mut error: ModelError) -> ModelError {
    text(&mut error.message);
    error
}

fn part(part: &mut AssistantPart) {
    match part {
        AssistantPart::Text(said) => said.data.iter_mut().for_each(data),
        AssistantPart::Reasoning(thought) => reasoning(thought),
        AssistantPart::ToolCall(said) => call(said),
        AssistantPart::Provider(said) => {
            text(&mut said.kind);
            raw(&mut said.raw);
        }
        _ => {}
    }
}

fn reasoning(thought: &mut Reasoning) {
    match &mut thought.seal {
        Some(Seal::Signature { value, .. }) => text(value),
        Some(Seal::Redacted { data, .. }) => text(data),
        Some(Seal::Item { raw: item, .. }) => raw(item),
        Some(_) | None => {}
    }
}

fn call(call: &mut ToolCall) {
    call_id(&mut call.id);
    text(&mut call.name);
    match &mut call.input {
        ToolInput::Json(json) => raw(json),
        ToolInput::Invalid(said) | ToolInput::Truncated(said) => text(said),
    }
    call.data.iter_mut().for_each(data);
}

fn data(data: &mut ProviderData) {
    raw(&mut data.json);
}

fn text(text: &mut String) {
    if let Cow::Owned(sound) = without_stand_ins(text) {
        *text = sound;
    }
}

fn shared(text: &mut Arc<str>) {
    if let Cow::Owned(sound) = without_stand_ins(text) {
        *text = sound.into();
    }
}

fn call_id(id: &mut CallId) {
    if let Cow::Owned(sound) = without_stand_ins(id.as_str())
        && let Ok(sound) = CallId::new(sound)
    {
        *id = sound;
    }
}

fn raw(raw: &mut RawJson) {
    if let Cow::Owned(sound) = without_stand_ins(raw.get())
        && let Ok(sound) = RawJson::parse(sound)
    {
        *raw = sound;
    }
}

#[cfg(test)]
mod tests {
    use agent_core::Entry;

    use super::super::{StreamDecoder, Transcript, WireFormat, decode_body, import_request};
    use crate::ResponseHead;
    use crate::names::ToolNames;

    const PLAIN: &str = r#"{"id":"m\ud83d","model":"c\ude00","content":[{"type":"thinking","thinking":"t","signature":"s\ud83d"},
        {"type":"tool_use","id":"a\ud83d","name":"f\ud83d","input":{"q\ud83d":"\ude00"}},
        {"type":"other\ud83d","x":"\ud83d"}],"stop_reason":"tool_use\ud83d","usage":{"service_tier":"\ud83d"}}"#;

    #[test]
    fn no_stand_in_leaves_a_decoder() {
        let names = ToolNames::default();
        let event = PLAIN.replace('\n', "");
        let streams = [
            (WireFormat::Anthropic, format!(r#"data: {{"type":"message_start","message":{event}}}"#)),
            (
                WireFormat::OpenAiChat,
                r#"data: {"id":"\ud83d","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a\ud83d","function":{"name":"f\ud83d","arguments":{"q":"\ud83d"}}}]},"finish_reason":"x\ud83d"}]}"#.to_owned(),
            ),
            (
                WireFormat::Gemini,
                r#"data: {"candidates":[{"content":{"parts":[{"functionCall":{"id":"a\ud83d","name":"f\ud83d","args":{"q":"\ud83d"}}}]},"finishReason":"STOP"}]}"#.to_owned(),
            ),
            (WireFormat::Anthropic, r#"data: {"type":"error","error":{"type":"x","message":"m\ud83d"}}"#.to_owned()),
        ];
        for (format, stream) in streams {
            let mut decoder = StreamDecoder::new(&format.into(), names.clone());
            let mut said = decoder.push(format!("{stream}\n\n").as_bytes());
            said.extend(decoder.finish());
            check(&format!("{said:?}"));
        }
        let head = ResponseHead::unknown();
        check(&format!("{:?}", decode_body(&WireFormat::Anthropic.into(), &names, &head, PLAIN.as_bytes())));
        let head = ResponseHead { status: Some(400), ..ResponseHead::unknown() };
        let refused = br#"{"error":{"message":"m\ud83d"}}"#;
        check(&format!("{:?}", decode_body(&WireFormat::Anthropic.into(), &names, &head, refused)));
    }

    #[test]
    fn an_import_has_none_and_says_so() {
        let requests = [
            (
                WireFormat::Anthropic,
                r#"{"model":"m\ud83d","system":"s\ud83d","messages":[{"role":"user","content":"a\ude00"}]}"#,
            ),
            (
                WireFormat::OpenAiChat,
                r#"{"model":"m\ud83d","messages":[{"role":"user","content":"a\ude00"}]}"#,
            ),
            (WireFormat::OpenAiResponses, r#"{"model":"m\ud83d","input":"a\ude00"}"#),
            (WireFormat::Gemini, r#"{"contents":[{"role":"user","parts":[{"text":"a\ude00"}]}]}"#),
            (WireFormat::Ollama, r#"{"model":"m\ud83d","messages":[{"role":"user","content":"a\ude00"}]}"#),
        ];
        for (format, body) in requests {
            let imported = import_request(&format.into(), body.as_bytes()).unwrap();
            assert_eq!(imported.diagnostics.len(), 1, "{format:?}");
            let Some(Entry::User(said)) = imported.history.entries().first() else { panic!("{format:?}") };
            assert_eq!(said.plain(), "a\u{FFFD}");
            check(&format!("{:?}", serde_json::to_string(&Transcript::from(imported)).unwrap()));
        }
    }

    #[track_caller]
    fn check(shown: &str) {
        let stand_in = shown.chars().find(|c| ('\u{10F800}'..='\u{10FFFF}').contains(c));
        assert!(stand_in.is_none() && !shown.contains("\\u{10f"), "{shown}");
        assert!(shown.contains('\u{FFFD}'), "{shown}");
    }
}
