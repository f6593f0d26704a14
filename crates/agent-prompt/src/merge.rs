//! Authority: of what is said under one key, the highest layer is heard.

use std::collections::BTreeMap;

use serde::Serialize;

use agent_core::Layer;

use crate::fragment::{Claim, Fragment};
use crate::source::Source;
use crate::stability::{Level, Stability};
use crate::value::Words;

/// A fragment or a suppression that was not heard, because another one had more authority on its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Loser {
    /// On whose authority it spoke.
    pub layer: Layer,
    /// Where it came from.
    pub source: Source,
    /// Its stability; `None` for a suppression.
    pub stability: Option<Stability>,
    /// Length of its words in bytes.
    pub bytes: usize,
    /// Whether it is sent all the same: what was sent before is not rewritten for a note.
    pub stays: bool,
}

/// A key that is not said, and who decided so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Absent {
    /// The key.
    pub key: String,
    /// The layer whose word counts.
    pub layer: Layer,
    /// Where that word came from.
    pub source: Source,
    /// What would have been said.
    pub losers: Vec<Loser>,
    #[serde(skip)]
    pub(crate) rank: i32,
}

/// One that wants to be heard on a key.
#[derive(Debug, Clone)]
pub(crate) struct Contender {
    pub(crate) claim: Claim,
    pub(crate) say: Say,
}

/// What a contender wants.
#[derive(Debug, Clone)]
pub(crate) enum Say {
    /// To say these words.
    Words(Stability, Words),
    /// That nothing is said.
    Nothing,
    /// Nothing more: so many bytes of it were sent before.
    Frozen(Stability, usize),
}

/// Words that will be sent.
#[derive(Debug)]
pub(crate) struct Winner {
    pub(crate) claim: Claim,
    pub(crate) stability: Stability,
    pub(crate) words: Words,
    /// When it was added, to order equal claims.
    pub(crate) position: usize,
    pub(crate) losers: Vec<Loser>,
}

impl Contender {
    pub(crate) fn of<S: Level>(fragment: Fragment<S>) -> Self {
        Self { claim: fragment.claim, say: Say::Words(S::STABILITY, fragment.words) }
    }

    /// A managed rule is heard whatever else is said; neither can another managed one take its place.
    fn is_unbeatable(&self) -> bool {
        self.claim.layer == Layer::Managed && !matches!(self.say, Say::Nothing)
    }

    fn lost(&self) -> Loser {
        let (stability, bytes) = match &self.say {
            Say::Words(stability, words) => (Some(*stability), words.text.len()),
            Say::Frozen(stability, bytes) => (Some(*stability), *bytes),
            Say::Nothing => (None, 0),
        };
        let Claim { layer, source, .. } = &self.claim;
        let stays = matches!(self.say, Say::Frozen(..));
        Loser { layer: *layer, source: source.clone(), stability, bytes, stays }
    }
}

/// Who is heard, in no particular order, and what is not said at all, by key.
///
/// Of equal keys the highest layer is heard, in it the highest rank, then the one added last. This last rule is the
/// only one that looks at the order of adding.
pub(crate) fn contest(contenders: Vec<Contender>) -> (Vec<Winner>, Vec<Absent>) {
    let mut keys: BTreeMap<String, Vec<(usize, Contender)>> = BTreeMap::new();
    for (position, contender) in contenders.into_iter().enumerate() {
        keys.entry(contender.claim.key.clone()).or_default().push((position, contender));
    }
    let (mut winners, mut absent) = (Vec::new(), Vec::new());
    for (_, group) in keys {
        settle(group, &mut winners, &mut absent);
    }
    (winners, absent)
}

/// Decides one key.
fn settle(mut group: Vec<(usize, Contender)>, winners: &mut Vec<Winner>, absent: &mut Vec<Absent>) {
    group.sort_by_key(|(position, contender)| {
        let claim = &contender.claim;
        (contender.is_unbeatable(), claim.layer, claim.rank, *position)
    });
    let Some((position, best)) = group.pop() else { return };
    let unbeatable = group.iter().position(|(_, contender)| contender.is_unbeatable()).unwrap_or(group.len());
    for (position, contender) in group.split_off(unbeatable) {
        place(position, contender, Vec::new(), (winners, absent));
    }
    let losers = group.iter().rev().map(|(_, contender)| contender.lost()).collect();
    place(position, best, losers, (winners, absent));
}

fn place(
    position: usize,
    contender: Contender,
    losers: Vec<Loser>,
    (winners, absent): (&mut Vec<Winner>, &mut Vec<Absent>),
) {
    let Contender { claim, say } = contender;
    match say {
        Say::Words(stability, words) => winners.push(Winner { claim, stability, words, position, losers }),
        Say::Nothing | Say::Frozen(..) => {
            let Claim { layer, key, rank, source } = claim;
            absent.push(Absent { key, layer, source, losers, rank });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `input`: contenders for one key, `layer[+rank] words`, `layer -` for a suppression, `layer =` for one that was
    /// sent before. `expect`: the winners' words, or `-`, then `>` and the layers that lost.
    #[track_caller]
    fn check(input: &[&str], expect: &str) {
        let (winners, absent) = contest(input.iter().map(|line| contender(line)).collect());
        let lost =
            |losers: &[Loser]| losers.iter().map(|loser| format!(" {}", loser.layer)).collect::<String>();
        let mut shown: Vec<_> =
            winners.iter().map(|winner| format!("{} >{}", winner.words.text, lost(&winner.losers))).collect();
        shown.extend(absent.iter().map(|key| format!("- {} >{}", key.layer, lost(&key.losers))));
        assert_eq!(shown.join("; "), expect, "{input:?}");
    }

    fn contender(line: &str) -> Contender {
        let (who, words) = line.split_once(' ').unwrap();
        let (name, rank) = who.split_once('+').unwrap_or((who, "0"));
        let layer = Layer::ALL.into_iter().find(|layer| layer.name() == name).unwrap();
        let claim = Claim { rank: rank.parse().unwrap(), ..Claim::new(layer, "k").unwrap() };
        let say = match words {
            "-" => Say::Nothing,
            "=" => Say::Frozen(Stability::Static, 1),
            text => Say::Words(Stability::Session, Words { text: text.to_owned(), declared: None }),
        };
        Contender { claim, say }
    }

    #[test]
    fn the_higher_layer_is_heard() {
        check(&["auto a", "user u", "project p", "local l"], "p > local user auto");
        check(&["managed m", "project p"], "m > project");
        check(&["session s", "auto a"], "s > auto");
    }

    #[test]
    fn in_a_layer_rank_counts_then_the_order_of_adding() {
        check(&["user+2 a", "user+1 b"], "a > user");
        check(&["user a", "user b"], "b > user");
        check(&["user+9 a", "project b"], "b > user");
    }

    #[test]
    fn a_suppression_has_the_authority_of_its_layer() {
        check(&["user u", "project -"], "- project > user");
        check(&["user -", "project p"], "p > user");
    }

    #[test]
    fn a_managed_rule_is_never_beaten() {
        check(&["managed m", "project+99 p", "managed -"], "m > managed project");
        check(&["managed m", "managed n"], "m >; n >");
        check(&["managed m", "managed n", "user u"], "m >; n > user");
        check(&["managed -", "project p"], "- managed > project");
    }

    #[test]
    fn what_is_frozen_counts_but_is_not_said_again() {
        check(&["project =", "user u"], "- project > user");
        check(&["user =", "project p"], "p > user");
        check(&["user =", "user u"], "u > user");
        check(&["managed =", "managed m", "user u"], "m > user; - managed >");
    }
}
