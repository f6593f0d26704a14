//! From fragments to the blocks of a prompt, and to the notes of a turn and a step.

use std::collections::BTreeMap;

use agent_core::{Diagnostic, Layer, Note, NoteKind, SystemBlock, Text};
use serde::Serialize;

use crate::caps::{Budget, Caps, Cut};
use crate::fragment::{Claim, Fragment, FragmentError};
use crate::hash::{system_hash, text_hash};
use crate::merge::{Absent, Contender, Loser, Say, Winner, contest};
use crate::source::Source;
use crate::stability::{InSystem, Level, Stability, Step, Turn};

/// Fragments of a system prompt while they are collected.
///
/// The order of adding does not matter, except between two fragments of one layer, key and rank: the later one is
/// heard.
#[derive(Debug, Clone, Default)]
pub struct Prompt {
    caps: Caps,
    contenders: Vec<Contender>,
    diagnostics: Vec<Diagnostic>,
}

/// A system prompt, assembled once when a session begins (requirement A1).
///
/// Blocks stand in the order static, session, managed; among those from the least authority to the greatest, then by
/// rank, then by key. Managed blocks are last whatever their stability (requirement A2).
#[derive(Debug, Clone)]
pub struct Assembled {
    pub(crate) caps: Caps,
    pub(crate) blocks: Vec<Block>,
    pub(crate) absent: Vec<Absent>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Words of turn or step fragments, which become messages and never reach the system prompt.
#[derive(Debug, Clone, Default)]
pub struct Notes {
    pub(crate) blocks: Vec<Block>,
    pub(crate) absent: Vec<Absent>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// One text of a prompt with its origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Block {
    /// What it is about.
    pub key: String,
    /// On whose authority it speaks.
    pub layer: Layer,
    /// Where it came from.
    pub source: Source,
    /// How long its bytes stay the same.
    pub stability: Stability,
    /// Why text that was read at run time is taken for static.
    pub declared: Option<&'static str>,
    /// The words as they are sent, with heading and note of a cut.
    pub text: Text,
    /// First 16 hex digits of SHA-256 of the words as they are sent.
    pub hash: String,
    /// What was cut off.
    pub cut: Option<Cut>,
    /// Who was not heard on this key, from the greatest authority to the least.
    pub losers: Vec<Loser>,
    #[serde(skip)]
    rank: i32,
}

impl Prompt {
    /// A prompt without fragments.
    pub fn new(caps: Caps) -> Self {
        Self { caps, ..Self::default() }
    }

    /// Adds a fragment. Turn and step fragments do not compile here
    /// (`tests/compile_fail/turn_fragment_in_system.rs`); they go to
    /// [`Assembled::turn_notes`] and [`Assembled::step_notes`].
    pub fn add<S: InSystem>(&mut self, fragment: Fragment<S>) -> &mut Self {
        self.contenders.push(Contender::of(fragment));
        self
    }

    /// Lets nothing be said under a key by `layer` or a lower one. It has no power over a higher layer, and none over a
    /// managed fragment.
    pub fn suppress(&mut self, layer: Layer, key: &str, source: Source) -> Result<&mut Self, FragmentError> {
        let claim = Claim { source, ..Claim::new(layer, key)? };
        self.contenders.push(Contender { claim, say: Say::Nothing });
        Ok(self)
    }

    /// Something to tell the user beside the prompt, for example that a file was not read.
    pub fn report(&mut self, diagnostic: Diagnostic) -> &mut Self {
        self.diagnostics.push(diagnostic);
        self
    }

    /// Puts the prompt together. The same fragments give the same bytes in every process.
    pub fn assemble(&self) -> Assembled {
        let (winners, absent) = contest(self.contenders.clone());
        let mut diagnostics = self.diagnostics.clone();
        let blocks = render(winners, &self.caps, &mut diagnostics);
        Assembled { caps: self.caps.clone(), blocks, absent, diagnostics }
    }
}

impl Assembled {
    /// The blocks with their origins, in the order they are sent.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// What goes into a model request, and into the session's record, so that a later process sends the same bytes.
    pub fn system(&self) -> Vec<SystemBlock> {
        self.blocks.iter().filter_map(|block| SystemBlock::new(block.text.as_str())).collect()
    }

    /// How many blocks at the beginning are static: a cache breakpoint at the end of them serves every session.
    pub fn static_blocks(&self) -> usize {
        self.blocks.iter().take_while(|block| block.stability == Stability::Static).count()
    }

    /// `cache.system_hash`: see [`system_hash`].
    pub fn system_hash(&self) -> String {
        system_hash(&self.system())
    }

    /// Keys under which nothing is said, by key.
    pub fn absent(&self) -> &[Absent] {
        &self.absent
    }

    /// What was cut or could not be taken as given; shown to the user.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// The notes to append to the history when a turn begins. They stay there, so that no later request differs before its
    /// end.
    ///
    /// Authority over keys goes on from the system prompt: what a higher layer said there (or suppressed) cannot be unsaid
    /// by a note of a lower one.
    pub fn turn_notes(&self, fragments: &[Fragment<Turn>]) -> Notes {
        self.notes(self.frozen().collect(), fragments)
    }

    /// The notes for one model call ([`agent_core::Draft::remind`]), which never enter the history.
    ///
    /// `turn` is what [`Self::turn_notes`] gave when the open turn began, because its notes have authority too;
    /// `&Notes::default()` when there were none.
    pub fn step_notes(&self, turn: &Notes, fragments: &[Fragment<Step>]) -> Notes {
        self.notes(self.frozen().chain(turn.blocks.iter().map(Block::frozen)).collect(), fragments)
    }

    fn notes<S: Level>(&self, mut contenders: Vec<Contender>, fragments: &[Fragment<S>]) -> Notes {
        contenders.retain(|frozen| fragments.iter().any(|fragment| fragment.claim.key == frozen.claim.key));
        contenders.extend(fragments.iter().cloned().map(Contender::of));
        let (winners, mut absent) = contest(contenders);
        // A managed text that was sent before is in nobody's way.
        absent.retain(|absent| !absent.losers.is_empty());
        let mut diagnostics = Vec::new();
        let blocks = render(winners, &self.caps, &mut diagnostics);
        Notes { blocks, absent, diagnostics }
    }

    /// What the system prompt says of its keys.
    fn frozen(&self) -> impl Iterator<Item = Contender> {
        let said = self.blocks.iter().map(Block::frozen);
        let unsaid = self.absent.iter().map(|absent| {
            let claim = claim(&absent.key, absent.layer, absent.rank, &absent.source);
            Contender { claim, say: Say::Nothing }
        });
        said.chain(unsaid)
    }
}

impl Notes {
    /// The texts with their origins, in the order they are sent, managed ones last.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// What goes into the history or the draft, in this order.
    pub fn notes(&self) -> Vec<Note> {
        let note = |block: &Block| Note { kind: NoteKind::Reminder, text: block.text.clone() };
        self.blocks.iter().map(note).collect()
    }

    /// What is not said because something sent before has the word on its key.
    pub fn absent(&self) -> &[Absent] {
        &self.absent
    }

    /// What was cut; shown to the user.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }
}

impl Block {
    /// A block of a session that began earlier, of which nobody knows any more who said it.
    pub(crate) fn stored(position: usize, block: &SystemBlock, is_static: bool) -> Self {
        let text = Text::or(block.text(), "(empty)");
        Self {
            key: format!("block {}", position + 1),
            layer: Layer::Session,
            source: Source::Stored,
            stability: if is_static { Stability::Static } else { Stability::Session },
            declared: None,
            hash: text_hash(text.as_str()),
            text,
            cut: None,
            losers: Vec::new(),
            rank: 0,
        }
    }

    /// What stands in front of later ones: it was sent and is not rewritten.
    fn frozen(&self) -> Contender {
        let claim = claim(&self.key, self.layer, self.rank, &self.source);
        Contender { claim, say: Say::Frozen(self.stability, self.text.as_str().len()) }
    }
}

fn claim(key: &str, layer: Layer, rank: i32, source: &Source) -> Claim {
    Claim { layer, key: key.to_owned(), rank, source: source.clone() }
}

/// Orders the winners, cuts them to size and gives them their headings.
fn render(mut winners: Vec<Winner>, caps: &Caps, diagnostics: &mut Vec<Diagnostic>) -> Vec<Block> {
    let cuts = cuts(&winners, caps, diagnostics);
    winners.sort_by(|a, b| {
        let place = |winner: &Winner| {
            let managed = winner.claim.layer == Layer::Managed;
            (managed, winner.stability, winner.claim.layer, winner.claim.rank)
        };
        place(a).cmp(&place(b)).then_with(|| (&a.claim.key, a.position).cmp(&(&b.claim.key, b.position)))
    });
    winners.into_iter().map(|winner| block(&cuts, winner)).collect()
}

/// What must be cut, by the winners' positions. In a layer higher ranks are served first.
fn cuts(winners: &[Winner], caps: &Caps, diagnostics: &mut Vec<Diagnostic>) -> BTreeMap<usize, Cut> {
    let mut cuts = BTreeMap::new();
    for layer in Layer::ALL {
        let mut members: Vec<_> = winners.iter().filter(|winner| winner.claim.layer == layer).collect();
        members
            .sort_by_key(|winner| (std::cmp::Reverse(winner.claim.rank), &winner.claim.key, winner.position));
        let mut budget = Budget::new(caps, layer);
        for winner in members {
            let Some(cut) = budget.take(&winner.words.text) else { continue };
            diagnostics.push(diagnostic(winner, cut));
            if layer != Layer::Managed {
                cuts.insert(winner.position, cut);
            }
        }
    }
    cuts
}

fn diagnostic(winner: &Winner, cut: Cut) -> Diagnostic {
    let Claim { key, layer, source, .. } = &winner.claim;
    let bytes = winner.words.text.len();
    let limit = cut.limit_bytes;
    let why = if *layer == Layer::Managed {
        format!(
            "{source} has {bytes} bytes where {limit} are allowed; it was sent whole, because managed instructions are \
             never cut: shorten it or raise the limit"
        )
    } else {
        let left_out = cut.left_out_bytes;
        format!(
            "{left_out} of {bytes} bytes of {source} were left out, the limit is {limit}: shorten it or raise the limit"
        )
    };
    Diagnostic { what: format!("prompt.{key}"), why }
}

fn block(cuts: &BTreeMap<usize, Cut>, winner: Winner) -> Block {
    let Winner { claim: Claim { layer, key, rank, source }, stability, words, position, losers } = winner;
    let cut = cuts.get(&position).copied();
    let words_sent = match cut {
        Some(cut) => cut.apply(&words.text, &cut.note(&key, layer, &source)),
        None => words.text,
    };
    let text = match source.heading(layer) {
        Some(heading) => format!("{heading}\n\n{words_sent}"),
        None => words_sent,
    };
    // A fragment is not blank, and what is cut has its note; the placeholder is never seen.
    let text = Text::or(text, "(empty)");
    let hash = text_hash(text.as_str());
    Block { key, layer, source, stability, declared: words.declared, text, hash, cut, losers, rank }
}
