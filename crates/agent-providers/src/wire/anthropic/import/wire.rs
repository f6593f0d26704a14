//! The fields of a recorded request, read leniently, and what single ones mean.

use agent_core::{ContentPart, FilePart, FileSource, Text, Thinking, ToolChoice, UserPart};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::anthropic::PROVIDER;
use crate::wire::json::{Loose, LooseInt};

#[derive(Deserialize)]
pub(super) struct WireRequest<'a> {
    #[serde(borrow, default)]
    pub(super) model: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) system: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) tools: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    pub(super) messages: Option<Vec<WireMessage<'a>>>,
    #[serde(default)]
    pub(super) max_tokens: LooseInt,
    #[serde(default)]
    pub(super) temperature: Option<f32>,
    #[serde(borrow, default)]
    pub(super) thinking: Option<WireThinking<'a>>,
    #[serde(default)]
    pub(super) stop_sequences: Option<Vec<String>>,
    #[serde(borrow, default)]
    pub(super) tool_choice: Option<WireChoice<'a>>,
    #[serde(default)]
    pub(super) stream: Option<bool>,
}

#[derive(Deserialize)]
pub(super) struct WireMessage<'a> {
    #[serde(borrow, default)]
    pub(super) role: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct WireThinking<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Loose<'a>,
    #[serde(default)]
    pub(super) budget_tokens: LooseInt,
}

#[derive(Deserialize)]
pub(super) struct WireChoice<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) name: Loose<'a>,
}

#[derive(Deserialize)]
pub(super) struct WireTool<'a> {
    #[serde(borrow, default)]
    pub(super) name: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) description: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) input_schema: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
pub(super) struct WireBlock<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) text: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) tool_use_id: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) is_error: Option<bool>,
    #[serde(borrow, default)]
    pub(super) source: Option<WireSource<'a>>,
    #[serde(borrow, default)]
    pub(super) title: Loose<'a>,
}

#[derive(Deserialize, Default)]
pub(super) struct WireSource<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) media_type: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) data: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) url: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) file_id: Loose<'a>,
}

impl WireThinking<'_> {
    pub(super) fn mode(&self) -> Option<Thinking> {
        match self.kind.as_str() {
            "adaptive" => Some(Thinking::Adaptive),
            "disabled" => Some(Thinking::Disabled),
            "enabled" => self.budget_tokens.0.and_then(|n| u32::try_from(n).ok()).map(Thinking::Budget),
            _ => None,
        }
    }
}

impl WireChoice<'_> {
    pub(super) fn choice(&self) -> ToolChoice {
        match self.kind.as_str() {
            "any" => ToolChoice::Required,
            "none" => ToolChoice::None,
            "tool" => ToolChoice::Tool(self.name.as_str().to_owned()),
            _ => ToolChoice::Auto,
        }
    }
}

/// A block of a user message or of a result; a document of plain text becomes words.
pub(super) fn part(block: &WireBlock<'_>) -> Option<UserPart> {
    let text = |text: &str| Text::new(text).map(UserPart::Text);
    let kind = block.kind.as_str();
    if kind == "text" {
        return text(block.text.as_str());
    }
    let source = block.source.as_ref().filter(|_| matches!(kind, "image" | "document"))?;
    let (media, bytes) = match source.kind.as_str() {
        "base64" => (source.media_type.as_str(), FileSource::Base64(source.data.as_str().to_owned())),
        "url" => ("", FileSource::Url(source.url.as_str().to_owned())),
        "file" => {
            ("", FileSource::Reference { provider: PROVIDER.into(), id: source.file_id.as_str().to_owned() })
        }
        "text" => return text(source.data.as_str()),
        _ => return None,
    };
    let fallback = if kind == "image" { "image/*" } else { "application/pdf" };
    let media_type = if media.is_empty() { fallback } else { media }.to_owned();
    let name = Some(block.title.as_str().to_owned()).filter(|title| !title.is_empty());
    Some(UserPart::File(FilePart { media_type, source: bytes, name }))
}

pub(super) fn content(part: UserPart) -> Option<ContentPart> {
    match part {
        UserPart::Text(text) => Some(ContentPart::Text(text)),
        UserPart::File(file) => Some(ContentPart::File(file)),
        _ => None,
    }
}
