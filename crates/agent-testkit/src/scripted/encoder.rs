//! The request of a scripted model: one JSON object, readable and the same every time.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use agent_core::{
    AssistantPart, Body, Clip, ContentPart, Encoded, Encoder, EntryId, FilePart, Message, ModelRequest,
    Outgoing, RawJson, Rendered, Seal, SystemBlock, ToolCall, ToolCard, ToolInput, ToolOutput, ToolResult,
    Trim, UserPart, floor_boundary,
};
use bytes::Bytes;

use crate::quote::quote;

/// Writes a prompt in the shape of a messages API, one role after the other and nothing merged.
///
/// It takes everything a request can hold, so it has no diagnostics.
#[derive(Debug, Default)]
pub(super) struct ScriptEncoder {
    head: Option<Head>,
    pieces: BTreeMap<Key, Bytes>,
}

/// The system and the tools as last sent; they stay the same buffer until they change.
#[derive(Debug)]
struct Head {
    system: Vec<SystemBlock>,
    tools: Vec<ToolCard>,
    bytes: Bytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Entry(EntryId, Trim),
    Summary(EntryId),
    Continue,
}

impl Encoder for ScriptEncoder {
    fn encode(&mut self, request: &ModelRequest<'_>) -> Encoded {
        let mut body = Body::default();
        body.push(self.head(request.system, request.tools));
        let mut first = true;
        for rendered in request.draft.view().rendered() {
            let piece = self.piece(rendered);
            separate(&mut body, &mut first);
            body.push(piece);
        }
        for note in request.draft.ephemeral() {
            separate(&mut body, &mut first);
            body.push(message("user", &text_block(note.text.as_str())).into());
        }
        body.push(tail(request).into());
        let outgoing = Outgoing { body, stream: request.stream, headers: Vec::new() };
        Encoded { request: outgoing, diagnostics: Vec::new() }
    }
}

impl ScriptEncoder {
    fn head(&mut self, system: &[SystemBlock], tools: &[ToolCard]) -> Bytes {
        if let Some(head) = &self.head
            && head.system == system
            && head.tools == tools
        {
            return head.bytes.clone();
        }
        let blocks = join(system.iter().map(|block| text_block(block.text())));
        let cards = join(tools.iter().map(card));
        let bytes = Bytes::from(format!("{{\"system\":[{blocks}],\n\"tools\":[{cards}],\n\"messages\":[\n"));
        self.head = Some(Head { system: system.to_vec(), tools: tools.to_vec(), bytes: bytes.clone() });
        bytes
    }

    fn piece(&mut self, rendered: Rendered<'_>) -> Bytes {
        let key = match rendered {
            Rendered::Entry { id, trim, .. } => Key::Entry(id, trim),
            Rendered::Summary { id, .. } => Key::Summary(id),
            Rendered::Continue => Key::Continue,
        };
        let encode = || join_with(rendered.messages().map(render), ",\n").into();
        self.pieces.entry(key).or_insert_with(encode).clone()
    }
}

fn separate(body: &mut Body, first: &mut bool) {
    if !std::mem::take(first) {
        body.push(Bytes::from_static(b",\n"));
    }
}

fn tail(request: &ModelRequest<'_>) -> String {
    let settings = json_of(request.settings);
    let choice = json_of(request.tool_choice);
    let marks = json_of(request.marks);
    let stream = request.stream;
    format!(
        "\n],\n\"settings\":{settings},\"tool_choice\":{choice},\"marks\":{marks},\"stream\":{stream}}}\n"
    )
}

fn render(said: Message<'_>) -> String {
    match said {
        Message::User(user) => message("user", &join(user.parts().iter().map(user_part))),
        Message::Note(text) | Message::TurnNote(text) => message("user", &text_block(text)),
        Message::Assistant(parts, trim) => {
            let shown = parts
                .iter()
                .filter(|part| !(trim.strip_reasoning && matches!(part, AssistantPart::Reasoning(_))));
            message("assistant", &join(shown.map(assistant_part)))
        }
        Message::Summary(text) => message("assistant", &text_block(text.as_str())),
        Message::Tool(_, results, trim) => {
            message("user", &join(results.iter().map(|result| result_block(result, trim))))
        }
    }
}

fn message(role: &str, blocks: &str) -> String {
    format!("{{\"role\":\"{role}\",\"content\":[{blocks}]}}")
}

fn user_part(part: &UserPart) -> String {
    match part {
        UserPart::Text(text) => text_block(text.as_str()),
        UserPart::File(file) => file_block(file),
        UserPart::Provider(_) | _ => format!("{{\"type\":\"other\",\"part\":{}}}", json_of(part)),
    }
}

fn assistant_part(part: &AssistantPart) -> String {
    match part {
        AssistantPart::Text(text) => text_block(text.text.as_str()),
        AssistantPart::Reasoning(reasoning) => {
            let mut block = format!("{{\"type\":\"thinking\",\"thinking\":{}", quote(&reasoning.text));
            match &reasoning.seal {
                Some(Seal::Signature { value, .. }) => field(&mut block, "signature", &quote(value)),
                Some(Seal::Redacted { data, .. }) => field(&mut block, "data", &quote(data)),
                Some(other) => field(&mut block, "seal", &json_of(other)),
                None => {}
            }
            block + "}"
        }
        AssistantPart::ToolCall(call) => call_block(call),
        AssistantPart::Provider(block) => block.raw.get().to_owned(),
        _ => format!("{{\"type\":\"other\",\"part\":{}}}", json_of(part)),
    }
}

fn call_block(call: &ToolCall) -> String {
    let mut block =
        format!("{{\"type\":\"tool_use\",\"id\":{},\"name\":{}", quote(call.id.as_str()), quote(&call.name));
    match &call.input {
        ToolInput::Json(json) => field(&mut block, "input", json.get()),
        ToolInput::Invalid(text) => field(&mut block, "invalid_input", &quote(text)),
        ToolInput::Truncated(text) => field(&mut block, "truncated_input", &quote(text)),
    }
    block + "}"
}

fn result_block(result: &ToolResult, trim: Trim) -> String {
    let mut block = format!("{{\"type\":\"tool_result\",\"tool_use_id\":{}", quote(result.call.as_str()));
    let content = match (&result.output, trim.clip_results) {
        (ToolOutput::Content(parts), None) => format!("[{}]", join(parts.iter().map(content_part))),
        (output, clip) => quote(&clipped(output.plain(), clip)),
    };
    field(&mut block, "content", &content);
    if result.output.is_error() {
        field(&mut block, "is_error", "true");
    }
    block + "}"
}

fn clipped(mut text: String, clip: Option<Clip>) -> String {
    if let Some(most) = clip.map(|clip| clip.bytes).filter(|most| *most < text.len()) {
        text.truncate(floor_boundary(&text, most));
        text.push_str("[clipped]");
    }
    text
}

fn content_part(part: &ContentPart) -> String {
    match part {
        ContentPart::Text(text) => text_block(text.as_str()),
        ContentPart::Tool(found) => text_block(found.words.as_str()),
        ContentPart::File(file) => file_block(file),
        ContentPart::Provider(_) | _ => format!("{{\"type\":\"other\",\"part\":{}}}", json_of(part)),
    }
}

fn card(card: &ToolCard) -> String {
    format!(
        "{{\"name\":{},\"description\":{},\"input_schema\":{}}}",
        quote(card.name()),
        quote(card.description()),
        card.input_schema().get()
    )
}

fn file_block(file: &FilePart) -> String {
    format!("{{\"type\":\"file\",\"file\":{}}}", json_of(file))
}

fn text_block(text: &str) -> String {
    format!("{{\"type\":\"text\",\"text\":{}}}", quote(text))
}

fn field(block: &mut String, name: &str, json: &str) {
    // Writing to a string cannot fail.
    let _infallible = write!(block, ",\"{name}\":{json}");
}

/// The value as JSON; should it have no JSON form, the reason stands in its place for the reader to see.
fn json_of<T: serde::Serialize + ?Sized>(value: &T) -> String {
    RawJson::of(value).map_or_else(|error| quote(&error.to_string()), |json| json.get().to_owned())
}

fn join(items: impl Iterator<Item = String>) -> String {
    join_with(items, ",")
}

fn join_with(items: impl Iterator<Item = String>, between: &str) -> String {
    items.collect::<Vec<_>>().join(between)
}
