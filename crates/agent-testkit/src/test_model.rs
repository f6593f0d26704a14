//! One interface to the models of tests, be they scripted or recorded.

use std::fmt;
use std::sync::Arc;

use agent_core::LanguageModel;
use bytes::Bytes;

use crate::script::ScriptError;
use crate::scripted::ScriptedModel;
use crate::tape::TapeError;

/// A model in a test (requirement V6): a test written against it runs with a [`ScriptedModel`] and with a recorded
/// provider, a [`crate::TapedModel`].
///
/// ```
/// use agent_testkit::{ScriptedModel, TestModel, render_requests};
///
/// fn never_mentions_the_date(model: &dyn TestModel) {
///     assert!(!render_requests(&model.requests()).contains("[date]"));
/// }
///
/// never_mentions_the_date(&ScriptedModel::new(vec![]));
/// ```
pub trait TestModel: fmt::Debug + Send + Sync {
    /// The model to give to an agent.
    fn model(&self) -> Arc<dyn LanguageModel>;

    /// The bodies of all requests so far, refused ones included; [`crate::render_requests`] shows them.
    fn requests(&self) -> Vec<Bytes>;

    /// Whether everything that was prepared was asked for, and nothing else. Ask at the end of a test: an agent may have
    /// taken a refused request for one more failure of a provider.
    fn check_complete(&self) -> Result<(), TestModelError>;
}

/// Why a test did not go as prepared.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum TestModelError {
    /// A script did not fit.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// A recording did not fit.
    #[error(transparent)]
    Tape(#[from] TapeError),
}

/// A test that ends with it prints this: the words, with their lines.
impl fmt::Debug for TestModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TestModel for ScriptedModel {
    fn model(&self) -> Arc<dyn LanguageModel> {
        Arc::new(self.clone())
    }

    fn requests(&self) -> Vec<Bytes> {
        self.requests()
    }

    fn check_complete(&self) -> Result<(), TestModelError> {
        Ok(self.check_complete()?)
    }
}
