//! Signatures on thinking, and what a returned block must still be: itself, and where the prompt binds it, in its place.
//!
//! A signature is made of hashes of what it stands for, so that a restarted server knows its own.

use std::fmt;

use agent_cache::{BlockKind, CacheRules, Request};
use agent_core::hex;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::api_error::ApiError;

/// What was signed: each part the first 16 hex digits of a SHA-256.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Signature {
    model: String,
    /// The prompt ahead of the block without any thinking: that may be taken away from its beginning on.
    prefix: String,
    /// The thinking ahead of it.
    before: String,
    /// The words, sealed with all of the above.
    seal: String,
}

/// A thinking block of a request.
#[derive(Deserialize)]
struct Thought {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    thinking: String,
    #[serde(default)]
    signature: String,
}

impl Signature {
    /// Signs the thinking that answers a request.
    pub(super) fn of_answer(request: &Request, rules: &CacheRules, words: &str) -> Self {
        let before = thoughts(request).filter_map(|(_, thought)| Self::parse(&thought.signature)).last();
        let before = before.map_or_else(|| NONE.to_owned(), |signature| signature.seal);
        let places = Places::of(request, rules);
        Self::sealed([digest(&[&request.model]), places.ahead_of(request.blocks.len()), before], words)
    }

    fn sealed([model, prefix, before]: [String; 3], words: &str) -> Self {
        let seal = digest(&[&model, &prefix, &before, words]);
        Self { model, prefix, before, seal }
    }

    fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.strip_prefix(BEGIN)?.split('.').collect();
        let [model, prefix, before, seal] = parts.as_slice() else { return None };
        let [model, prefix, before, seal] = [model, prefix, before, seal].map(|part| (*part).to_owned());
        Some(Self { model, prefix, before, seal })
    }

    /// Whether these are the words that were signed.
    fn is_of(&self, words: &str) -> bool {
        let Self { model, prefix, before, .. } = self.clone();
        Self::sealed([model, prefix, before], words) == *self
    }
}

/// What becomes of the thinking in a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    /// Blocks that the model cannot read or that were asked to be dropped: not billed, not a part of the prompt.
    pub(super) dropped: Vec<usize>,
}

/// Checks every thinking block of a request; `drops` says that the request asks to drop what is out of place.
pub(super) fn check(request: &Request, rules: &CacheRules, drops: bool) -> Result<Kept, ApiError> {
    let places = Places::of(request, rules);
    let latest = request.blocks.iter().rposition(|block| block.role == agent_cache::Role::Assistant);
    let latest = latest.and_then(|at| request.blocks[at].message);
    let mut kept = Kept::default();
    let mut before: Option<Signature> = None;
    let mut displaced = false;
    for (at, thought) in thoughts(request) {
        let block = &request.blocks[at];
        let place = place(&block.path);
        if is_foreign(&thought.signature) {
            continue;
        }
        let signature = Signature::parse(&thought.signature).ok_or_else(|| invalid(&place))?;
        if !signature.is_of(&thought.thinking) {
            return Err(if block.message == latest { modified(&place) } else { invalid(&place) });
        }
        if signature.model != digest(&[&request.model]) {
            kept.dropped.push(at);
            continue;
        }
        let follows = before.as_ref().is_none_or(|before| before.seal == signature.before);
        let bound = displaced || signature.prefix != places.ahead_of(at) || !follows;
        if rules.binds_thinking && bound {
            if !drops {
                return Err(out_of_place(&place));
            }
            displaced = true;
            kept.dropped.push(at);
            continue;
        }
        before = Some(signature);
    }
    Ok(kept)
}

/// The hash of a prompt without thinking at each of its blocks.
struct Places {
    /// Index of a block in the request, and the hash up to and including it.
    hashes: Vec<(usize, String)>,
}

impl Places {
    fn of(request: &Request, rules: &CacheRules) -> Self {
        let words: Vec<usize> =
            (0..request.blocks.len()).filter(|at| request.blocks[*at].kind != BlockKind::Thinking).collect();
        let mut plain = request.clone();
        plain.blocks.retain(|block| block.kind != BlockKind::Thinking);
        let hashes = plain.prefix_hashes(&rules.without_settings()).into_iter();
        let hashes = hashes.filter_map(|(block, hash)| Some((*words.get(block)?, hash.to_string())));
        Self { hashes: hashes.collect() }
    }

    fn ahead_of(&self, block: usize) -> String {
        let ahead = self.hashes.partition_point(|(at, _)| *at < block);
        ahead.checked_sub(1).map_or_else(|| NONE.to_owned(), |last| self.hashes[last].1.clone())
    }
}

fn thoughts(request: &Request) -> impl Iterator<Item = (usize, Thought)> {
    let thinking = request.blocks.iter().enumerate().filter(|(_, block)| block.kind == BlockKind::Thinking);
    let read = thinking.filter_map(|(at, block)| Some((at, serde_json::from_str(&block.bytes).ok()?)));
    read.filter(|(_, thought): &(usize, Thought)| thought.kind == "thinking")
}

/// Whether another server gave it, as the one that was recorded: nothing can be said of such a one.
fn is_foreign(signature: &str) -> bool {
    !signature.is_empty() && !signature.starts_with(BEGIN)
}

/// A path in the words of the service: `messages.1.content.0`.
pub(super) fn place(path: &str) -> String {
    path.replace('[', ".").replace(']', "")
}

fn invalid(place: &str) -> ApiError {
    ApiError::invalid(format!("{place}: Invalid `signature` in `thinking` block"))
}

fn modified(place: &str) -> ApiError {
    ApiError::invalid(format!(
        "{place}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response."
    ))
}

fn out_of_place(place: &str) -> ApiError {
    ApiError::invalid(format!(
        "{place}: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\". That setting requires the `thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header."
    ))
}

/// Lengths go ahead of the texts, so that two never run together.
fn digest(texts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for text in texts {
        hasher.update((text.len() as u64).to_be_bytes());
        hasher.update(text.as_bytes());
    }
    let digest = hasher.finalize();
    hex(&digest[..8])
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, prefix, before, seal } = self;
        write!(f, "{BEGIN}{model}.{prefix}.{before}.{seal}")
    }
}

const BEGIN: &str = "sim.";
const NONE: &str = "0000000000000000";
