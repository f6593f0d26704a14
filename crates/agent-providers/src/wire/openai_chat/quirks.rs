//! Where providers that call themselves compatible differ.

use agent_core::Effort;
use serde::{Deserialize, Serialize};

/// What one provider does otherwise than others. The default assumes the least: what every compatible server takes.
///
/// Both ways go by it: a request is written in the provider's words, and a recorded one or an answer is read by them.
/// What a provider does not take is left out or said otherwise, with a diagnostic (requirement M12). What one model
/// takes and another of the same provider does not is in [`agent_core::ModelProfile`].
///
/// Every field stands for itself, so that a user's configuration can correct one; in JSON, the names of choices are
/// those of the variants in snake case:
///
/// ```
/// use agent_providers::openai_chat::{Quirks, ReasoningBack};
///
/// let quirks: Quirks = serde_json::from_str(r#"{"reasoning_back":"reasoning_content"}"#)?;
/// assert_eq!(quirks, Quirks { reasoning_back: ReasoningBack::ReasoningContent, ..Quirks::default() });
/// assert_eq!(Quirks::of("someone else"), Quirks::default());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::exhaustive_structs, reason = "plain data, written as a literal with ..Default")]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about a provider, not states")]
pub struct Quirks {
    /// Under which name the output limit is sent.
    pub limit: LimitField,
    /// Who speaks the system prompt.
    pub system: SystemRole,
    /// Whether the content of system, assistant and tool messages may be a list of text parts. Without, words are
    /// joined into one string.
    pub text_lists: bool,
    /// Whether users' messages in a row are sent as one: chat templates of many open models take no two.
    pub join_user: bool,
    /// What stands for the content of a message that only calls tools.
    pub no_content: NoContent,
    /// How thinking goes back to the provider.
    pub reasoning_back: ReasoningBack,
    /// Whether a message with calls is refused without its thinking while the model thinks: an empty text then stands
    /// for what is not there any more, or was never (another model called, or the thinking was trimmed).
    pub reasoning_required: bool,
    /// How thinking is turned on, off, or limited.
    pub thinking: ThinkingField,
    /// Where the effort is asked for.
    pub effort: EffortField,
    /// The efforts the provider has a word for, lowest first; the highest one that is not above the wanted one is sent,
    /// or else the lowest. Empty means all.
    pub efforts: Vec<Effort>,
    /// Whether `stream_options` with `include_usage` is taken: without, some servers tell no usage of a stream.
    pub stream_usage: bool,
    /// What the ids of calls look like.
    pub call_ids: CallIds,
    /// How a call is demanded.
    pub tool_choice: ToolChoiceWords,
    /// Whether `parallel_tool_calls` is taken, which keeps a model to one call at a time.
    pub parallel_tool_calls: bool,
    /// Whether `strict` is taken in a tool; else it is left out of what the card tells this provider.
    pub strict_tools: bool,
    /// What marks a content part as the end of a cached prefix. With a marker, contents are always lists.
    pub cache_marker: CacheMarker,
    /// Whether `prefix` marks an assistant message at the end of a request, which the model goes on with.
    pub prefix: bool,
    /// Whether an assistant message has a field `refusal`; else the words of one stand in the content.
    pub refusal: bool,
    /// Whether images are taken in users' messages, and not only by the model ([`agent_core::ModelProfile::vision`]).
    pub images: bool,
    /// How PDF documents are sent; documents of plain text are always sent in their words.
    pub documents: DocumentPart,
    /// Whether `input_audio` parts are taken.
    pub audio: bool,
    /// Whether `video_url` parts are taken.
    pub video: bool,
    /// Whether a tool's result may hold images; else they follow in a user's message (case M11).
    pub tool_images: bool,
    /// The provider's words for what a call gets for its price.
    pub service_tier: TierWords,
    /// Under which name the seed is sent.
    pub seed: SeedField,
    /// Whether `top_k` is taken.
    pub top_k: bool,
    /// Whether `presence_penalty` and `frequency_penalty` are not taken; nearly everybody takes them.
    pub no_penalties: bool,
    /// Most stop sequences, of which the first ones are sent; `None` without a limit.
    pub max_stops: Option<usize>,
}

/// Name of the output limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LimitField {
    /// `max_tokens`, which every server knows.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`: OpenAI's reasoning models refuse the other one.
    MaxCompletionTokens,
}

/// Role of the system prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SystemRole {
    /// `system`.
    #[default]
    System,
    /// `developer`.
    Developer,
}

/// Content of a message that only calls tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NoContent {
    /// `null`, as the format has it.
    #[default]
    Null,
    /// An empty text.
    Empty,
    /// The field is left out.
    Absent,
}

/// How thinking goes back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReasoningBack {
    /// Not at all.
    #[default]
    None,
    /// As `reasoning_content` of the message.
    ReasoningContent,
    /// As `reasoning` of the message.
    Reasoning,
    /// As the list `reasoning_details`, each item as received; words without items as `reasoning`.
    ReasoningDetails,
    /// As `thinking` parts of the content.
    ThinkingParts,
}

/// How thinking is turned on, off, or limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ThinkingField {
    /// There is no way.
    #[default]
    None,
    /// `"reasoning_effort":"none"` turns it off; on is the model's own choice.
    EffortNone,
    /// `"thinking":{"type":"enabled"}` or `"disabled"`.
    Thinking,
    /// `"reasoning":{"enabled","max_tokens"}`.
    Reasoning,
    /// `"chat_template_kwargs":{"enable_thinking"}`.
    TemplateKwargs,
}

/// Where the effort is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EffortField {
    /// Nowhere.
    #[default]
    None,
    /// `reasoning_effort`.
    ReasoningEffort,
    /// `"reasoning":{"effort"}`.
    Reasoning,
    /// `"chat_template_kwargs":{"reasoning_effort"}`.
    TemplateKwargs,
}

/// Marker of a cached prefix.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CacheMarker {
    /// There is none.
    #[default]
    None,
    /// `"cache_control":{"type":"ephemeral"}`, with `"ttl":"1h"` for an hour.
    CacheControl,
    /// `"prompt_cache_breakpoint":{"mode":"explicit"}`, sent only to models whose profile says that they are marked
    /// ([`agent_core::CacheProfile::Marked`]): older ones refuse it.
    PromptCacheBreakpoint,
}

/// Grammar of call ids.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallIds {
    /// `A-Z a-z 0-9 _ -`, at most 40 characters.
    #[default]
    Short,
    /// Exactly nine of `A-Z a-z 0-9`.
    Nine,
}

/// Words of `tool_choice`. Some of several tools are named only to models whose profile says
/// [`agent_core::ModelProfile::allowed_tools`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolChoiceWords {
    /// `required`, a function's name, or `allowed_tools`.
    #[default]
    Required,
    /// `any`, a function's name, or `allowed_tools`.
    Any,
    /// `required` only; no single function.
    Unnamed,
    /// The field is ignored.
    None,
}

/// How documents are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DocumentPart {
    /// Not at all.
    #[default]
    None,
    /// As a `file` part with the data or the id of an upload.
    File,
    /// As a `file` part, which may also name an address.
    FileOrUrl,
    /// As a `document_url` part.
    DocumentUrl,
}

/// Words of `service_tier`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TierWords {
    /// The field is not taken.
    #[default]
    None,
    /// `auto`, `default`, `flex`, `priority`.
    Default,
    /// `auto`, `on_demand`, `flex`, `performance`.
    OnDemand,
}

/// Name of the seed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SeedField {
    /// `seed`.
    #[default]
    Seed,
    /// `random_seed`.
    RandomSeed,
    /// There is none.
    None,
}

impl Quirks {
    /// What is known of a provider by its name: `openai-chat`, `ollama-chat`, `llamacpp`, `vllm`, `deepseek`,
    /// `openrouter`, `groq`, `xai-chat`, `mistral` or `lmstudio`. The default for one of whom nothing is.
    pub fn of(provider: &str) -> Self {
        match provider {
            "openai-chat" => Self::openai(),
            "ollama-chat" => Self::ollama(),
            "llamacpp" => Self { tool_images: true, ..Self::template() },
            "vllm" => Self {
                reasoning_back: ReasoningBack::Reasoning,
                effort: EffortField::ReasoningEffort,
                efforts: vec![Effort::Low, Effort::Medium, Effort::High],
                audio: true,
                strict_tools: true,
                tool_choice: ToolChoiceWords::Required,
                ..Self::template()
            },
            "deepseek" => Self::deepseek(),
            "openrouter" => Self::openrouter(),
            "groq" => Self::groq(),
            "xai-chat" => Self::xai(),
            "mistral" => Self::mistral(),
            "lmstudio" => Self {
                reasoning_back: ReasoningBack::None,
                thinking: ThinkingField::None,
                effort: EffortField::ReasoningEffort,
                efforts: vec![Effort::Low, Effort::Medium, Effort::High],
                video: false,
                ..Self::template()
            },
            _ => Self::default(),
        }
    }

    /// Whether content parts may carry a cache marker.
    pub(super) fn takes_markers(&self) -> bool {
        self.cache_marker != CacheMarker::None
    }

    fn openai() -> Self {
        Self {
            limit: LimitField::MaxCompletionTokens,
            text_lists: true,
            thinking: ThinkingField::EffortNone,
            effort: EffortField::ReasoningEffort,
            efforts: up_to_xhigh(),
            stream_usage: true,
            parallel_tool_calls: true,
            strict_tools: true,
            cache_marker: CacheMarker::PromptCacheBreakpoint,
            refusal: true,
            images: true,
            documents: DocumentPart::File,
            audio: true,
            service_tier: TierWords::Default,
            max_stops: Some(4),
            ..Self::default()
        }
    }

    fn ollama() -> Self {
        Self {
            join_user: true,
            reasoning_back: ReasoningBack::Reasoning,
            thinking: ThinkingField::EffortNone,
            effort: EffortField::ReasoningEffort,
            efforts: vec![Effort::Low, Effort::Medium, Effort::High],
            stream_usage: true,
            tool_choice: ToolChoiceWords::None,
            images: true,
            ..Self::default()
        }
    }

    /// Servers that put messages into the template of an open model.
    fn template() -> Self {
        Self {
            text_lists: true,
            join_user: true,
            reasoning_back: ReasoningBack::ReasoningContent,
            thinking: ThinkingField::TemplateKwargs,
            effort: EffortField::TemplateKwargs,
            stream_usage: true,
            tool_choice: ToolChoiceWords::Unnamed,
            parallel_tool_calls: true,
            images: true,
            video: true,
            top_k: true,
            ..Self::default()
        }
    }

    fn deepseek() -> Self {
        Self {
            no_content: NoContent::Empty,
            reasoning_back: ReasoningBack::ReasoningContent,
            reasoning_required: true,
            thinking: ThinkingField::Thinking,
            effort: EffortField::ReasoningEffort,
            stream_usage: true,
            parallel_tool_calls: true,
            strict_tools: true,
            prefix: true,
            seed: SeedField::None,
            max_stops: Some(16),
            ..Self::default()
        }
    }

    fn openrouter() -> Self {
        Self {
            text_lists: true,
            reasoning_back: ReasoningBack::ReasoningDetails,
            thinking: ThinkingField::Reasoning,
            effort: EffortField::Reasoning,
            efforts: up_to_xhigh(),
            parallel_tool_calls: true,
            strict_tools: true,
            cache_marker: CacheMarker::CacheControl,
            refusal: true,
            images: true,
            documents: DocumentPart::FileOrUrl,
            audio: true,
            video: true,
            service_tier: TierWords::Default,
            top_k: true,
            ..Self::default()
        }
    }

    fn groq() -> Self {
        Self {
            limit: LimitField::MaxCompletionTokens,
            text_lists: true,
            no_content: NoContent::Absent,
            reasoning_back: ReasoningBack::Reasoning,
            thinking: ThinkingField::EffortNone,
            effort: EffortField::ReasoningEffort,
            efforts: vec![Effort::Low, Effort::Medium, Effort::High],
            stream_usage: true,
            parallel_tool_calls: true,
            strict_tools: true,
            images: true,
            service_tier: TierWords::OnDemand,
            no_penalties: true,
            max_stops: Some(4),
            ..Self::default()
        }
    }

    fn xai() -> Self {
        Self {
            limit: LimitField::MaxCompletionTokens,
            text_lists: true,
            effort: EffortField::ReasoningEffort,
            efforts: vec![Effort::Low, Effort::High],
            stream_usage: true,
            parallel_tool_calls: true,
            images: true,
            max_stops: Some(4),
            ..Self::default()
        }
    }

    fn mistral() -> Self {
        Self {
            text_lists: true,
            no_content: NoContent::Empty,
            reasoning_back: ReasoningBack::ThinkingParts,
            thinking: ThinkingField::EffortNone,
            effort: EffortField::ReasoningEffort,
            efforts: vec![Effort::High],
            call_ids: CallIds::Nine,
            tool_choice: ToolChoiceWords::Any,
            parallel_tool_calls: true,
            strict_tools: true,
            prefix: true,
            images: true,
            documents: DocumentPart::DocumentUrl,
            seed: SeedField::RandomSeed,
            ..Self::default()
        }
    }
}

fn up_to_xhigh() -> Vec<Effort> {
    vec![Effort::Minimal, Effort::Low, Effort::Medium, Effort::High, Effort::XHigh]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_survives_serde_and_every_field_can_be_overridden() {
        let names = ["openai-chat", "ollama-chat", "llamacpp", "vllm", "deepseek", "openrouter", "groq"];
        for name in names.into_iter().chain(["xai-chat", "mistral", "lmstudio", "unheard-of"]) {
            let quirks = Quirks::of(name);
            let text = serde_json::to_string(&quirks).unwrap();
            assert_eq!(serde_json::from_str::<Quirks>(&text).unwrap(), quirks, "{name}");
            assert_eq!(quirks == Quirks::default(), name == "unheard-of", "{name}");
        }
        let fields = serde_json::to_value(Quirks::default()).unwrap();
        for (field, value) in fields.as_object().unwrap() {
            let one = serde_json::json!({ field: value });
            assert_eq!(serde_json::from_value::<Quirks>(one).unwrap(), Quirks::default(), "{field}");
        }
    }
}
