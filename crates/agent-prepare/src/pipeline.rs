//! The pipeline: stages one after the other, each seeing what those before it changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use agent_core::{
    Cancel, EntryId, HistoryView, LanguageModel, ModelProfile, Note, RequestSettings, Slots, StepNo,
    SystemBlock, Text, ToolCard, ToolChoice,
};

use crate::{
    Answer, Ask, Cascade, Context, ContextState, Overrides, PrepareError, Stage, StageCx, Synthesised,
    Verdict,
};

/// Compaction and the stages of an agent (requirement P2). Cloning shares them.
#[derive(Debug, Clone)]
pub struct Pipeline {
    cascade: Cascade,
    stages: Vec<Arc<dyn Stage>>,
}

/// What all stages of one step look at.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "written as a literal by drivers")]
pub struct StepCx<'a> {
    /// The step's number in its turn, from 0.
    pub step: StepNo,
    /// Position of the turn's first entry.
    pub turn_from: EntryId,
    /// The model of the call.
    pub model: &'a ModelProfile,
    /// The conversation.
    pub history: HistoryView<'a>,
    /// The tools of the session, in their one order.
    pub tools: &'a [ToolCard],
    /// The todo list and other state that tools share.
    pub slots: &'a Slots,
    /// What the program shares with its stages.
    pub context: &'a Context,
    /// How full the context is.
    pub tokens: ContextState,
    /// Whether the run was stopped.
    pub cancel: &'a Cancel,
}

/// The stages of one step at work.
#[derive(Debug, Clone, Default)]
pub struct Preparing {
    /// The next stage.
    at: usize,
    /// How often that stage asked.
    asks: u32,
    so_far: Overrides,
    answer: Option<Answer>,
}

/// What the driver does next.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_enums, reason = "a driver must handle every need")]
#[expect(clippy::large_enum_variant, reason = "made a few times a step, and moved once")]
pub enum Need {
    /// Ask, and give the answer to [`Preparing::answer`].
    Ask {
        /// The stage.
        stage: &'static str,
        /// The question.
        ask: Ask,
    },
    /// End the turn with these words.
    Finish(Synthesised),
    /// The step is prepared.
    Ready(Prepared),
}

/// What one step's request is made of, beside the conversation.
#[derive(Debug, Clone, Default)]
#[expect(clippy::exhaustive_structs, reason = "a record read by drivers")]
pub struct Prepared {
    /// Another model than the call's.
    pub model: Option<Arc<dyn LanguageModel>>,
    /// Another system prompt than the session's.
    pub system: Option<Vec<SystemBlock>>,
    /// Whether and which tool must be called; it carries the narrowing where the model can be told so.
    pub tool_choice: ToolChoice,
    /// The tools that may be called; all without it. A call of another one is answered with an error.
    pub active: Option<BTreeSet<String>>,
    /// Whether inactive tools are left out of the request.
    pub narrow_on_wire: bool,
    /// Settings to lay over those of the call; see [`Overrides::settings`].
    pub settings: RequestSettings,
    /// The shared context as the stages left it.
    pub context: Context,
    /// Words for this step only.
    pub ephemeral: Vec<Text>,
    /// Notes to append to the history before the request.
    pub append: Vec<Note>,
}

impl Default for Pipeline {
    fn default() -> Self {
        Self::standard()
    }
}

impl Pipeline {
    /// The standard cascade and no stage.
    pub fn standard() -> Self {
        Self::new(Cascade::standard())
    }

    /// This cascade and no stage.
    pub fn new(cascade: Cascade) -> Self {
        Self { cascade, stages: Vec::new() }
    }

    /// Appends a stage.
    #[must_use]
    pub fn then(mut self, stage: impl Stage + 'static) -> Self {
        self.stages.push(Arc::new(stage));
        self
    }

    /// The same with each stage put into another one, for a driver that rehearses.
    #[must_use]
    pub fn map_stages(mut self, put: impl FnMut(Arc<dyn Stage>) -> Arc<dyn Stage>) -> Self {
        self.stages = self.stages.into_iter().map(put).collect();
        self
    }

    /// Compaction.
    pub fn cascade(&self) -> &Cascade {
        &self.cascade
    }

    /// The stages' names, in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.stages.iter().map(|stage| stage.name())
    }

    /// The stages of one step.
    pub fn begin(&self) -> Preparing {
        Preparing::default()
    }
}

/// How often one stage may ask in one step.
const MOST_ASKS: u32 = 4;

impl Preparing {
    /// Gives the answer to the last [`Need::Ask`].
    pub fn answer(&mut self, answer: Answer) {
        self.answer = Some(answer);
    }

    /// Goes on until a model must be asked, the turn is to end, or the step is prepared.
    pub fn advance(&mut self, pipeline: &Pipeline, cx: &StepCx<'_>) -> Result<Need, PrepareError> {
        while let Some(stage) = pipeline.stages.get(self.at) {
            let answer = self.answer.take();
            let verdict = stage.run(&self.stage_cx(cx, answer.as_ref()));
            match verdict {
                Verdict::Finish(synthesised) => return Ok(Need::Finish(synthesised)),
                Verdict::Ask(ask) => {
                    self.asks += 1;
                    if self.asks > MOST_ASKS {
                        return Err(PrepareError::AsksForEver { stage: stage.name(), asks: self.asks });
                    }
                    return Ok(Need::Ask { stage: stage.name(), ask });
                }
                Verdict::Pass(changes) => {
                    self.so_far.lay(changes);
                    check(stage.name(), &self.so_far, cx.tools)?;
                    (self.at, self.asks) = (self.at + 1, 0);
                }
            }
        }
        Ok(Need::Ready(prepared(&self.so_far, cx)))
    }

    fn stage_cx<'a>(&'a self, cx: &StepCx<'a>, answer: Option<&'a Answer>) -> StageCx<'a> {
        StageCx {
            step: cx.step,
            turn_from: cx.turn_from,
            model: self.so_far.model.as_ref().map_or(cx.model, |model| model.profile()),
            history: cx.history,
            tools: cx.tools,
            slots: cx.slots,
            context: cx.context,
            tokens: cx.tokens,
            cancel: cx.cancel,
            so_far: &self.so_far,
            answer,
        }
    }
}

/// Holds the changes so far against the session's tools.
fn check(stage: &'static str, changes: &Overrides, tools: &[ToolCard]) -> Result<(), PrepareError> {
    let has = |name: &str| tools.iter().any(|card| card.name() == name);
    let unknown = |tool: &str| {
        let known = tools.iter().map(ToolCard::name).collect::<Vec<_>>().join(", ");
        PrepareError::UnknownTool { stage, tool: tool.to_owned(), known }
    };
    let active = changes.active_tools.as_deref();
    if active.is_some_and(<[String]>::is_empty) {
        return Err(PrepareError::NoTools { stage });
    }
    let named = match &changes.tool_choice {
        Some(ToolChoice::Tool(tool)) => std::slice::from_ref(tool),
        Some(ToolChoice::Allowed { tools, .. }) => tools.as_slice(),
        Some(ToolChoice::Auto | ToolChoice::Required | ToolChoice::None | _) | None => &[],
    };
    if let Some(tool) = active.unwrap_or_default().iter().chain(named).find(|tool| !has(tool)) {
        return Err(unknown(tool));
    }
    let inactive = |tool: &&String| active.is_some_and(|active| !active.contains(tool));
    match named.iter().find(inactive) {
        Some(tool) => Err(PrepareError::ForcedInactive { stage, tool: tool.clone() }),
        None => Ok(()),
    }
}

fn prepared(changes: &Overrides, cx: &StepCx<'_>) -> Prepared {
    let changes = changes.clone();
    let model = changes.model.as_ref().map_or(cx.model, |model| model.profile());
    let narrow_on_wire = changes.narrow_on_wire.unwrap_or(false);
    let mut tool_choice = changes.tool_choice.unwrap_or_default();
    let active: Option<BTreeSet<String>> = changes.active_tools.map(|names| names.into_iter().collect());
    if let Some(names) = active.as_ref().filter(|_| model.allowed_tools && !narrow_on_wire) {
        let required = match tool_choice {
            ToolChoice::Auto => Some(false),
            ToolChoice::Required => Some(true),
            ToolChoice::None | ToolChoice::Tool(_) | ToolChoice::Allowed { .. } | _ => None,
        };
        if let Some(required) = required {
            // In the order of the list of tools, so that the same narrowing gives the same bytes.
            let listed = cx.tools.iter().map(ToolCard::name).filter(|name| names.contains(*name));
            tool_choice = ToolChoice::Allowed { tools: listed.map(str::to_owned).collect(), required };
        }
    }
    Prepared {
        model: changes.model,
        system: changes.system,
        tool_choice,
        active,
        narrow_on_wire,
        settings: changes.settings,
        context: cx.context.clone().merged(&changes.context),
        ephemeral: changes.ephemeral,
        append: changes.append,
    }
}
