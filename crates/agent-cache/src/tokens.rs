//! How many tokens a block has: counted by whoever can, estimated otherwise.

use std::fmt;

use crate::{Block, BlockKind, CacheRules, Request};

/// Counts the tokens of blocks. A tokenizer, a table from recorded traffic, or [`Estimate`].
pub trait TokenCounter: fmt::Debug + Send + Sync {
    /// Tokens of one block, whatever stands around it.
    fn block(&self, block: &Block) -> u64;

    /// Tokens of every block of a request, in order; one number a block.
    fn request(&self, request: &Request) -> Vec<u64> {
        request.blocks.iter().map(|block| self.block(block)).collect()
    }

    /// Tokens that no block holds and that stand before the system text: hidden instructions for tools.
    fn hidden(&self, request: &Request, rules: &CacheRules) -> u64 {
        if !request.blocks.iter().any(Block::is_tool) {
            0
        } else if request.forces_a_tool() {
            rules.tool_prompt_forced
        } else {
            rules.tool_prompt
        }
    }
}

/// An estimate from sizes: no vendor publishes its tokenizer, and none is needed to see where a prefix breaks.
///
/// Text counts [`Estimate::bytes_per_token`] bytes of its JSON for a token, rounded up; English runs near four,
/// and other scripts higher. An image counts a fixed number, since its size in bytes says little.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a choice of two numbers, written as a literal with ..Default")]
pub struct Estimate {
    /// Bytes of JSON for one token; 0 counts as 1.
    pub bytes_per_token: u64,
    /// Tokens of an image. The default is what a large one costs on Anthropic (about width x height / 750).
    pub image: u64,
}

impl Default for Estimate {
    fn default() -> Self {
        Self { bytes_per_token: 4, image: 1_600 }
    }
}

impl TokenCounter for Estimate {
    fn block(&self, block: &Block) -> u64 {
        if matches!(block.kind, BlockKind::Image) {
            return self.image;
        }
        (block.bytes.len() as u64).div_ceil(self.bytes_per_token.max(1))
    }
}
