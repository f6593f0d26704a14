//! The accounting of a provider's prompt cache over a sequence of requests, under a clock moved by hand.

mod automatic;
mod ledger;
mod marks;

use std::time::Duration;

use agent_core::{Ttl, Usage};

use crate::prefix::{Prefix, PrefixHash};
use crate::{CacheRules, Estimate, Request, RuleBook, Scheme, TokenCounter};
use ledger::{Ledger, State};
pub use marks::Refusal;
use marks::SetMark;

/// One provider's cache, for one account.
///
/// Times are measured from any start; they may stand still and need not be real. Markers that a service adds by
/// itself to results of server tools, and thinking that it drops, are not simulated.
///
/// ```
/// use std::time::Duration;
/// use agent_cache::{Request, RuleBook, Simulator};
///
/// let system = "Answer in one sentence. ".repeat(200);
/// let body = format!(r#"{{"model":"claude-opus-5","system":[{{"type":"text","text":"{system}",
///     "cache_control":{{"type":"ephemeral"}}}}],"messages":[{{"role":"user","content":"Hi"}}]}}"#);
/// let request = Request::read(body.as_bytes(), None)?;
/// let mut simulator = Simulator::new(RuleBook::builtin(), "anthropic");
///
/// let first = simulator.ask(&request, Duration::ZERO)?.usage;
/// let second = simulator.ask(&request, Duration::from_secs(200))?.usage;
/// let third = simulator.ask(&request, Duration::from_secs(200 + 301))?.usage;
/// assert_eq!((first.cache_read, second.cache_read), (0, first.cache_write()));
/// assert_eq!(third, first, "after five idle minutes all is written again");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Simulator {
    book: RuleBook,
    provider: String,
    counter: Box<dyn TokenCounter>,
    begins_after: Duration,
    ledger: Ledger,
}

/// What a request cost and left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// Tokens as the provider counts them, without output.
    pub usage: Usage,
    /// The last block read from the cache: index in [`Request::blocks`].
    pub hit: Option<usize>,
    /// Blocks at which an entry was written: index, and how long it lives.
    pub written: Vec<(usize, Ttl)>,
    /// Why no more was read, where something of the prefix was, or could have been, in the cache.
    pub missed: Option<Missed>,
    /// Tokens up to the end of what is in the cache now.
    pub covered: u64,
}

/// What a request writes as soon as its answer begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending(Vec<PrefixHash>);

/// Why a prefix that stayed the same was not read as far as it could have been.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Missed {
    /// The request has no marker.
    NoMarker,
    /// The prompt up to the last marker is shorter than what the provider keeps.
    BelowMinimum {
        /// Its tokens.
        tokens: u64,
        /// What would be kept.
        least: u64,
    },
    /// An entry is there, too far before every marker.
    BeyondLookback {
        /// The block it ends at: index in [`Request::blocks`].
        block: usize,
        /// Positions from the nearest marker back to it, both included.
        positions: u32,
    },
    /// An entry was there and ran out.
    Expired {
        /// The block it ended at: index in [`Request::blocks`].
        block: usize,
        /// How long ago.
        ago: Duration,
    },
    /// An entry is there, but the answer that writes it has not begun.
    NotYetReadable {
        /// The block it ends at: index in [`Request::blocks`].
        block: usize,
    },
}

impl Simulator {
    /// An empty cache of this provider (`anthropic`, `bedrock`, `openai`, `gemini`, `deepseek`, `xai`, `mistral`),
    /// which counts tokens by [`Estimate`].
    pub fn new(book: RuleBook, provider: impl Into<String>) -> Self {
        Self {
            book,
            provider: provider.into(),
            counter: Box::new(Estimate::default()),
            begins_after: Duration::ZERO,
            ledger: Ledger::default(),
        }
    }

    /// Counts tokens in another way.
    pub fn with_counter(self, counter: impl TokenCounter + 'static) -> Self {
        Self { counter: Box::new(counter), ..self }
    }

    /// Lets answers begin so long after their request; an entry can be read from then on.
    pub fn with_begin(self, begins_after: Duration) -> Self {
        Self { begins_after, ..self }
    }

    /// The rules for a request's model.
    pub fn rules(&self, request: &Request) -> CacheRules {
        self.book.rules(&self.provider, &request.model)
    }

    /// How tokens are counted.
    pub fn counter(&self) -> &dyn TokenCounter {
        self.counter.as_ref()
    }

    /// Tokens of the whole input, as the provider counts them.
    pub fn input_tokens(&self, request: &Request) -> u64 {
        Prefix::of(request, &self.rules(request), self.counter.as_ref()).total
    }

    /// Whether the provider takes the request's markers. Nothing is counted or left behind.
    pub fn check(&self, request: &Request) -> Result<(), Refusal> {
        let rules = self.rules(request);
        if rules.scheme != Scheme::Marked {
            return Ok(());
        }
        let prefix = Prefix::of(request, &rules, self.counter.as_ref());
        marks::of(request, &prefix, &rules).map(drop)
    }

    /// Accounts for a request that starts at this time. A refused request costs and leaves nothing.
    pub fn ask(&mut self, request: &Request, at: Duration) -> Result<Outcome, Refusal> {
        let readable = at.saturating_add(self.begins_after);
        self.account(request, Now { at, readable }).map(|(outcome, _)| outcome)
    }

    /// Accounts for a request whose answer begins later: what it writes can be read after [`Simulator::begin`].
    pub fn ask_pending(&mut self, request: &Request, at: Duration) -> Result<(Outcome, Pending), Refusal> {
        self.account(request, Now { at, readable: Duration::MAX })
    }

    /// The answer to a request begins at this time.
    pub fn begin(&mut self, pending: &Pending, at: Duration) {
        pending.0.iter().for_each(|hash| self.ledger.begin(*hash, at));
    }

    fn account(&mut self, request: &Request, now: Now) -> Result<(Outcome, Pending), Refusal> {
        let rules = self.rules(request);
        let prefix = Prefix::of(request, &rules, self.counter.as_ref());
        let kept = match rules.scheme {
            Scheme::None => return Ok((Outcome::uncached(&prefix), Pending(Vec::new()))),
            Scheme::Prefix => {
                let outcome = automatic::longest(request, &rules, &prefix, &mut self.ledger, now);
                let all = prefix.segments.iter().map(|segment| segment.hash);
                return Ok((outcome, Pending(all.collect())));
            }
            Scheme::Marked => {
                let marks = marks::of(request, &prefix, &rules)?;
                let searched: Vec<usize> = marks.iter().rev().map(|mark| mark.segment).collect();
                Kept { rules: &rules, prefix: &prefix, searched, marks }
            }
            Scheme::Breakpoints => automatic::breakpoints(request, &rules, &prefix),
        };
        let outcome = kept.account(&mut self.ledger, now);
        let written = outcome.written.iter().filter_map(|(block, _)| prefix.segment(*block));
        let written = written.map(|segment| prefix.segments[segment].hash).collect();
        Ok((outcome, Pending(written)))
    }
}

/// The time of a request.
#[derive(Debug, Clone, Copy)]
struct Now {
    at: Duration,
    /// When its entries can be read.
    readable: Duration,
}

/// A request under a scheme whose entries are written at chosen blocks.
#[derive(Debug)]
struct Kept<'a> {
    rules: &'a CacheRules,
    prefix: &'a Prefix,
    /// Segments from which an entry is looked for, in this order.
    searched: Vec<usize>,
    /// Where entries are written, in the order of the prompt.
    marks: Vec<SetMark>,
}

impl Kept<'_> {
    /// The published accounting: A tokens are read, B - A written for long, C - B for short, the rest is input.
    fn account(self, ledger: &mut Ledger, now: Now) -> Outcome {
        let hit = self.hit(ledger, now);
        let missed = self.missed(ledger, hit, now);
        if let Some(hit) = hit {
            // A read keeps every shorter entry on the same path warm.
            for segment in &self.prefix.segments[..=hit] {
                ledger.refresh(segment.hash, self.rules, now);
            }
        }
        let after = |mark: &&SetMark| hit.is_none_or(|hit| mark.segment > hit) && self.is_kept(mark.segment);
        let fresh: Vec<SetMark> = self.marks.iter().filter(after).copied().collect();
        for mark in &fresh {
            ledger.write(self.prefix.segments[mark.segment].hash, mark.ttl, self.rules, now);
        }
        let long = fresh.iter().rfind(|mark| mark.ttl == Ttl::OneHour);
        let a = self.prefix.tokens_to(hit);
        let b = long.map_or(a, |mark| self.prefix.tokens_to(Some(mark.segment)));
        let c = fresh.last().map_or(a, |mark| self.prefix.tokens_to(Some(mark.segment)));
        let usage = Usage {
            input: self.prefix.total - c,
            cache_read: a,
            cache_write_5m: c - b,
            cache_write_1h: b - a,
            ..Usage::default()
        };
        let block = |segment: usize| self.prefix.segments[segment].block;
        Outcome {
            usage,
            hit: hit.map(block),
            written: fresh.iter().map(|mark| (block(mark.segment), mark.ttl)).collect(),
            missed,
            covered: c,
        }
    }

    fn is_kept(&self, segment: usize) -> bool {
        self.prefix.segments[segment].tokens >= self.rules.min_tokens
    }

    /// The newest marker from which a live entry is in sight, and that entry.
    fn hit(&self, ledger: &Ledger, now: Now) -> Option<usize> {
        let live = |segment: &usize| {
            self.is_kept(*segment)
                && matches!(ledger.state(self.prefix.segments[*segment].hash, now), State::Live)
        };
        self.searched.iter().find_map(|from| self.in_sight(*from).rev().find(live))
    }

    /// Segments seen from a marker. Entries that others choose are found only where they are looked for.
    fn in_sight(&self, from: usize) -> std::ops::RangeInclusive<usize> {
        if self.rules.scheme != Scheme::Marked {
            return from..=from;
        }
        let segments = &self.prefix.segments;
        let reach = (segments[from].position + 1).saturating_sub(self.rules.lookback);
        segments.partition_point(|segment| segment.position < reach)..=from
    }

    /// Looks at what lies behind the hit for the reason why it was not read.
    fn missed(&self, ledger: &Ledger, hit: Option<usize>, now: Now) -> Option<Missed> {
        let Some(last) = self.marks.last() else { return Some(Missed::NoMarker) };
        let behind = hit.map_or(0, |hit| hit + 1);
        let segments = self.prefix.segments.iter().enumerate().skip(behind).rev();
        let mut known = segments.filter(|(_, segment)| segment.tokens >= self.rules.min_tokens);
        let found = known.find_map(|(at, segment)| {
            let block = segment.block;
            match ledger.state(segment.hash, now) {
                State::Never => None,
                State::Expired(ago) => Some(Missed::Expired { block, ago }),
                State::NotYet => Some(Missed::NotYetReadable { block }),
                State::Live => {
                    let ahead = self.searched.iter().filter(|from| **from >= at).min()?;
                    let positions = self.prefix.segments[*ahead].position - segment.position + 1;
                    Some(Missed::BeyondLookback { block, positions })
                }
            }
        });
        let tokens = self.prefix.tokens_to(Some(last.segment));
        let least = self.rules.min_tokens;
        found.or_else(|| (tokens < least).then_some(Missed::BelowMinimum { tokens, least }))
    }
}

impl Outcome {
    fn uncached(prefix: &Prefix) -> Self {
        let usage = Usage { input: prefix.total, ..Usage::default() };
        Self { usage, hit: None, written: Vec::new(), missed: None, covered: 0 }
    }
}
