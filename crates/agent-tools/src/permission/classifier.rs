//! A judge between the rules and a person: it looks at calls on which nothing but the mode or the tool itself speaks.

use std::fmt::Debug;

use agent_core::RawJson;
use async_trait::async_trait;

use super::Matter;

/// Looks at calls before a person is asked (requirement T2), for example with a small model.
///
/// It is asked only where a person would be asked because of the mode or because of the tool's own wish. A rule or a hook that
/// asks was written by somebody who wants a person, so it is not asked then; what is refused stays refused, and bypass mode asks
/// nobody. When it fails, or takes longer than the driver gives it, the person is asked, and the failure is told.
///
/// ```
/// use agent_core::RawJson;
/// use agent_tools::{Classified, Classifier, ClassifierError, Matter, Subject};
///
/// #[derive(Debug)]
/// struct Looks;
///
/// #[async_trait::async_trait]
/// impl Classifier for Looks {
///     fn name(&self) -> &str { "looks" }
///
///     async fn classify(&self, matter: &Matter<'_>, _input: &RawJson) -> Result<Classified, ClassifierError> {
///         Ok(match matter.subject {
///             Some(Subject::Command(command)) if command == "git log" => Classified::Allow,
///             _ => Classified::Ask,
///         })
///     }
/// }
/// ```
#[async_trait]
pub trait Classifier: Debug + Send + Sync {
    /// Its name, for the log and for people.
    fn name(&self) -> &str;

    /// What becomes of a call. The input is what would run, byte for byte; `matter.subject` is what rules look at.
    async fn classify(&self, matter: &Matter<'_>, input: &RawJson) -> Result<Classified, ClassifierError>;
}

/// What a classifier says of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must handle each")]
pub enum Classified {
    /// It needs no person.
    Allow,
    /// A person decides.
    Ask,
    /// It does not run, for this reason, which the model reads.
    Deny(String),
}

/// A classifier that could not do its work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the classifier `{classifier}` failed: {why}")]
#[non_exhaustive]
pub struct ClassifierError {
    /// The classifier.
    pub classifier: String,
    /// What went wrong.
    pub why: String,
}

impl ClassifierError {
    /// A failure with these words.
    pub fn new(classifier: &str, why: impl Into<String>) -> Self {
        Self { classifier: classifier.to_owned(), why: why.into() }
    }
}
