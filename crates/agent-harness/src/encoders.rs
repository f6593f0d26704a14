//! The encoders of a session: one for each model that it asks, kept as long as the session is loaded.

use std::sync::Arc;

use agent_core::{Encoder, LanguageModel, ModelProfile};

/// Encoders by model. The same model again gets the encoder that it had, and with it the bytes that were sent.
#[derive(Debug, Default)]
pub(crate) struct Encoders(Vec<(Arc<dyn LanguageModel>, Box<dyn Encoder>)>);

impl Encoders {
    /// The encoder of a model.
    pub(crate) fn of(&mut self, model: &Arc<dyn LanguageModel>) -> &mut dyn Encoder {
        // Whoever makes a new handle for each step has the same profile in it.
        let known = self.0.iter().position(|(other, _)| is_same(other, model));
        let at = known.unwrap_or_else(|| {
            self.0.push((model.clone(), model.encoder()));
            self.0.len() - 1
        });
        &mut *self.0[at].1
    }

    /// The models that were asked since the session was loaded.
    pub(crate) fn profiles(&self) -> impl Iterator<Item = &ModelProfile> {
        self.0.iter().map(|(model, _)| model.profile())
    }
}

fn is_same(one: &Arc<dyn LanguageModel>, other: &Arc<dyn LanguageModel>) -> bool {
    Arc::ptr_eq(one, other) || one.profile() == other.profile()
}
