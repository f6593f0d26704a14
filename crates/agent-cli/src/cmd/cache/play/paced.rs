//! A model that is asked as any is, with what happens around each request: time passes, and a process stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agent::HttpModel;
use agent_core::{
    Cancel, Encoder, LanguageModel, ModelError, ModelErrorKind, ModelProfile, ModelStream, Outgoing,
};
use async_trait::async_trait;

use super::clock::StepClock;
use super::{Told, World};
use crate::cmd::cache::sabotage::{Sabotage, broken};

/// A model behind HTTP in a scenario.
#[derive(Debug)]
pub(super) struct Paced {
    pub(super) model: HttpModel,
    pub(super) clock: StepClock,
    /// Seconds after each request.
    pub(super) pauses: Vec<u64>,
    /// Requests to all models so far, those of earlier processes included.
    pub(super) asked: Arc<AtomicUsize>,
    pub(super) stop_before: Option<usize>,
    pub(super) sabotage: Vec<Sabotage>,
}

#[async_trait]
impl LanguageModel for Paced {
    fn profile(&self) -> &ModelProfile {
        self.model.profile()
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        self.model.encoder()
    }

    async fn stream(&self, request: Outgoing, cancel: &Cancel) -> Result<ModelStream, ModelError> {
        let number = self.asked.fetch_add(1, Ordering::SeqCst);
        if self.stop_before == Some(number) {
            lost(World.tell(&Told::Stopped))?;
            // Whoever heard it kills this process; nothing may happen until then.
            std::future::pending::<()>().await;
        }
        let request = broken(&self.sabotage, number + 1, request);
        let stream = self.model.stream(request, cancel).await?;
        // The request was accounted for: from here on, it is later.
        let seconds = self.pauses.get(number).copied().unwrap_or(0);
        lost(self.clock.pass(Told::Answered(seconds.saturating_mul(1_000))))?;
        Ok(stream)
    }
}

fn lost(told: std::io::Result<()>) -> Result<(), ModelError> {
    told.map_err(|error| ModelError::new(ModelErrorKind::Cancelled, format!("the world went away: {error}")))
}
