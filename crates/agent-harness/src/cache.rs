//! What a session knows of the provider's prompt cache: what its prompt begins with, where to mark, what was left in it.

use std::time::Duration;

use crate::config::HarnessConfig;
use crate::drive::has_compacted;
use crate::front::Front;
use crate::listed::sent;
use agent_cache::{Aspect, Opening, Planner, RuleBook, Sent, loss};
use agent_core::{
    Body, CacheProfile, Diagnostic, Entry, EventBody, History, Mark, ModelProfile, RequestSettings,
    SessionMeta, ToolChoice, Usage,
};
use agent_prepare::Prepared;

/// The prompt cache of one loaded session. Each step costs the same, however long the session is; only when a break is
/// found are two requests read.
pub(crate) struct PromptCache {
    planner: Planner,
    /// What requests begin with when nothing is put in its place.
    base: Front,
    /// What the last event said of it.
    told: Front,
    /// What the last answered request of this process began with.
    front: Option<Front>,
    /// When the last model call that was answered was sent.
    pub(crate) asked_ms: Option<i64>,
    /// Whether the stages of its step had it asked otherwise than the session's calls are.
    pub(crate) asked_otherwise: bool,
    /// For how many milliseconds what a call leaves is kept; 0 where that is not known.
    lives_ms: u64,
    /// Whether another choice of tools has the provider read the conversation anew.
    choice_counts: bool,
    /// What that call left in the cache, where the provider says so.
    left: Option<Left>,
    /// What of the prompt is another one since the session was loaded, until a call was answered.
    changes: Vec<Diagnostic>,
}

/// A model call that was answered.
pub(crate) struct Answered<'a> {
    pub(crate) usage: &'a Usage,
    pub(crate) body: &'a Body,
    pub(crate) front: &'a Front,
    pub(crate) profile: &'a ModelProfile,
    /// When it was sent.
    pub(crate) asked_ms: i64,
    /// Whether the provider itself edited the conversation for it otherwise than for the call before.
    pub(crate) is_edited: bool,
}

/// What a call left in the cache.
struct Left {
    tokens: u64,
    /// The request, when this process sent it.
    body: Option<Body>,
    /// How many entries it held.
    entries: usize,
}

impl PromptCache {
    /// Of a session that asked nothing yet.
    pub(crate) fn new(config: &HarnessConfig, meta: &SessionMeta) -> Self {
        let tools = sent(meta, config.model.profile());
        let base = Front::of(&*config.model, &meta.system, &tools, meta.static_blocks);
        let profile = config.model.profile();
        let rules = RuleBook::builtin().rules(&profile.provider, &profile.model);
        Self {
            lives_ms: rules.seconds(config.lifetimes.tail).saturating_mul(1_000),
            choice_counts: rules.loses(Aspect::ToolChoice).is_some(),
            asked_otherwise: false,
            planner: Planner::new(config.lifetimes),
            told: base.clone(),
            base,
            front: None,
            asked_ms: None,
            left: None,
            changes: Vec::new(),
        }
    }

    /// Takes up what another process left; `changes` is what is declared of this one.
    pub(crate) fn resume(&mut self, history: &History, asked_ms: Option<i64>, changes: &[Diagnostic]) {
        self.asked_ms = asked_ms;
        self.left = history.entries().iter().enumerate().rev().find_map(|(at, entry)| match entry {
            Entry::Step(step) => Left::of(step.usage(), at, None),
            Entry::User(_) | Entry::Note(_) | Entry::Boundary(_) => None,
        });
        let moves = |change: &&Diagnostic| matches!(change.what.as_str(), "model" | "tools");
        self.changes = changes.iter().filter(moves).cloned().collect();
    }

    /// Takes up an answer that was journaled and not committed. When its call was sent is not known.
    pub(crate) fn recover(&mut self, usage: &Usage, history: &History) {
        self.asked_ms = None;
        self.left = Left::of(usage, history.len(), None).or(self.left.take());
    }

    /// Notes whether the stages of the step had its call asked otherwise than a question behind the conversation would be.
    pub(crate) fn asked_with(&mut self, prepared: &Prepared) {
        let Prepared { model, system, tool_choice, active, narrow_on_wire, settings, .. } = prepared;
        self.asked_otherwise = model.is_some()
            || system.is_some()
            || (*narrow_on_wire && active.is_some())
            || (self.choice_counts && *tool_choice != ToolChoice::Auto)
            || *settings != RequestSettings::default();
    }

    /// Whether the provider may still have what the last call left, and a question behind the conversation would find it:
    /// it goes to the session's model with the session's own system prompt, tools and settings.
    pub(crate) fn may_be_read(&self, now_ms: i64) -> bool {
        let lives = self.lives_ms == 0 || self.age_ms(now_ms) <= self.lives_ms;
        !self.asked_otherwise && self.changes.is_empty() && lives
    }

    /// Whether nothing of the conversation is worth keeping its bytes for: what is kept of it has expired, and where no
    /// lifetime is known, it is old.
    pub(crate) fn is_cold(&self, now_ms: i64) -> bool {
        !self.may_be_read(now_ms) || self.age_ms(now_ms) > LONG_MS
    }

    fn age_ms(&self, now_ms: i64) -> u64 {
        self.asked_ms.map_or(0, |asked| u64::try_from(now_ms.saturating_sub(asked)).unwrap_or(0))
    }

    /// Whether another choice of tools has the session's provider read the conversation anew.
    pub(crate) fn choice_counts(&self) -> bool {
        self.choice_counts
    }

    /// What the prompt begins with (requirement A7).
    pub(crate) fn begins(&mut self) -> EventBody {
        self.told.clone_from(&self.base);
        self.base.told()
    }

    /// The same of a request that turned out to begin otherwise.
    pub(crate) fn begins_otherwise(&mut self, front: &Front) -> Option<EventBody> {
        let is_told = self.told.system == front.system && self.told.tools == front.tools;
        if is_told {
            return None;
        }
        self.told.clone_from(front);
        Some(front.told())
    }

    /// What requests begin with when nothing is put in its place.
    pub(crate) fn base(&self) -> &Front {
        &self.base
    }

    /// Where the next request is marked.
    pub(crate) fn marks(&mut self, profile: &ModelProfile, opening: Opening, history: &History) -> Vec<Mark> {
        self.planner.plan(&profile.cache, opening, history.view())
    }

    /// Notes what a call left; gives the break, when it read less than the call before it had left and no edit of the
    /// conversation says why.
    pub(crate) fn answered(
        &mut self,
        config: &HarnessConfig,
        history: &History,
        call: &Answered<'_>,
    ) -> Option<EventBody> {
        let age = self.asked_ms.replace(call.asked_ms).map(|before| call.asked_ms.saturating_sub(before));
        let mut changes = std::mem::take(&mut self.changes);
        if let Some(before) = self.front.replace(call.front.clone()) {
            changes.extend(call.front.changes(&before));
        }
        let now = Left::of(call.usage, history.len(), Some(call.body.clone()))?;
        let before = self.left.replace(now)?;
        let reads_less = call.usage.cache_read < before.tokens;
        let profile = call.profile;
        let is_rewritten = call.is_edited || before.is_rewritten(history);
        if !reads_less || matches!(profile.cache, CacheProfile::None) || is_rewritten {
            return None;
        }
        let (expected, read) = (before.tokens, call.usage.cache_read);
        if let Some(change) = changes.into_iter().next() {
            let (cause, message) = (format!("{}_changed", change.what), change.why);
            return Some(EventBody::CacheBreak { expected, read, segment: None, cause, message });
        }
        let (old, new) = (before.body.map(|body| body.to_vec()), call.body.to_vec());
        let sent = Sent {
            before: old.as_deref(),
            after: &new,
            age: age.map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0))),
            ttl: config.lifetimes.tail,
        };
        let found = loss(&RuleBook::builtin(), &profile.provider, &sent);
        let (segment, cause, message) = (found.segment, found.cause, found.message);
        Some(EventBody::CacheBreak { expected, read, segment, cause, message })
    }
}

impl Left {
    /// `None` where the provider counted no input.
    fn of(usage: &Usage, entries: usize, body: Option<Body>) -> Option<Self> {
        let tokens = usage.cache_read.saturating_add(usage.cache_write());
        (usage.total_input() > 0).then_some(Self { tokens, body, entries })
    }

    /// Whether a boundary entered the history since, or an answer in which the provider compacted: then it is known why
    /// less is read.
    fn is_rewritten(&self, history: &History) -> bool {
        let since = history.entries().get(self.entries..).unwrap_or_default();
        since.iter().any(|entry| match entry {
            Entry::Boundary(_) => true,
            Entry::Step(step) => has_compacted(step.response()),
            Entry::User(_) | Entry::Note(_) => false,
        })
    }
}

/// How long the longest lifetime is that providers offer.
const LONG_MS: u64 = 3_600_000;
