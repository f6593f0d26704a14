//! What an answer said, and the two messages that come of it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::bench::Fault;

/// The answer so far.
#[derive(Default)]
pub(super) struct Heard {
    pub(super) text: String,
    pub(super) call: Option<Call>,
    input: String,
}

/// The call the model made.
pub(super) struct Call {
    id: String,
    name: String,
}

/// One event; only what is used, flat and borrowed.
#[derive(Deserialize)]
struct Event<'e> {
    #[serde(borrow)]
    delta: Option<Delta<'e>>,
    #[serde(borrow)]
    content_block: Option<Block<'e>>,
}

#[derive(Deserialize)]
struct Delta<'e> {
    #[serde(borrow)]
    text: Option<Cow<'e, str>>,
    #[serde(borrow)]
    partial_json: Option<Cow<'e, str>>,
}

#[derive(Deserialize)]
struct Block<'e> {
    #[serde(borrow)]
    id: Option<Cow<'e, str>>,
    #[serde(borrow)]
    name: Option<Cow<'e, str>>,
}

/// What the tool is asked for.
#[derive(Deserialize)]
struct Echo<'e> {
    #[serde(borrow)]
    text: Cow<'e, str>,
    seq: i64,
}

#[derive(Serialize)]
struct Message<'m> {
    role: &'static str,
    content: &'m [Part<'m>],
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'m> {
    Text { text: &'m str },
    ToolUse { id: &'m str, name: &'m str, input: &'m RawValue },
    ToolResult { tool_use_id: &'m str, content: &'m str },
}

impl Heard {
    pub(super) fn event(&mut self, data: &[u8]) -> Result<(), Fault> {
        let event: Event<'_> = serde_json::from_slice(data)?;
        if let Some(Delta { text, partial_json }) = event.delta {
            self.text.push_str(text.as_deref().unwrap_or_default());
            self.input.push_str(partial_json.as_deref().unwrap_or_default());
        }
        if let Some(Block { id: Some(id), name: Some(name) }) = event.content_block {
            self.call = Some(Call { id: id.into_owned(), name: name.into_owned() });
        }
        Ok(())
    }
}

/// The model's message and the one with the result, as they are remembered: a comma ahead of each.
pub(super) fn messages(heard: &Heard, call: &Call, result: &str) -> Result<[Vec<u8>; 2], Fault> {
    let asked: Echo<'_> = serde_json::from_str(&heard.input)?;
    // The answer does not depend on it, but it has to be what the schema says.
    let _ = (asked.text, asked.seq);
    let input: &RawValue = serde_json::from_str(&heard.input)?;
    let use_ = Part::ToolUse { id: &call.id, name: &call.name, input };
    let said = Message { role: "assistant", content: &[Part::Text { text: &heard.text }, use_] };
    let result_bytes = result.len();
    let result = Part::ToolResult { tool_use_id: &call.id, content: result };
    let answered = Message { role: "user", content: &[result] };
    Ok([bytes(&said, heard.text.len() + heard.input.len())?, bytes(&answered, result_bytes)?])
}

fn bytes(message: &Message<'_>, about: usize) -> Result<Vec<u8>, Fault> {
    // Quotes and line breaks take a second byte.
    let mut bytes = Vec::with_capacity(about + about / 8 + 256);
    bytes.push(b',');
    serde_json::to_writer(&mut bytes, message)?;
    Ok(bytes)
}
