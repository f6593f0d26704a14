//! What a store keeps of a session: plain data, whose meaning only the driver knows.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{
    Entry, EntryId, Event, HeldRequest, InputId, InputRequest, PendingStep, RawJson, SessionId, Slots, Spent,
    StoredInput, SystemBlock, TerminalReason, Text, ToolCard, ToolResult, Usage,
};

/// Counts the commits of a session. A commit names the revision it builds on; any other one is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
#[expect(clippy::exhaustive_structs, reason = "a counter with a name")]
pub struct Revision(pub u64);

/// What is fixed when a session begins, so that a later process sends the same bytes (requirement D2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record the driver builds and stores read back")]
pub struct SessionMeta {
    /// The session.
    pub id: SessionId,
    /// When it began, milliseconds since 1970 UTC.
    pub created_ms: i64,
    /// The model it began with, `provider/name`.
    pub model: String,
    /// The rendered system prompt.
    pub system: Vec<SystemBlock>,
    /// How many of its blocks, from the first, are the same in every session of the program; 0 when that is not known.
    #[serde(default)]
    pub static_blocks: usize,
    /// The tool list, in order.
    pub tools: Vec<ToolCard>,
}

/// Everything of a session that is not history: what a turn needs to go on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record, extended only with serde defaults")]
pub struct Checkpoint {
    /// The open turn, in the turn machine's own versioned form; `None` between turns.
    pub turn: Option<RawJson>,
    /// The number of the last turn that was opened; 0 before the first.
    #[serde(default)]
    pub last_turn: u64,
    /// State that tools share.
    #[serde(default)]
    pub slots: Slots,
    /// Tokens of the whole session, failed and aborted calls included.
    #[serde(default)]
    pub usage: Usage,
    /// When the last model call that was answered was sent, milliseconds since 1970 UTC: what the provider keeps of the
    /// prompt is that old.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_ms: Option<i64>,
    /// Whether that call was asked otherwise than the session's calls are, as the stages of its step said: by another
    /// model, with another system prompt or list of tools, or with settings of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked_otherwise: bool,
    /// What compactions left.
    #[serde(default, skip_serializing_if = "CompactionState::is_new")]
    pub compaction: CompactionState,
    /// Position of the open turn's first entry; `None` between turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_from: Option<EntryId>,
    /// The only tools that may be called in the step at work of a parked turn, when not all may: a park is a commit, and
    /// commits clear the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<BTreeSet<String>>,
    /// What calls of the step at work wait for, with the replies that are there (requirement L7).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<HeldRequest>,
    /// How often model calls of the open turn failed and were tried again.
    #[serde(default, skip_serializing_if = "Retried::is_new")]
    pub retried: Retried,
    /// What the session's own model calls cost, in billionths of a US dollar, as far as prices are known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nano_usd: u64,
    /// Milliseconds that its turns were at work.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub elapsed_ms: u64,
    /// What its sub-agents used, which is no part of its own (requirement L10).
    #[serde(default, skip_serializing_if = "OfChildren::is_nothing")]
    pub children: OfChildren,
}

/// How often model calls of a turn failed and were tried again (requirement M10): who takes the turn up goes on counting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record, extended only with serde defaults")]
pub struct Retried {
    /// Failed attempts of the step at work.
    #[serde(default)]
    pub step: u32,
    /// Retries of the turn.
    #[serde(default)]
    pub turn: u32,
}

impl Retried {
    fn is_new(&self) -> bool {
        *self == Self::default()
    }
}

/// What the sub-agents of a session used, and their own. Each counts once, in the write that records its result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record, extended only with serde defaults")]
pub struct OfChildren {
    /// In all turns.
    #[serde(default)]
    pub session: Spent,
    /// In the last turn that was opened.
    #[serde(default)]
    pub turn: Spent,
}

impl OfChildren {
    /// Counts a child that is done.
    pub fn add(&mut self, child: &Spent) {
        self.session += child;
        self.turn += child;
    }

    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl Checkpoint {
    /// What the session took itself, with what its sub-agents took.
    pub fn spent_by_all(&self) -> Spent {
        let own = Spent { usage: self.usage.clone(), nano_usd: self.nano_usd, elapsed_ms: self.elapsed_ms };
        let mut sum = self.children.session.clone();
        // Who waits for a sub-agent is at work: the time of one is in that of the other.
        sum.elapsed_ms = 0;
        sum += &own;
        sum
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What compactions of a session left for the next one (requirements P8, P11).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record, extended only with serde defaults")]
pub struct CompactionState {
    /// How many failed in a row.
    #[serde(default)]
    pub failures: u32,
    /// Tokens of the context right after the last one; 0 before the first.
    #[serde(default)]
    pub after: u64,
}

impl CompactionState {
    fn is_new(&self) -> bool {
        *self == Self::default()
    }
}

/// One atomic write (requirement D1): all of it or nothing.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "an argument record, written as a literal by the driver")]
pub struct Commit<'a> {
    /// The revision it builds on.
    pub expect: Revision,
    /// New entries; the first one stands at the history's end.
    pub entries: &'a [Entry],
    /// The state after it.
    pub checkpoint: &'a Checkpoint,
    /// Usage of the model call it records, if any.
    pub usage: Option<&'a Usage>,
    /// Durable events, numbered without a gap.
    pub events: &'a [Event],
    /// Inputs that it uses; they are in no inbox afterwards.
    pub consumed: &'a [InputId],
    /// The reason, when it ends a turn.
    pub terminal: Option<&'a TerminalReason>,
    /// The time, milliseconds since 1970 UTC.
    pub now_ms: i64,
}

/// What a commit came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "returned by every store")]
pub struct Committed {
    /// The revision it led to.
    pub revision: Revision,
    /// Whether the inbox holds something that no commit has used.
    pub has_inputs: bool,
}

/// The state of a session without its history, as of its last commit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "returned by every store")]
pub struct SessionState {
    /// How many commits it has.
    pub revision: Revision,
    /// The state at the last commit.
    pub checkpoint: Checkpoint,
    /// What was journaled since, in order.
    pub journal: Vec<JournalRecord>,
    /// What was said to it and no commit has used, in order.
    pub inputs: Vec<StoredInput>,
    /// Why the last turn ended; `None` while one is open, and before the first.
    pub terminal: Option<TerminalReason>,
}

impl SessionState {
    /// The requests of the step at work with the replies that are there: those of its last commit, and those that were
    /// journaled since.
    pub fn held(&self) -> Vec<HeldRequest> {
        let mut held = self.checkpoint.requests.clone();
        held.extend(self.journal.iter().filter_map(|record| match record {
            JournalRecord::Waits(request) => Some(HeldRequest { request: request.clone(), reply: None }),
            JournalRecord::Response(_)
            | JournalRecord::Active(_)
            | JournalRecord::Started(_)
            | JournalRecord::Sent(_)
            | JournalRecord::Returned(_)
            | JournalRecord::Finished { .. } => None,
        }));
        held
    }

    /// What the open turn waits for.
    pub fn open_requests(&self) -> Vec<InputRequest> {
        let answered = |id: &crate::RequestId| {
            let mut inputs = self.inputs.iter();
            inputs.any(|stored| matches!(&stored.input, crate::Input::Reply { request, .. } if request == id))
        };
        let open = self.held().into_iter().filter(|held| held.reply.is_none());
        open.map(|held| held.request).filter(|request| !answered(&request.id)).collect()
    }
}

/// A write between a model's answer and its commit (requirement D4). A commit clears the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "recovery must handle every record")]
pub enum JournalRecord {
    /// The model answered; its calls are about to run.
    Response(PendingStep),
    /// Only these tools may be called in the step at work.
    Active(BTreeSet<String>),
    /// A call is about to run: from here on it may have had its effect.
    Started(crate::CallId),
    /// A call waits: it had no effect yet, or runs again when the reply is there.
    Waits(InputRequest),
    /// It was told that a sub-agent begins in this session, which a crash may have kept from it; it is told once.
    Sent(SessionId),
    /// A sub-agent that ended used this; stands with the result of its call.
    Returned(Spent),
    /// A call has its result, and this is the shared state after it.
    Finished {
        /// The result.
        result: ToolResult,
        /// Shared state after the call, when the call changed it.
        slots: Option<Slots>,
    },
}

/// A session as loaded.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "returned by every store")]
pub struct SessionRecord {
    /// What was fixed at its beginning.
    pub meta: SessionMeta,
    /// How many commits it has.
    pub revision: Revision,
    /// The entries as the very text that is stored, in order. Whether it is JSON, and an entry, is for
    /// [`crate::History::load`] to find: it is read once.
    pub entries: Vec<String>,
    /// The state at the last commit.
    pub checkpoint: Checkpoint,
    /// What was journaled since, in order.
    pub journal: Vec<JournalRecord>,
    /// What was said to it and no commit has used, in order.
    pub inputs: Vec<StoredInput>,
    /// The number of the last durable event; 0 when there is none.
    pub last_seq: u64,
    /// What stands for a state that cannot be read; `None` when `checkpoint` and `journal` are those that were written.
    pub stand_in: Option<StandIn>,
}

/// What stands for the state of a session, because a row of it cannot be read (requirement D8).
///
/// Then the checkpoint has no open turn: the session's own sums, and what an older checkpoint held of the rest. The journal
/// has the records that can be read. History, events and inbox are whole.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "returned by every store")]
pub struct StandIn {
    /// What cannot be read, and what stands for it.
    pub lost: String,
    /// Whether a turn was open, which nobody can take up any more.
    pub was_open: bool,
}

/// What was said and done in one turn, or in several that were told of together, in a few words that a model wrote behind the
/// turn (requirement D5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record that background work builds")]
pub struct RoundSummary {
    /// The turn's number; of the last one, when it is of several.
    pub turn: u64,
    /// The first turn's number, when it is of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// Its first entry.
    pub from: EntryId,
    /// The first entry behind it.
    pub to: EntryId,
    /// The words.
    pub text: Text,
    /// Tokens that they cost.
    #[serde(default)]
    pub usage: Usage,
    /// The model that wrote them, `provider/name`; `None` in records of older releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl RoundSummary {
    /// Those that count, oldest first, out of all of a session in the order of their turns: what is told of together with
    /// later turns needs no words of its own any more.
    pub fn standing(rounds: &[Self]) -> Vec<&Self> {
        let mut standing: Vec<&Self> = Vec::with_capacity(rounds.len());
        for round in rounds.iter().rev() {
            if standing.last().is_none_or(|later| round.from < later.from) {
                standing.push(round);
            }
        }
        standing.reverse();
        standing
    }
}

/// A line of a session list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "returned by every store")]
pub struct SessionSummary {
    /// The session.
    pub id: SessionId,
    /// When it began, milliseconds since 1970 UTC.
    pub created_ms: i64,
    /// When it was last written to.
    pub updated_ms: i64,
    /// The model it began with.
    pub model: String,
    /// How many entries it has.
    pub entries: u64,
    /// How many turns were opened.
    pub turns: u64,
    /// Why the last turn ended; `None` while one is open.
    pub terminal: Option<TerminalReason>,
    /// Its tokens.
    pub usage: Usage,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_of_with_later_turns_does_not_stand() {
        let check = |rounds: &[(u64, usize, usize)], standing: &[u64]| {
            let round = |&(turn, from, to): &(u64, usize, usize)| RoundSummary {
                turn,
                since: None,
                from: EntryId::at(from),
                to: EntryId::at(to),
                text: Text::new("words").unwrap(),
                usage: Usage::default(),
                model: None,
            };
            let rounds: Vec<RoundSummary> = rounds.iter().map(round).collect();
            let found: Vec<u64> = RoundSummary::standing(&rounds).iter().map(|round| round.turn).collect();
            assert_eq!(found, standing);
        };
        check(&[], &[]);
        check(&[(1, 0, 2), (2, 2, 4), (4, 4, 8)], &[1, 2, 4]);
        check(&[(1, 0, 2), (2, 0, 4), (3, 4, 6)], &[2, 3]);
        check(&[(1, 0, 2), (2, 0, 4), (3, 4, 6), (4, 0, 8), (5, 8, 9)], &[4, 5]);
    }
}
