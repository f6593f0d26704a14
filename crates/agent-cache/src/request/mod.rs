//! A request body as the provider's cache sees it: named blocks, their bytes, their markers, and the settings that matter.

mod anthropic;
mod json;
mod openai;

use std::collections::BTreeMap;
use std::sync::Arc;

use agent_core::Ttl;
use serde::{Deserialize, Serialize};

use json::raw;
pub(crate) use json::{Object, array, object};

/// A request body, read.
///
/// ```
/// use agent_cache::{BlockKind, Format, Request};
///
/// let body = br#"{"model":"claude-opus-5","max_tokens":9,"system":"Be brief.",
///     "messages":[{"role":"user","content":[{"type":"text","text":"Hi","cache_control":{"type":"ephemeral"}}]}]}"#;
/// let request = Request::read(body, None)?;
/// assert_eq!(request.format, Format::Anthropic);
/// let last = &request.blocks[1];
/// assert_eq!((last.path.as_str(), last.kind), ("messages[0].content[0]", BlockKind::Text));
/// assert!(last.mark.is_some() && !last.bytes.contains("cache_control"));
/// # Ok::<(), agent_cache::RequestError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// Whose format the body is in.
    pub format: Format,
    /// The model asked, as the body names it.
    pub model: String,
    /// The blocks in the order in which the provider reads them: tools, system, messages.
    pub blocks: Vec<Block>,
    /// The settings that caches look at, as raw JSON; a setting that is not given is not there.
    pub aspects: BTreeMap<Aspect, String>,
    /// The time to live of automatic caching, where the request asks for it.
    pub automatic: Option<Ttl>,
    /// Whether only explicit breakpoints count (`prompt_cache_options.mode`).
    pub explicit_only: bool,
    /// The time to live for the whole request (`prompt_cache_options.ttl`, `prompt_cache_retention`).
    pub ttl: Ttl,
}

/// A block of a request: what a marker can stand on and a lookback counts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Block {
    /// Where it stands in the body: `tools[3]`, `system[1]`, `messages[12].content[0]`, `input[4]`.
    pub path: String,
    /// The part of the prompt it belongs to.
    pub level: Level,
    /// Who speaks.
    pub role: Role,
    /// The message or item it is in, from 0; none for tools and top-level instructions.
    pub message: Option<usize>,
    /// What it is.
    pub kind: BlockKind,
    /// The tool's name, for a tool.
    pub name: Option<String>,
    /// Its JSON as sent, without cache markers. A text without further fields reads the same as a plain string.
    pub bytes: Arc<str>,
    /// The marker on it.
    pub mark: Option<Ttl>,
}

/// Formats of request bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Format {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions.
    OpenaiChat,
    /// OpenAI Responses.
    OpenaiResponses,
}

/// The parts of a prompt in the order in which they are cached: losing one loses all after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "the hierarchy of the services")]
pub enum Level {
    /// The list of tools.
    Tools,
    /// Instructions ahead of the conversation.
    System,
    /// The conversation.
    Messages,
}

/// Who speaks in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Role {
    /// Whoever wrote the program: tools, system and developer text.
    Developer,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool, where it has a role of its own.
    Tool,
}

/// What a block is, as far as caches treat it differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BlockKind {
    /// A tool's definition.
    Tool,
    /// A tool that is found later (`defer_loading`): outside the prefix.
    DeferredTool,
    /// Web search or fetch in the list of tools: switching it changes the system level, not the tools.
    WebTool,
    /// A gateway's billing line ahead of the system text, which the service takes out.
    BillingHeader,
    /// Text.
    Text,
    /// A text without a character, which may carry no marker.
    EmptyText,
    /// A picture.
    Image,
    /// A document or search result.
    Document,
    /// A call of a tool.
    ToolUse,
    /// The result of a call.
    ToolResult,
    /// Thinking, open or sealed.
    Thinking,
    /// A call or result of a tool that the provider runs.
    ServerTool,
    /// Anything else.
    Other,
}

/// A setting that may be a part of the prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Aspect {
    /// The model.
    Model,
    /// Fast or standard.
    Speed,
    /// Whether documents are cited.
    Citations,
    /// Web search and fetch.
    WebTools,
    /// Which tools may or must be called.
    ToolChoice,
    /// Whether several tools may be called at once.
    ParallelTools,
    /// Whether any image is in the request.
    Images,
    /// How it thinks.
    Thinking,
    /// How hard it tries.
    Effort,
    /// The shape the answer must have.
    OutputFormat,
    /// How long answers are.
    Verbosity,
    /// What a task may spend.
    TaskBudget,
    /// Beta features in the body.
    Betas,
    /// Edits of the context by the service.
    ContextManagement,
    /// The key that separates or routes caches.
    CacheKey,
    /// How the request is served.
    ServiceTier,
}

/// A body that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Not JSON.
    #[error("the request body is not JSON: {cause}; give one body a line, as it was sent")]
    Json {
        /// What the reader said.
        #[source]
        cause: serde_json::Error,
    },
    /// Something has a shape that no provider takes.
    #[error("{path} of the request body is not {expected}; check that it is a body of the format {format:?}")]
    Shape {
        /// Where.
        path: String,
        /// What stands there in every body of the format.
        expected: &'static str,
        /// The format it was read in.
        format: Format,
    },
    /// A time to live that does not exist.
    #[error("{path}: the time to live {ttl:?} does not exist; write \"5m\" or \"1h\"")]
    Ttl {
        /// The marked block.
        path: String,
        /// What was given.
        ttl: String,
    },
    /// None of the formats.
    #[error(
        "the request body has neither `messages` nor `input`; give a body of Anthropic Messages, OpenAI Chat or OpenAI Responses"
    )]
    Unknown,
}

impl Request {
    /// Reads a body. Without a format, the one that fits the body is found.
    ///
    /// Unknown fields, kinds and roles are taken as they come.
    pub fn read(body: &[u8], format: Option<Format>) -> Result<Self, RequestError> {
        let json = |cause| RequestError::Json { cause };
        let all: &serde_json::value::RawValue = serde_json::from_slice(body).map_err(json)?;
        let shape = RequestError::Shape {
            path: "the whole".into(),
            expected: "an object",
            format: format.unwrap_or(Format::Anthropic),
        };
        let top = Object::read(all).ok_or(shape)?;
        let format = format.or_else(|| detect(&top)).ok_or(RequestError::Unknown)?;
        let mut request = Self {
            format,
            model: top.text("model").unwrap_or_default(),
            blocks: Vec::new(),
            aspects: BTreeMap::new(),
            automatic: None,
            explicit_only: false,
            ttl: Ttl::FiveMinutes,
        };
        request.note_raw(Aspect::Model, top.get("model"));
        match format {
            Format::Anthropic => anthropic::read(&mut request, &top)?,
            Format::OpenaiChat => openai::read_chat(&mut request, &top)?,
            Format::OpenaiResponses => openai::read_responses(&mut request, &top)?,
        }
        if request.blocks.iter().any(Block::shows_an_image) {
            request.aspects.insert(Aspect::Images, "true".into());
        }
        Ok(request)
    }

    /// The blocks of one level.
    pub fn level(&self, level: Level) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(move |block| block.level == level)
    }

    /// Whether the model must call a tool.
    pub fn forces_a_tool(&self) -> bool {
        let choice = self.aspects.get(&Aspect::ToolChoice).map(String::as_str).unwrap_or_default();
        choice.contains("\"any\"") || choice.contains("\"tool\"") || choice.contains("\"required\"")
    }

    fn note_raw(&mut self, aspect: Aspect, value: Option<&serde_json::value::RawValue>) {
        if let Some(value) = value.filter(|value| value.get() != "null") {
            self.aspects.insert(aspect, value.get().to_owned());
        }
    }

    fn shape(&self, path: impl Into<String>, expected: &'static str) -> RequestError {
        RequestError::Shape { path: path.into(), expected, format: self.format }
    }
}

impl Format {
    /// Who invented the format: whose rules count, by name in a [`crate::RuleBook`], until told otherwise.
    pub fn provider(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenaiChat | Self::OpenaiResponses => "openai",
        }
    }

    /// The name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
        }
    }
}

impl Block {
    /// Whether it defines a tool.
    pub fn is_tool(&self) -> bool {
        self.level == Level::Tools
    }

    /// Whether a marker may stand on it: never on thinking, empty text or a tool that is found later.
    pub fn can_carry_mark(&self) -> bool {
        !matches!(
            self.kind,
            BlockKind::Thinking | BlockKind::EmptyText | BlockKind::DeferredTool | BlockKind::BillingHeader
        )
    }

    /// The words of a text block or of a tool's description; empty for others.
    pub fn text(&self) -> String {
        let Ok(value) = raw(&self.bytes) else { return String::new() };
        if let Some(text) = json::text(value) {
            return text;
        }
        let object = Object::read(value);
        let words = object.as_ref().and_then(|it| it.text("text").or_else(|| it.text("description")));
        words.unwrap_or_default()
    }

    fn shows_an_image(&self) -> bool {
        let pictures = ["\"image\"", "\"input_image\"", "\"image_url\""];
        // A result may hold pictures among its parts; words about them are escaped and do not match.
        matches!(self.kind, BlockKind::Image)
            || (matches!(self.kind, BlockKind::ToolResult)
                && pictures.iter().any(|it| {
                    self.bytes.contains(&format!("\"type\":{it}"))
                        || self.bytes.contains(&format!("\"type\": {it}"))
                }))
    }
}

fn detect(top: &Object<'_>) -> Option<Format> {
    if top.get("messages").is_none() {
        return (top.get("input").is_some()).then_some(Format::OpenaiResponses);
    }
    let text = |key| top.get(key).map(|raw| raw.get()).unwrap_or_default();
    let (tools, messages) = (text("tools"), text("messages"));
    let anthropic = top.get("system").is_some()
        || top.get("cache_control").is_some()
        || tools.contains("\"input_schema\"")
        || ["\"tool_use\"", "\"tool_result\"", "\"thinking\""].iter().any(|it| messages.contains(it))
        || top.text("model").is_some_and(|model| model.contains("claude"));
    let chat = tools.contains("\"function\"")
        || messages.contains("\"tool_calls\"")
        || top.get("max_completion_tokens").is_some();
    Some(if anthropic && !chat { Format::Anthropic } else { Format::OpenaiChat })
}

#[cfg(test)]
mod tests;
