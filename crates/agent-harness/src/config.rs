//! What an agent is made of.

use std::sync::Arc;
use std::time::Duration;

use agent_cache::Lifetimes;
use agent_core::{
    BytesPerToken, COMPLETE_TOOL, Cancel, Heard, LanguageModel, RequestSettings, SessionId, Text,
    TokenCounter, Ttl, Usage,
};
use agent_prepare::Pipeline;
use agent_prompt::Prompt;
use agent_store::Store;
use agent_tools::{Permissions, ToolHook, ToolSet};
use agent_turn::{DEFAULT_STEPS, Mode, StopCondition, StopConditionExt, step_count, tool_called};

use crate::SourceError;
use crate::drive::{apart, asked};
use crate::{
    AfterStep, AfterTurn, AskPolicy, Asker, Background, Children, Clock, ContextSource, Drained,
    HarnessError, Jitter, NobodyToAsk, NotesSource, PostCompact, PrepareCall, Process, PromptSource,
    RandomJitter, RetryPolicy, RuleSink, Session, SystemClock,
};

/// An agent ready to hold sessions. Cloning shares it.
#[derive(Debug, Clone)]
pub struct Harness(Arc<HarnessConfig>);

/// The parts of an agent; every one can be swapped with `..HarnessConfig::new(model, store)`.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..HarnessConfig::new")]
pub struct HarnessConfig {
    /// The model.
    pub model: Arc<dyn LanguageModel>,
    /// Where sessions live.
    pub store: Arc<dyn Store>,
    /// The tools, in their one order.
    pub tools: ToolSet,
    /// The system prompt. A session keeps the one it began with, so that a later process sends the same bytes.
    pub prompt: Prompt,
    /// What else enters the prompt of a session that begins.
    pub sources: Vec<Arc<dyn PromptSource>>,
    /// Whether the model is told the day: in the user's first message, and with a note when it changed (requirement A3).
    pub tells_date: bool,
    /// How long what is marked lives in the provider's cache.
    pub lifetimes: Lifetimes,
    /// Output limit, sampling, thinking.
    pub settings: RequestSettings,
    /// When a turn ends although the model would go on.
    pub stop: Arc<dyn StopCondition>,
    /// Whether words without calls end a turn, or a task asks for more.
    pub mode: Mode,
    /// Compaction, and what each step is made of.
    pub pipeline: Pipeline,
    /// What is looked up before the pipeline, in order.
    pub contexts: Vec<Arc<dyn ContextSource>>,
    /// What puts a turn together.
    pub prepare_call: Option<Arc<dyn PrepareCall>>,
    /// The model that stages and tiers ask for words apart from the conversation; the agent's own when none is given.
    pub summary_model: Option<Arc<dyn LanguageModel>>,
    /// How long and how often it is asked.
    pub ask: AskPolicy,
    /// What counts tokens where the provider has not counted them.
    pub counter: Arc<dyn TokenCounter>,
    /// Where the rolling notes on a session are read when it is about to be compacted (requirement C2).
    pub notes: Option<Arc<dyn NotesSource>>,
    /// Who is told of each compaction.
    pub after_compaction: Vec<Arc<dyn PostCompact>>,
    /// Which calls may run.
    pub permissions: Permissions,
    /// Who is asked when a call needs permission.
    pub asker: Arc<dyn Asker>,
    /// When a message is heard that is sent while the turn waits for a reply (requirement L7).
    pub while_waiting: Heard,
    /// How long a parked turn waits for a reply; for ever when `None` (requirement L7).
    pub request_lifetime: Option<Duration>,
    /// What does the tasks of sub-agents (requirement L10); without it a turn parks on each of them.
    pub children: Option<Children>,
    /// What stands before and behind every tool call, in this order (requirement T3).
    pub tool_hooks: Vec<Arc<dyn ToolHook>>,
    /// Where rules go that a person wants to be remembered beyond a session.
    pub rule_sink: Option<Arc<dyn RuleSink>>,
    /// What is done behind each turn that was brought to its end (requirement L11).
    pub after_turn: Vec<Arc<dyn AfterTurn>>,
    /// What is done behind each step that was committed (requirement L11).
    pub after_step: Vec<Arc<dyn AfterStep>>,
    /// Where that work is done; drain it before the program ends.
    pub background: Background,
    /// How many turns a session that is taken up with a cold prompt cache shows in full, where the older ones have words
    /// ([`crate::RoundSummaries`]) that stand for them (requirement D5); `None` shows all.
    pub raw_rounds: Option<usize>,
    /// How often an open turn is taken up after the worker that had it was lost (requirement D5); 0 counts as 1, and
    /// [`u32::MAX`] is as often as it takes. What was reached meanwhile does not matter, a worker that stopped in order does
    /// not count, and a turn that ends begins the count anew. By default 5.
    pub max_recoveries: u32,
    /// When a failed model call is tried again.
    pub retry: RetryPolicy,
    /// Where the spread of waiting times comes from.
    pub jitter: Arc<dyn Jitter>,
    /// What belongs to the process and to no session (requirement K2).
    pub process: Process,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

impl HarnessConfig {
    /// An agent without tools or instructions, which stops after 40 steps or at `complete`, and asks nobody.
    pub fn new(model: Arc<dyn LanguageModel>, store: Arc<dyn Store>) -> Self {
        Self {
            model,
            store,
            tools: ToolSet::default(),
            prompt: Prompt::default(),
            sources: Vec::new(),
            tells_date: false,
            lifetimes: Lifetimes { stable: Ttl::FiveMinutes, tail: Ttl::FiveMinutes },
            settings: RequestSettings::default(),
            stop: Arc::new(step_count(DEFAULT_STEPS).or(tool_called(COMPLETE_TOOL))),
            mode: Mode::Conversation,
            pipeline: Pipeline::standard(),
            contexts: Vec::new(),
            prepare_call: None,
            summary_model: None,
            ask: AskPolicy::default(),
            counter: Arc::new(BytesPerToken::default()),
            notes: None,
            after_compaction: Vec::new(),
            permissions: Permissions::default(),
            asker: Arc::new(NobodyToAsk),
            while_waiting: Heard::After,
            request_lifetime: None,
            children: None,
            tool_hooks: Vec::new(),
            rule_sink: None,
            after_turn: Vec::new(),
            after_step: Vec::new(),
            background: Background::default(),
            raw_rounds: Some(3),
            max_recoveries: 5,
            retry: RetryPolicy::default(),
            jitter: Arc::new(RandomJitter),
            process: Process::default(),
            clock: Arc::new(SystemClock),
        }
    }

    /// All that a session which begins would say: the prompt with what the sources add (requirement A1).
    pub(crate) async fn whole_prompt(&self, id: &SessionId) -> Result<Prompt, HarnessError> {
        let mut prompt = self.prompt.clone();
        for source in &self.sources {
            let session = id.clone();
            source.add_to(&mut prompt).await.map_err(|cause| HarnessError::Source { session, cause })?;
        }
        Ok(prompt)
    }
}

impl Harness {
    /// An agent made of these parts.
    pub fn new(config: HarnessConfig) -> Self {
        Self(Arc::new(config))
    }

    pub(crate) fn of(config: Arc<HarnessConfig>) -> Self {
        Self(config)
    }

    /// A session by name; it is opened (or created) by the first message.
    pub fn session(&self, id: SessionId) -> Session {
        Session::new(self.0.clone(), id)
    }

    /// Waits for the work behind turns, for so long at most; what is not done then is stopped and counted. Call it before
    /// the program ends.
    pub async fn drain(&self, patience: Duration) -> Drained {
        self.0.background.drain(patience).await
    }

    /// Asks a model for words apart from any conversation: what it is, and what it is asked. `None` when it was stopped.
    ///
    /// # Errors
    /// When no whole words came within the agent's [`AskPolicy`].
    pub async fn ask_apart(
        &self,
        model: &dyn LanguageModel,
        [system, words]: [&Text; 2],
        max_output: u32,
        cancel: &Cancel,
    ) -> Result<Option<(Text, Usage)>, SourceError> {
        let failed = |cause: Box<dyn std::error::Error + Send + Sync>| {
            SourceError::new("the answer of a model", cause)
        };
        let request = apart(model, system, words, max_output).map_err(|error| failed(error.into()))?;
        let (answer, usage) = asked(&self.0, model, &request, cancel).await;
        answer
            .map(|answer| answer.map(|text| (text, usage)).map_err(|error| failed(error.into())))
            .transpose()
    }

    /// The parts.
    pub fn config(&self) -> &HarnessConfig {
        &self.0
    }
}
