//! Causes of a lost prefix and what to do about each.

use serde::{Deserialize, Serialize};

use super::Volatile;
use crate::{Aspect, Refusal};

/// Where and why a request stopped sharing its prefix, or why what it shares was not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Divergence {
    /// The first block that differs, with the member that does: `tools[3].input_schema`, `system[1]`,
    /// `messages[12].content[0]`, or a setting's name.
    pub path: String,
    /// Why.
    pub cause: Cause,
    /// What the changed words look like, when they look as if they change by themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looks_like: Option<Volatile>,
    /// What stood there in the request compared with; an excerpt.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub before: String,
    /// What stands there now; an excerpt.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub after: String,
    /// What to do, in words.
    pub advice: String,
}

/// Why a prefix was lost or not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cause {
    /// A tool is there that was not.
    ToolAdded,
    /// A tool is gone.
    ToolRemoved,
    /// A tool's definition differs.
    ToolChanged,
    /// The same tools in another order.
    ToolsReordered,
    /// The system text differs.
    SystemChanged,
    /// Another model.
    ModelChanged,
    /// A setting that is a part of the prefix differs.
    SettingChanged,
    /// A message that was sent differs.
    MessageEdited,
    /// Something was put between messages that were sent.
    MessageInserted,
    /// A message that was sent is gone.
    MessageRemoved,
    /// A tool's result was shortened.
    ResultShortened,
    /// Thinking that was sent is gone.
    ThinkingStripped,
    /// Equal as JSON, written in other bytes: another order of keys, other numbers or escapes.
    Reserialised,
    /// The last marker stood on a block that did not stay.
    MarkOnPassingBlock,
    /// The end of the conversation carried no marker, so that it was not kept.
    TailUnmarked,
    /// No marker at all.
    NoMarker,
    /// More markers than the provider takes.
    TooManyMarks,
    /// Markers in a place or an order the provider refuses.
    MarkRefused,
    /// The entry ran out.
    Expired,
    /// The prompt is too short to be kept.
    BelowMinimum,
    /// The entry lies further back than the provider looks.
    BeyondLookback,
    /// The answer that writes the entry had not begun.
    NotYetReadable,
    /// The provider read less than its rules say.
    ServiceMiss,
    /// Something behind the last marker did not stay, and nothing that was cached was lost: no fault.
    PassingTail,
    /// Another conversation on the same tools or system text: no fault.
    NewConversation,
    /// Nothing in common with any earlier request: no fault.
    Unrelated,
}

impl Cause {
    /// Its name in JSON and in reports, for example `tools_reordered`.
    pub fn name(self) -> &'static str {
        match self {
            Self::ToolAdded => "tool_added",
            Self::ToolRemoved => "tool_removed",
            Self::ToolChanged => "tool_changed",
            Self::ToolsReordered => "tools_reordered",
            Self::SystemChanged => "system_changed",
            Self::ModelChanged => "model_changed",
            Self::SettingChanged => "setting_changed",
            Self::MessageEdited => "message_edited",
            Self::MessageInserted => "message_inserted",
            Self::MessageRemoved => "message_removed",
            Self::ResultShortened => "result_shortened",
            Self::ThinkingStripped => "thinking_stripped",
            Self::Reserialised => "reserialised",
            Self::MarkOnPassingBlock => "mark_on_passing_block",
            Self::TailUnmarked => "tail_unmarked",
            Self::NoMarker => "no_marker",
            Self::TooManyMarks => "too_many_marks",
            Self::MarkRefused => "mark_refused",
            Self::Expired => "expired",
            Self::BelowMinimum => "below_minimum",
            Self::BeyondLookback => "beyond_lookback",
            Self::NotYetReadable => "not_yet_readable",
            Self::ServiceMiss => "service_miss",
            Self::PassingTail => "passing_tail",
            Self::NewConversation => "new_conversation",
            Self::Unrelated => "unrelated",
        }
    }

    /// Whether something is to be repaired.
    pub fn is_fault(self) -> bool {
        !matches!(self, Self::PassingTail | Self::NewConversation | Self::Unrelated)
    }

    pub(super) fn of_refusal(refusal: &Refusal) -> (Self, &str) {
        match refusal {
            Refusal::TooManyMarks { path, .. } => (Self::TooManyMarks, path),
            Refusal::NotMarkable { path, .. } | Refusal::Order { path } | Refusal::AutomaticTtl { path } => {
                (Self::MarkRefused, path)
            }
        }
    }

    /// What to do, in one sentence.
    pub(super) fn advice(self) -> &'static str {
        match self {
            Self::ToolAdded => {
                "Send all tools from the first request on; add later ones with defer_loading or a message, which stay outside the prefix."
            }
            Self::ToolRemoved => {
                "Keep the tool in the list; narrow what may be called with tool_choice, allowed tools or a check when it is called."
            }
            Self::ToolChanged => {
                "Freeze each tool's description and schema for the session and serialise it once."
            }
            Self::ToolsReordered => {
                "Sort the tools by name once; do not take their order from a map, a directory or who connects first."
            }
            Self::SystemChanged => {
                "Keep the system text as it was for the session; send what changes in a message at the end."
            }
            Self::ModelChanged => {
                "Caches belong to one model: switch where the prompt is short, or hand the work to a sub-agent."
            }
            Self::SettingChanged => {
                "Keep this setting for the whole conversation, or change it only where little is cached."
            }
            Self::MessageEdited => {
                "Never render a sent message again: keep its bytes, and append what is new."
            }
            Self::MessageInserted => {
                "Append new words behind everything that was sent; do not put them between sent messages."
            }
            Self::MessageRemoved => {
                "Leave sent messages where they are; put words for one step behind the last marker, or let them stay for good."
            }
            Self::ResultShortened => {
                "Shorten results once, before they are first sent, or many at once at a compaction boundary."
            }
            Self::ThinkingStripped => {
                "Send thinking back as it came, or strip all of it at a compaction boundary."
            }
            Self::Reserialised => {
                "Keep the JSON a model wrote as the bytes it came in; parsing and writing it again moves keys and numbers."
            }
            Self::MarkOnPassingBlock => {
                "Put the marker on the last block that stays; what is sent once belongs behind it."
            }
            Self::TailUnmarked => {
                "Mark the last block of every request, of whatever kind it is, so that the next one reads all of it."
            }
            Self::NoMarker => "Set cache_control on the last block, or at the top of the request.",
            Self::TooManyMarks => "Plan all markers in one place and drop the ones too many before sending.",
            Self::MarkRefused => {
                "Never mark thinking, empty text or deferred tools; put 1h markers ahead of 5m ones; give automatic caching the ttl of the last marker."
            }
            Self::Expired => {
                "The pause was longer than the time to live: use 1h on the stable prefix, or expect one rewrite after a pause."
            }
            Self::BelowMinimum => {
                "The model keeps no prefix this short and says no error; expect full price, or choose a model with a lower minimum."
            }
            Self::BeyondLookback => {
                "One step added more blocks than a lookback sees: mark the block where the last request ended as well."
            }
            Self::NotYetReadable => {
                "Parallel requests each write: start one, and the others once its answer has begun."
            }
            Self::ServiceMiss => {
                "The prefix did not change: the entry was evicted, ran out, or the request reached another machine; a cache key helps with the last."
            }
            Self::PassingTail => {
                "Nothing to repair for the cache; where a model binds thinking to its prefix, let the block stay or send it as a turn-scoped system message."
            }
            Self::NewConversation => "Nothing to repair: another conversation shares this start.",
            Self::Unrelated => "Nothing to repair: this request shares nothing with the earlier ones.",
        }
    }
}

impl Divergence {
    pub(super) fn new(path: impl Into<String>, cause: Cause) -> Self {
        let (before, after) = (String::new(), String::new());
        Self { path: path.into(), cause, looks_like: None, before, after, advice: cause.advice().into() }
    }

    /// What stood there, what stands there now, and what to do: lines to put below a headline.
    pub fn change(&self) -> String {
        let line = |name: &str, words: &str| {
            if words.is_empty() { String::new() } else { format!("\n  {name} {words}") }
        };
        format!("{}{}\n  {}", line("before:", &self.before), line("after: ", &self.after), self.advice)
    }

    /// What differs in the conversation and lost nothing lay behind all that was cached.
    pub(super) fn passing_if_in_messages(self) -> Self {
        let in_messages = matches!(
            self.cause,
            Cause::MessageEdited | Cause::MessageInserted | Cause::MessageRemoved | Cause::ResultShortened
        );
        if !in_messages {
            return self;
        }
        Self { cause: Cause::PassingTail, advice: Cause::PassingTail.advice().into(), ..self }
    }

    pub(super) fn with_change(self, before: &str, after: &str) -> Self {
        let change = super::volatile::Change::between(before, after);
        let super::volatile::Change { before, after, looks_like } = change;
        let hint = looks_like.map(|kind| format!(" It looks like {}.", kind.described()));
        let advice = format!("{}{}", self.advice, hint.unwrap_or_default());
        Self { before, after, looks_like, advice, ..self }
    }
}

impl Aspect {
    /// The setting's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Speed => "speed",
            Self::Citations => "citations",
            Self::WebTools => "web_tools",
            Self::ToolChoice => "tool_choice",
            Self::ParallelTools => "parallel_tools",
            Self::Images => "images",
            Self::Thinking => "thinking",
            Self::Effort => "effort",
            Self::OutputFormat => "output_format",
            Self::Verbosity => "verbosity",
            Self::TaskBudget => "task_budget",
            Self::Betas => "betas",
            Self::ContextManagement => "context_management",
            Self::CacheKey => "cache_key",
            Self::ServiceTier => "service_tier",
        }
    }
}
