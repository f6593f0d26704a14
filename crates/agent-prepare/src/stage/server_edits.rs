//! What a provider itself takes out of a long conversation, where it has means to.

use agent_core::{ProviderData, RawJson, RequestSettings, Text};
use serde::Serialize;

use super::{Stage, StageCx, Verdict};
use crate::Overrides;

/// Lets Anthropic edit the context on its side: old tool uses, old thinking, or all of it as a compaction block. Other
/// providers' requests are left alone.
///
/// The history stays whole here, and thinking that is bound to its prefix stays valid. What is cleared is read anew from
/// there on, so let each clearing pay for itself ([`ClearToolUses::clear_at_least`]). The header for the feature goes with
/// the request. With [`Self::compact`], let the cascade begin only when the provider has not ([`crate::Cascade::manual`]).
///
/// ```
/// use agent_core::ModelProfile;
/// use agent_prepare::{ClearToolUses, Pipeline, Scene, ServerCompaction, ServerEdits};
///
/// let edits = ServerEdits::default()
///     .clear_tool_uses(ClearToolUses { exclude_tools: vec!["todo".into()], ..ClearToolUses::default() })
///     .compact(ServerCompaction::default());
/// let pipeline = Pipeline::standard().then(edits);
///
/// let model = ModelProfile { context_window: 200_000, ..ModelProfile::conservative("anthropic", "large") };
/// let settings = Scene::new(model).prepare(&pipeline)?.ready().unwrap().settings;
/// assert_eq!(
///     settings.extra[0].json.get(),
///     concat!(
///         r#"{"context_management":{"edits":[{"type":"clear_tool_uses_20250919","#,
///         r#""trigger":{"type":"input_tokens","value":105787},"keep":{"type":"tool_uses","value":3},"#,
///         r#""clear_at_least":{"type":"input_tokens","value":21157},"exclude_tools":["todo"]},"#,
///         r#"{"type":"compact_20260112","trigger":{"type":"input_tokens","value":149866}}]}}"#
///     )
/// );
///
/// let other = Scene::new(ModelProfile::conservative("harbour", "pilot"));
/// assert!(other.prepare(&pipeline)?.ready().unwrap().settings.extra.is_empty());
/// # Ok::<(), agent_prepare::PrepareError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ServerEdits {
    thinking: Option<u32>,
    clear: Option<ClearToolUses>,
    compact: Option<ServerCompaction>,
}

/// How old tool results are cleared.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..Default")]
pub struct ClearToolUses {
    /// When, in percent of the tokens at which compaction begins here; 60 by default.
    pub at_percent: u8,
    /// How many of the newest uses are kept; 3 by default.
    pub keep: u32,
    /// The least that is cleared at once, in tokens; a fifth of the trigger by default.
    pub clear_at_least: Option<u64>,
    /// Tools whose results stay.
    pub exclude_tools: Vec<String>,
    /// Whether the inputs of the calls are cleared as well.
    pub clear_inputs: bool,
}

/// How the provider summarises.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..Default")]
pub struct ServerCompaction {
    /// When, in percent of the tokens at which compaction begins here; 85 by default. The provider begins at 50,000
    /// tokens at the earliest.
    pub at_percent: u8,
    /// What the summary is to hold, in place of the provider's own words.
    pub instructions: Option<Text>,
}

impl Default for ClearToolUses {
    fn default() -> Self {
        Self { at_percent: 60, keep: 3, clear_at_least: None, exclude_tools: Vec::new(), clear_inputs: false }
    }
}

impl Default for ServerCompaction {
    fn default() -> Self {
        Self { at_percent: 85, instructions: None }
    }
}

impl ServerEdits {
    /// Clears old tool results.
    #[must_use]
    pub fn clear_tool_uses(self, clear: ClearToolUses) -> Self {
        Self { clear: Some(clear), ..self }
    }

    /// Keeps the thinking of this many answers only, at least one.
    #[must_use]
    pub fn clear_thinking(self, keep: u32) -> Self {
        Self { thinking: Some(keep.max(1)), ..self }
    }

    /// Summarises.
    #[must_use]
    pub fn compact(self, compact: ServerCompaction) -> Self {
        Self { compact: Some(compact), ..self }
    }

    /// The edits in the order that the provider wants them in.
    fn edits(&self, autocompact: u64) -> Vec<Edit<'_>> {
        let at = |percent: u8| autocompact * u64::from(percent) / 100;
        let thinking = self.thinking.map(|keep| Edit {
            keep: Some(Amount { kind: "thinking_turns", value: keep.into() }),
            ..Edit::of("clear_thinking_20251015")
        });
        let clear = self.clear.as_ref().map(|clear| Edit {
            trigger: Some(tokens(at(clear.at_percent))),
            keep: Some(Amount { kind: "tool_uses", value: clear.keep.into() }),
            clear_at_least: Some(tokens(clear.clear_at_least.unwrap_or(at(clear.at_percent) / 5))),
            exclude_tools: &clear.exclude_tools,
            clear_tool_inputs: clear.clear_inputs,
            ..Edit::of("clear_tool_uses_20250919")
        });
        let compact = self.compact.as_ref().map(|compact| Edit {
            trigger: Some(tokens(at(compact.at_percent).max(LEAST_COMPACTION))),
            instructions: compact.instructions.as_ref(),
            ..Edit::of("compact_20260112")
        });
        thinking.into_iter().chain(clear).chain(compact).collect()
    }
}

impl Stage for ServerEdits {
    fn name(&self) -> &'static str {
        "server_edits"
    }

    fn run(&self, cx: &StageCx<'_>) -> Verdict {
        let edits = self.edits(cx.of.tokens.thresholds.autocompact);
        if cx.model.provider != PROVIDER || edits.is_empty() {
            return Verdict::unchanged();
        }
        let fields = Fields { context_management: Management { edits } };
        let json = RawJson::of(&fields).unwrap_or_else(|_| unreachable!("numbers and texts are JSON"));
        let extra = vec![ProviderData { provider: PROVIDER.to_owned(), json }];
        let settings = RequestSettings { extra, ..RequestSettings::default() };
        Overrides { settings, ..Overrides::default() }.into()
    }
}

const PROVIDER: &str = "anthropic";
/// The provider refuses to begin earlier.
const LEAST_COMPACTION: u64 = 50_000;

#[derive(Serialize)]
struct Fields<'a> {
    context_management: Management<'a>,
}

#[derive(Serialize)]
struct Management<'a> {
    edits: Vec<Edit<'a>>,
}

#[derive(Serialize)]
struct Edit<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    trigger: Option<Amount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep: Option<Amount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clear_at_least: Option<Amount>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    exclude_tools: &'a [String],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    clear_tool_inputs: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a Text>,
}

#[derive(Serialize)]
struct Amount {
    #[serde(rename = "type")]
    kind: &'static str,
    value: u64,
}

impl Edit<'_> {
    fn of(kind: &'static str) -> Self {
        Self {
            kind,
            trigger: None,
            keep: None,
            clear_at_least: None,
            exclude_tools: &[],
            clear_tool_inputs: false,
            instructions: None,
        }
    }
}

fn tokens(value: u64) -> Amount {
    Amount { kind: "input_tokens", value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_come_in_the_providers_order() {
        fn check(edits: ServerEdits, autocompact: u64, json: &str) {
            assert_eq!(RawJson::of(&edits.edits(autocompact)).unwrap().get(), json);
        }
        check(ServerEdits::default(), 100_000, "[]");
        let clear = ClearToolUses { clear_at_least: Some(7), clear_inputs: true, ..ClearToolUses::default() };
        check(
            ServerEdits::default().clear_tool_uses(clear).clear_thinking(0),
            100_000,
            concat!(
                r#"[{"type":"clear_thinking_20251015","keep":{"type":"thinking_turns","value":1}},"#,
                r#"{"type":"clear_tool_uses_20250919","trigger":{"type":"input_tokens","value":60000},"#,
                r#""keep":{"type":"tool_uses","value":3},"clear_at_least":{"type":"input_tokens","value":7},"#,
                r#""clear_tool_inputs":true}]"#
            ),
        );
        // Never earlier than the provider takes it.
        let instructions = Text::new("Keep the depths.");
        check(
            ServerEdits::default().compact(ServerCompaction { instructions, ..ServerCompaction::default() }),
            30_000,
            concat!(
                r#"[{"type":"compact_20260112","trigger":{"type":"input_tokens","value":50000},"#,
                r#""instructions":"Keep the depths."}]"#
            ),
        );
    }
}
