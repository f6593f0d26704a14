//! A few words on each turn, written behind it by a cheap model, for a session that is taken up again (requirement D5).

use std::sync::Arc;

use agent_core::{Accountant, EntryId, History, LanguageModel, RoundSummary, SessionRecord, Text, Usage};
use agent_prepare::{in_words, round_words};
use async_trait::async_trait;

use crate::changes::model_name;
use crate::{AfterTurn, AfterTurnCx, SourceError};

/// Asks a model for a few words on each turn that was brought to its end, and keeps them beside the session. Their cost
/// goes with the turn and not with the session: nothing older is asked about again.
///
/// When the words on older turns have become many, they are told of together in a few, so that what a session is taken up from
/// stays small however long it gets. Where that fails, the words on each turn still stand.
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
        last: Option<&RoundSummary>,
    ) -> Result<(Text, EntryId, EntryId), SourceError> {
        let config = cx.agent.config();
        let (history, _) = History::load(&record.entries).map_err(unread)?;
        // Behind what was said of earlier turns: a turn whose words are missing is told of with this one.
        let (from, to) = (last.map_or(EntryId::at(0), |last| last.to), EntryId::at(history.len()));
        let entries = history.entries().get(from.position()..).unwrap_or_default();
        let room = u64::from(self.model(cx).profile().context_window / 2);
        let words = in_words(&Accountant::new(config.counter.clone()), entries, room);
        let words = Text::new(words).ok_or_else(|| unread("the turn has no words"))?;
        Ok((words, from, to))
    }

    /// Tells of the turns that are not shown whole together, once the words on each are many.
    async fn fold(&self, cx: &AfterTurnCx, rounds: &[RoundSummary]) -> Result<(), SourceError> {
        let config = cx.agent.config();
        let Some(shown) = config.raw_rounds else { return Ok(()) };
        let standing = RoundSummary::standing(rounds);
        let older = standing.get(..standing.len().saturating_sub(shown)).unwrap_or_default();
        let mut words = String::new();
        let mut told = 0;
        for round in older {
            words += &format!("{}\n\n", round_words(round));
            told += 1;
            if config.counter.text(&words) > MANY {
                break;
            }
        }
        let [first, .., last] = older.get(..told).unwrap_or_default() else { return Ok(()) };
        if config.counter.text(&words) <= MANY {
            return Ok(());
        }
        let words = Text::new(words.trim_end()).ok_or_else(|| unread("the turns have no words"))?;
        let Some((text, mut usage)) = self.ask(cx, FOLD, &words, MAX_FOLDED).await? else { return Ok(()) };
        usage += &last.usage;
        let since = Some(first.since.unwrap_or(first.turn));
        let (from, to, model) = (first.from, last.to, Some(model_name(self.model(cx).profile())));
        let folded = RoundSummary { turn: last.turn, since, from, to, text, usage, model };
        config.store.put_round(&cx.session, &folded).await.map_err(unread)
    }

    /// The model's answer; `None` when it was stopped: the words are written when a later turn is over.
    async fn ask(
        &self,
        cx: &AfterTurnCx,
        system: &str,
        words: &Text,
        max_output: u32,
    ) -> Result<Option<(Text, Usage)>, SourceError> {
        let system = Text::new(system.trim_end()).ok_or_else(|| unread("the question has no words"))?;
        cx.agent.ask_apart(&**self.model(cx), [&system, words], max_output, &cx.cancel).await
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
        let mut rounds = store.rounds(&cx.session).await.map_err(unread)?;
        rounds.retain(|round| round.turn < cx.turn.number());
        let (words, from, to) = self.question(cx, &record, rounds.last())?;
        let Some((text, usage)) = self.ask(cx, SYSTEM, &words, MAX_OUTPUT).await? else { return Ok(()) };
        let (turn, next) = (cx.turn.number(), rounds.last().map_or(1, |last| last.turn + 1));
        let since = (next < turn).then_some(next);
        let model = Some(model_name(self.model(cx).profile()));
        let round = RoundSummary { turn, since, from, to, text, usage, model };
        store.put_round(&cx.session, &round).await.map_err(unread)?;
        rounds.push(round);
        self.fold(cx, &rounds).await
    }
}

fn unread(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> SourceError {
    SourceError::new("the turn that is over", cause)
}

const SYSTEM: &str = include_str!("../prompt/round.md");
/// Most tokens of the words on one turn.
const MAX_OUTPUT: u32 = 400;
const FOLD: &str = include_str!("../prompt/rounds.md");
/// Tokens of words on older turns above which they are told of together.
const MANY: u64 = 2_000;
/// Most tokens of the words on several turns.
const MAX_FOLDED: u32 = 1_000;
