//! Numbers for people: how long it took to go on.

use std::time::Duration;

/// The middle, the hundredth part at the end, and the longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spread {
    pub(crate) count: usize,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    pub(crate) max: Duration,
}

impl Spread {
    pub(crate) fn of(mut times: Vec<Duration>) -> Option<Self> {
        times.sort_unstable();
        let rank = |hundredths: usize| {
            times.get((times.len() * hundredths).div_ceil(100).saturating_sub(1)).copied()
        };
        Some(Self { count: times.len(), p50: rank(50)?, p99: rank(99)?, max: rank(100)? })
    }
}

/// Numbers that look random and are the same for the same seed.
#[derive(Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        // Neighbouring seeds begin far from each other, and none begins at 0, where it would stay.
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end.max(1)
    }

    /// Text of so many bytes in lines of 64, which no database packs.
    pub(crate) fn text(&mut self, bytes: usize) -> String {
        let mut letter = |at: usize| if at % 64 == 63 { '\n' } else { self.letter() };
        (0..bytes).map(&mut letter).collect()
    }

    fn letter(&mut self) -> char {
        let at = usize::try_from(self.below(64)).unwrap_or_default();
        LETTERS.get(at).map_or('-', |letter| char::from(*letter))
    }
}

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks() {
        let spread = Spread::of((1..=200).rev().map(Duration::from_millis).collect()).unwrap();
        assert_eq!((spread.p50, spread.p99), (Duration::from_millis(100), Duration::from_millis(198)));
        assert_eq!((spread.max, spread.count), (Duration::from_millis(200), 200));
        let one = Spread::of(vec![Duration::from_millis(7)]).unwrap();
        assert_eq!((one.p50, one.p99, one.max), (one.max, one.max, Duration::from_millis(7)));
        assert_eq!(Spread::of(Vec::new()), None);
    }

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let draw = |seed| -> Vec<u64> {
            let mut chance = Chance::new(seed);
            (0..8).map(|_| chance.below(100)).collect()
        };
        assert_eq!(draw(0), draw(0));
        assert_ne!(draw(0), draw(1));
    }
}
