//! A piece of a prompt: its words, its authority, its key and, as a type, its stability.

use std::marker::PhantomData;

use agent_core::Layer;

use crate::source::Source;
use crate::stability::Level;
use crate::value::{Enters, Words};

/// A piece of a prompt. `S` is how long its bytes stay the same: [`Static`](crate::Static),
/// [`Session`](crate::Session), [`Turn`](crate::Turn) or [`Step`](crate::Step).
///
/// ```
/// use agent_prompt::{Fragment, Layer, Static};
///
/// let role = Fragment::<Static>::new(Layer::Session, "role", "You fix bugs.")?;
/// assert_eq!(role.key(), "role");
/// # Ok::<(), agent_prompt::FragmentError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fragment<S: Level> {
    pub(crate) claim: Claim,
    /// Invariant: not blank.
    pub(crate) words: Words,
    level: PhantomData<S>,
}

/// Why a fragment cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FragmentError {
    /// The key is blank or does not fit on a line.
    #[error("the key {0:?} is blank or holds control characters; name the fragment in one short line")]
    Key(String),
    /// There are no words.
    #[error("fragment {0:?} is blank; providers refuse blank text: give it words or leave it out")]
    Blank(String),
}

/// What a fragment (or a suppression) says about a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) layer: Layer,
    /// Invariant: not blank, no control characters.
    pub(crate) key: String,
    pub(crate) rank: i32,
    pub(crate) source: Source,
}

impl Claim {
    pub(crate) fn new(layer: Layer, key: &str) -> Result<Self, FragmentError> {
        if key.trim().is_empty() || key.chars().any(char::is_control) {
            return Err(FragmentError::Key(key.to_owned()));
        }
        Ok(Self { layer, key: key.to_owned(), rank: 0, source: Source::Code })
    }
}

impl<S: Level> Fragment<S> {
    /// A fragment of the program itself. What may be `text` depends on `S`: see [`Enters`].
    pub fn new(layer: Layer, key: &str, text: impl Enters<S>) -> Result<Self, FragmentError> {
        let claim = Claim::new(layer, key)?;
        let words = text.into_words();
        if words.text.trim().is_empty() {
            return Err(FragmentError::Blank(claim.key));
        }
        Ok(Self { claim, words, level: PhantomData })
    }

    /// The same words, attributed to `source`, which the model is told in a heading.
    #[must_use]
    pub fn with_source(mut self, source: Source) -> Self {
        self.claim.source = source;
        self
    }

    /// The place among fragments of one layer and stability: a higher rank is rendered later, wins on an equal key and
    /// is cut last. 0 when not given; equal ranks are ordered by key.
    #[must_use]
    pub fn with_rank(mut self, rank: i32) -> Self {
        self.claim.rank = rank;
        self
    }

    /// On whose authority it speaks.
    pub fn layer(&self) -> Layer {
        self.claim.layer
    }

    /// What it is about; on an equal key the higher layer wins.
    pub fn key(&self) -> &str {
        &self.claim.key
    }

    /// Where it came from.
    pub fn source(&self) -> &Source {
        &self.claim.source
    }

    /// The words, without a heading.
    pub fn text(&self) -> &str {
        &self.words.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Static, Step};

    #[test]
    fn keys_and_words_are_checked() {
        for key in ["", " ", "two\nlines", "tab\t"] {
            let refused = Fragment::<Static>::new(Layer::User, key, "x");
            assert_eq!(refused, Err(FragmentError::Key(key.to_owned())));
        }
        let blank = Fragment::<Step>::new(Layer::User, "k", String::from(" \n"));
        assert_eq!(blank, Err(FragmentError::Blank("k".into())));
    }
}
