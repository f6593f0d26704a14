//! Requests: any history gives one that a strict provider takes, and what was sent once stays as it is.

use std::collections::BTreeMap;

use agent_core::{
    AssistantPart, AssistantText, CacheProfile, CallId, Encoded, Encoder, Entry, EntryId, History, Mark,
    MarkPoint, ModelProfile, ModelRequest, Note, NoteKind, ProviderData, RawJson, Reasoning, RequestSettings,
    Response, Rewrite, Seal, StepRecord, SystemBlock, Text, ToolCall, ToolCard, ToolChoice, ToolInput,
    ToolOutput, ToolResult, Ttl, UserMessage,
};
use agent_providers::openai_chat::Quirks;
use agent_providers::{Dialect, ToolNames, WireFormat, encoder};
use proptest::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;

use super::validate::rules;
use crate::support::histories::{Dice, history};

/// Everything of a request but the conversation.
struct Ask {
    system: Vec<SystemBlock>,
    tools: Vec<ToolCard>,
    choice: ToolChoice,
    reminders: usize,
    marks: Vec<Mark>,
}

impl Ask {
    fn of(dice: &mut Dice) -> Self {
        let system: Vec<SystemBlock> = ["Be brief.", "Be kind.", "Be bold."]
            .into_iter()
            .take(dice.roll(4))
            .filter_map(SystemBlock::new)
            .collect();
        let tools = if dice.coin() { cards() } else { Vec::new() };
        let choice = match dice.roll(4) {
            0 => ToolChoice::Auto,
            1 => ToolChoice::Required,
            2 => ToolChoice::None,
            _ => ToolChoice::Tool("notes.add".into()),
        };
        let mark = |at| Mark { at, ttl: Ttl::FiveMinutes };
        let blocks = (0..system.len()).map(MarkPoint::System);
        let marks = if dice.coin() {
            std::iter::once(MarkPoint::Tools).chain(blocks).map(mark).collect()
        } else {
            Vec::new()
        };
        Self { system, tools, choice, reminders: dice.roll(3), marks }
    }

    fn encode(&self, encoder: &mut dyn Encoder, log: &History, stream: bool) -> Encoded {
        let mut draft = log.draft();
        for words in ["now", "\u{200b}"].into_iter().take(self.reminders) {
            draft.remind(Note { kind: NoteKind::Reminder, text: Text::new(words).unwrap() });
        }
        encoder.encode(&ModelRequest {
            system: &self.system,
            tools: &self.tools,
            draft: &draft,
            settings: &RequestSettings::default(),
            tool_choice: &self.choice,
            marks: &self.marks,
            stream,
        })
    }
}

/// Tools of ours with odd names, and one that another provider runs itself.
fn cards() -> Vec<ToolCard> {
    let schema = RawJson::parse(r#"{"type":"object","properties":{"q":{"type":"string"}}}"#).unwrap();
    let names = ["look", "notes.add", "mcp/server:tool", "2fa", "日历"];
    let ours = names.iter().map(|name| ToolCard::new(*name, "Works.", &schema).unwrap());
    let json = RawJson::parse(r#"{"type":"odd_search"}"#).unwrap();
    let hosted = ToolCard::hosted("search", ProviderData { provider: "elsewhere".into(), json }).unwrap();
    ours.chain([hosted]).collect()
}

fn profile(dialect: &Dialect, vision: bool) -> ModelProfile {
    ModelProfile {
        cache: CacheProfile::Marked { max_marks: 4, min_tokens: 1_024, lookback: 20, collapse_runs: true },
        forced_tool_choice: true,
        // Those that see images let the system speak inside the conversation too.
        mid_conversation_system: vision,
        turn_scoped_system: vision,
        vision,
        known: true,
        ..ModelProfile::conservative(dialect.provider.clone(), "model-1")
    }
}

/// Every format, and a service that has Anthropic's markers in the format of OpenAI.
fn dialects() -> Vec<Dialect> {
    let provider = "openrouter";
    let routed =
        Dialect { quirks: Quirks::of(provider), provider: provider.into(), ..WireFormat::OpenAiChat.into() };
    WireFormat::ALL.map(Dialect::from).into_iter().chain([routed]).collect()
}

const MARKERS: [&str; 2] =
    [r#","cache_control":{"type":"ephemeral"}"#, r#","prompt_cache_breakpoint":{"mode":"explicit"}"#];

fn fresh(format: WireFormat, vision: bool) -> Box<dyn Encoder> {
    let dialect = Dialect::from(format);
    let profile = profile(&dialect, vision);
    encoder(&dialect, profile, ToolNames::default())
}

fn body(encoded: &Encoded) -> String {
    String::from_utf8(encoded.request.body.to_vec()).unwrap()
}

/// Where the last message of a body ends: behind it only brackets of the list and of the message are closed.
fn end_of_messages(format: WireFormat, body: &str) -> usize {
    let fields: BTreeMap<&str, &RawValue> = serde_json::from_str(body).unwrap();
    let list = fields[rules(format).list].get();
    let kept = list.trim_end_matches([']', '}', '"']);
    list.as_ptr() as usize - body.as_ptr() as usize + kept.len()
}

/// Many providers refuse a conversation that ends with the model: the encoder says so, and the user goes on.
fn gone_on(log: &History) -> History {
    let mut log = log.clone();
    log.push(Entry::User(UserMessage::text("on").unwrap())).unwrap();
    log
}

#[test]
fn a_model_nobody_knows_is_told_of_in_each_request() {
    for format in WireFormat::ALL {
        let dialect = Dialect::from(format);
        let unknown = ModelProfile::conservative(dialect.provider.clone(), "nobody-knows");
        let ask = Ask::of(&mut Dice::new(Vec::new()));
        let log = history(&mut Dice::new(Vec::new()), "elsewhere", false);
        let mut encoder = encoder(&dialect, unknown, ToolNames::default());
        for _ in 0..2 {
            let diagnostics = ask.encode(&mut *encoder, &log, true).diagnostics;
            let told: Vec<_> = diagnostics.iter().filter(|told| told.what == "model").collect();
            assert_eq!(told.len(), 1, "{format:?}: {diagnostics:?}");
            assert!(told[0].why.contains("\"nobody-knows\"") && told[0].why.contains("32768"), "{told:?}");
        }
        let diagnostics = ask.encode(&mut *fresh(format, true), &log, true).diagnostics;
        assert!(diagnostics.iter().all(|told| told.what != "model"), "{format:?}: {diagnostics:?}");
    }
}

/// Thinking, words and a call, with what this provider sealed and attached.
fn sealed_by(provider: &str) -> Entry {
    let json = RawJson::parse(r#"{"odd":1.0}"#).unwrap();
    let data = Some(ProviderData { provider: provider.into(), json });
    let seal = Seal::Signature { provider: provider.into(), value: "c2VhbA==".into() };
    let thought = Reasoning { text: "hm".into(), seal: Some(seal) };
    let words = AssistantText { text: Text::new("go").unwrap(), data: data.clone() };
    let id = CallId::new(format!("call_{provider}")).unwrap();
    let call = ToolCall { id: id.clone(), name: "look".into(), input: ToolInput::finished(""), data };
    let parts =
        vec![AssistantPart::Reasoning(thought), AssistantPart::Text(words), AssistantPart::ToolCall(call)];
    let result = ToolResult { call: id, output: ToolOutput::text("seen") };
    Entry::Step(StepRecord::new(Response::of(parts), vec![result]).unwrap())
}

#[test]
fn what_only_another_provider_understands_is_told_of_once() {
    for format in WireFormat::ALL {
        let dialect = Dialect::from(format);
        let ask = Ask::of(&mut Dice::new(Vec::new()));
        let told = |log: &History| {
            let diagnostics = ask.encode(&mut *fresh(format, true), log, true).diagnostics;
            let of_parts = diagnostics.into_iter().filter(|told| told.what.starts_with("assistant."));
            of_parts.map(|told| format!("{}: {}", told.what, told.why)).collect::<Vec<_>>()
        };
        let mut log = History::new();
        log.push(Entry::User(UserMessage::text("go").unwrap())).unwrap();
        log.push(sealed_by(&dialect.provider)).unwrap();
        assert_eq!(told(&log), [""; 0], "{format:?}");
        log.push(sealed_by("elsewhere")).unwrap();
        log.push(sealed_by("nowhere")).unwrap();
        let expect = ["elsewhere", "nowhere"].map(|name| {
            [
                format!("assistant.reasoning: thinking that {name} sealed means nothing to this provider; left out"),
                format!("assistant.words: what {name} attached to words means nothing to this provider; left out"),
                format!("assistant.calls: what {name} attached to calls means nothing to this provider; left out"),
            ]
        });
        assert_eq!(told(&log), expect.concat(), "{format:?}");
    }
}

/// Summaries that keep nothing, an answer, a call that was answered, and what the user said.
#[test]
fn words_to_go_on_stay_where_they_were_asked() {
    let said = |at: usize| {
        let part = AssistantPart::text(format!("said {at}")).unwrap();
        Entry::Step(StepRecord::new(Response::of(vec![part]), vec![]).unwrap())
    };
    let user = |at: usize| Entry::User(UserMessage::text(format!("asked {at}")).unwrap());
    let summary = |kept_from: usize| {
        let text = Text::new("all of it").unwrap();
        Entry::Boundary(Rewrite::Summary { text, kept_from: EntryId::at(kept_from), strip_reasoning: true })
    };
    let cleared = |to: usize| {
        Entry::Boundary(Rewrite::Cleared {
            results_to: EntryId::at(to),
            keep_bytes: 9,
            strip_reasoning: false,
            offloaded: false,
        })
    };
    // So often words to go on are sent once all is there, and before the entry that follows the boundaries.
    let check = |entries: Vec<Entry>, counts: [usize; 2]| {
        let asked = entries.iter().rposition(|entry| matches!(entry, Entry::Boundary(_))).unwrap() + 1;
        for dialect in dialects() {
            let ask = Ask { reminders: 0, ..Ask::of(&mut Dice::new(Vec::new())) };
            let mut used = encoder(&dialect, profile(&dialect, true), ToolNames::default());
            let (mut log, mut sent) = (History::new(), Vec::new());
            for entry in &entries {
                log.push(entry.clone()).unwrap();
                sent.push(body(&ask.encode(&mut *used, &log, true)));
            }
            let count = |body: &str| body.matches("Continue.").count();
            assert_eq!([count(&sent[asked - 1]), count(&sent[entries.len() - 1])], counts, "{dialect:?}");
        }
    };
    check(vec![user(0), sealed_by("nobody"), summary(2), said(3), user(4)], [1, 1]);
    check(vec![user(0), said(1), summary(1), said(3), user(4)], [1, 1]);
    check(vec![user(0), said(1), summary(1), cleared(2), said(4), said(5)], [1, 1]);
    check(vec![user(0), said(1), summary(1), user(3), said(4)], [1, 0]);
    check(vec![user(0), said(1), summary(0), summary(2), said(4), summary(4)], [1, 1]);
    check(vec![user(0), sealed_by("nobody"), summary(1), said(3)], [0, 0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Whatever was said, a strict provider takes it.
    #[test]
    fn any_history_is_accepted(bytes in proptest::collection::vec(any::<u8>(), 0..240), vision in any::<bool>()) {
        for format in WireFormat::ALL {
            let dialect = Dialect::from(format);
            let mut dice = Dice::new(bytes.clone());
            let ask = Ask::of(&mut dice);
            let log = history(&mut dice, &dialect.provider, true);
            let mut encoder = fresh(format, vision);
            let mut encoded = ask.encode(&mut *encoder, &log, true);
            if encoded.diagnostics.iter().any(|told| told.what == "messages") {
                encoded = ask.encode(&mut *encoder, &gone_on(&log), true);
            }
            let body = body(&encoded);
            let verdict = rules(format).check(&body);
            prop_assert_eq!(verdict, Ok(()), "{:?}: {}", format, body);
        }
    }

    /// A marker behind any system block, the tools or an entry adds its own bytes and changes no other; what cannot be
    /// marked is told.
    #[test]
    fn moving_marks_changes_no_other_byte(
        bytes in proptest::collection::vec(any::<u8>(), 0..160),
        tools in any::<bool>(),
        blocks in proptest::collection::btree_set(0_usize..5, 0..4),
        entries in proptest::collection::btree_set(0_usize..12, 0..3),
    ) {
        let blocks = blocks.iter().map(|at| MarkPoint::System(*at));
        let entries = entries.iter().map(|at| MarkPoint::Entry(EntryId::at(*at)));
        let points = tools.then_some(MarkPoint::Tools).into_iter().chain(blocks).chain(entries);
        let marks: Vec<Mark> = points.map(|at| Mark { at, ttl: Ttl::FiveMinutes }).collect();
        for dialect in dialects() {
            let mut dice = Dice::new(bytes.clone());
            let plain = Ask { marks: Vec::new(), ..Ask::of(&mut dice) };
            let log = history(&mut dice, &dialect.provider, true);
            let fresh = || encoder(&dialect, profile(&dialect, true), ToolNames::default());
            let mut used = fresh();
            let without = body(&plain.encode(&mut *used, &log, true));
            let marked = Ask { marks: marks.clone(), ..plain };
            let encoded = marked.encode(&mut *used, &log, true);
            let with = body(&encoded);
            prop_assert_eq!(&with, &body(&marked.encode(&mut *fresh(), &log, true)), "{:?}", dialect);
            let sent: usize = MARKERS.iter().map(|marker| with.matches(marker).count()).sum();
            let told = encoded.diagnostics.iter().filter(|told| told.what == "marks").count();
            // All that are too many are told of at once; tools that take none are covered by what follows.
            let covered = usize::from(tools && sent > 0);
            let least = marks.len().min(4).saturating_sub(covered);
            prop_assert!(sent <= 4 && sent + told >= least, "{sent} and {told} of {marks:?}");
            let stripped = MARKERS.iter().fold(with, |body, marker| body.replace(marker, ""));
            prop_assert_eq!(stripped, without, "{:?}", dialect);
        }
    }

    /// Streaming changes nothing before the end of the messages, and nothing but whether the answer is streamed.
    #[test]
    fn streaming_changes_only_the_end(bytes in proptest::collection::vec(any::<u8>(), 0..160)) {
        for format in WireFormat::ALL {
            let mut dice = Dice::new(bytes.clone());
            let ask = Ask::of(&mut dice);
            let log = history(&mut dice, format.as_str(), true);
            let streamed = body(&ask.encode(&mut *fresh(format, true), &log, true));
            let whole = body(&ask.encode(&mut *fresh(format, true), &log, false));
            let end = end_of_messages(format, &streamed);
            prop_assert_eq!(streamed.get(..end), whole.get(..end), "{:?}", format);
            let plain = |body: &str| {
                let mut value: Value = serde_json::from_str(body).unwrap();
                let fields = value.as_object_mut().unwrap();
                fields.retain(|field, _| !matches!(field.as_str(), "stream" | "stream_options"));
                value
            };
            prop_assert_eq!(plain(&streamed), plain(&whole), "{:?}", format);
        }
    }

    /// What was asked is the beginning of what is asked after the answer, up to the end of its last message: after
    /// boundaries too, words to go on included. An encoder that starts anew gives the same bytes.
    #[test]
    fn an_answer_leaves_what_was_asked_as_it_was(
        bytes in proptest::collection::vec(any::<u8>(), 0..240),
        may_speak in any::<bool>(),
    ) {
        for dialect in dialects() {
            let mut dice = Dice::new(bytes.clone());
            let ask = Ask { reminders: 0, marks: Vec::new(), ..Ask::of(&mut dice) };
            let whole = history(&mut dice, &dialect.provider, true);
            let fresh = || encoder(&dialect, profile(&dialect, may_speak), ToolNames::default());
            let (mut used, mut log) = (fresh(), History::new());
            let mut asked = body(&ask.encode(&mut *used, &log, true));
            for entry in whole.entries() {
                log.push(entry.clone()).unwrap();
                let now = body(&ask.encode(&mut *used, &log, true));
                prop_assert_eq!(&now, &body(&ask.encode(&mut *fresh(), &log, true)), "{:?}", dialect);
                let is_asked = log.len() > 1 && matches!(entry, Entry::Step(_));
                if is_asked {
                    let end = end_of_messages(dialect.format, &asked);
                    prop_assert_eq!(asked.get(..end), now.get(..end), "{:?}", dialect);
                }
                asked = now;
            }
        }
    }

    /// The body of a step is the beginning of the next one's, up to the end of its last message; an encoder that
    /// starts anew gives the same bytes.
    #[test]
    fn a_body_is_the_beginning_of_the_next(bytes in proptest::collection::vec(any::<u8>(), 0..240)) {
        for format in WireFormat::ALL {
            let mut dice = Dice::new(bytes.clone());
            let ask = Ask { reminders: 0, marks: Vec::new(), ..Ask::of(&mut dice) };
            let whole = history(&mut dice, format.as_str(), false);
            let (mut used, mut log) = (fresh(format, false), History::new());
            let mut before: Option<String> = None;
            for entry in whole.entries() {
                log.push(entry.clone()).unwrap();
                let now = body(&ask.encode(&mut *used, &log, true));
                prop_assert_eq!(&now, &body(&ask.encode(&mut *fresh(format, false), &log, true)), "{:?}", format);
                if let Some(before) = before {
                    let end = end_of_messages(format, &before);
                    prop_assert_eq!(before.get(..end), now.get(..end), "{:?}", format);
                }
                before = Some(now);
            }
        }
    }
}
