//! A few words on each turn, written behind it by a cheap model, for a session that is taken up again (requirement D5).

use std::sync::Arc;

use agent_core::{Accountant, EntryId, History, LanguageModel, RoundSummary, SessionRecord, Text};
use agent_prepare::in_words;
use async_trait::async_trait;

use crate::changes::model_name;
use crate::{AfterTurn, AfterTurnCx, SourceError};

/// Asks a model for a few words on each turn that was brought to its end, and keeps them beside the session. Their cost
/// goes with the turn and not with the session: nothing older is asked about again.
///
/// With [`crate::HarnessConfig::raw_rounds`], a session that is taken up when its prompt cache is cold begins from them.
#[derive(Debug, Clone, Default)]
pub struct RoundSummaries {
    model: Option<Arc<dyn LanguageModel>>,
}

impl RoundSummaries {
    /// Asks the agent's [`crate::HarnessConfig::summary_model`], or else its own.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks this model.
    pub fn by(model: Arc<dyn LanguageModel>) -> Self {
        Self { model: Some(model) }
    }

    /// What is asked about: the words of the turn, and the entries they are of.
    fn question(
        &self,
        cx: &AfterTurnCx,
        record: &SessionRecord,
        earlier: &[RoundSummary],
    ) -> Result<(Text, EntryId, EntryId), SourceError> {
        let config = cx.agent.config();
        let (history, _) = History::load(&record.entries).map_err(unread)?;
        // Behind what was said of earlier turns: a turn whose words are missing is told of with this one.
        let last = earlier.iter().rfind(|round| round.turn < cx.turn.number());
        let (from, to) = (last.map_or(EntryId::at(0), |last| last.to), EntryId::at(history.len()));
        let entries = history.entries().get(from.position()..).unwrap_or_default();
        let room = u64::from(self.model(cx).profile().context_window / 2);
        let words = in_words(&Accountant::new(config.counter.clone()), entries, room);
        let words = Text::new(words).ok_or_else(|| unread("the turn has no words"))?;
        Ok((words, from, to))
    }

    fn model<'m>(&'m self, cx: &'m AfterTurnCx) -> &'m Arc<dyn LanguageModel> {
        let config = cx.agent.config();
        self.model.as_ref().or(config.summary_model.as_ref()).unwrap_or(&config.model)
    }
}

#[async_trait]
impl AfterTurn for RoundSummaries {
    fn name(&self) -> &'static str {
        "round_summary"
    }

    async fn run(&self, cx: &AfterTurnCx) -> Result<(), SourceError> {
        let store = &cx.agent.config().store;
        let Some(record) = store.load(&cx.session).await.map_err(unread)? else { return Ok(()) };
        if record.checkpoint.turn.is_some() || record.checkpoint.last_turn != cx.turn.number() {
            // The next turn began already; its own words come when it is over, and are of this one too.
            return Ok(());
        }
        let earlier = store.rounds(&cx.session).await.map_err(unread)?;
        let (words, from, to) = self.question(cx, &record, &earlier)?;
        let system = Text::new(SYSTEM.trim_end()).ok_or_else(|| unread("the question has no words"))?;
        let asked = cx.agent.ask_apart(&**self.model(cx), [&system, &words], MAX_OUTPUT, &cx.cancel).await?;
        // Stopped: the words are written when a later turn is over.
        let Some((text, usage)) = asked else { return Ok(()) };
        let model = Some(model_name(self.model(cx).profile()));
        let round = RoundSummary { turn: cx.turn.number(), from, to, text, usage, model };
        store.put_round(&cx.session, &round).await.map_err(unread)
    }
}

fn unread(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> SourceError {
    SourceError::new("the turn that is over", cause)
}

const SYSTEM: &str = include_str!("../prompt/round.md");
/// Most tokens of the words on one turn.
const MAX_OUTPUT: u32 = 400;
