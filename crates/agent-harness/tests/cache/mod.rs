//! The provider's cache: where requests are marked, what steps say their prompt begins with, and breaks.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use agent_cache::{Lifetimes, Request};
use agent_core::{
    AssistantPart, CacheProfile, Cancel, Commit, Encoded, Encoder, Entry, EntryId, Event, EventBody, Finish,
    FinishKind, LanguageModel, ModelError, ModelEvent, ModelProfile, ModelRequest, ModelStream, Outgoing,
    ProviderPart, RawJson, Rewrite, SystemBlock, Text, Ttl, Usage,
};
use agent_harness::{Harness, HarnessConfig};
use agent_prompt::{Fragment, Layer, Session, Value, system_hash, tools_hash};
use agent_store::Store;
use agent_testkit::{Reply, ScriptedModel};
use agent_tools::ToolSet;
use async_trait::async_trait;
use serde_json::Value as Json;

use crate::support::{Effects, Hands, Keeping, Points, block, id, system_of, tools, watch};

const MARKED: CacheProfile =
    CacheProfile::Marked { max_marks: 4, min_tokens: 512, lookback: 20, collapse_runs: true };

fn profile(cache: CacheProfile) -> ModelProfile {
    let is_automatic = matches!(cache, CacheProfile::Automatic);
    let (provider, model) =
        if is_automatic { ("mistral", "mistral-large") } else { ("anthropic", "claude-opus-5-5") };
    ModelProfile { cache, ..ModelProfile::conservative(provider, model) }
}

/// An agent with tools, two static blocks and one of the session.
fn config(model: impl LanguageModel + 'static, store: &Points) -> HarnessConfig {
    let mut config = HarnessConfig::new(Arc::new(model), Arc::new(store.clone()));
    config.prompt = system_of(&["Be brief.", "Be kind."]);
    let place = Fragment::<Session>::new(Layer::Session, "place", Value::session("You are in /tea."));
    config.prompt.add(place.unwrap());
    config.tools = tools(&Effects::default());
    config.permissions.mode = agent_tools::PermissionMode::Bypass;
    config
}

async fn say(config: HarnessConfig, words: &[&str]) -> Vec<Event> {
    let session = Harness::new(config).session(id());
    let mut events = Vec::new();
    for words in words {
        events.extend(watch(session.send(*words).await.unwrap()).await.0);
    }
    events
}

fn look(times: usize) -> Reply {
    (0..times).fold(Reply::text("Looking."), |reply, n| reply.call("look", format!(r#"{{"what":"{n}"}}"#)))
}

#[test]
fn requests_are_marked_as_planned() {
    block(async {
        // The third request is more than a lookback away from the one before.
        let replies = vec![look(1), look(30), Reply::text("Seen."), Reply::text("Again.")];
        let model = ScriptedModel::new(replies).with_profile(profile(CacheProfile::Marked {
            max_marks: 4,
            min_tokens: 512,
            lookback: 20,
            collapse_runs: false,
        }));
        let mut config = config(model.clone(), &Points::default());
        config.lifetimes = Lifetimes { stable: Ttl::OneHour, tail: Ttl::FiveMinutes };
        say(config, &["first", "second"]).await;
        let marks = model.requests().into_iter().map(|body| {
            let body: Json = serde_json::from_slice(&body).unwrap();
            let marks = body["marks"].as_array().unwrap().iter();
            let shown = marks.map(|mark| format!("{} {}", mark["at"], mark["ttl"].as_str().unwrap()));
            shown.collect::<Vec<_>>().join(", ")
        });
        insta::assert_snapshot!(marks.collect::<Vec<_>>().join("\n"), @r#"
        "tools" 1h, {"system":1} 1h, {"entry":0} 5m
        "tools" 1h, {"system":1} 1h, {"entry":1} 5m
        "tools" 1h, {"system":1} 1h, {"entry":1} 5m, {"entry":2} 5m
        "tools" 1h, {"system":1} 1h, {"entry":4} 5m
        "#);
    });
}

#[test]
fn without_a_system_prompt_the_tools_are_marked() {
    block(async {
        let model = ScriptedModel::new(vec![Reply::text("Hi.")]).with_profile(profile(MARKED));
        let mut config = config(model.clone(), &Points::default());
        config.prompt = system_of(&[]);
        say(config, &["first"]).await;
        let body: Json = serde_json::from_slice(&model.requests()[0]).unwrap();
        assert_eq!(body["marks"].to_string(), r#"[{"at":"tools","ttl":"5m"},{"at":{"entry":0},"ttl":"5m"}]"#);
    });
}

#[test]
fn a_process_that_takes_a_session_up_sends_the_very_same_bytes() {
    block(async {
        let model = || {
            let replies = vec![look(1), look(30), Reply::text("Seen."), look(2), Reply::text("Again.")];
            Keeping::new(ScriptedModel::new(replies).by_history().with_profile(profile(MARKED)))
        };
        let sent = |model: &Keeping| model.bodies().iter().map(|body| body.to_vec()).collect::<Vec<_>>();
        let (one, other, store) = (model(), model(), Points::default());
        say(config(one.clone(), &Points::default()), &["first", "second"]).await;
        say(config(other.clone(), &store), &["first"]).await;
        say(config(other.clone(), &store), &["second"]).await;
        assert_eq!(sent(&one).len(), 5);
        assert_eq!(sent(&one), sent(&other));
        for body in sent(&one) {
            let request = Request::read(&body, None).unwrap();
            let marks = request.blocks.iter().filter(|block| block.mark.is_some()).count();
            assert!((3..=4).contains(&marks), "{marks} marks");
            assert!(request.blocks.last().unwrap().mark.is_some(), "the tail is marked");
        }
    });
}

#[test]
fn ten_steps_begin_with_one_prompt_and_say_so() {
    block(async {
        let replies: Vec<_> = (0..9).map(|_| look(1)).chain([Reply::text("Done.")]).collect();
        let store = Points::default();
        let model = ScriptedModel::new(replies).with_profile(profile(MARKED));
        let events = say(config(model, &store), &["go"]).await;
        let told = events.iter().filter_map(|event| {
            let EventBody::CacheSystemHash { system, tools } = &event.body else { return None };
            Some((event.step.unwrap().number(), system.to_string(), tools.to_string()))
        });
        let told: Vec<_> = told.collect();
        assert_eq!(told.iter().map(|(step, ..)| *step).collect::<Vec<_>>(), Vec::from_iter(0..10));
        let values: BTreeSet<_> = told.into_iter().map(|(_, system, tools)| (system, tools)).collect();
        let meta = store.load(&id()).await.unwrap().unwrap().meta;
        assert_eq!(values, BTreeSet::from([(system_hash(&meta.system), tools_hash(&meta.tools))]));
        let stored = store.events(&id(), 0).await.unwrap();
        let durable: Vec<_> = events.into_iter().filter(|event| event.seq.is_some()).collect();
        assert_eq!(stored, durable);
    });
}

/// Tokens of a call: read from the cache, written to it, and the rest.
fn usage(read: u64, write: u64, input: u64) -> Usage {
    Usage { input, cache_read: read, cache_write_5m: write, output: 5, ..Usage::default() }
}

/// The breaks told: tokens, segment and cause.
fn breaks(events: &[Event]) -> Vec<String> {
    let shown = events.iter().filter_map(|event| {
        let EventBody::CacheBreak { expected, read, segment, cause, message } = &event.body else {
            return None;
        };
        assert!(event.seq.is_some() && event.step.is_some() && !message.is_empty(), "{event:?}");
        let segment = segment.as_deref().unwrap_or("-");
        Some(format!("{read} of {expected}: {cause} at {segment}"))
    });
    shown.collect()
}

/// One process: a message a reply, each so many seconds after the one before.
#[track_caller]
fn check(cache: CacheProfile, (tail, seconds): (Ttl, i64), replies: &[Usage], expect: &[&str]) {
    block(async {
        let replies: Vec<_> = replies.iter().map(|usage| Reply::text("Ok.").costing(usage.clone())).collect();
        let count = replies.len();
        let model = Keeping::new(ScriptedModel::new(replies).with_profile(profile(cache)));
        let (store, hands) = (Points::default(), Hands::at(1_000_000));
        let mut config = config(model, &store);
        config.clock = Arc::new(hands.clone());
        config.lifetimes = Lifetimes { stable: tail, tail };
        let session = Harness::new(config).session(id());
        let mut events = Vec::new();
        for _ in 0..count {
            events.extend(watch(session.send("again").await.unwrap()).await.0);
            hands.forward(seconds * 1_000);
        }
        assert_eq!(breaks(&events), expect);
        let stored = store.events(&id(), 0).await.unwrap();
        assert_eq!(breaks(&stored), expect, "a break is kept with the step");
    });
}

#[test]
fn a_step_that_reads_less_than_was_left_tells_why() {
    let short = (Ttl::FiveMinutes, 1);
    let intact = [usage(0, 900, 9), usage(900, 50, 9), usage(950, 0, 9)];
    check(MARKED, short, &intact, &[]);
    let dropped = [usage(0, 900, 9), usage(400, 550, 9), usage(950, 50, 9)];
    check(MARKED, short, &dropped, &["400 of 900: service_miss at -"]);
    check(MARKED, (Ttl::FiveMinutes, 301), &dropped, &["400 of 900: expired at -"]);
    check(MARKED, (Ttl::OneHour, 301), &dropped, &["400 of 900: service_miss at -"]);
    check(MARKED, (Ttl::OneHour, 3_601), &dropped, &["400 of 900: expired at -"]);
    check(CacheProfile::None, short, &dropped, &[]);
    // A service that caches by itself names what it read alone.
    let automatic = [usage(0, 0, 900), usage(896, 0, 50), usage(0, 0, 990)];
    check(CacheProfile::Automatic, short, &automatic, &["0 of 896: service_miss at -"]);
    let silent = [usage(0, 0, 900), usage(0, 0, 950)];
    check(CacheProfile::Automatic, short, &silent, &[]);
    // A call without counts says nothing, and the next one is held against the call before it.
    let lost = [usage(0, 900, 9), Usage::default(), usage(0, 950, 9)];
    check(MARKED, short, &lost, &["0 of 900: service_miss at -"]);
}

/// A model whose system prompt tells the time.
#[derive(Debug)]
struct Ticking(Keeping);

#[derive(Debug)]
struct TickingEncoder(Box<dyn Encoder>, AtomicUsize);

#[async_trait]
impl LanguageModel for Ticking {
    fn profile(&self) -> &ModelProfile {
        self.0.profile()
    }
    fn encoder(&self) -> Box<dyn Encoder> {
        Box::new(TickingEncoder(self.0.encoder(), AtomicUsize::default()))
    }
    async fn stream(&self, request: Outgoing, cancel: &Cancel) -> Result<ModelStream, ModelError> {
        self.0.stream(request, cancel).await
    }
}

impl Encoder for TickingEncoder {
    fn encode(&mut self, request: &ModelRequest<'_>) -> Encoded {
        let second = self.1.fetch_add(1, Ordering::SeqCst);
        let system = [SystemBlock::new(format!("It is 12:04:0{second}. Be brief.")).unwrap()];
        self.0.encode(&ModelRequest { system: &system, ..*request })
    }
}

#[test]
fn a_changed_byte_is_named() {
    block(async {
        let replies = vec![look(1).costing(usage(0, 900, 9)), Reply::text("Ok.").costing(usage(200, 800, 9))];
        let model = Ticking(Keeping::new(ScriptedModel::new(replies).with_profile(profile(MARKED))));
        let events = say(config(model, &Points::default()), &["go"]).await;
        assert_eq!(breaks(&events), ["200 of 900: clock_in_system at system[0]"]);
    });
}

/// Two processes: the second one begins so many seconds later, with something changed.
#[track_caller]
fn check_resumed(seconds: i64, change: impl Fn(&mut HarnessConfig), expect: &[&str]) {
    block(async {
        let model = || {
            let replies = [usage(0, 900, 9), usage(100, 850, 9)];
            let replies = Vec::from(replies.map(|usage| Reply::text("Ok.").costing(usage)));
            Keeping::new(ScriptedModel::new(replies).by_history().with_profile(profile(MARKED)))
        };
        let (store, hands) = (Points::default(), Hands::at(1_000_000));
        let config = || {
            let mut config = config(model(), &store);
            config.clock = Arc::new(hands.clone());
            config
        };
        say(config(), &["first"]).await;
        hands.forward(seconds * 1_000);
        let mut changed = config();
        change(&mut changed);
        if seconds == SUMMARISED {
            summarise(&store).await;
        }
        assert_eq!(breaks(&say(changed, &["second"]).await), expect);
    });
}

/// So many seconds stand for a conversation that was summarised between two processes.
const SUMMARISED: i64 = 7;

/// Another program summarises the conversation.
async fn summarise(store: &Points) {
    let lease = store.lease(&id()).await.unwrap();
    let record = store.load(&id()).await.unwrap().unwrap();
    let text = Text::new("Words were exchanged.").unwrap();
    let kept_from = EntryId::at(record.entries.len());
    let boundary = [Entry::Boundary(Rewrite::Summary { text, kept_from, strip_reasoning: false })];
    let commit = Commit {
        expect: record.revision,
        entries: &boundary,
        checkpoint: &record.checkpoint,
        usage: None,
        events: &[],
        consumed: &[],
        terminal: None,
        now_ms: 0,
    };
    store.commit(&lease, commit).await.unwrap();
}

#[test]
fn what_a_resumed_session_lost_is_told() {
    check_resumed(1, |_| (), &["100 of 900: unknown at -"]);
    check_resumed(301, |_| (), &["100 of 900: expired at -"]);
    check_resumed(1, |config| config.tools = ToolSet::default(), &["100 of 900: tools_changed at -"]);
    let other = |config: &mut HarnessConfig| {
        let replies = [usage(0, 900, 9), usage(100, 850, 9)];
        let replies = Vec::from(replies.map(|usage| Reply::text("Ok.").costing(usage)));
        let profile = ModelProfile { model: "claude-sonnet-5-5".into(), ..profile(MARKED) };
        config.model = Arc::new(ScriptedModel::new(replies).by_history().with_profile(profile));
    };
    check_resumed(1, other, &["100 of 900: model_changed at -"]);
    check_resumed(SUMMARISED, |_| (), &[]);
}

/// A model whose provider edits what it reads: the events of each call.
#[derive(Debug)]
struct Editing(Keeping, Mutex<Vec<Vec<ModelEvent>>>);

#[async_trait]
impl LanguageModel for Editing {
    fn profile(&self) -> &ModelProfile {
        self.0.profile()
    }
    fn encoder(&self) -> Box<dyn Encoder> {
        self.0.encoder()
    }
    async fn stream(&self, _request: Outgoing, _cancel: &Cancel) -> Result<ModelStream, ModelError> {
        let mut events = self.1.lock().unwrap().remove(0);
        events.push(ModelEvent::Part(AssistantPart::text("Ok.").unwrap()));
        events.push(ModelEvent::Finish(Finish { kind: FinishKind::Stop, raw: "end_turn".into() }));
        Ok(Box::pin(futures_util::stream::iter(events.into_iter().map(Ok))))
    }
}

/// An answer for which the provider left so many tokens unread.
fn cleared(usage: Usage, tokens: u64) -> Vec<ModelEvent> {
    vec![ModelEvent::Usage(usage), ModelEvent::Cleared { tokens }]
}

/// One that begins with a summary of the provider's own.
fn compacted(usage: Usage) -> Vec<ModelEvent> {
    let raw = RawJson::parse(r#"{"type":"compaction","content":"They spoke."}"#).unwrap();
    let block = ProviderPart { provider: "anthropic".into(), kind: "compaction".into(), raw };
    vec![ModelEvent::Part(AssistantPart::Provider(block)), ModelEvent::Usage(usage)]
}

#[test]
fn what_the_provider_edits_is_no_break() {
    fn check(answers: Vec<Vec<ModelEvent>>, expect: &[&str]) {
        block(async {
            let count = answers.len();
            let keeping = Keeping::new(ScriptedModel::new(vec![]).with_profile(profile(MARKED)));
            let model = Editing(keeping, Mutex::new(answers));
            let events = say(config(model, &Points::default()), &vec!["again"; count]).await;
            assert_eq!(breaks(&events), expect);
        });
    }
    let first = || cleared(usage(0, 900, 9), 0);
    check(vec![first(), cleared(usage(100, 300, 9), 500), cleared(usage(400, 50, 9), 500)], &[]);
    // The same edit as before moves nothing, so that what is lost has another cause.
    let lost = cleared(usage(100, 350, 9), 500);
    let again = vec![first(), cleared(usage(100, 300, 9), 500), lost];
    check(again, &["100 of 400: service_miss at -"]);
    // It edits no more: what it left unread is read anew.
    check(vec![first(), cleared(usage(900, 300, 9), 500), cleared(usage(100, 950, 9), 0)], &[]);
    // What it compacted it does not read from then on, which shows in that answer or in the next one.
    check(vec![first(), compacted(usage(100, 300, 9)), cleared(usage(90, 400, 9), 0)], &[]);
    check(vec![first(), compacted(usage(900, 300, 9)), cleared(usage(90, 400, 9), 0)], &[]);
    let later = cleared(usage(80, 400, 9), 0);
    check(
        vec![first(), compacted(usage(900, 300, 9)), cleared(usage(90, 400, 9), 0), later],
        &["80 of 490: service_miss at -"],
    );
}
