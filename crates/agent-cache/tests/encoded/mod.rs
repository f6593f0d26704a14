//! The planner with the real encoder: what it counts is what is sent, and no request misses.

use std::time::Duration;

use agent_cache::{
    Estimate, Format, Lifetimes, Request, RuleBook, Shape, Simulator, last_mark, pieces, plan,
};
use agent_core::{
    AssistantPart, CallId, Encoder, Entry, EntryId, History, Mark, MarkPoint, ModelRequest, RawJson,
    Reasoning, RequestSettings, Response, Rewrite, Seal, StepRecord, SystemBlock, Text, ToolCall, ToolCard,
    ToolChoice, ToolInput, ToolOutput, ToolResult, Ttl, UserMessage, UserPart,
};
use agent_providers::{Catalog, ToolNames, WireFormat};
use proptest::prelude::*;

/// What happens next in a session.
#[derive(Debug, Clone)]
enum Next {
    /// The user says so many texts.
    User(usize),
    /// The model thinks, speaks and calls so many tools at once.
    Step { thinks: bool, speaks: bool, calls: usize },
    /// All so far is summarised, except so many entries.
    Summary(usize),
}

fn next() -> impl Strategy<Value = Next> {
    let step = (any::<bool>(), any::<bool>(), 0..45_usize);
    let step =
        step.prop_map(|(thinks, speaks, calls)| Next::Step { thinks, speaks: speaks || calls == 0, calls });
    prop_oneof![
        2 => (1..40_usize).prop_map(Next::User),
        6 => step,
        1 => (0..3_usize).prop_map(Next::Summary),
    ]
}

struct Session {
    history: History,
    encoder: Box<dyn Encoder>,
    system: Vec<SystemBlock>,
    tools: Vec<ToolCard>,
}

impl Session {
    fn new() -> Self {
        let schema = RawJson::parse(r#"{"type":"object"}"#).unwrap();
        let profile = Catalog::builtin().profile("anthropic", MODEL);
        Self {
            history: History::new(),
            encoder: agent_providers::encoder(&WireFormat::Anthropic.into(), profile, ToolNames::default()),
            system: vec![SystemBlock::new("Read before you write. ".repeat(200)).unwrap()],
            tools: vec![ToolCard::new("look", "Looks. ".repeat(300), &schema).unwrap()],
        }
    }

    /// Appends what happens; whether it was taken.
    fn take(&mut self, next: &Next) -> bool {
        let at = self.history.len();
        let words = |text: String| Text::new(text).unwrap();
        match next {
            Next::User(texts) => {
                let parts = (0..*texts).map(|it| UserPart::Text(words(format!("Question {at}.{it}."))));
                self.push(Entry::User(UserMessage::new(parts.collect()).unwrap()));
                true
            }
            Next::Summary(kept) => {
                let kept_from = EntryId::at(at.saturating_sub(*kept));
                let text = words(format!("What was said before {at}."));
                let entry = Entry::Boundary(Rewrite::Summary { text, kept_from, strip_reasoning: true });
                self.history.push(entry).is_ok()
            }
            Next::Step { thinks, speaks, calls } => {
                let seal = Seal::Signature { provider: "anthropic".into(), value: format!("sig{at}") };
                let thought = Reasoning { text: "Hm.".into(), seal: Some(seal) };
                let id = |it: usize| CallId::new(format!("toolu_{at}_{it}")).unwrap();
                let call = |it| ToolCall {
                    id: id(it),
                    name: "look".into(),
                    input: ToolInput::finished(&format!(r#"{{"at":{it}}}"#)),
                    data: None,
                };
                let mut parts: Vec<AssistantPart> = Vec::new();
                parts.extend(thinks.then(|| AssistantPart::Reasoning(thought)));
                parts.extend(speaks.then(|| AssistantPart::text(format!("Answer {at}.")).unwrap()));
                parts.extend((0..*calls).map(|it| AssistantPart::ToolCall(call(it))));
                let result =
                    |it| ToolResult { call: id(it), output: ToolOutput::text(format!("Seen {at}.{it}.")) };
                let results = (0..*calls).map(result).collect();
                self.push(Entry::Step(StepRecord::new(Response::of(parts), results).unwrap()));
                true
            }
        }
    }

    fn is_answered(&self) -> bool {
        matches!(self.history.entries().last(), Some(Entry::Step(step)) if step.results().is_empty())
    }

    fn push(&mut self, entry: Entry) {
        self.history.push(entry).unwrap();
    }

    fn request(&mut self, marks: &[Mark]) -> Request {
        let draft = self.history.draft();
        let encoded = self.encoder.encode(&ModelRequest {
            system: &self.system,
            tools: &self.tools,
            draft: &draft,
            settings: &RequestSettings { max_output: Some(100), ..RequestSettings::default() },
            tool_choice: &ToolChoice::Auto,
            marks,
            stream: false,
        });
        assert!(encoded.diagnostics.iter().all(|it| it.what != "marks"), "{:?}", encoded.diagnostics);
        Request::read(&encoded.request.body.to_vec(), Some(Format::Anthropic)).unwrap()
    }
}

/// Plays a session; every request reads all that the one before left, or the stable start after a summary.
fn play(steps: &[Next], collapse: bool) -> Result<(), TestCaseError> {
    let provider = if collapse { "anthropic" } else { "bedrock" };
    let book = RuleBook::builtin().with_overrides(SMALL).map_err(|it| TestCaseError::fail(it.to_string()))?;
    let fresh = || Simulator::new(book.clone(), provider).with_counter(Estimate::default());
    let (mut cache, mut cold) = (fresh(), fresh());
    let (mut session, mut covered, mut asked) = (Session::new(), 0, 0);
    let (mut stable, mut rewritten) = (0, false);
    for next in std::iter::once(&Next::User(1)).chain(steps) {
        // A step is the answer to a request, which does not end with the model's own words.
        if matches!(next, Next::Step { .. }) && session.is_answered() {
            session.take(&Next::User(1));
        }
        if !matches!(next, Next::Step { .. }) {
            rewritten |= session.take(next) && matches!(next, Next::Summary(_));
            continue;
        }
        let view = session.history.view();
        let pieces = pieces(view, collapse);
        let written: Vec<EntryId> = last_mark(view).into_iter().collect();
        let lifetimes = Lifetimes { stable: Ttl::OneHour, tail: Ttl::FiveMinutes };
        let shape = Shape { tools: true, system: Some(0), pieces: &pieces, written: &written, lifetimes };
        let profile = cache.rules(&session.request(&[])).profile();
        let request = session.request(&plan(&profile, &shape));
        let outcome = cache.ask(&request, Duration::from_secs(asked));
        let outcome = outcome.map_err(|refusal| TestCaseError::fail(refusal.to_string()))?;
        let least = if rewritten { stable } else { covered };
        prop_assert!(outcome.usage.cache_read >= least, "{:?} of {least} after {next:?}", outcome.usage);
        if asked == 0 {
            let system = Mark { at: MarkPoint::System(0), ttl: Ttl::OneHour };
            let request = session.request(&[system]);
            stable = cold.ask(&request, Duration::ZERO).map_or(0, |outcome| outcome.covered);
            prop_assert!(stable > 1024);
        }
        (covered, rewritten, asked) = (outcome.covered, false, asked + 1);
        session.take(next);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) })]

    #[test]
    fn sessions_never_miss(steps in prop::collection::vec(next(), 1..14), collapse: bool) {
        play(&steps, collapse)?;
    }
}

#[test]
fn a_summary_stands_ahead_of_the_older_entries_it_keeps() {
    let step = |calls| Next::Step { thinks: false, speaks: true, calls };
    for collapse in [true, false] {
        play(&[step(10), Next::Summary(2), step(0), step(30), step(0)], collapse).unwrap();
    }
}

const MODEL: &str = "claude-sonnet-4-6";

/// Bedrock's minimum, lowered so that short sessions are kept.
const SMALL: &str =
    r#"{"as_of":"2026-11-30","rules":[{"provider":"bedrock","min_tokens":1024,"source":"for this test"}]}"#;
