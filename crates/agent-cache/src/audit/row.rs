//! What an audit says of one request, and of all of them.

use std::collections::BTreeMap;

use agent_core::{Ttl, Usage};
use serde::Serialize;

use super::{Cause, Divergence, Part, Suspect};
use crate::{Block, Miss, Request};

/// What one request did to the cache.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// The request's number, from 1.
    pub step: usize,
    /// The request it is compared with; none for one that shares nothing.
    pub compared_with: Option<usize>,
    /// First 16 hex digits of the SHA-256 of the tools.
    pub tools_hash: String,
    /// First 16 hex digits of the SHA-256 of the system text.
    pub system_hash: String,
    /// Bytes of all blocks.
    pub bytes: u64,
    /// Bytes of the blocks it begins with as the request compared with did.
    pub shared_bytes: u64,
    /// Tokens of the same blocks, in the measure of [`Self::usage`].
    pub shared_tokens: u64,
    /// Where it is marked, in the order of the prompt; an automatic marker stands on the block it falls on.
    pub marks: Vec<MarkedBlock>,
    /// What the provider counts: as it said, or as simulated.
    pub usage: Usage,
    /// Whether [`Self::usage`] is what the provider said.
    pub reported: bool,
    /// Tokens that an intact prefix would have read from the cache.
    pub expected: u64,
    /// Those of them that were not read, and were paid in full or written again.
    pub lost: u64,
    /// What the lost tokens cost beyond a read, in US dollars; none without prices.
    pub lost_cost: Option<f64>,
    /// What the input cost, in US dollars; none without prices.
    pub cost: Option<f64>,
    /// The first changed segment and why; none when the prefix held and was read.
    pub divergence: Option<Divergence>,
    /// The difference in the words of the provider's own diagnostics.
    pub miss: Option<Miss>,
    /// What looks volatile in the stable start of the first request of a conversation.
    pub suspects: Vec<Suspect>,
    /// The blocks of the prefix with what became of each; not in the JSON, which names a request in a line.
    #[serde(skip)]
    pub parts: Vec<Part>,
}

impl Row {
    /// The same input at best: all that was sent before is read, the rest is written for as long as it was.
    pub fn ideal(&self) -> Usage {
        let total = self.usage.total_input();
        let read = self.shared_tokens.max(self.expected).min(total);
        let long = self.usage.cache_write_1h.min(total - read);
        Usage {
            cache_read: read,
            cache_write_1h: long,
            cache_write_5m: total - read - long,
            ..Usage::default()
        }
    }
}

/// A block with a marker behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MarkedBlock {
    /// Where it stands in the body, as in [`crate::Block::path`].
    pub path: String,
    /// How long the prefix up to here shall be kept.
    pub ttl: Ttl,
}

/// Sums over an audit.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// Requests seen.
    pub steps: usize,
    /// Tokens of all of them.
    pub usage: Usage,
    /// The same tokens, had each been written once and read ever after.
    pub ideal: Usage,
    /// What the input cost in multiples of what [`Self::ideal`] costs; none before the first token. At the prices of
    /// the audit, and without any at the multiples of the model's rules.
    pub cost_ratio: Option<f64>,
    /// Tokens lost.
    pub lost: u64,
    /// Requests with each cause of loss; causes that are no fault are not counted.
    pub causes: BTreeMap<Cause, usize>,
}

/// Where a request is marked.
pub(super) fn marks(request: &Request) -> Vec<MarkedBlock> {
    let automatic = request.automatic.and_then(|ttl| {
        let last = request.blocks.iter().rposition(Block::can_carry_mark)?;
        Some((last, ttl))
    });
    let blocks = request.blocks.iter().enumerate();
    let marked = blocks.filter_map(|(at, block)| {
        let ttl = block.mark.or(automatic.filter(|(last, _)| *last == at).map(|(_, ttl)| ttl))?;
        Some(MarkedBlock { path: block.path.clone(), ttl })
    });
    marked.collect()
}
