//! The cumulative hash of a request: equal hashes mean an equal prompt up to and including a block.

use std::fmt;

use agent_core::hex;
use sha2::{Digest, Sha256};

use crate::{Aspect, Block, BlockKind, CacheRules, Level, Request, Role, TokenCounter};

/// Names everything up to and including a block; shown as its first 16 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PrefixHash([u8; 32]);

/// A request under the rules of its model: what is in the prefix, and how far.
#[derive(Debug)]
pub(crate) struct Prefix {
    /// The hash ahead of the first block.
    pub(crate) seed: PrefixHash,
    pub(crate) segments: Vec<Segment>,
    /// Tokens of the whole input, closing framing included.
    pub(crate) total: u64,
}

/// A block that is in the prefix.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    /// Index in [`Request::blocks`].
    pub(crate) block: usize,
    pub(crate) hash: PrefixHash,
    /// As a lookback counts.
    pub(crate) position: u32,
    /// Tokens up to and including the block.
    pub(crate) tokens: u64,
}

impl Request {
    /// The hash at each block that is in the prefix under these rules, with the block's index. Markers are not in it.
    ///
    /// Thinking bound to its prefix is valid as long as the hash of the block before it, under
    /// [`CacheRules::without_settings`], stays what it was.
    pub fn prefix_hashes(&self, rules: &CacheRules) -> Vec<(usize, PrefixHash)> {
        let counts = vec![0; self.blocks.len()];
        let prefix = Prefix::counted(self, rules, &counts, 0);
        prefix.segments.into_iter().map(|segment| (segment.block, segment.hash)).collect()
    }

    /// The first 16 hex digits of the SHA-256 of the blocks of a level, in order (requirement A7).
    pub fn level_hash(&self, level: Level) -> String {
        let mut hasher = Sha256::new();
        for block in self.level(level) {
            feed(&mut hasher, block.bytes.as_bytes());
        }
        short(&hasher.finalize())
    }
}

impl Prefix {
    pub(crate) fn of(request: &Request, rules: &CacheRules, counter: &dyn TokenCounter) -> Self {
        let counts = counter.request(request);
        Self::counted(request, rules, &counts, counter.hidden(request, rules))
    }

    fn counted(request: &Request, rules: &CacheRules, counts: &[u64], hidden: u64) -> Self {
        let spoken = last_words(&request.blocks);
        let mut chain = Chain::start(request, rules);
        let seed = chain.hash;
        let mut segments: Vec<Segment> = Vec::new();
        let (mut tokens, mut hidden) = (0_u64, hidden);
        for (index, block) in request.blocks.iter().enumerate() {
            if is_outside(block, rules, index < spoken) {
                continue;
            }
            if block.level > Level::Tools {
                tokens = tokens.saturating_add(std::mem::take(&mut hidden));
            }
            chain.take(block, request, rules);
            tokens = tokens.saturating_add(counts.get(index).copied().unwrap_or(0));
            let before = segments.last().map(|last| (last.position, &request.blocks[last.block]));
            let position = match before {
                Some((position, last)) if rules.collapse_runs && is_run(last, block) => position,
                Some((position, _)) => position + 1,
                None => 0,
            };
            segments.push(Segment { block: index, hash: chain.hash, position, tokens });
        }
        let last = segments.last().map(|last| request.blocks[last.block].kind);
        let tail = if last == Some(BlockKind::ToolResult) { rules.tail_result } else { rules.tail_text };
        Self { seed, segments, total: tokens.saturating_add(hidden).saturating_add(tail) }
    }

    /// The segment of a block.
    pub(crate) fn segment(&self, block: usize) -> Option<usize> {
        self.segments.binary_search_by_key(&block, |segment| segment.block).ok()
    }

    /// Tokens up to and including a segment.
    pub(crate) fn tokens_to(&self, segment: Option<usize>) -> u64 {
        segment.and_then(|it| self.segments.get(it)).map_or(0, |it| it.tokens)
    }
}

/// The running hash with the level it is in.
struct Chain {
    hash: PrefixHash,
    level: Level,
}

impl Chain {
    fn start(request: &Request, rules: &CacheRules) -> Self {
        let mut chain = Self { hash: PrefixHash([0; 32]), level: Level::Tools };
        chain.settings(request, rules, Level::Tools);
        if rules.tools_whole {
            let tools = request.blocks.iter().filter(|block| block.kind == BlockKind::Tool);
            tools.for_each(|tool| chain.mix(&[tool.bytes.as_bytes()]));
        }
        chain
    }

    fn take(&mut self, block: &Block, request: &Request, rules: &CacheRules) {
        for level in [Level::System, Level::Messages] {
            if self.level < level && block.level >= level {
                self.level = level;
                self.settings(request, rules, level);
            }
        }
        // Web tools count as a setting of the system level.
        if block.kind != BlockKind::WebTool {
            let role = [b'0' + role_byte(block.role)];
            self.mix(&[&role, block.bytes.as_bytes()]);
        }
    }

    /// What a change of these would lose belongs to the prefix from here on.
    fn settings(&mut self, request: &Request, rules: &CacheRules, level: Level) {
        for (aspect, value) in &request.aspects {
            if rules.loses(*aspect) == Some(level) && !is_default(*aspect, value, rules) {
                self.mix(&[format!("{aspect:?}").as_bytes(), value.as_bytes()]);
            }
        }
    }

    fn mix(&mut self, parts: &[&[u8]]) {
        let mut hasher = Sha256::new();
        hasher.update(self.hash.0);
        parts.iter().for_each(|part| feed(&mut hasher, part));
        self.hash = PrefixHash(hasher.finalize().into());
    }
}

/// Saying the default changes nothing.
pub(crate) fn is_default(aspect: Aspect, value: &str, rules: &CacheRules) -> bool {
    aspect == Aspect::Effort && value.trim_matches('"') == rules.default_effort
}

/// Lengths go ahead of bytes, so that two texts never run together.
fn feed(hasher: &mut Sha256, bytes: &[u8]) {
    hasher.update((bytes.len() as u64).to_be_bytes());
    hasher.update(bytes);
}

fn short(digest: &[u8]) -> String {
    hex(digest.get(..8).unwrap_or(digest))
}

fn role_byte(role: Role) -> u8 {
    match role {
        Role::Developer => 0,
        Role::User => 1,
        Role::Assistant => 2,
        Role::Tool => 3,
    }
}

fn is_run(before: &Block, block: &Block) -> bool {
    before.kind == block.kind && matches!(block.kind, BlockKind::ToolUse | BlockKind::ToolResult)
}

/// The index of the newest block that the user said, which is no result.
fn last_words(blocks: &[Block]) -> usize {
    let said = |block: &Block| block.role == Role::User && block.kind != BlockKind::ToolResult;
    blocks.iter().rposition(said).unwrap_or(0)
}

/// What the service takes out or keeps elsewhere; `answered` says that the user has spoken since.
fn is_outside(block: &Block, rules: &CacheRules, answered: bool) -> bool {
    match block.kind {
        BlockKind::DeferredTool | BlockKind::BillingHeader => true,
        BlockKind::Thinking => rules.strips_old_thinking && answered,
        BlockKind::Tool
        | BlockKind::WebTool
        | BlockKind::Text
        | BlockKind::EmptyText
        | BlockKind::Image
        | BlockKind::Document
        | BlockKind::ToolUse
        | BlockKind::ToolResult
        | BlockKind::ServerTool
        | BlockKind::Other => false,
    }
}

impl fmt::Display for PrefixHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&short(&self.0))
    }
}

impl fmt::Debug for PrefixHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
