//! Sub-agents: which kinds there are, and what a child is made of (requirement L10).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_core::{AGENT_ACTION, LanguageModel, SessionId, Spent};
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

/// Kinds of sub-agents that a model could not tell apart.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChildrenError {
    /// A kind without a name.
    #[error("a kind of sub-agent has no name; give it one that the model can write")]
    Unnamed,
    /// Two kinds of one name.
    #[error("two kinds of sub-agents are called `{0}`; rename one")]
    Duplicate(String),
}

impl Children {
    /// Looks whether every kind can be asked for.
    ///
    /// # Errors
    /// Names the first kind that cannot.
    pub fn check(&self) -> Result<(), ChildrenError> {
        let mut names = BTreeSet::new();
        for kind in &self.kinds {
            if kind.name.trim().is_empty() {
                return Err(ChildrenError::Unnamed);
            }
            if !names.insert(&kind.name) {
                return Err(ChildrenError::Duplicate(kind.name.clone()));
            }
        }
        Ok(())
    }
}

/// What the parent's step leaves to its children.
#[derive(Debug, Clone, Default)]
pub(crate) struct Share {
    /// The completed steps of the parent's turn.
    steps: u32,
    /// What the parent's turn took, with its children before.
    spent: Spent,
    /// When that was so, by the clock.
    since_ms: i64,
    /// What the children at work took.
    pool: Arc<Mutex<BTreeMap<SessionId, Spent>>>,
}

/// What a child has of its parent's share.
#[derive(Debug, Clone)]
pub(crate) struct Allowance {
    child: SessionId,
    share: Share,
    /// The time of the parent's turn when the child begins or is taken up.
    elapsed: Duration,
    /// What of the child's own time is in that.
    before: Duration,
}

impl Share {
    pub(crate) fn new(steps: u32, spent: Spent, since_ms: i64) -> Self {
        Self { steps, spent, since_ms, pool: Arc::default() }
    }

    /// The allowance of a child that took this much before.
    pub(crate) fn allow(&self, child: &SessionId, before: Spent, now_ms: i64) -> Allowance {
        let since = u64::try_from(now_ms.saturating_sub(self.since_ms)).unwrap_or(0);
        let elapsed = Duration::from_millis(self.spent.elapsed_ms.saturating_add(since));
        let taken = Duration::from_millis(before.elapsed_ms);
        // Also one that waits while others work has taken its part.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner).insert(child.clone(), before);
        Allowance { child: child.clone(), share: self.clone(), elapsed, before: taken }
    }
}

/// The agent that a child of this kind is, below a parent made of these parts; `None` for a kind that is none.
///
/// `active` are the only tools that may be called in the parent's step, when not all may.
pub(crate) fn config_of(
    parent: &HarnessConfig,
    kind: Option<&str>,
    active: Option<&BTreeSet<String>>,
    allowance: Allowance,
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
    let tools = own.tools.as_ref().unwrap_or(parents).only(stays);
    let permissions = match own.permissions {
        Some(own) => own.within(Arc::new(parent.permissions.clone())),
        None => parent.permissions.clone(),
    };
    Some(HarnessConfig {
        model: own.model.unwrap_or_else(|| parent.model.clone()),
        prompt: own.prompt.unwrap_or_else(|| parent.prompt.clone()),
        tools,
        permissions,
        stop: Arc::new(Within { own: own.stop, parent: parent.stop.clone(), allowance }),
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
    allowance: Allowance,
}

impl Within {
    /// Asks the child's own condition, then the parent's with what all of them used.
    fn asked<T>(
        &self,
        cx: &StopCx<'_>,
        ask: impl Fn(&dyn StopCondition, &StopCx<'_>) -> Option<T>,
    ) -> Option<T> {
        let Allowance { child, share, elapsed, before } = &self.allowance;
        let spent = {
            let mut pool = share.pool.lock().unwrap_or_else(PoisonError::into_inner);
            let own = Spent { usage: cx.usage.clone(), nano_usd: Spent::nanos(cx.cost_usd), elapsed_ms: 0 };
            pool.insert(child.clone(), own);
            let mut spent = share.spent.clone();
            pool.values().for_each(|one| spent += one);
            spent
        };
        let of_parent = StopCx {
            steps: share.steps.saturating_add(cx.steps),
            usage: &spent.usage,
            cost_usd: spent.cost_usd(),
            // Those that work at the same time take no more of it than one.
            elapsed: elapsed.saturating_add(cx.elapsed.saturating_sub(*before)),
            ..*cx
        };
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

/// The end of a parent's turn, which pays for its children: their tokens and their money count. Their time is in its own,
/// because it waits for them, and their steps do not count.
#[derive(Debug)]
pub(crate) struct WithChildren<'a> {
    pub(crate) own: &'a dyn StopCondition,
    pub(crate) children: &'a Spent,
}

impl WithChildren<'_> {
    fn asked<T>(&self, cx: &StopCx<'_>, ask: impl Fn(&dyn StopCondition, &StopCx<'_>) -> T) -> T {
        let mut usage = cx.usage.clone();
        usage += &self.children.usage;
        let cost_usd = cx.cost_usd + self.children.cost_usd();
        ask(self.own, &StopCx { usage: &usage, cost_usd, ..*cx })
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
