//! Services that cache without markers of ours: at ends of messages, or the longest prefix.

use agent_core::{Ttl, Usage};

use super::ledger::{Ledger, State};
use super::marks::SetMark;
use super::{Kept, Missed, Now, Outcome};
use crate::prefix::Prefix;
use crate::{CacheRules, Level, Request, Role};

/// Earlier ends of messages at which an implicit breakpoint looks.
const EARLIER_ENDS: usize = 20;
/// Explicit breakpoints at which entries are looked for: the first ones, and the latest ones.
const EXPLICIT_FIRST: usize = 2;
const EXPLICIT_LATEST: usize = 50;

/// Breakpoints at ends of messages, by themselves or explicit, each tried from the longest to the shortest.
pub(super) fn breakpoints<'a>(request: &Request, rules: &'a CacheRules, prefix: &'a Prefix) -> Kept<'a> {
    let marked = |at: &usize| request.blocks[prefix.segments[*at].block].mark.is_some();
    let explicit: Vec<usize> = (0..prefix.segments.len()).filter(marked).collect();
    let ends = if request.explicit_only { Vec::new() } else { ends(request, prefix) };
    let latest = explicit.len().saturating_sub(EXPLICIT_LATEST);
    let mut searched: Vec<usize> = explicit.iter().take(EXPLICIT_FIRST).copied().collect();
    searched.extend(&explicit[latest..]);
    searched.extend(ends.iter().rev().take(EARLIER_ENDS + 1));
    let instructions = |at: &&usize| request.blocks[prefix.segments[**at].block].level < Level::Messages;
    searched.extend(ends.iter().rfind(instructions));
    searched.sort_unstable_by(|a, b| b.cmp(a));
    searched.dedup();
    // The implicit breakpoint takes one of the writes.
    let implicit = ends.last().copied();
    let room = rules.max_marks.saturating_sub(usize::from(implicit.is_some()));
    let mut written: Vec<usize> = explicit.iter().rev().take(room).copied().chain(implicit).collect();
    written.sort_unstable();
    written.dedup();
    let marks = written.into_iter().map(|segment| SetMark { segment, ttl: request.ttl }).collect();
    Kept { rules, prefix, searched, marks }
}

/// Ends of the messages at which a breakpoint is set by itself: the user's, the last result of a run, and the last
/// of the instructions ahead of the conversation.
fn ends(request: &Request, prefix: &Prefix) -> Vec<usize> {
    let block = |at: usize| prefix.segments.get(at).map(|segment| &request.blocks[segment.block]);
    let is_end = |at: &usize| {
        let Some(here) = block(*at) else { return false };
        let next = block(at + 1);
        match (here.level, here.role) {
            (Level::Tools, _) => false,
            (Level::System, _) => next.is_none_or(|next| next.level > Level::System),
            // A picture in a result does not end the run.
            (Level::Messages, Role::Tool) => next.is_none_or(|next| next.role != Role::Tool),
            (Level::Messages, role) => {
                role == Role::User && next.is_none_or(|next| next.message != here.message)
            }
        }
    };
    (0..prefix.segments.len()).filter(is_end).collect()
}

/// The longest prefix of any earlier request, also inside a block, rounded down; writes are free.
pub(super) fn longest(
    request: &Request,
    rules: &CacheRules,
    prefix: &Prefix,
    ledger: &mut Ledger,
    now: Now,
) -> Outcome {
    let segments = &prefix.segments;
    let state = |at: &usize| ledger.state(segments[*at].hash, now);
    let whole = (0..segments.len()).rev().find(|at| state(at) == State::Live);
    let expired = (whole.map_or(0, |at| at + 1)..segments.len()).rev().find_map(|at| match state(&at) {
        State::Expired(ago) => Some(Missed::Expired { block: segments[at].block, ago }),
        State::NotYet => Some(Missed::NotYetReadable { block: segments[at].block }),
        State::Never | State::Live => None,
    });
    let parent = |at: usize| at.checked_sub(1).map_or(prefix.seed, |before| segments[before].hash);
    let next = whole.map_or(0, |at| at + 1);
    let inside = segments.get(next).map_or(0, |segment| {
        let bytes = &request.blocks[segment.block].bytes;
        let common = ledger.common_bytes(parent(next), bytes, now) as u64;
        let own = segment.tokens - prefix.tokens_to(next.checked_sub(1));
        own * common / (bytes.len() as u64).max(1)
    });
    let found = (prefix.tokens_to(whole) + inside).min(prefix.total.saturating_sub(1));
    let rounded = found - found % rules.step.max(1);
    let read = if rounded < rules.min_tokens { 0 } else { rounded };
    let short = (prefix.total < rules.min_tokens)
        .then_some(Missed::BelowMinimum { tokens: prefix.total, least: rules.min_tokens });
    for (at, segment) in segments.iter().enumerate() {
        ledger.write(segment.hash, request.ttl, rules, now);
        ledger.follow(parent(at), segment.hash, &request.blocks[segment.block].bytes);
    }
    let usage = Usage { input: prefix.total - read, cache_read: read, ..Usage::default() };
    let hit = whole.filter(|_| read > 0).map(|at| segments[at].block);
    let covered =
        if prefix.total < rules.min_tokens { 0 } else { prefix.tokens_to(segments.len().checked_sub(1)) };
    let written: Vec<(usize, Ttl)> = Vec::new();
    Outcome { usage, hit, written, missed: expired.or(short), covered }
}
