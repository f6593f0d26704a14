//! The planner on any history: planned from what is new as from scratch, and never more or other marks than allowed.

use agent_cache::{Lifetimes, Opening, Planner};
use agent_core::{
    AssistantPart, CacheProfile, CallId, Encoded, Entry, EntryId, History, Mark, MarkPoint, ModelProfile,
    ModelRequest, Note, NoteKind, ProviderPart, RawJson, Reasoning, RequestSettings, Response, Rewrite, Seal,
    StepRecord, SystemBlock, Text, ToolCall, ToolCard, ToolChoice, ToolInput, ToolOutput, ToolResult, Ttl,
    UserMessage, UserPart,
};
use agent_providers::{Catalog, ToolNames, WireFormat};
use proptest::prelude::*;

/// One entry: its kind, two numbers that mean something to it, and whether a request is planned behind it.
type Given = (u8, usize, usize, bool);

fn entry((kind, many, reach, _): Given, at: usize) -> Entry {
    let text = |words: String| Text::new(words).unwrap();
    let back = EntryId::at(at.saturating_sub(reach));
    match kind {
        0 => {
            let parts = (0..=many).map(|it| UserPart::Text(text(format!("u{at}.{it}"))));
            Entry::User(UserMessage::new(parts.collect()).unwrap())
        }
        1 => Entry::Note(Note { kind: NoteKind::Reminder, text: text(format!("n{at}")) }),
        2 => {
            let text = text(format!("s{at}"));
            Entry::Boundary(Rewrite::Summary { text, kept_from: back, strip_reasoning: many % 2 == 0 })
        }
        3 => Entry::Boundary(Rewrite::Cleared {
            results_to: back,
            keep_bytes: 1,
            strip_reasoning: false,
            offloaded: false,
        }),
        _ => step(many, reach, at),
    }
}

/// So many calls, and of `reach` the lowest bits say what else is in it and where.
fn step(calls: usize, reach: usize, at: usize) -> Entry {
    let id = |it| CallId::new(format!("c{at}_{it}")).unwrap();
    let seal = || Seal::Signature { provider: "anthropic".into(), value: "c2ln".into() };
    let thought = || AssistantPart::Reasoning(Reasoning { text: "hm".into(), seal: Some(seal()) });
    let odd = || {
        let raw = RawJson::parse(r#"{"type":"odd"}"#).unwrap();
        AssistantPart::Provider(ProviderPart { provider: "anthropic".into(), kind: "odd".into(), raw })
    };
    let mut parts: Vec<AssistantPart> = Vec::new();
    parts.extend((reach & 1 > 0).then(thought));
    parts.extend((reach & 2 > 0).then(|| AssistantPart::text("a").unwrap()));
    parts.extend((0..calls).map(|it| {
        let input = ToolInput::finished("{}");
        AssistantPart::ToolCall(ToolCall { id: id(it), name: "look".into(), input, data: None })
    }));
    parts.extend((reach & 4 > 0).then(odd));
    parts.extend((reach & 8 > 0).then(thought));
    let results = (0..calls).map(|it| ToolResult { call: id(it), output: ToolOutput::text("r") });
    Entry::Step(StepRecord::new(Response::of(parts), results.collect()).unwrap())
}

fn given() -> impl Strategy<Value = Given> {
    let kind = prop_oneof![2 => Just(0_u8), 1 => Just(1), 1 => Just(2), 1 => Just(3), 6 => Just(4)];
    (kind, 0..40_usize, 0..16_usize, any::<bool>())
}

fn ttl(long: bool) -> Ttl {
    if long { Ttl::OneHour } else { Ttl::FiveMinutes }
}

fn encode(history: &History, profile: &CacheProfile, marks: &[Mark]) -> Encoded {
    let known = Catalog::builtin().profile("anthropic", "claude-sonnet-4-6");
    let known = ModelProfile { cache: profile.clone(), ..known };
    let schema = RawJson::parse(r#"{"type":"object"}"#).unwrap();
    let blocks = ["Be brief.", "Be kind."].map(|text| SystemBlock::new(text).unwrap());
    agent_providers::encoder(&WireFormat::Anthropic.into(), known, ToolNames::default()).encode(
        &ModelRequest {
            system: &blocks,
            tools: &[ToolCard::new("look", "Looks.", &schema).unwrap()],
            draft: &history.draft(),
            settings: &RequestSettings { max_output: Some(9), ..RequestSettings::default() },
            tool_choice: &ToolChoice::Auto,
            marks,
            stream: false,
        },
    )
}

/// All marks are sent as they are: on what can carry one, in order, long-lived ones first, each once.
fn are_sent(history: &History, profile: &CacheProfile, marks: &[Mark]) -> Result<(), TestCaseError> {
    let encoded = encode(history, profile, marks);
    let told: Vec<_> = encoded.diagnostics.iter().filter(|it| it.what == "marks").collect();
    prop_assert!(told.is_empty(), "{:?}: {:?}", marks, told);
    let body = String::from_utf8(encoded.request.body.to_vec()).unwrap();
    let mut sent = Vec::new();
    for piece in body.split(r#","cache_control":{"type":"ephemeral""#).skip(1) {
        sent.push(if piece.starts_with(r#","ttl":"1h"}"#) { Ttl::OneHour } else { Ttl::FiveMinutes });
    }
    prop_assert_eq!(sent, marks.iter().map(|mark| mark.ttl).collect::<Vec<_>>(), "the order of the prompt");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(192) })]

    #[test]
    fn planning_from_what_is_new_is_planning_from_scratch(
        all in prop::collection::vec(given(), 1..40),
        (max_marks, lookback, collapse_runs) in (0..5_u8, 1..21_u8, any::<bool>()),
        (stable, tail) in (any::<bool>(), any::<bool>()),
        (tools, system) in (any::<bool>(), prop::option::of(0..2_usize)),
    ) {
        let profile = CacheProfile::Marked { max_marks, min_tokens: 1024, lookback, collapse_runs };
        let lifetimes = Lifetimes { stable: ttl(stable), tail: ttl(tail) };
        let opening = Opening { tools, system };
        let (mut used, mut history) = (Planner::new(lifetimes), History::new());
        for given in all {
            // A boundary that reaches too far back is refused.
            let _refused = history.push(entry(given, history.len()));
            if !given.3 {
                continue;
            }
            let marks = used.plan(&profile, opening, history.view());
            let fresh = Planner::new(lifetimes).plan(&profile, opening, history.view());
            prop_assert_eq!(&marks, &fresh);
            prop_assert!(marks.len() <= usize::from(max_marks));
            are_sent(&history, &profile, &marks)?;
        }
    }

    /// One planner between two sessions says of each what a planner of its own says.
    #[test]
    fn a_planner_that_is_given_another_session_starts_over(
        all in prop::collection::vec(given(), 1..30),
        apart in 0..30_usize,
    ) {
        let profile = CacheProfile::Marked { max_marks: 4, min_tokens: 1024, lookback: 20, collapse_runs: false };
        let lifetimes = Lifetimes { stable: Ttl::OneHour, tail: Ttl::FiveMinutes };
        let opening = Opening { tools: true, system: Some(1) };
        let (mut used, mut one, mut other) = (Planner::new(lifetimes), History::new(), History::new());
        for (at, given) in all.into_iter().enumerate() {
            let _refused = one.push(entry(given, one.len()));
            if at >= apart {
                // Nothing of it reads as something of the other.
                other.push(entry((0, at % 7, 0, true), other.len() + 1_000)).unwrap();
            }
            for history in [&one, &other] {
                let fresh = Planner::new(lifetimes).plan(&profile, opening, history.view());
                prop_assert_eq!(used.plan(&profile, opening, history.view()), fresh);
            }
        }
    }
}

#[test]
fn a_mark_of_the_system_names_the_last_static_block() {
    let mut history = History::new();
    history.push(entry((0, 0, 0, true), 0)).unwrap();
    let profile = CacheProfile::Marked { max_marks: 4, min_tokens: 1024, lookback: 20, collapse_runs: true };
    let lifetimes = Lifetimes { stable: Ttl::OneHour, tail: Ttl::FiveMinutes };
    let plan = |opening| Planner::new(lifetimes).plan(&profile, opening, history.view());
    let mark = |at, ttl| Mark { at, ttl };
    let tail = mark(MarkPoint::Entry(EntryId::at(0)), Ttl::FiveMinutes);
    let system = mark(MarkPoint::System(1), Ttl::OneHour);
    assert_eq!(plan(Opening { tools: false, system: Some(1) }), [system, tail]);
    let tools = mark(MarkPoint::Tools, Ttl::OneHour);
    assert_eq!(plan(Opening { tools: true, system: None }), [tools, tail]);
    assert_eq!(plan(Opening { tools: true, system: Some(1) }), [tools, system, tail]);
    assert_eq!(plan(Opening { tools: false, system: None }), [tail]);
}
