//! Entries of a cache: which prefixes are kept, from when and until when.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use agent_core::Ttl;

use super::Now;
use crate::CacheRules;
use crate::prefix::PrefixHash;

/// All entries ever written; those that ran out stay, so that a miss can be explained.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    entries: BTreeMap<PrefixHash, Vec<Life>>,
    /// What followed each prefix, for services that also match inside a block.
    followed: BTreeMap<PrefixHash, Vec<(PrefixHash, Arc<str>)>>,
}

/// What a prefix's entry is like at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Never,
    NotYet,
    Live,
    /// How long ago it ran out.
    Expired(Duration),
}

/// One entry. Short-lived and long-lived ones of a prefix run out independently.
#[derive(Debug, Clone, Copy)]
struct Life {
    ttl: Ttl,
    readable: Duration,
    expires: Duration,
}

impl Ledger {
    pub(super) fn state(&self, hash: PrefixHash, now: Now) -> State {
        let lives = self.entries.get(&hash).map(Vec::as_slice).unwrap_or_default();
        if lives.iter().any(|life| life.is_live(now)) {
            return State::Live;
        }
        if lives.iter().any(|life| life.expires > now.at) {
            return State::NotYet;
        }
        let last = lives.iter().map(|life| life.expires).max();
        last.map_or(State::Never, |expires| State::Expired(now.at.saturating_sub(expires)))
    }

    /// Lives run from the start of the request that reads them.
    pub(super) fn refresh(&mut self, hash: PrefixHash, rules: &CacheRules, now: Now) {
        let lives = self.entries.get_mut(&hash).into_iter().flatten();
        lives.filter(|life| life.is_live(now)).for_each(|life| life.refresh(rules, now));
    }

    pub(super) fn write(&mut self, hash: PrefixHash, ttl: Ttl, rules: &CacheRules, now: Now) {
        let lives = self.entries.entry(hash).or_default();
        match lives.iter_mut().find(|life| life.ttl == ttl) {
            Some(life) => life.write(rules, now),
            None => lives.push(Life::new(ttl, rules, now)),
        }
    }

    /// Entries of this prefix that waited for their answer to begin can be read from now on.
    pub(super) fn begin(&mut self, hash: PrefixHash, at: Duration) {
        let lives = self.entries.get_mut(&hash).into_iter().flatten();
        lives.for_each(|life| life.readable = life.readable.min(at));
    }

    /// Remembers what followed a prefix, for as long as the entry at its own end lives.
    pub(super) fn follow(&mut self, parent: PrefixHash, hash: PrefixHash, bytes: &Arc<str>) {
        let children = self.followed.entry(parent).or_default();
        if children.iter().all(|(known, _)| *known != hash) {
            children.push((hash, Arc::clone(bytes)));
        }
    }

    /// The most bytes that a live block behind this prefix begins with in common.
    pub(super) fn common_bytes(&self, parent: PrefixHash, bytes: &str, now: Now) -> usize {
        let children = self.followed.get(&parent).map(Vec::as_slice).unwrap_or_default();
        let live = children.iter().filter(|(hash, _)| self.state(*hash, now) == State::Live);
        live.map(|(_, known)| common(known, bytes)).max().unwrap_or(0)
    }
}

impl Life {
    fn new(ttl: Ttl, rules: &CacheRules, now: Now) -> Self {
        let seconds = Duration::from_secs(rules.seconds(ttl));
        Self { ttl, readable: now.readable, expires: now.at.saturating_add(seconds) }
    }

    /// What is or will be readable stays so while it is written again.
    fn write(&mut self, rules: &CacheRules, now: Now) {
        if self.expires > now.at {
            self.refresh(rules, now);
            self.readable = self.readable.min(now.readable);
        } else {
            *self = Self::new(self.ttl, rules, now);
        }
    }

    fn is_live(&self, now: Now) -> bool {
        self.readable <= now.at && now.at < self.expires
    }

    fn refresh(&mut self, rules: &CacheRules, now: Now) {
        let seconds = Duration::from_secs(rules.seconds(self.ttl));
        self.expires = self.expires.max(now.at.saturating_add(seconds));
    }
}

fn common(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count()
}
