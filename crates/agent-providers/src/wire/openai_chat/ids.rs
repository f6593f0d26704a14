//! Call ids in the grammar of the provider: the same id gives the same one, in every request of a session.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};

use super::quirks::CallIds;

/// The ids of one session, so that two of them never become one.
#[derive(Debug)]
pub(super) struct Ids {
    grammar: CallIds,
    /// The real id of each that was given out.
    given: Mutex<BTreeMap<String, String>>,
}

impl Ids {
    pub(super) fn new(grammar: CallIds) -> Self {
        Self { grammar, given: Mutex::default() }
    }

    /// The id to send. A call comes before its result and both ask for it, so the order of asking is that of the
    /// history, and a collision is solved alike each time.
    pub(super) fn wire<'i>(&self, real: &'i str) -> Cow<'i, str> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        for attempt in 0_u32.. {
            let wire = self.attempt(real, attempt);
            let owner = given.entry(wire.clone().into_owned()).or_insert_with(|| real.to_owned());
            if owner == real {
                return wire;
            }
        }
        Cow::Borrowed(real)
    }

    /// The id itself where it fits; else letters made of it.
    fn attempt<'i>(&self, real: &'i str, attempt: u32) -> Cow<'i, str> {
        let (fits, length) = match self.grammar {
            CallIds::Short => (is_short(real), SHORT),
            CallIds::Nine => (is_nine(real), NINE),
        };
        if fits && attempt == 0 {
            return Cow::Borrowed(real);
        }
        let digest = Sha256::new().chain_update(real).chain_update(attempt.to_be_bytes()).finalize();
        let letters = digest.iter().map(|byte| ALPHABET[usize::from(*byte) % ALPHABET.len()] as char);
        Cow::Owned(letters.take(length).collect())
    }
}

fn is_short(id: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=LONGEST).contains(&id.len()) && id.bytes().all(good)
}

fn is_nine(id: &str) -> bool {
    id.len() == NINE && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const LONGEST: usize = 40;
const SHORT: usize = 24;
const NINE: usize = 9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_fit_the_grammar_and_stay_apart() {
        for (grammar, fits) in [(CallIds::Short, "call_1-a"), (CallIds::Nine, "aB3dE6gH9")] {
            let ids = Ids::new(grammar);
            assert_eq!(ids.wire(fits), fits);
            let long = "x".repeat(41);
            let mut given = std::collections::BTreeSet::new();
            for real in ["call_1~2", "", "functions.f:0", "\u{65e5}", &long, "toolu_012345678901234567890"] {
                let wire = ids.wire(real).into_owned();
                let good = match grammar {
                    CallIds::Short => is_short(&wire),
                    CallIds::Nine => is_nine(&wire),
                };
                assert!(good && given.insert(wire.clone()), "{real:?} {wire}");
                assert_eq!(ids.wire(real), wire, "the result asks again");
                assert_eq!(Ids::new(grammar).wire(real), wire, "the same after a restart");
            }
        }
    }

    #[test]
    fn an_id_that_is_taken_gets_another() {
        let ids = Ids::new(CallIds::Nine);
        let made = ids.wire("call_1").into_owned();
        let other = ids.wire(&made).into_owned();
        assert_ne!(other, made, "the id that looks like the one made of another");
        assert_eq!((ids.wire("call_1"), ids.wire(&made)), (made.as_str().into(), other.as_str().into()));
    }
}
