//! Inputs out of seeds, always the same ones in the same order, so that a failure comes again.

use crate::cuts::next;

/// Gives the seeds one after the other, then changed ones without end.
#[derive(Debug)]
pub struct Mutator {
    seeds: Vec<Vec<u8>>,
    given: usize,
    state: u64,
}

impl Mutator {
    /// A mutator of these seeds; without any it starts from nothing.
    pub fn new(seeds: Vec<Vec<u8>>) -> Self {
        let seeds = if seeds.is_empty() { vec![Vec::new()] } else { seeds };
        Self { seeds, given: 0, state: 0x9e37_79b9_7f4a_7c15 }
    }

    /// The next input.
    pub fn input(&mut self) -> Vec<u8> {
        self.given += 1;
        if let Some(seed) = self.seeds.get(self.given - 1) {
            return seed.clone();
        }
        let mut data = self.seed();
        for _ in 0..=self.below(4) {
            self.change(&mut data);
        }
        data.truncate(LONGEST);
        data
    }

    fn change(&mut self, data: &mut Vec<u8>) {
        let at = self.below(data.len() + 1);
        let end = at + self.below(24.min(data.len() - at) + 1);
        match self.below(9) {
            0 => data.truncate(at),
            1 => drop(data.drain(at..end)),
            2 => {
                let piece = data[at..end].to_vec();
                data.splice(at..at, piece.repeat(1 + self.below(4)));
            }
            3 => {
                let byte = self.random();
                data.insert(at, byte);
            }
            4 => {
                let flip = self.random();
                data.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= flip);
            }
            5 => {
                let token = TOKENS[self.below(TOKENS.len())];
                data.splice(at..end, token.bytes());
            }
            6 => {
                let token = TOKENS[self.below(TOKENS.len())];
                data.splice(at..at, token.bytes());
            }
            7 => self.move_line(data),
            _ => {
                let other = self.seed();
                let from = self.below(other.len() + 1);
                data.splice(at.., other[from..].iter().copied());
            }
        }
    }

    /// Puts one line, with the rest of its event, somewhere else; half of the time it stays as well.
    fn move_line(&mut self, data: &mut Vec<u8>) {
        let mut lines: Vec<&[u8]> = data.split_inclusive(|byte| *byte == b'\n').collect();
        if lines.len() < 2 {
            return;
        }
        let (from, to) = (self.below(lines.len()), self.below(lines.len()));
        let line = if self.below(2) == 0 { lines.remove(from) } else { lines[from] };
        lines.insert(to.min(lines.len()), line);
        *data = lines.concat();
    }

    fn seed(&mut self) -> Vec<u8> {
        let at = self.below(self.seeds.len());
        self.seeds[at].clone()
    }

    fn random(&mut self) -> u8 {
        self.below(256) as u8
    }

    fn below(&mut self, limit: usize) -> usize {
        (next(&mut self.state) >> 11) as usize % limit.max(1)
    }
}

/// A response of this size shows what a larger one would.
const LONGEST: usize = 1 << 16;

/// What the grammars are made of, and what gateways add.
const TOKENS: [&str; 40] = [
    "\n\n",
    "\r\n\r\n",
    "\r",
    "\u{feff}",
    "data: ",
    "data:",
    "event: error\n",
    ": keep-alive\n\n",
    "data: [DONE]\n\n",
    "data: {}\n\n",
    "data: null\n\n",
    "{",
    "}",
    "[",
    "]",
    "[]",
    "{}",
    "\"",
    "\\\"",
    "\\u0000",
    "\\ud83d",
    "\\udc00",
    "null",
    "true",
    "-1",
    "0",
    "1.0",
    "1e999",
    "12345678901234567890",
    "18446744073709551616",
    ",",
    ":",
    "\"index\":",
    "\"type\":",
    "\"id\":",
    "\"error\":{\"message\":\"x\"}",
    "\"\"",
    "\u{10ffff}",
    "\0",
    " ",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seeds_give_the_same_inputs() {
        let inputs = || {
            let mut mutator = Mutator::new(vec![b"data: {\"a\":1}\n\n".to_vec(), b"b\nc\n".to_vec()]);
            (0..500).map(|_| mutator.input()).collect::<Vec<_>>()
        };
        let all = inputs();
        assert_eq!(all, inputs());
        assert_eq!(all[1], b"b\nc\n");
        let mut different = all.clone();
        different.sort();
        different.dedup();
        assert!(different.len() > 300, "only {} different ones", different.len());
    }

    #[test]
    fn nothing_is_a_seed_too() {
        let mut mutator = Mutator::new(Vec::new());
        assert!((0..2000).map(|_| mutator.input()).any(|input| !input.is_empty()));
    }
}
