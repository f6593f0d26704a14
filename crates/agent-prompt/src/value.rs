//! What may be written into a fragment of which stability.

use std::marker::PhantomData;

use agent_core::{Todo, TodoStatus};

use crate::stability::{Changes, Level, Outlasts, Session, Static, Step, Turn};

/// A value that is rendered at run time and says how long the result keeps its bytes.
///
/// `&value` may stand in every fragment that lives no longer than that. There is no way to claim that it lasts for
/// ever: a text that is read at run time and yet the same in every session is declared with [`Value::declared`].
pub trait Dynamic {
    /// How long what is rendered keeps its bytes.
    type Lasts: Changes;

    /// The words.
    fn render(&self) -> String;
}

/// Words that may stand in a fragment of stability `S`:
///
/// | value | static | session | turn | step |
/// |---|---|---|---|---|
/// | `&'static str`, [`Value<Static>`](Value::declared) | yes | yes | yes | yes |
/// | [`Value<Session>`](Value::session), [`Snapshot`](crate::Snapshot) | | yes | yes | yes |
/// | [`Value<Turn>`](Value::turn), [`Date`](crate::Date) | | | yes | yes |
/// | [`Value<Step>`](Value::step), `String`, todos, [`EnvironmentFacts`](crate::EnvironmentFacts) | | | | yes |
///
/// A plain `String` comes from anywhere, so it is trusted for one step only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand in a `{S}` fragment: nothing says that its bytes stay the same that long",
    note = "a static fragment takes a `&'static str`, or a `Value::declared` with its reason",
    note = "what is fixed when the session begins is a `Value::session` in a `Session` fragment; what changes later \
            goes into a `Turn` or `Step` fragment, which becomes a message (requirement A1)"
)]
pub trait Enters<S: Level>: sealed::Sealed<S> {}

/// A text with how long it keeps its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value<L: Level> {
    text: String,
    declared: Option<&'static str>,
    level: PhantomData<L>,
}

/// What a fragment takes over from a value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(unnameable_types, reason = "passed through the sealed trait only")]
pub struct Words {
    pub(crate) text: String,
    pub(crate) declared: Option<&'static str>,
}

impl Value<Static> {
    /// Text that is read at run time and yet the same in every session: a prompt file shipped beside the program.
    ///
    /// `why` is shown by explain, so that a wrong declaration is found where the cache breaks.
    pub fn declared(text: impl Into<String>, why: &'static str) -> Self {
        Self { text: text.into(), declared: Some(why), level: PhantomData }
    }
}

impl Value<Session> {
    /// Text that is fixed when the session begins and never read again.
    pub fn session(text: impl Into<String>) -> Self {
        Self { text: text.into(), declared: None, level: PhantomData }
    }
}

impl Value<Turn> {
    /// Text that is fixed while one turn is open.
    pub fn turn(text: impl Into<String>) -> Self {
        Self { text: text.into(), declared: None, level: PhantomData }
    }
}

impl Value<Step> {
    /// Text that is true for one model call.
    pub fn step(text: impl Into<String>) -> Self {
        Self { text: text.into(), declared: None, level: PhantomData }
    }
}

impl<S: Level> Enters<S> for &'static str {}

impl<L: Outlasts<S>, S: Level> Enters<S> for Value<L> {}

impl Enters<Step> for String {}

impl<T: Dynamic + ?Sized, S: Level> Enters<S> for &T where T::Lasts: Outlasts<S> {}

/// The todo list as the model reads it: one line an item. Tools change it at any step.
impl Dynamic for [Todo] {
    type Lasts = Step;

    fn render(&self) -> String {
        let line = |todo: &Todo| {
            let mark = match todo.status {
                TodoStatus::Pending => "[ ]",
                TodoStatus::InProgress => "[>]",
                TodoStatus::Done => "[x]",
            };
            format!("{mark} {}", todo.text)
        };
        self.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

pub(crate) mod sealed {
    use super::{Dynamic, Level, Outlasts, Step, Value, Words};

    /// Keeps the ways into a fragment closed; gives the words.
    #[expect(unnameable_types, reason = "sealed: nobody else may name it")]
    pub trait Sealed<S: Level> {
        /// The words, with the reason when they were declared stable.
        fn into_words(self) -> Words;
    }

    impl<S: Level> Sealed<S> for &'static str {
        fn into_words(self) -> Words {
            Words { text: self.to_owned(), declared: None }
        }
    }

    impl<L: Outlasts<S>, S: Level> Sealed<S> for Value<L> {
        fn into_words(self) -> Words {
            Words { text: self.text, declared: self.declared }
        }
    }

    impl Sealed<Step> for String {
        fn into_words(self) -> Words {
            Words { text: self, declared: None }
        }
    }

    impl<T: Dynamic + ?Sized, S: Level> Sealed<S> for &T
    where
        T::Lasts: Outlasts<S>,
    {
        fn into_words(self) -> Words {
            Words { text: self.render(), declared: None }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn todos_are_one_line_each() {
        let todo = |text: &str, status| Todo { id: text.to_lowercase(), text: text.to_owned(), status };
        let todos = [
            todo("Read", TodoStatus::Done),
            todo("Fix", TodoStatus::InProgress),
            todo("Test", TodoStatus::Pending),
        ];
        insta::assert_snapshot!(todos.render(), @"
        [x] Read
        [>] Fix
        [ ] Test
        ");
    }
}
