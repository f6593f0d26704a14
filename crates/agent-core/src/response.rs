//! A complete answer, folded out of its events.

use serde::{Deserialize, Serialize};

use crate::{AssistantPart, ModelEvent, Origin, Reasoning, ToolCall, Usage};

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record: our word and the provider's")]
pub struct Finish {
    /// Our word for it.
    pub kind: FinishKind,
    /// The provider's word for it.
    pub raw: String,
}

/// Our words for why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "the terminal reason is derived from it by an exhaustive match")]
pub enum FinishKind {
    /// It had nothing more to say.
    Stop,
    /// It wants tools run.
    ToolCalls,
    /// The output limit was reached.
    Length,
    /// The provider's filter cut it.
    ContentFilter,
    /// It declined.
    Refusal,
    /// The provider paused a long answer; send the conversation again to go on.
    Pause,
    /// Input and output filled the context window.
    ContextWindow,
    /// A word we do not know; it is kept in [`Finish::raw`].
    Other,
}

/// A complete answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record built by codecs and tests")]
pub struct Response {
    /// Who answered.
    #[serde(default)]
    pub origin: Origin,
    /// The parts, in the order the model said them.
    pub parts: Vec<AssistantPart>,
    /// Why it stopped.
    pub finish: Finish,
    /// What it cost.
    #[serde(default)]
    pub usage: Usage,
}

/// What a text has room for when it begins to grow by small pieces.
const ROOM: usize = 512;

/// Folds the events of one answer into a [`Response`]; collecting is a fold, not a second driver.
#[derive(Debug, Clone, Default)]
pub struct ResponseBuilder {
    origin: Origin,
    parts: Vec<AssistantPart>,
    usage: Usage,
    finish: Option<Finish>,
    open_text: Vec<(u32, String)>,
}

impl Response {
    /// An answer made of these parts that ended by itself; for tests and scripted models.
    pub fn of(parts: Vec<AssistantPart>) -> Self {
        let calls = parts.iter().any(|part| part.as_call().is_some());
        let (kind, raw) =
            if calls { (FinishKind::ToolCalls, "tool_use") } else { (FinishKind::Stop, "end_turn") };
        Self {
            origin: Origin::default(),
            parts,
            finish: Finish { kind, raw: raw.into() },
            usage: Usage::default(),
        }
    }

    /// The client-executed calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(AssistantPart::as_call)
    }
}

impl ResponseBuilder {
    /// Takes the next event; what is for those who watch, and is no part of the answer, comes back.
    pub fn take(&mut self, event: ModelEvent) -> Option<ModelEvent> {
        match event {
            ModelEvent::Start(origin) => self.origin = origin,
            ModelEvent::TextDelta { index, ref text } => {
                self.open_text(index).push_str(text);
                return Some(event);
            }
            ModelEvent::Part(part) => {
                // A block of blank words gives no part, so the block that is complete is known by its words.
                let complete = |(_, open): &(u32, String)| part.as_text() == Some(open.as_str());
                if let Some(at) = self.open_text.iter().position(complete) {
                    self.open_text.remove(at);
                }
                self.parts.push(part);
            }
            ModelEvent::Usage(usage) => self.usage = usage,
            ModelEvent::Finish(finish) => self.finish = Some(finish),
            ModelEvent::ReasoningDelta { .. }
            | ModelEvent::ToolInputDelta { .. }
            | ModelEvent::Cleared { .. } => return Some(event),
        }
        None
    }

    /// Usage reported so far; known even when the answer never ends.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Who answers, known from the first event on.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The answer, or `None` when no finish arrived.
    ///
    /// Words that came as deltas only, without the part that completes their block, are kept at the end.
    pub fn finish(mut self) -> Option<Response> {
        let finish = self.finish.take()?;
        self.keep_open_text();
        // It stays as long as the session.
        self.parts.shrink_to_fit();
        Some(Response { origin: self.origin, parts: self.parts, finish, usage: self.usage })
    }

    /// The words of a block that is not complete.
    fn open_text(&mut self, index: u32) -> &mut String {
        let known = self.open_text.iter().position(|(open, _)| *open == index);
        let at = known.unwrap_or_else(|| {
            self.open_text.push((index, String::with_capacity(ROOM)));
            self.open_text.len() - 1
        });
        &mut self.open_text[at].1
    }

    fn keep_open_text(&mut self) {
        let open = std::mem::take(&mut self.open_text);
        self.parts.extend(open.into_iter().filter_map(|(_, text)| AssistantPart::text(text)));
    }

    /// What can be kept of an answer that was cut off: complete and partial text. Calls are not kept, because
    /// none of them ran; unsealed thinking is not kept, because no provider takes it back (requirement L8).
    pub fn partial(mut self, raw: &str) -> Response {
        self.parts.retain(|part| match part {
            AssistantPart::Text(_) | AssistantPart::Provider(_) => true,
            AssistantPart::Reasoning(Reasoning { seal, .. }) => seal.is_some(),
            AssistantPart::ToolCall(_) => false,
        });
        self.keep_open_text();
        let finish = Finish { kind: FinishKind::Other, raw: raw.to_owned() };
        Response { origin: self.origin, parts: self.parts, finish, usage: self.usage }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CallId;

    fn delta(index: u32, text: &str) -> ModelEvent {
        ModelEvent::TextDelta { index, text: text.into() }
    }

    #[test]
    fn a_fold_of_events_is_the_answer() {
        let mut fold = ResponseBuilder::default();
        let finish = Finish { kind: FinishKind::Stop, raw: "end_turn".into() };
        for event in [
            ModelEvent::Start(Origin { model: "m".into(), message: Some("msg".into()), asked: None }),
            delta(0, "he"),
            ModelEvent::Usage(Usage { output: 1, ..Usage::default() }),
            delta(0, "llo"),
            ModelEvent::Part(AssistantPart::text("hello").unwrap()),
            ModelEvent::Usage(Usage { output: 7, ..Usage::default() }),
            ModelEvent::Finish(finish),
        ] {
            fold.take(event);
        }
        let answer = fold.finish().unwrap();
        assert_eq!(answer.parts, [AssistantPart::text("hello").unwrap()]);
        assert_eq!((answer.usage.output, answer.origin.model.as_str()), (7, "m"));
    }

    #[test]
    fn an_answer_cut_off_keeps_its_text_and_no_call() {
        let mut fold = ResponseBuilder::default();
        let call = ToolCall {
            id: CallId::new("c").unwrap(),
            name: "f".into(),
            input: crate::ToolInput::finished(""),
            data: None,
        };
        for event in [
            delta(0, "done"),
            ModelEvent::Part(AssistantPart::text("done").unwrap()),
            ModelEvent::Part(AssistantPart::ToolCall(call)),
            delta(2, "half a sen"),
        ] {
            fold.take(event);
        }
        assert!(fold.clone().finish().is_none());
        let kept: Vec<_> = fold.partial("aborted").parts;
        assert_eq!(kept, [AssistantPart::text("done").unwrap(), AssistantPart::text("half a sen").unwrap()]);
    }

    #[test]
    fn words_that_came_as_deltas_only_are_not_lost() {
        let mut fold = ResponseBuilder::default();
        let finish = Finish { kind: FinishKind::Stop, raw: "stop".into() };
        for event in [delta(0, "he"), delta(0, "llo"), ModelEvent::Finish(finish)] {
            fold.take(event);
        }
        assert_eq!(fold.finish().unwrap().parts, [AssistantPart::text("hello").unwrap()]);
    }

    #[test]
    fn words_after_a_blank_block_are_kept_once() {
        let mut fold = ResponseBuilder::default();
        for event in
            [delta(0, "\n\n"), delta(1, "hello"), ModelEvent::Part(AssistantPart::text("hello").unwrap())]
        {
            fold.take(event);
        }
        assert_eq!(fold.partial("aborted").parts, [AssistantPart::text("hello").unwrap()]);
    }
}
