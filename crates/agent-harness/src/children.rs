//! Sub-agents: which kinds there are, and what a child is made of (requirement L10).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use agent_core::{AGENT_ACTION, LanguageModel, SessionId, Usage};
use agent_prompt::Prompt;
use agent_tools::{Permissions, ToolSet};
use agent_turn::{Stop, StopCondition, StopCx};

use crate::config::HarnessConfig;

/// What the driver needs to do the tasks of sub-agents itself; without it a turn parks on each of them.
///
/// A child is a session of its own in the same store, with a fresh history. It is made like its parent, but for what its
/// kind puts in place of that. `prepare_call` is not asked for it.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..Default")]
pub struct Children {
    /// The kinds of agents, beside one like the parent. The tool `agent` must be told the same names.
    pub kinds: Vec<ChildKind>,
    /// How many levels of sub-agents there may be below this agent; 2 by default. Those of the last one do not have the
    /// tool `agent`.
    pub levels: u32,
}

/// A kind of sub-agent. What is `None` is the parent's.
#[derive(Debug, Clone, Default)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..Default")]
pub struct ChildKind {
    /// Its name, in the words of the program.
    pub name: String,
    /// What it is good for, for the model of the parent.
    pub description: String,
    /// Its model.
    pub model: Option<Arc<dyn LanguageModel>>,
    /// Its system prompt; what the sources of the parent say is added to it.
    pub prompt: Option<Prompt>,
    /// Its tools, which may share the parent's sandbox. `agent` is taken out at the last level, and `ask_question` where
    /// the parent cannot ask.
    pub tools: Option<ToolSet>,
    /// Its permissions. Those of the parent are a ceiling to them, so they only narrow (case A05).
    pub permissions: Option<Permissions>,
    /// When its turn ends. It ends as well when the parent's would with what both have used.
    pub stop: Option<Arc<dyn StopCondition>>,
}

impl Default for Children {
    fn default() -> Self {
        Self { kinds: Vec::new(), levels: 2 }
    }
}

/// What the parent's step leaves to its children.
#[derive(Debug, Clone, Default)]
pub(crate) struct Share {
    /// The completed steps of the parent's turn.
    pub(crate) steps: u32,
    /// The tokens of the parent's turn, and of its children before.
    pub(crate) usage: Usage,
    /// The tokens of the children at work.
    pool: Arc<Mutex<BTreeMap<SessionId, Usage>>>,
}

impl Share {
    pub(crate) fn new(steps: u32, usage: Usage) -> Self {
        Self { steps, usage, pool: Arc::default() }
    }
}

/// The agent that a child of this kind is, below a parent made of these parts; `None` for a kind that is none.
///
/// `active` are the only tools that may be called in the parent's step, when not all may.
pub(crate) fn config_of(
    parent: &HarnessConfig,
    kind: Option<&str>,
    active: Option<&BTreeSet<String>>,
    (child, share): (&SessionId, &Share),
) -> Option<HarnessConfig> {
    let children = parent.children.as_ref()?;
    let own = match kind {
        None => ChildKind::default(),
        Some(name) => children.kinds.iter().find(|kind| kind.name == name)?.clone(),
    };
    let levels = children.levels.saturating_sub(1);
    let parents = &parent.tools;
    let can_ask = parents.get(ASK_TOOL).is_some();
    // What may not be called in the parent's step is not called through a child either.
    let inherited = own.tools.is_none();
    let stays = |name: &str| match name {
        AGENT_ACTION if levels == 0 => false,
        ASK_TOOL if !can_ask => false,
        _ => !inherited || active.is_none_or(|active| active.contains(name)),
    };
    let tools = own.tools.as_ref().unwrap_or(parents);
    let tools = tools.iter().filter(|tool| stays(tool.card().name())).cloned();
    let permissions = match own.permissions {
        Some(own) => own.within(Arc::new(parent.permissions.clone())),
        None => parent.permissions.clone(),
    };
    Some(HarnessConfig {
        model: own.model.unwrap_or_else(|| parent.model.clone()),
        prompt: own.prompt.unwrap_or_else(|| parent.prompt.clone()),
        // Their names were different before, so they still are.
        tools: ToolSet::builder().extend(tools).freeze().ok()?,
        permissions,
        stop: Arc::new(Within {
            own: own.stop,
            parent: parent.stop.clone(),
            child: child.clone(),
            share: share.clone(),
        }),
        prepare_call: None,
        // A child that is lost with its worker is given up before its parent is, which goes on without it.
        max_recoveries: parent.max_recoveries.saturating_sub(1),
        // What follows turns and steps is for the one that a person sees.
        after_turn: Vec::new(),
        after_step: Vec::new(),
        children: Some(Children { levels, ..children.clone() }),
        ..parent.clone()
    })
}

/// The end of a child's turn: its own, or that of the parent with what all of them used.
#[derive(Debug)]
struct Within {
    /// `None` where it is the parent's, which is stricter with what the parent used.
    own: Option<Arc<dyn StopCondition>>,
    parent: Arc<dyn StopCondition>,
    child: SessionId,
    share: Share,
}

impl Within {
    /// Asks the child's own condition, then the parent's with what all of them used.
    fn asked<T>(
        &self,
        cx: &StopCx<'_>,
        ask: impl Fn(&dyn StopCondition, &StopCx<'_>) -> Option<T>,
    ) -> Option<T> {
        let usage = {
            let mut pool = self.share.pool.lock().unwrap_or_else(PoisonError::into_inner);
            pool.insert(self.child.clone(), cx.usage.clone());
            let mut usage = self.share.usage.clone();
            pool.values().for_each(|one| usage += one);
            usage
        };
        let steps = self.share.steps.saturating_add(cx.steps);
        let of_parent = StopCx { steps, usage: &usage, ..*cx };
        let own = self.own.as_ref().and_then(|own| ask(&**own, cx));
        own.or_else(|| ask(&*self.parent, &of_parent))
    }
}

impl StopCondition for Within {
    fn check(&self, cx: &StopCx<'_>) -> Option<Stop> {
        self.asked(cx, |condition, cx| condition.check(cx))
    }

    fn ahead(&self, cx: &StopCx<'_>) -> Option<Stop> {
        self.asked(cx, |condition, cx| condition.ahead(cx))
    }

    fn advise(&self, cx: &StopCx<'_>) -> Option<String> {
        self.asked(cx, |condition, cx| condition.advise(cx))
    }

    fn name(&self) -> String {
        self.own.as_ref().map_or_else(|| self.parent.name(), |own| own.name())
    }
}

/// The end of a parent's turn, which pays for its children: their tokens count, their steps do not.
#[derive(Debug)]
pub(crate) struct WithChildren<'a> {
    pub(crate) own: &'a dyn StopCondition,
    pub(crate) children: &'a Usage,
}

impl WithChildren<'_> {
    fn asked<T>(&self, cx: &StopCx<'_>, ask: impl Fn(&dyn StopCondition, &StopCx<'_>) -> T) -> T {
        let mut usage = cx.usage.clone();
        usage += self.children;
        ask(self.own, &StopCx { usage: &usage, ..*cx })
    }
}

impl StopCondition for WithChildren<'_> {
    fn check(&self, cx: &StopCx<'_>) -> Option<Stop> {
        self.asked(cx, |condition, cx| condition.check(cx))
    }

    fn ahead(&self, cx: &StopCx<'_>) -> Option<Stop> {
        self.asked(cx, |condition, cx| condition.ahead(cx))
    }

    fn advise(&self, cx: &StopCx<'_>) -> Option<String> {
        self.asked(cx, |condition, cx| condition.advise(cx))
    }

    fn name(&self) -> String {
        self.own.name()
    }
}

/// The tool with which a model asks a person.
const ASK_TOOL: &str = "ask_question";
