//! The fields of a recorded request, read leniently, and what single ones mean.

use agent_core::{
    CardError, FilePart, FileSource, ProviderData, ProviderPart, RawJson, Text, ToolCard, ToolChoice,
    UserPart,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::anthropic::tools::OWN;
use crate::wire::base64::encoded;
use crate::wire::json::{Fields, Loose, LooseInt, object, others, without};

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
    #[serde(default)]
    pub(super) top_p: Option<f32>,
    #[serde(default)]
    pub(super) top_k: LooseInt,
    #[serde(borrow, default)]
    pub(super) output_config: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) service_tier: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) speed: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) thinking: Option<&'a RawValue>,
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
pub(super) struct WireChoice<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) name: Loose<'a>,
    #[serde(default)]
    pub(super) disable_parallel_tool_use: Option<bool>,
}

#[derive(Deserialize)]
pub(super) struct WireTool<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) name: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) mcp_server_name: Loose<'a>,
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
    pub(super) source: Option<&'a RawValue>,
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

/// A tool as its entry says. Without a schema it is one of the provider's own, told of as it is.
pub(super) fn card(tool: &WireTool<'_>, provider: &str, raw: &str) -> Result<ToolCard, CardError> {
    let data = |text: &str| {
        RawJson::parse(text).map(|json| ProviderData { provider: provider.to_owned(), json }).ok()
    };
    let Some(schema) = tool.input_schema else {
        let names = [&tool.name, &tool.mcp_server_name, &tool.kind];
        let name = names.into_iter().map(Loose::as_str).find(|name| !name.is_empty()).unwrap_or_default();
        return match data(&without(raw, MARKER)).filter(|_| !name.is_empty()) {
            Some(data) => ToolCard::hosted(name, data),
            None => Err(CardError::Name),
        };
    };
    let schema = RawJson::from(schema.to_owned());
    let card = ToolCard::new(tool.name.as_str(), tool.description.as_str(), &schema)?;
    let more = Fields::read(raw).and_then(|fields| others(&fields, &OWN));
    match more.as_deref().and_then(data) {
        Some(data) => card.with_data(data),
        None => Ok(card),
    }
}

/// A block of a user message or of a result. One that our types have no words for is kept as it is; an empty one is
/// none.
pub(super) fn part(block: &WireBlock<'_>, provider: &str, raw: &str) -> Option<UserPart> {
    let kind = block.kind.as_str();
    if kind == "text" {
        return Text::new(block.text.as_str()).map(UserPart::Text);
    }
    let needs_source = matches!(kind, "image" | "document");
    let has_source = block.source.is_some_and(|source| source.get().starts_with('{'));
    if kind.is_empty() || needs_source && !has_source {
        return None;
    }
    file(block, provider, raw).map(UserPart::File).or_else(|| {
        let raw = RawJson::parse(without(raw, MARKER)).ok()?;
        Some(UserPart::Provider(ProviderPart { provider: provider.to_owned(), kind: kind.to_owned(), raw }))
    })
}

/// An image or document without settings of its own.
fn file(block: &WireBlock<'_>, provider: &str, raw: &str) -> Option<FilePart> {
    let is_image = match block.kind.as_str() {
        "image" => true,
        "document" => false,
        _ => return None,
    };
    let is_plain = others(&Fields::read(raw)?, &["type", "source", "title", MARKER]).is_none();
    let source: WireSource<'_> = object(block.source.filter(|_| is_plain)?.get()).ok()?;
    let given = source.media_type.as_str();
    let fallback = if is_image { "image/*" } else { "application/pdf" };
    let (media, bytes) = match source.kind.as_str() {
        "base64" => (given, FileSource::Base64(source.data.as_str().to_owned())),
        "url" => (fallback, FileSource::Url(source.url.as_str().to_owned())),
        "file" => {
            let id = source.file_id.as_str().to_owned();
            (fallback, FileSource::Reference { provider: provider.to_owned(), id })
        }
        "text" if given == "text/plain" => {
            (given, FileSource::Base64(encoded(source.data.as_str().as_bytes())))
        }
        _ => return None,
    };
    let name = Some(block.title.as_str().to_owned()).filter(|title| !title.is_empty());
    Some(FilePart { media_type: media.to_owned(), source: bytes, name })
}

/// A cache marker is of one request only.
pub(super) const MARKER: &str = "cache_control";
