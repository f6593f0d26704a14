//! The books of the provider: what each request reads and writes in the prompt cache, and what was asked before.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_cache::{Aspect, CacheRules, Miss, Outcome, Pending, Request, RuleBook, Scheme, Simulator, miss};
use agent_core::ModelProfile;
use agent_providers::Catalog;
use serde_json::Value;

use super::api_error::ApiError;
use super::clock::SimClock;
use super::thinking;
use super::wire::{Compared, Wire};
use crate::script::Reply;

/// The prompt cache of a simulated provider (requirement V2): one for each set of rules, for one account.
#[derive(Debug, Clone, Default)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..Default")]
pub struct SimCache {
    /// The rules of each provider; by default [`RuleBook::builtin`].
    pub rules: RuleBook,
    /// The time by which entries run out; by default the machine's.
    pub clock: SimClock,
    /// Whose rules count, for example `bedrock` or `deepseek`; by default those of who invented the wire. Under the rules
    /// of a provider that is not known, as `none`, nothing is cached.
    pub provider: Option<String>,
}

/// What is remembered of all requests.
#[derive(Debug)]
pub(super) struct Accounts {
    cache: SimCache,
    /// Tokens a prompt may have, in place of what is known of the model.
    window: Option<u64>,
    catalog: Catalog,
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    simulators: BTreeMap<String, Simulator>,
    /// Requests by the id of the message that answered them.
    answered: BTreeMap<String, Arc<Request>>,
}

/// A request as it is accounted for.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) request: Arc<Request>,
    pub(super) rules: CacheRules,
}

/// What an accepted request came to.
#[derive(Debug)]
pub(super) struct Counted {
    pub(super) outcome: Outcome,
    /// The number in the ids of the answer.
    pub(super) number: String,
    pub(super) diagnosis: Option<Diagnosis>,
    pub(super) entries: Entries,
}

/// Entries that can be read once the answer begins.
#[derive(Debug)]
pub(super) struct Entries {
    provider: String,
    pending: Pending,
}

/// How a request compares with an earlier one that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Diagnosis {
    /// It is said to be the first one.
    First,
    /// It goes on where the earlier one ended.
    Same,
    Changed(Miss),
    /// There is no earlier one of that id.
    NotFound,
}

impl Accounts {
    pub(super) fn new(cache: SimCache, window: Option<u64>) -> Self {
        Self { cache, window, catalog: Catalog::builtin(), books: Mutex::default() }
    }

    pub(super) fn now(&self) -> Duration {
        self.cache.clock.now()
    }

    /// Reads a body; what is not read like any request of its wire is refused.
    pub(super) fn read(&self, wire: &dyn Wire, body: &[u8]) -> Result<Asked, ApiError> {
        let request = Request::read(body, Some(wire.format())).map_err(|error| wire.unreadable(&error))?;
        let rules = self.cache.rules.rules(self.provider(wire), &request.model);
        Ok(Asked { request: Arc::new(request), rules })
    }

    /// Refuses what depends on the model: settings, markers, too long a prompt.
    pub(super) fn check(&self, wire: &dyn Wire, asked: &Asked, body: &Value) -> Result<(), ApiError> {
        let profile = self.catalog.profile(wire.tag(), &asked.request.model);
        wire.check_model(body, &asked.rules, &profile)?;
        let simulator = self.simulator(wire);
        simulator.check(&asked.request).map_err(|refusal| wire.misplaced(&refusal))?;
        let tokens = simulator.input_tokens(&asked.request);
        match self.window(&profile) {
            Some(most) if tokens > most => Err(wire.overflow(tokens, most)),
            Some(_) | None => Ok(()),
        }
    }

    fn window(&self, profile: &ModelProfile) -> Option<u64> {
        self.window.or_else(|| profile.known.then(|| profile.context_window.into()))
    }

    /// Accounts for a request that arrived at this time.
    pub(super) fn take(
        &self,
        wire: &dyn Wire,
        asked: &Asked,
        (body, position): (&Value, &str),
        at: Duration,
    ) -> Result<Counted, ApiError> {
        let provider = self.provider(wire).to_owned();
        let mut books = self.books.lock().unwrap_or_else(PoisonError::into_inner);
        let simulator = books.simulators.entry(provider.clone()).or_insert_with(|| self.simulator(wire));
        let asking = simulator.ask_pending(&asked.request, at);
        let (outcome, pending) = asking.map_err(|refusal| wire.misplaced(&refusal))?;
        let diagnosis = match wire.compares(body) {
            Compared::NotAsked => None,
            Compared::First => Some(Diagnosis::First),
            Compared::With(id) => Some(match books.answered.get(id) {
                None => Diagnosis::NotFound,
                Some(previous) => {
                    miss(previous, &asked.request, &asked.rules).map_or(Diagnosis::Same, Diagnosis::Changed)
                }
            }),
        };
        let number = books.number(wire, position, &asked.request);
        drop(books);
        Ok(Counted { outcome, number, diagnosis, entries: Entries { provider, pending } })
    }

    /// The answer begins: what it writes can be read.
    pub(super) fn begin(&self, entries: &Entries) {
        let now = self.now();
        let mut books = self.books.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(simulator) = books.simulators.get_mut(&entries.provider) {
            simulator.begin(&entries.pending, now);
        }
    }

    fn provider<'p>(&'p self, wire: &dyn Wire) -> &'p str {
        self.cache.provider.as_deref().unwrap_or(wire.provider())
    }

    fn simulator(&self, wire: &dyn Wire) -> Simulator {
        Simulator::new(self.cache.rules.clone(), self.provider(wire))
    }
}

impl Books {
    /// The number of the answer: its position in the script, and behind it which request of that position it answers,
    /// where there was another one. The same request has the same number, also after a restart.
    fn number(&mut self, wire: &dyn Wire, position: &str, request: &Arc<Request>) -> String {
        let mut nth = 1_u64;
        loop {
            let number = if nth == 1 { position.to_owned() } else { format!("{position}_{nth}") };
            let known = self.answered.entry(wire.message_id(&number)).or_insert_with(|| Arc::clone(request));
            if known == request {
                return number;
            }
            nth += 1;
        }
    }
}

impl Asked {
    /// Checks signatures: refuses thinking that is not what was answered, or not where, and takes out what is dropped.
    pub(super) fn check_thinking(&mut self, body: &Value) -> Result<(), ApiError> {
        let drops = body["thinking"]["block_binding"]["prefix_mismatch_behavior"] == "drop_block";
        let kept = thinking::check(&self.request, &self.rules, drops)?;
        if !kept.dropped.is_empty() {
            let request = Arc::make_mut(&mut self.request);
            let mut at = 0..;
            request.blocks.retain(|_| at.next().is_none_or(|at| !kept.dropped.contains(&at)));
        }
        Ok(())
    }

    /// Notes the features that the head of the request asks for: a part of the prompt, in whatever order.
    pub(super) fn note_betas(&mut self, header: &str) {
        let mut names: Vec<&str> = header.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        names.sort_unstable();
        if !names.is_empty() {
            Arc::make_mut(&mut self.request).aspects.insert(Aspect::Betas, names.join(","));
        }
    }

    /// The signature under a reply's thinking.
    pub(super) fn sign(&self, reply: &Reply) -> String {
        let words = reply.reasoning.as_deref().unwrap_or_default();
        thinking::Signature::of_answer(&self.request, &self.rules, words).to_string()
    }

    /// Whether the model's provider charges for writes and says how many there were.
    pub(super) fn tells_writes(&self) -> bool {
        matches!(self.rules.scheme, Scheme::Marked | Scheme::Breakpoints)
    }
}
