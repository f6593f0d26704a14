//! What a turn remembers of its steps, so that conditions decide alike after a restart.

use std::time::Duration;

use agent_core::{Spent, StepRecord, ToolCall, ToolResult, Usage};
use serde::{Deserialize, Serialize};

use crate::{Streak, Todos};

/// What the driver saw since it last said so; the machine has no clock, no prices and no todo list.
#[derive(Debug, Clone, PartialEq, Default)]
#[expect(clippy::exhaustive_structs, reason = "a record that drivers write as a literal with ..Default")]
pub struct Seen {
    /// Tokens that stand in no step: of attempts that failed, and of calls beside the conversation.
    pub beside: Usage,
    /// What calls cost, in US dollars; 0 without prices.
    pub cost_usd: f64,
    /// How long it was at work.
    pub elapsed: Duration,
    /// The todo list as it is now.
    pub todos: Todos,
}

/// The sums and streaks of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Ledger {
    beside: Usage,
    /// Whole numbers, so that a saved turn is the same when it is read.
    nano_usd: u64,
    elapsed_ms: u64,
    pub(crate) todos: Todos,
    pub(crate) streak: Streak,
    /// Digests of the last calls with their results, the newest last.
    recent: Vec<u64>,
    /// How often the continue hook made the turn go on.
    pub(crate) nudges: u32,
    /// How often the final output was asked for.
    pub(crate) asked_for_output: u32,
}

/// How many calls are remembered to find a repetition.
const REMEMBERED: usize = 16;

impl Ledger {
    pub(crate) fn see(&mut self, seen: &Seen) {
        self.beside += &seen.beside;
        self.nano_usd = self.nano_usd.saturating_add(Spent::nanos(seen.cost_usd));
        let millis = u64::try_from(seen.elapsed.as_millis()).unwrap_or(u64::MAX);
        self.elapsed_ms = self.elapsed_ms.saturating_add(millis);
        self.todos = seen.todos;
    }

    /// Tokens of the turn, where the steps took these.
    pub(crate) fn usage(&self, of_steps: &Usage) -> Usage {
        let mut usage = of_steps.clone();
        usage += &self.beside;
        usage
    }

    /// The same with money and time.
    pub(crate) fn spent(&self, of_steps: &Usage) -> Spent {
        Spent { usage: self.usage(of_steps), nano_usd: self.nano_usd, elapsed_ms: self.elapsed_ms }
    }

    pub(crate) fn cost_usd(&self) -> f64 {
        self.nano_usd as f64 / 1e9
    }

    pub(crate) fn elapsed(&self) -> Duration {
        Duration::from_millis(self.elapsed_ms)
    }

    /// Counts a completed step.
    pub(crate) fn record(&mut self, step: &StepRecord) {
        let results = step.results();
        if results.is_empty() {
            return;
        }
        let is_failed = results.iter().all(|result| result.output.is_error());
        self.streak.failed = if is_failed { self.streak.failed.saturating_add(1) } else { 0 };
        let made: Vec<u64> = step.pairs().map(|(call, result)| digest(call, result)).collect();
        let is_repeated = made.iter().all(|digest| self.recent.contains(digest));
        self.streak.repeated = if is_repeated { self.streak.repeated.saturating_add(1) } else { 0 };
        for digest in made {
            self.recent.retain(|known| *known != digest);
            self.recent.push(digest);
        }
        let old = self.recent.len().saturating_sub(REMEMBERED);
        self.recent.drain(..old);
    }
}

/// FNV-1a over the call and its result: stable across releases, and a chance hit does no more than advise early.
struct Fnv(u64);

impl std::io::Write for Fnv {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn digest(call: &ToolCall, result: &ToolResult) -> u64 {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    let parts = (&call.name, call.input.as_str(), &result.output);
    // Writing to the hash cannot fail, and an output that has no JSON is none that was stored.
    match serde_json::to_writer(&mut hash, &parts) {
        Ok(()) | Err(_) => hash.0,
    }
}
