//! How full a session's context is: counted from what is stored.

use agent_core::{Accountant, History, SessionId, SessionMeta, Usage};
use agent_prepare::ContextState;
use serde::Deserialize;

use crate::HarnessError;
use crate::config::HarnessConfig;
use crate::listed::{sent, sent_of};

/// Where a provider counts the calls of one answer apart: those that compacted, and the one that answered.
#[derive(Debug, Deserialize)]
struct Counted {
    #[serde(default)]
    iterations: Vec<Iteration>,
}

#[derive(Debug, Deserialize)]
struct Iteration {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    cache_read_input_tokens: u64,
    #[serde(default)]
    cache_creation_input_tokens: u64,
}

/// The count of a session as it was stored: what the provider said of the last answered request, and an estimate of the
/// rest.
pub(crate) fn counted(config: &HarnessConfig, meta: &SessionMeta, history: &History) -> Accountant {
    let mut accountant = Accountant::new(config.counter.clone());
    accountant.set_fixed(&meta.system, &sent(meta, config.model.profile()));
    accountant.resume(history, size);
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
            accountant.set_fixed(&system, &sent_of(config.tools.cards(), config.model.profile()));
            accountant
        }
    };
    Ok(config.pipeline.cascade().measure(&accountant, config.model.profile()))
}

/// Tokens of the request that was answered, as its provider counted them; 0 when it did not.
pub(crate) fn size(usage: &Usage) -> u64 {
    answering(usage).unwrap_or_else(|| usage.total_input())
}

/// Input of the call that answered, when others were counted with it.
fn answering(usage: &Usage) -> Option<u64> {
    // The provider's own object may have any form: one without such calls is what the components say.
    let counted: Counted = usage.raw.as_ref()?.to().ok()?;
    let last = counted.iterations.iter().rev().find(|call| call.kind == "message")?;
    let parts = [last.input_tokens, last.cache_read_input_tokens, last.cache_creation_input_tokens];
    Some(parts.into_iter().fold(0, u64::saturating_add))
}

#[cfg(test)]
mod tests {
    use agent_core::RawJson;

    use super::*;

    #[test]
    fn the_call_that_answered_is_the_size_of_the_context() {
        let check = |raw: &str, expect: Option<u64>| {
            let usage = Usage { raw: RawJson::parse(raw).ok(), ..Usage::default() };
            assert_eq!(answering(&usage), expect, "{raw}");
        };
        check(r#"{"input_tokens":5}"#, None);
        check(r#"{"iterations":[]}"#, None);
        check(r#"{"iterations":"none"}"#, None);
        check(r#"{"iterations":[{"type":"compaction","input_tokens":900}]}"#, None);
        check(
            r#"{"iterations":[{"type":"compaction","input_tokens":900},{"type":"message","input_tokens":7,"cache_read_input_tokens":30}]}"#,
            Some(37),
        );
    }
}
