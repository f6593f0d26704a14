//! How full a session's context is: counted from what is stored, and readable while a message is at work.

use std::sync::{Arc, Mutex, PoisonError};

use agent_core::{Accountant, Entry, History, SessionId, SessionMeta};
use agent_prepare::ContextState;

use crate::HarnessError;
use crate::config::HarnessConfig;

/// Where the driver writes how full the context is. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gauge(Arc<Mutex<Option<ContextState>>>);

impl Gauge {
    /// What was last written, if anything was.
    pub(crate) fn read(&self) -> Option<ContextState> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, state: ContextState) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
    }
}

/// The count of a session as it was stored: what the provider said of the last answered request, and an estimate of the
/// rest.
pub(crate) fn counted(config: &HarnessConfig, meta: &SessionMeta, history: &History) -> Accountant {
    let mut accountant = Accountant::new(config.counter.clone());
    accountant.set_fixed(&meta.system, &meta.tools);
    accountant.follow(history);
    let reported = history.entries().iter().enumerate().rev().find_map(|(at, entry)| match entry {
        Entry::Step(step) => Some((step.usage().total_input(), at)).filter(|(tokens, _)| *tokens > 0),
        Entry::User(_) | Entry::Note(_) | Entry::Boundary(_) => None,
    });
    if let Some((tokens, entries)) = reported {
        accountant.report(tokens, entries);
    }
    accountant
}

/// How full the context of a session is that nobody works on. Nothing is written and no lease is taken.
pub(crate) async fn stored(config: &HarnessConfig, id: &SessionId) -> Result<ContextState, HarnessError> {
    let accountant = match config.store.load(id).await? {
        Some(record) => {
            let (history, _) = History::load(&record.entries)
                .map_err(|cause| HarnessError::Unreadable { session: id.clone(), cause })?;
            counted(config, &record.meta, &history)
        }
        None => {
            let mut accountant = Accountant::new(config.counter.clone());
            let system = config.whole_prompt(id).await?.assemble().system();
            accountant.set_fixed(&system, config.tools.cards());
            accountant
        }
    };
    Ok(config.pipeline.cascade().measure(&accountant, config.model.profile()))
}
