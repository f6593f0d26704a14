//! What a command printed, in bounded memory: the head and the tail.

use std::collections::VecDeque;

/// Output of a command, empty by default and filled as it comes. However much was printed, no more than 1 MiB of it
/// is kept (case T03).
#[derive(Debug, Clone, Default)]
pub struct Captured {
    head: Vec<u8>,
    /// Invariant: empty until the head is full; never longer than `TAIL`.
    tail: VecDeque<u8>,
    total: u64,
}

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
}
