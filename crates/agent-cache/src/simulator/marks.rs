//! The markers of an Anthropic request, checked as the service checks them.

use agent_core::Ttl;

use crate::prefix::Prefix;
use crate::{Block, BlockKind, CacheRules, Request};

/// Where an entry will be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SetMark {
    /// Index in the prefix.
    pub(super) segment: usize,
    pub(super) ttl: Ttl,
}

/// A request that the service refuses for its markers, in words like its own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// More markers than allowed.
    #[error("A maximum of {most} blocks with cache_control may be provided. Found {found}.")]
    TooManyMarks {
        /// How many there are, the automatic one included.
        found: usize,
        /// How many may be.
        most: usize,
        /// The first block that is marked beyond them.
        path: String,
    },
    /// A marker on a block that may carry none.
    #[error("{path}: cache_control cannot be set on {what}; mark the block before it")]
    NotMarkable {
        /// The block.
        path: String,
        /// What it is.
        what: &'static str,
    },
    /// A long-lived marker behind a short-lived one.
    #[error(
        "{path}: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block; blocks are read in the order tools, system, messages"
    )]
    Order {
        /// The long-lived marker's block.
        path: String,
    },
    /// Automatic caching asks for another lifetime than the marker that stands there.
    #[error(
        "{path}: the automatic cache_control has another ttl than the marker on the last block; give both the same"
    )]
    AutomaticTtl {
        /// The last block that can be cached.
        path: String,
    },
}

/// The markers of a request in the order of the prompt, the automatic one included.
pub(super) fn of(request: &Request, prefix: &Prefix, rules: &CacheRules) -> Result<Vec<SetMark>, Refusal> {
    let marked = request.blocks.iter().enumerate().filter_map(|(at, block)| Some((at, block.mark?)));
    let mut marks: Vec<(usize, Ttl)> = marked.collect();
    for (at, _) in &marks {
        check_place(&request.blocks[*at])?;
    }
    if let Some(ttl) = request.automatic {
        add_automatic(&mut marks, ttl, &request.blocks)?;
    }
    if let Some((beyond, _)) = marks.get(rules.max_marks) {
        let path = request.blocks[*beyond].path.clone();
        return Err(Refusal::TooManyMarks { found: marks.len(), most: rules.max_marks, path });
    }
    let late = marks.windows(2).find(|pair| pair[0].1 < pair[1].1);
    if let Some(pair) = late {
        return Err(Refusal::Order { path: request.blocks[pair[1].0].path.clone() });
    }
    let set = marks.into_iter().filter_map(|(at, ttl)| Some(SetMark { segment: prefix.segment(at)?, ttl }));
    Ok(set.collect())
}

/// It stands on the last block that can carry one, and nowhere when there is none.
fn add_automatic(marks: &mut Vec<(usize, Ttl)>, ttl: Ttl, blocks: &[Block]) -> Result<(), Refusal> {
    let Some(last) = blocks.iter().rposition(Block::can_carry_mark) else { return Ok(()) };
    match marks.iter().find(|(at, _)| *at == last) {
        Some((_, there)) if *there != ttl => Err(Refusal::AutomaticTtl { path: blocks[last].path.clone() }),
        Some(_) => Ok(()),
        None => {
            marks.push((last, ttl));
            marks.sort_by_key(|(at, _)| *at);
            Ok(())
        }
    }
}

fn check_place(block: &Block) -> Result<(), Refusal> {
    if block.can_carry_mark() {
        return Ok(());
    }
    let named = [
        (BlockKind::Thinking, "thinking blocks"),
        (BlockKind::EmptyText, "empty text blocks"),
        (BlockKind::DeferredTool, "tools with defer_loading"),
    ];
    let named = named.into_iter().find(|(kind, _)| *kind == block.kind);
    let what = named.map_or("this block", |(_, what)| what);
    Err(Refusal::NotMarkable { path: block.path.clone(), what })
}
