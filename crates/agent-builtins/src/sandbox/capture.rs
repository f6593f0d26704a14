//! What a command printed, in bounded memory: the head and the tail.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Output of a command, empty by default and filled as it comes. However much was printed, no more than 1 MiB of it
/// is kept (case T03).
#[derive(Debug, Clone, Default)]
pub struct Captured {
    head: Vec<u8>,
    /// Invariant: empty until the head is full; never longer than `TAIL`.
    tail: VecDeque<u8>,
    total: u64,
}

/// Output that is looked at while it comes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Printed(Arc<Mutex<Captured>>);

impl Captured {
    /// Bytes that were printed.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Bytes that were dropped between head and tail.
    pub fn dropped(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// What was kept, as the one piece it was, or as head and tail around what was dropped.
    pub fn pieces(&self) -> (Vec<u8>, Option<Vec<u8>>) {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        if self.dropped() > 0 {
            return (self.head.clone(), Some(tail));
        }
        ([self.head.clone(), tail].concat(), None)
    }

    /// What was kept from this byte of the output on: what comes before dropped bytes, how many those are, and what comes
    /// behind them. Without any, all is in the first piece.
    pub fn since(&self, offset: u64) -> (Vec<u8>, u64, Vec<u8>) {
        let head_ends = self.head.len() as u64;
        let tail_begins = self.total - self.tail.len() as u64;
        // Both lie inside what is kept, so they fit.
        let in_head = offset.min(head_ends) as usize;
        let in_tail = offset.clamp(tail_begins, self.total) - tail_begins;
        let gap = tail_begins.saturating_sub(offset.max(head_ends));
        let mut first = self.head[in_head..].to_vec();
        let mut rest: Vec<u8> = self.tail.iter().skip(in_tail as usize).copied().collect();
        if gap == 0 {
            first.append(&mut rest);
        }
        (first, gap, rest)
    }

    /// Adds what was printed next.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (to_head, rest) = bytes.split_at(bytes.len().min(HEAD - self.head.len()));
        self.head.extend_from_slice(to_head);
        let rest = &rest[rest.len().saturating_sub(TAIL)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(TAIL);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }
}

impl Printed {
    pub(crate) fn push(&self, bytes: &[u8]) {
        self.lock().push(bytes);
    }

    pub(crate) fn look<T>(&self, look: impl FnOnce(&Captured) -> T) -> T {
        look(&self.lock())
    }

    /// What came, which is then no longer here.
    pub(crate) fn take(&self) -> Captured {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Captured> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const HEAD: usize = 640 * 1024;
const TAIL: usize = 384 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(chunks: &[&[u8]]) -> Captured {
        let mut captured = Captured::default();
        chunks.iter().for_each(|chunk| captured.push(chunk));
        captured
    }

    #[test]
    fn small_output_is_whole() {
        let out = captured(&[b"ab", b"", b"c"]);
        assert_eq!((out.pieces(), out.total(), out.dropped()), ((b"abc".to_vec(), None), 3, 0));
        let just = vec![b'x'; HEAD + TAIL];
        assert_eq!(captured(&[&just]).pieces(), (just, None));
    }

    #[test]
    fn the_middle_goes() {
        let big = vec![b'x'; HEAD];
        let out = captured(&[b"first", &big, &big, b"last"]);
        let (head, tail) = out.pieces();
        let tail = tail.unwrap();
        assert!(head.starts_with(b"first") && tail.ends_with(b"last"));
        assert_eq!((head.len(), tail.len()), (HEAD, TAIL));
        assert_eq!(out.dropped() + (HEAD + TAIL) as u64, out.total());
    }

    proptest::proptest! {
        #[test]
        fn what_is_shown_since_a_byte_and_what_was_dropped_add_up(
            sizes in proptest::collection::vec(0_usize..300_000, 0..9),
            offset in 0_u64..2_000_000,
        ) {
            let bytes: Vec<u8> = (0..sizes.iter().sum::<usize>()).map(|at| (at % 251) as u8).collect();
            let (mut out, mut at) = (Captured::default(), 0);
            for size in sizes {
                out.push(&bytes[at..at + size]);
                at += size;
            }
            let (first, gap, rest) = out.since(offset);
            let from = bytes.len().min(offset as usize);
            let shown = first.len() + gap as usize + rest.len();
            proptest::prop_assert!(gap <= out.dropped());
            proptest::prop_assert_eq!(from + shown, bytes.len());
            proptest::prop_assert_eq!(&first[..], &bytes[from..from + first.len()]);
            proptest::prop_assert_eq!(&rest[..], &bytes[bytes.len() - rest.len()..]);
        }
    }
}
