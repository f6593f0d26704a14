//! How long a text keeps its bytes, as types.

use serde::{Deserialize, Serialize};

/// How long a text keeps its bytes, from the longest to the shortest: the order of assembly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "assembly must place every stability")]
pub enum Stability {
    /// The same in every session of this build.
    Static,
    /// Fixed when a session begins.
    Session,
    /// Fixed while one turn is open.
    Turn,
    /// True for one model call.
    Step,
}

/// The same in every session of this build. See [`Stability::Static`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Static;

/// Fixed when a session begins. See [`Stability::Session`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Session;

/// Fixed while one turn is open. See [`Stability::Turn`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Turn;

/// True for one model call. See [`Stability::Step`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step;

/// One of [`Static`], [`Session`], [`Turn`] and [`Step`].
pub trait Level: sealed::Sealed + std::fmt::Debug + Copy + Eq + 'static {
    /// The same as a value.
    const STABILITY: Stability;
}

/// A level whose fragments stand in the system prompt: [`Static`] or [`Session`].
#[diagnostic::on_unimplemented(
    message = "a `{Self}` fragment cannot stand in the system prompt: its bytes change while the session is open",
    note = "hand it to `Assembled::turn_notes` or `Assembled::step_notes`, which turn it into a message (requirement A1)"
)]
pub trait InSystem: Level {}

/// A level whose values change: every one but [`Static`].
#[diagnostic::on_unimplemented(
    message = "a value that is rendered at run time cannot claim to last as long as `{Self}`",
    note = "choose `Session`, `Turn` or `Step`, or declare a text with `Value::declared`"
)]
pub trait Changes: Level {}

/// Holds when what lasts as long as `Self` also lasts as long as `S`.
#[diagnostic::on_unimplemented(
    message = "a value that lasts no longer than one `{Self}` cannot stand in a `{S}` fragment",
    label = "this value changes while the fragment must not",
    note = "every changed byte makes the provider read the whole prompt anew: put it into a fragment of its own \
            stability, which becomes a message (requirement A1)"
)]
pub trait Outlasts<S: Level>: Level {}

macro_rules! levels {
    ($($level:ident),*) => {$(
        impl sealed::Sealed for $level {}
        impl Level for $level {
            const STABILITY: Stability = Stability::$level;
        }
    )*};
}

levels!(Static, Session, Turn, Step);

impl Outlasts<Static> for Static {}
impl Outlasts<Session> for Static {}
impl Outlasts<Turn> for Static {}
impl Outlasts<Step> for Static {}
impl Outlasts<Session> for Session {}
impl Outlasts<Turn> for Session {}
impl Outlasts<Step> for Session {}
impl Outlasts<Turn> for Turn {}
impl Outlasts<Step> for Turn {}
impl Outlasts<Step> for Step {}

impl InSystem for Static {}
impl InSystem for Session {}

impl Changes for Session {}
impl Changes for Turn {}
impl Changes for Step {}

impl Stability {
    /// The name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Session => "session",
            Self::Turn => "turn",
            Self::Step => "step",
        }
    }
}

mod sealed {
    /// Keeps the set of levels closed.
    #[expect(unnameable_types, reason = "sealed: nobody else may name it")]
    pub trait Sealed {}
}
