//! The blocks of a request with what became of the tokens of each.

use agent_core::Usage;

use crate::prefix::Prefix;
use crate::{Level, Request};

/// A block of a request as it was paid for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Part {
    /// Where it stands in the body, for example `messages[12].content[0]`.
    pub path: String,
    /// The part of the prompt it belongs to.
    pub level: Level,
    /// Tokens read from the cache.
    pub read: u64,
    /// Tokens written to the cache.
    pub written: u64,
    /// Tokens paid in full and not kept.
    pub new: u64,
}

impl Part {
    /// All its tokens.
    pub fn tokens(&self) -> u64 {
        self.read + self.written + self.new
    }
}

/// Reads come first in a prompt, then writes, then the rest: what a block costs follows from where it ends.
pub(super) fn parts(request: &Request, prefix: &Prefix, usage: &Usage) -> Vec<Part> {
    let (read, kept) = (usage.cache_read, usage.cache_read.saturating_add(usage.cache_write()));
    let mut from = 0;
    let parts = prefix.segments.iter().map(|segment| {
        let block = &request.blocks[segment.block];
        let (start, end) = (from, segment.tokens);
        from = end;
        let within = |until: u64| end.min(until).saturating_sub(start);
        let (read, kept) = (within(read), within(kept));
        Part {
            path: block.path.clone(),
            level: block.level,
            read,
            written: kept - read,
            new: (end - start) - kept,
        }
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CacheRules, Estimate};

    #[test]
    fn tokens_are_split_where_reads_and_writes_end() {
        let body = br#"{"model":"claude-x","system":"0123456789012345678","messages":[{"role":"user","content":"01234567890"}]}"#;
        let request = Request::read(body, None).unwrap();
        let prefix = Prefix::of(&request, &CacheRules::unknown(), &Estimate { bytes_per_token: 1, image: 1 });
        let sizes: Vec<u64> = prefix.segments.iter().map(|segment| segment.tokens).collect();
        let check = |cache_read, cache_write_5m, expect: [(u64, u64, u64); 2]| {
            let usage = Usage { cache_read, cache_write_5m, ..Usage::default() };
            let got = parts(&request, &prefix, &usage);
            let split: Vec<_> = got.iter().map(|part| (part.read, part.written, part.new)).collect();
            assert_eq!(split, expect);
            assert_eq!(got.iter().map(Part::tokens).sum::<u64>(), sizes[1]);
        };
        let (first, second) = (sizes[0], sizes[1] - sizes[0]);
        check(0, 0, [(0, 0, first), (0, 0, second)]);
        check(first, 0, [(first, 0, 0), (0, 0, second)]);
        check(first - 2, 3, [(first - 2, 2, 0), (0, 1, second - 1)]);
        check(first + 1, 90, [(first, 0, 0), (1, second - 1, 0)]);
        // What a provider counts may be nonsense.
        check(u64::MAX, u64::MAX, [(first, 0, 0), (second, 0, 0)]);
    }
}
