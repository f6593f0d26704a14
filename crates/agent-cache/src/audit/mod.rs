//! Prefix audit over consecutive requests: where each stopped sharing its prefix, why, and what that costs (V1).

mod cause;
mod compare;
mod loss;
mod part;
mod row;
mod sums;
mod volatile;

use std::collections::BTreeMap;
use std::time::Duration;

use agent_core::{Prices, Usage};

use crate::prefix::{Prefix, PrefixHash};
use crate::{CacheRules, Level, Miss, Missed, Outcome, Refusal, Request, Scheme, Simulator, miss};
pub use cause::{Cause, Divergence};
use compare::{Side, first_difference, shared};
pub use loss::{Loss, Sent, loss};
pub use part::Part;
use row::marks;
pub use row::{MarkedBlock, Row, Summary};
pub use volatile::{Suspect, Volatile, suspects};

/// An audit in progress: it takes requests one by one, in the order in which they were sent.
///
/// A request is compared with the newest earlier one that begins with the same message; without one, with the one
/// it shares most with.
///
/// ```
/// use agent_cache::{Audit, Cause, Request, RuleBook, Simulator, Volatile};
///
/// let body = |clock: &str| {
///     let rules = "Answer in one sentence. ".repeat(200);
///     let system = format!(r#"[{{"type":"text","text":"It is {clock}. {rules}","cache_control":{{"type":"ephemeral"}}}}]"#);
///     format!(r#"{{"model":"claude-opus-5","system":{system},"messages":[{{"role":"user","content":"Hi"}}]}}"#)
/// };
/// let mut audit = Audit::new(Simulator::new(RuleBook::builtin(), "anthropic"), None);
/// audit.step(&Request::read(body("12:04:05").as_bytes(), None)?, None, None);
/// let row = audit.step(&Request::read(body("12:04:06").as_bytes(), None)?, None, None);
///
/// let found = row.divergence.ok_or("the clock is missed")?;
/// assert_eq!((found.path.as_str(), found.cause), ("system[0]", Cause::SystemChanged));
/// assert_eq!(found.looks_like, Some(Volatile::Clock));
/// assert_eq!(row.lost, row.usage.cache_write());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Audit {
    simulator: Simulator,
    prices: Option<Prices>,
    at: Duration,
    earlier: Vec<Earlier>,
    /// The newest request whose blocks begin so, whatever its settings.
    begins: BTreeMap<PrefixHash, usize>,
    summary: Summary,
    /// What the input cost, and what the ideal would have.
    paid: (f64, f64),
}

#[derive(Debug)]
struct Earlier {
    step: usize,
    request: Request,
    prefix: Prefix,
    /// Tokens up to the end of what it left in the cache.
    covered: u64,
}

impl Audit {
    /// An audit of one account's requests. Prices are those of the model asked; without them no money is named.
    pub fn new(simulator: Simulator, prices: Option<Prices>) -> Self {
        Self {
            simulator,
            prices,
            at: Duration::ZERO,
            earlier: Vec::new(),
            begins: BTreeMap::new(),
            summary: Summary::default(),
            paid: (0.0, 0.0),
        }
    }

    /// Takes the next request: when it was sent, and what the provider said it cost, where that is known.
    ///
    /// Without a time, none has passed.
    pub fn step(&mut self, request: &Request, at: Option<Duration>, reported: Option<&Usage>) -> Row {
        self.at = at.unwrap_or(self.at).max(self.at);
        let rules = self.simulator.rules(request);
        let prefix = Prefix::of(request, &rules, self.simulator.counter());
        let asked = self.simulator.ask(request, self.at);
        let side = Side { request, prefix: &prefix };
        let before = self.compared_with(side, &rules);
        let simulated = asked.as_ref().map(|outcome| outcome.usage.clone()).unwrap_or_default();
        let usage = reported.cloned().unwrap_or_else(|| simulated.clone());
        let found = before.map(|at| self.found(side, at, &rules)).unwrap_or_default();
        let found = found.scaled(&simulated, &usage);
        let Found { divergence, shared_bytes, common, expected, lost, miss } =
            self.judged(found, (side, before), &asked, &usage);
        self.sum(&usage, lost, divergence.as_ref());
        let (cost, lost_cost) = self.costs(&usage, lost);
        let is_new = |found: &Divergence| matches!(found.cause, Cause::NewConversation | Cause::Unrelated);
        let first = self.earlier.is_empty() || divergence.as_ref().is_some_and(is_new);
        let row = Row {
            step: self.summary.steps,
            compared_with: before.map(|at| self.earlier[at].step),
            tools_hash: request.level_hash(Level::Tools),
            system_hash: request.level_hash(Level::System),
            bytes: request.blocks.iter().map(|block| block.bytes.len() as u64).sum(),
            shared_bytes,
            shared_tokens: common,
            marks: marks(request),
            reported: reported.is_some(),
            parts: part::parts(request, &prefix, &usage),
            usage,
            expected,
            lost,
            lost_cost,
            cost,
            divergence,
            miss,
            suspects: if first { suspects(request) } else { Vec::new() },
        };
        self.weigh(&row, &rules);
        // A refused request left nothing, and its repaired successor goes on from the one before it.
        if let Ok(outcome) = asked {
            self.remember(request, prefix, &rules, outcome.covered);
        }
        row
    }

    /// The sums so far.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// What tokens cost at the prices of this audit, in US dollars.
    pub fn cost(&self, usage: &Usage) -> Option<f64> {
        self.prices.as_ref().map(|prices| prices.cost(usage))
    }

    fn remember(&mut self, request: &Request, prefix: Prefix, rules: &CacheRules, covered: u64) {
        let at = self.earlier.len();
        for (_, hash) in request.prefix_hashes(&rules.without_settings()) {
            self.begins.insert(hash, at);
        }
        self.earlier.push(Earlier { step: self.summary.steps, request: request.clone(), prefix, covered });
    }

    /// The newest of its conversation, unless that took another branch and an older one goes on in this request.
    fn compared_with(&self, side: Side<'_>, rules: &CacheRules) -> Option<usize> {
        let hashes = side.request.prefix_hashes(&rules.without_settings());
        let deepest = hashes.iter().rev().find_map(|(_, hash)| self.begins.get(hash)).copied();
        let opening = opening(side.request);
        let newest =
            self.earlier.iter().rposition(|it| opening.is_some() && self::opening(&it.request) == opening);
        let (Some(newest), Some(deep)) = (newest, deepest) else { return newest.or(deepest) };
        let branched = |at: usize| {
            let found = first_difference(self.earlier[at].side(), side, rules);
            found.is_some_and(|found| found.path.starts_with("messages") || found.path.starts_with("input"))
        };
        let goes_on = |at: usize| first_difference(self.earlier[at].side(), side, rules).is_none();
        Some(if newest != deep && branched(newest) && goes_on(deep) { deep } else { newest })
    }

    /// Compares with an earlier request, byte by byte and in what it left in the cache.
    fn found(&self, side: Side<'_>, at: usize, rules: &CacheRules) -> Found {
        let earlier = &self.earlier[at];
        let divergence = first_difference(earlier.side(), side, rules);
        let (blocks, shared_bytes) = shared(earlier.side(), side);
        let common = side.prefix.tokens_to(blocks.checked_sub(1));
        let expected = match &divergence {
            Some(found) if found.cause.is_fault() => earlier.covered.min(side.prefix.total),
            Some(_) => common.min(earlier.covered),
            // Nothing diverged: all that was sent could have been read.
            None => common,
        };
        let expected = if rules.scheme == Scheme::None { 0 } else { expected };
        let miss = miss(&earlier.request, side.request, rules);
        Found { divergence, shared_bytes, common, expected, miss, lost: 0 }
    }

    /// Adds what the simulation says: refusals, prefixes that held and were not read, and what was lost.
    fn judged(
        &self,
        found: Found,
        (side, before): (Side<'_>, Option<usize>),
        asked: &Result<Outcome, Refusal>,
        usage: &Usage,
    ) -> Found {
        let outcome = match asked {
            Ok(outcome) => outcome,
            Err(refusal) => {
                let (cause, path) = Cause::of_refusal(refusal);
                return Found { divergence: Some(Divergence::new(path, cause)), ..found };
            }
        };
        let lost = found.expected.saturating_sub(usage.cache_read);
        let divergence = match found.divergence {
            None if before.is_none() && !self.earlier.is_empty() => {
                Some(Divergence::new("tools", Cause::Unrelated))
            }
            None if lost.saturating_mul(NOISE) > found.expected => {
                Some(self.unread(side, before, outcome, usage))
            }
            Some(differs) if lost == 0 && found.expected > 0 => Some(differs.passing_if_in_messages()),
            other => other,
        };
        let is_fault = divergence.as_ref().is_some_and(|found| found.cause.is_fault());
        Found { divergence, lost: if is_fault { lost } else { 0 }, ..found }
    }

    /// Why a prefix that held was not read.
    fn unread(&self, side: Side<'_>, before: Option<usize>, asked: &Outcome, usage: &Usage) -> Divergence {
        let path = |block: usize| side.request.blocks[block].path.clone();
        let last = side.request.blocks.last().map(|block| block.path.clone()).unwrap_or_default();
        let rules = self.simulator.rules(side.request);
        let marks = rules.scheme == Scheme::Marked;
        if usage.cache_read < asked.usage.cache_read {
            return Divergence::new(last, Cause::ServiceMiss);
        }
        match asked.missed {
            Some(Missed::NoMarker) if marks => Divergence::new(last, Cause::NoMarker),
            Some(Missed::BelowMinimum { .. }) => Divergence::new(last, Cause::BelowMinimum),
            Some(Missed::BeyondLookback { block, .. }) => Divergence::new(path(block), Cause::BeyondLookback),
            Some(Missed::Expired { block, .. }) => Divergence::new(path(block), Cause::Expired),
            Some(Missed::NotYetReadable { block }) => Divergence::new(path(block), Cause::NotYetReadable),
            Some(Missed::NoMarker) | None => {
                let earlier = before.map(|at| &self.earlier[at]);
                // The first request that is long enough finds nothing of those that were not.
                if earlier.is_some_and(|it| it.prefix.total < rules.min_tokens) {
                    return Divergence::new(last, Cause::BelowMinimum);
                }
                let end = earlier.and_then(|it| it.request.blocks.last()).map(|block| block.path.clone());
                let cause = if marks { Cause::TailUnmarked } else { Cause::ServiceMiss };
                Divergence::new(end.unwrap_or(last), cause)
            }
        }
    }
}

/// What a comparison gave.
#[derive(Debug, Default)]
struct Found {
    divergence: Option<Divergence>,
    shared_bytes: u64,
    /// Tokens of the blocks in common.
    common: u64,
    /// Tokens that an intact prefix would have read.
    expected: u64,
    lost: u64,
    miss: Option<Miss>,
}

impl Found {
    /// In the measure of what the provider counted.
    fn scaled(self, simulated: &Usage, usage: &Usage) -> Self {
        let scaled = |tokens| scaled(tokens, simulated, usage);
        Self { common: scaled(self.common), expected: scaled(self.expected), ..self }
    }
}

impl Earlier {
    fn side(&self) -> Side<'_> {
        Side { request: &self.request, prefix: &self.prefix }
    }
}

/// Estimated tokens in the measure of what the provider counted.
fn scaled(tokens: u64, simulated: &Usage, usage: &Usage) -> u64 {
    let (of, to) = (simulated.total_input(), usage.total_input());
    if of == 0 || of == to {
        return tokens;
    }
    u64::try_from(u128::from(tokens) * u128::from(to) / u128::from(of)).unwrap_or(u64::MAX)
}

/// The first message, which tells conversations apart.
fn opening(request: &Request) -> Option<&str> {
    request.level(Level::Messages).next().map(|block| &*block.bytes)
}

/// A loss below one part in so many of what could have been read is framing or rounding.
const NOISE: u64 = 20;
