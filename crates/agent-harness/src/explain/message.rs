//! The conversation of a request, message by message, with what each weighs.

use agent_core::{
    AssistantPart, Draft, EntryId, Mark, MarkPoint, Message, Rendered, ToolOutput, Trim, Ttl, UserPart,
};
use agent_prompt::estimate_tokens;
use serde::Serialize;

/// One message as it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExplainedMessage {
    /// The position of its entry in the history; none for words of this call only.
    pub entry: Option<u64>,
    /// What it is.
    pub kind: MessageKind,
    /// Its parts, in order.
    pub parts: Vec<ExplainedPart>,
    /// Bytes of its parts' contents, without what the provider's format adds.
    pub bytes: usize,
    /// Its tokens, estimated.
    pub estimated_tokens: usize,
    /// The cache breakpoint at its end.
    pub breakpoint: Option<Ttl>,
}

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MessageKind {
    /// What the user said.
    User,
    /// Words of the harness that stay in the conversation.
    Note,
    /// What the model said.
    Assistant,
    /// The results of the calls just before.
    Results,
    /// Words that stand for what came before.
    Summary,
    /// Words of the harness for this call only.
    Reminder,
}

/// One part of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExplainedPart {
    /// `text`, `file`, `thinking`, `provider`, `call NAME` or `result of NAME`.
    pub what: String,
    /// Bytes of its content.
    pub bytes: usize,
    /// How the content begins.
    pub excerpt: String,
}

/// Characters of an excerpt.
const EXCERPT: usize = 60;

/// The messages of a draft in the order they are sent.
pub(crate) fn messages(draft: &Draft<'_>, marks: &[Mark]) -> Vec<ExplainedMessage> {
    let mut all = Vec::new();
    for rendered in draft.view().rendered() {
        let id = match rendered {
            Rendered::Entry { id, .. } | Rendered::Summary { id, .. } => Some(id),
            Rendered::Continue => None,
        };
        all.extend(rendered.messages().map(|message| explained(message, id)));
        if let (Some(last), Some(id)) = (all.last_mut(), id) {
            let mark = marks.iter().find(|mark| mark.at == MarkPoint::Entry(id));
            last.breakpoint = mark.map(|mark| mark.ttl);
        }
    }
    let ephemeral = draft.ephemeral().iter();
    all.extend(ephemeral.map(|note| weighed(None, MessageKind::Reminder, vec![text(note.text.as_str())])));
    all
}

fn explained(message: Message<'_>, id: Option<EntryId>) -> ExplainedMessage {
    let (kind, parts) = match message {
        Message::User(message) => (MessageKind::User, message.parts().iter().map(user_part).collect()),
        Message::Note(words) | Message::TurnNote(words) => (MessageKind::Note, vec![text(words)]),
        Message::Assistant(parts, trim) => {
            let kept = parts.iter().filter(|part| is_kept(part, trim));
            (MessageKind::Assistant, kept.map(assistant_part).collect())
        }
        Message::Summary(words) => (MessageKind::Summary, vec![text(words.as_str())]),
        Message::Tool(step, _, trim) => {
            let results = step.pairs().map(|(call, result)| result_part(&call.name, &result.output, trim));
            (MessageKind::Results, results.collect())
        }
    };
    weighed(id, kind, parts)
}

fn weighed(id: Option<EntryId>, kind: MessageKind, parts: Vec<ExplainedPart>) -> ExplainedMessage {
    let bytes = parts.iter().map(|part| part.bytes).sum();
    let entry = id.map(|id| id.position() as u64);
    ExplainedMessage { entry, kind, parts, bytes, estimated_tokens: estimate_tokens(bytes), breakpoint: None }
}

fn is_kept(part: &AssistantPart, trim: Trim) -> bool {
    !(trim.strip_reasoning && matches!(part, AssistantPart::Reasoning(_)))
}

fn text(words: &str) -> ExplainedPart {
    part("text", words, words.len())
}

fn part(what: impl Into<String>, words: &str, bytes: usize) -> ExplainedPart {
    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut = line.chars().count() > EXCERPT;
    let shown: String = line.chars().take(if cut { EXCERPT - 1 } else { EXCERPT }).collect();
    ExplainedPart { what: what.into(), bytes, excerpt: if cut { format!("{shown}…") } else { shown } }
}

fn user_part(given: &UserPart) -> ExplainedPart {
    match given {
        UserPart::Text(words) => text(words.as_str()),
        UserPart::File(file) => whole("file", file, &file.media_type),
        UserPart::Provider(other) => whole("provider", other, ""),
        _ => whole("other", given, ""),
    }
}

fn assistant_part(said: &AssistantPart) -> ExplainedPart {
    match said {
        AssistantPart::Text(words) => text(words.text.as_str()),
        AssistantPart::Reasoning(thought) => whole("thinking", thought, &thought.text),
        AssistantPart::ToolCall(call) => {
            let input = call.input.as_str();
            part(format!("call {}", call.name), input, call.name.len() + input.len())
        }
        AssistantPart::Provider(other) => whole("provider", other, ""),
        _ => whole("other", said, ""),
    }
}

fn result_part(tool: &str, output: &ToolOutput, trim: Trim) -> ExplainedPart {
    let words = output.plain();
    let bytes = trim.clip_results.map_or(words.len(), |clip| clip.bytes.min(words.len()));
    part(format!("result of {tool}"), &words, bytes)
}

/// A part that is more than words: it weighs what its record weighs.
fn whole(what: &str, record: &impl Serialize, words: &str) -> ExplainedPart {
    let bytes = serde_json::to_vec(record).map_or(words.len(), |json| json.len());
    part(what, words, bytes)
}

impl MessageKind {
    /// The word in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Note => "note",
            Self::Assistant => "assistant",
            Self::Results => "results",
            Self::Summary => "summary",
            Self::Reminder => "reminder",
        }
    }
}
