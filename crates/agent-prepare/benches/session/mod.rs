//! A session that only grows, and all that a driver does to prepare its steps: the bench and its count share it.

use agent_core::{
    Accountant, AssistantPart, CallId, Cancel, CompactionState, Encoder, Entry, EntryId, History,
    LanguageModel, ModelError, ModelErrorKind, ModelProfile, ModelStream, Outgoing, RawJson, RequestSettings,
    Response, Rewrite, Slots, StepNo, StepRecord, Text, Todo, TodoStatus, ToolCall, ToolCard, ToolChoice,
    ToolInput, ToolOutput, ToolResult, UserMessage,
};
use agent_prepare::{
    ActiveReminders, ActiveTools, Cause, Choose, ClearToolUses, CompactCx, Context, ForceWhileTodos, Move,
    Narrow, Need, Pipeline, Prepared, Reminders, ServerEdits, StepCx, SwitchModel,
};

/// What a fault is told as; it ends the program.
pub(crate) type Fault = Box<dyn std::error::Error + Send + Sync>;

/// What kind of session it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Its words for one step are gone with the next.
    Free,
    /// Thinking is bound to the words before it, so that they stay.
    Bound,
    /// It was compacted half way, and the provider reports no tokens.
    Compacted,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Free, Self::Bound, Self::Compacted];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Bound => "bound",
            Self::Compacted => "compacted",
        }
    }
}

/// One turn of a session, as long as is asked for.
pub(crate) struct Session {
    kind: Kind,
    pipeline: Pipeline,
    model: ModelProfile,
    tools: Vec<ToolCard>,
    slots: Slots,
    context: Context,
    settings: RequestSettings,
    cancel: Cancel,
    history: History,
    accountant: Accountant,
    state: CompactionState,
    step: StepNo,
}

impl Session {
    /// A session of so many messages, with no step prepared.
    pub(crate) fn new(kind: Kind, messages: usize) -> Result<Self, Fault> {
        let model = ModelProfile {
            context_window: 1_000_000,
            max_output: 32_000,
            forced_tool_choice: true,
            allowed_tools: true,
            binds_thinking_to_prefix: kind == Kind::Bound,
            ..ModelProfile::conservative("anthropic", "bench")
        };
        let todo = Todo { id: "1".into(), text: "moor the boat".into(), status: TodoStatus::InProgress };
        let active = ActiveTools(TOOLS.iter().take(6).map(|name| (*name).to_owned()).collect());
        let context = Context::default().with(active).with(ActiveReminders(vec!["The tide is low.".into()]));
        let mut session = Self {
            kind,
            pipeline: pipeline(),
            model,
            tools: TOOLS.iter().map(|name| card(name)).collect::<Result<_, _>>()?,
            slots: Slots { todos: vec![todo], ..Slots::default() },
            context,
            settings: RequestSettings::default(),
            cancel: Cancel::new(),
            history: History::new(),
            accountant: Accountant::default(),
            state: CompactionState::default(),
            step: StepNo::FIRST,
        };
        session.accountant.set_fixed(&[], &session.tools);
        session.append(Entry::User(UserMessage::text("Bring the boat home.")?))?;
        // An answer with its result is two messages.
        for at in 0..messages / 2 {
            session.answer()?;
            if kind == Kind::Compacted && at == messages / 4 {
                session.compacted()?;
            }
        }
        Ok(session)
    }

    /// One entry more, and the step behind it: all that a driver does for preparing, with every shipped stage.
    pub(crate) fn step(&mut self) -> Result<Prepared, Fault> {
        self.answer()?;
        let mut look = self.pipeline.cascade().begin(Cause::Continuation);
        let cx = CompactCx {
            history: &self.history,
            accountant: &self.accountant,
            model: &self.model,
            apart: None,
            slots: &self.slots,
            state: self.state,
            turn_from: EntryId::at(0),
        };
        let next = look.advance(self.pipeline.cascade(), &cx);
        if next != Move::Settled {
            return Err(format!("the context is to be compacted, and should fit: {next:?}").into());
        }
        self.state = look.state();
        let mut prepared = match self.pipeline.begin().advance(&self.pipeline, &self.cx())? {
            Need::Ready(prepared) => prepared,
            other @ (Need::Ask { .. } | Need::Finish(_)) => {
                return Err(format!("the step should be prepared: {other:?}").into());
            }
        };
        for note in std::mem::take(&mut prepared.append) {
            self.append(Entry::Note(note))?;
        }
        Ok(prepared)
    }

    fn cx(&self) -> StepCx<'_> {
        StepCx {
            step: self.step,
            turn_from: EntryId::at(0),
            model: &self.model,
            history: self.history.view(),
            tools: &self.tools,
            slots: &self.slots,
            context: &self.context,
            settings: &self.settings,
            tokens: self.pipeline.cascade().measure(&self.accountant, &self.model),
            cancel: &self.cancel,
        }
    }

    /// An answer of the model, with the tokens that its request had.
    fn answer(&mut self) -> Result<(), Fault> {
        let at = self.step.number();
        self.step = self.step.next();
        if self.kind != Kind::Compacted {
            self.accountant.report(u64::from(at + 1) * TOKENS, self.history.len());
        }
        // The list changes now and then, as it does where work goes on.
        let (name, output) = if at.is_multiple_of(10) { ("todo", 40) } else { ("grep", 600) };
        let id = CallId::new(format!("call_{at}"))?;
        let input = ToolInput::finished(&format!(r#"{{"pattern":"rope {at}","path":"src/harbour"}}"#));
        let call = ToolCall { id: id.clone(), name: name.to_owned(), input, data: None };
        let said = AssistantPart::text("I look further.").into_iter();
        let parts = said.chain([AssistantPart::ToolCall(call)]).collect();
        let output = ToolOutput::Text(Text::or("a".repeat(output), "a"));
        let result = ToolResult { call: id, output };
        self.append(Entry::Step(StepRecord::new(Response::of(parts), vec![result])?))
    }

    fn compacted(&mut self) -> Result<(), Fault> {
        let text = Text::or("The ropes were sought in the harbour.", "-");
        let kept_from = EntryId::at(self.history.len() - 1);
        self.append(Entry::Boundary(Rewrite::Summary { text, kept_from, strip_reasoning: false }))
    }

    fn append(&mut self, entry: Entry) -> Result<(), Fault> {
        self.history.push(entry)?;
        self.accountant.follow(&self.history);
        Ok(())
    }
}

/// Tokens of a step, as the provider counts them.
const TOKENS: u64 = 180;
const TOOLS: [&str; 12] = [
    "read_file",
    "write_file",
    "edit_file",
    "glob",
    "grep",
    "todo",
    "bash",
    "complete",
    "fetch",
    "search",
    "ask",
    "sail",
];

/// Every stage that is shipped.
fn pipeline() -> Pipeline {
    Pipeline::standard()
        .then(SwitchModel::before_step(1, Nobody(ModelProfile::conservative("harbour", "planner"))))
        .then(Reminders::these(["Use no emoji."]))
        .then(Reminders::shared())
        .then(Reminders::by(|cx| (cx.of.tokens.percent() > 90).then_some("Be brief.")))
        .then(Narrow::shared())
        .then(ForceWhileTodos::default())
        .then(Choose::from_step(u32::MAX, ToolChoice::None))
        .then(ServerEdits::default().clear_tool_uses(ClearToolUses::default()))
}

fn card(name: &str) -> Result<ToolCard, Fault> {
    let schema = r#"{"type":"object","properties":{"path":{"type":"string"},"pattern":{"type":"string"}}}"#;
    Ok(ToolCard::new(
        name,
        "Does what its name says, in the folder of the project.",
        &RawJson::parse(schema)?,
    )?)
}

/// A model that is chosen and never asked.
#[derive(Debug)]
struct Nobody(ModelProfile);

#[async_trait::async_trait]
impl LanguageModel for Nobody {
    fn profile(&self) -> &ModelProfile {
        &self.0
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        unreachable!("nothing is sent")
    }

    async fn stream(&self, _: Outgoing, _: &Cancel) -> Result<ModelStream, ModelError> {
        Err(ModelError::new(ModelErrorKind::InvalidRequest, "nobody answers"))
    }
}
