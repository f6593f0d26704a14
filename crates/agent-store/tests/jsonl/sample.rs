//! Sessions to write out: drawn ones, and one with a thing of every kind.

use agent_core::{
    AssistantPart, CallId, Checkpoint, Commit, Entry, Event, EventBody, Heard, HeldRequest, Input,
    InputRequest, JournalRecord, PendingStep, RawJson, Reply, RequestId, Response, Revision, RoundSummary,
    SessionId, SessionMeta, StepRecord, SystemBlock, TerminalReason, Text, ToolCall, ToolInput, ToolOutput,
    ToolResult, Usage, UserMessage, Wait,
};
use agent_store::Store;
use agent_testkit::store_suite::wait_for;
use proptest::prelude::*;

/// JSON that a parse into a tree would change, with the line breaks of a model that likes them.
pub(super) const RAW: &str = "{\"z\":12345678901234567890,\n\t\"a\" : [1.0,\r\n1e2,\"\\u00e9\"]}";

pub(super) fn id(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

pub(super) fn user(text: &str) -> Entry {
    Entry::User(UserMessage::text(text).unwrap())
}

fn raw() -> RawJson {
    RawJson::parse(RAW).unwrap()
}

fn asks(call: &str) -> Response {
    let (id, input) = (CallId::new(call).unwrap(), ToolInput::finished(RAW));
    Response::of(vec![AssistantPart::ToolCall(ToolCall { id, name: "look".into(), input, data: None })])
}

pub(super) fn step(call: &str) -> Entry {
    let result = ToolResult { call: CallId::new(call).unwrap(), output: ToolOutput::Json(raw()) };
    Entry::Step(StepRecord::new(asks(call), vec![result]).unwrap())
}

/// What a session is made of.
#[derive(Debug, Clone, Default)]
pub(super) struct Parts {
    pub(super) entries: Vec<Entry>,
    pub(super) events: Vec<EventBody>,
    pub(super) blobs: Vec<Vec<u8>>,
    pub(super) is_open: bool,
    pub(super) journal: usize,
    /// How many messages wait, and how many replies were used.
    pub(super) said: (u64, u64),
    /// The usage of commits behind the first.
    pub(super) usage: Vec<u64>,
    pub(super) rounds: Vec<u64>,
}

pub(super) fn parts() -> impl Strategy<Value = Parts> {
    let entry = prop_oneof![
        "[a-zé\"\\\\\u{2028}]{1,20}"
            .prop_filter_map("blank", |text| { UserMessage::text(text).ok().map(Entry::User) }),
        (0..1_000u32).prop_map(|n| step(&format!("c{n}"))),
    ];
    let blobs = prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..4);
    let state = (any::<bool>(), 0..4usize, (0..3u64, 0..3u64));
    let beside = (prop::collection::vec(0..9u64, 0..4), prop::collection::vec(1..9u64, 0..4));
    (prop::collection::vec(entry, 0..8), 0..6usize, blobs, state, beside).prop_map(
        |(entries, events, blobs, (is_open, journal, said), (usage, rounds))| {
            let events = (0..events).map(|n| EventBody::SessionStarted { model: format!("event {n}") });
            let events = events.collect();
            Parts { entries, events, blobs, is_open, journal, said, usage, rounds }
        },
    )
}

pub(super) fn stored(store: &dyn Store, name: &str, parts: &Parts) {
    let session = id(name);
    let meta = SessionMeta {
        id: session.clone(),
        created_ms: 40,
        model: "test/model".into(),
        system: vec![SystemBlock::new("Be brief.").unwrap()],
        static_blocks: 1,
        tools: Vec::new(),
    };
    let lease = wait_for(store.lease(&session)).unwrap();
    wait_for(store.create(&lease, &meta, &Checkpoint::default())).unwrap();
    let open =
        Checkpoint { turn: Some(raw()), last_turn: 3, requests: vec![held()], ..Checkpoint::default() };
    let mut commits = Commits { store, lease, revision: Revision(0) };
    commits.put(Commit { entries: &parts.entries, events: &events(&session, &parts.events), ..of(&open) });
    for input in &parts.usage {
        let usage = Usage { input: *input, raw: Some(raw()), ..Usage::default() };
        commits.put(Commit { usage: Some(&usage), ..of(&open) });
    }
    for n in 0..parts.said.1 {
        let reply = Reply::Output(ToolOutput::Json(raw()));
        let input = Input::Reply { request: RequestId::given(&format!("req_{n}")), reply };
        let number = wait_for(store.put_input(&session, &input)).unwrap();
        commits.put(Commit { consumed: &[number], ..of(&open) });
    }
    for n in 0..parts.said.0 {
        let message = UserMessage::text(format!("and this {n}")).unwrap();
        wait_for(store.put_input(&session, &Input::Message { message, heard: Heard::After })).unwrap();
    }
    if !parts.is_open {
        let idle = Checkpoint { last_turn: 3, ..Checkpoint::default() };
        commits.put(Commit { terminal: Some(&TerminalReason::Done), ..of(&idle) });
    }
    beside(store, &commits, parts);
}

/// What is stored without a commit.
fn beside(store: &dyn Store, commits: &Commits<'_>, parts: &Parts) {
    let session = commits.lease.session();
    for bytes in &parts.blobs {
        wait_for(store.put_blob(session, bytes)).unwrap();
    }
    for turn in &parts.rounds {
        let text = Text::new("They\nlooked.").unwrap();
        let (from, to) = (agent_core::EntryId::at(0), agent_core::EntryId::at(1));
        let (turn, usage) = (*turn, Usage::default());
        let round = RoundSummary { turn, since: None, from, to, text, usage, model: None };
        wait_for(store.put_round(session, &round)).unwrap();
    }
    let call = CallId::new("open").unwrap();
    let result = ToolResult { call: call.clone(), output: ToolOutput::Json(raw()) };
    let records = [
        JournalRecord::Response(PendingStep::new(asks("open")).unwrap()),
        JournalRecord::Started(call),
        JournalRecord::Waits(held().request),
        JournalRecord::Active(["look".to_owned()].into()),
        JournalRecord::Finished { result, slots: None },
    ];
    wait_for(store.journal(&commits.lease, &records[..parts.journal], &[])).unwrap();
}

struct Commits<'a> {
    store: &'a dyn Store,
    lease: agent_store::Lease,
    revision: Revision,
}

impl Commits<'_> {
    fn put(&mut self, commit: Commit<'_>) {
        let commit = Commit { expect: self.revision, ..commit };
        self.revision = wait_for(self.store.commit(&self.lease, commit)).unwrap().revision;
    }
}

fn of(checkpoint: &Checkpoint) -> Commit<'_> {
    Commit {
        expect: Revision(0),
        entries: &[],
        checkpoint,
        usage: None,
        events: &[],
        consumed: &[],
        terminal: None,
        now_ms: 41,
    }
}

fn events(session: &SessionId, bodies: &[EventBody]) -> Vec<Event> {
    let event = |(seq, body): (u64, &EventBody)| {
        let turn = agent_core::TurnId::after(0);
        Event { seq: Some(seq), session: session.clone(), turn: Some(turn), step: None, body: body.clone() }
    };
    (1..).zip(bodies).map(event).collect()
}

fn held() -> HeldRequest {
    let request = InputRequest {
        id: RequestId::given("req_open"),
        call: CallId::new("open").unwrap(),
        tool: "ask".to_owned(),
        wait: Wait::ClientTool { input: raw() },
        asked_ms: 3,
        expires_ms: Some(4),
    };
    HeldRequest { request, reply: Some(Reply::Output(ToolOutput::Json(raw()))) }
}

/// One thing of every kind that a store keeps of a session.
pub(super) fn full() -> Parts {
    let entry = |text: &str| serde_json::from_str::<Entry>(text).unwrap();
    let step = StepRecord::new(
        Response {
            parts: serde_json::from_str(
                r#"[{"reasoning":{"text":"hm","seal":{"signature":{"provider":"test","value":"c2ln+/=="}}}},
                    {"text":{"text":"Let me see."}},
                    {"tool_call":{"id":"c9","name":"look","input":{"json":{"b":1.0,"a":12345678901234567890}}}}]"#,
            )
            .unwrap(),
            ..asks("c9")
        },
        vec![ToolResult { call: CallId::new("c9").unwrap(), output: ToolOutput::text("one\ntwo") }],
    )
    .unwrap();
    let entries = vec![
        user("one\r\ntwo \u{2028} \u{feff}"),
        self::step("c1"),
        Entry::Step(step),
        entry(r#"{"note":{"kind":"turn_scoped","text":"Mind the tide."}}"#),
        entry(r#"{"boundary":{"cleared":{"results_to":1,"keep_bytes":9,"offloaded":true}}}"#),
        entry(r#"{"boundary":{"summary":{"text":"They looked.","kept_from":2,"strip_reasoning":true}}}"#),
        user("three"),
    ];
    let blobs = vec![b"large".to_vec(), (0..=255).collect(), Vec::new()];
    Parts {
        entries,
        events: every_event(),
        blobs,
        is_open: true,
        journal: 5,
        said: (2, 2),
        usage: vec![3, 4],
        rounds: vec![1, 3],
    }
}

/// An event of every kind that is kept.
fn every_event() -> Vec<EventBody> {
    let request = serde_json::to_string(&held().request).unwrap();
    let usage = serde_json::to_string(&Usage { input: 1, ..Usage::default() }).unwrap();
    let finish = r#"{"kind":"stop","raw":"end_turn"}"#;
    let texts = [
        r#"{"type":"session.started","data":{"model":"m"}}"#.to_owned(),
        r#"{"type":"session.forked","data":{"from":"other","at":2}}"#.into(),
        r#"{"type":"turn.started","data":{}}"#.into(),
        r#"{"type":"message.received","data":{"entry":0,"text":"hi\nthere"}}"#.into(),
        r#"{"type":"step.started","data":{}}"#.into(),
        r#"{"type":"tombstone","data":{"attempt":1,"message":null,"reason":"interrupted"}}"#.into(),
        format!(r#"{{"type":"step.retrying","data":{{"attempt":0,"kind":"overloaded","message":"m","wait_ms":5,"usage":{usage}}}}}"#),
        r#"{"type":"actions.requested","data":{"calls":[{"call":"c","tool":"t","input":"{\n not json"}]}}"#.into(),
        r#"{"type":"action.result","data":{"call":"c","tool":"t","outcome":"denied","preview":"p","bytes":1}}"#.into(),
        format!(r#"{{"type":"input.requested","data":{request}}}"#),
        format!(r#"{{"type":"authorization.required","data":{request}}}"#),
        r#"{"type":"input.closed","data":{"request":"req_1","call":"c","how":"expired"}}"#.into(),
        r#"{"type":"subagent.started","data":{"call":"c","child":"s.1","kind":"scout","task":"look"}}"#.into(),
        format!(r#"{{"type":"subagent.completed","data":{{"call":"c","child":"s.1","reason":"done","steps":2,"usage":{usage}}}}}"#),
        r#"{"type":"compaction.requested","data":{"before":9,"tier":"notes"}}"#.into(),
        r#"{"type":"compaction.completed","data":{"before":9,"after":1,"tier":"notes","millis":3}}"#.into(),
        r#"{"type":"compaction.failed","data":{"tier":"notes","message":"m"}}"#.into(),
        r#"{"type":"context.level","data":{"level":"warning","used":1,"window":2}}"#.into(),
        format!(r#"{{"type":"step.completed","data":{{"entry":1,"finish":{finish},"usage":{usage},"voided":{usage}}}}}"#),
        format!(r#"{{"type":"step.failed","data":{{"kind":"overloaded","message":"m","usage":{usage}}}}}"#),
        r#"{"type":"turn.waiting","data":{"on":"approval"}}"#.into(),
        format!(r#"{{"type":"turn.completed","data":{{"reason":{{"parked":"approval"}},"steps":1,"usage":{usage}}}}}"#),
        format!(r#"{{"type":"turn.failed","data":{{"reason":"aborted","message":"m","steps":1,"usage":{usage}}}}}"#),
        r#"{"type":"session.waiting","data":{}}"#.into(),
        r#"{"type":"session.completed","data":{}}"#.into(),
        r#"{"type":"session.failed","data":{"message":"m"}}"#.into(),
        r#"{"type":"history.repaired","data":{"entry":1,"repair":{"dropped":"c"}}}"#.into(),
        r#"{"type":"cache.system_hash","data":{"system":"a","tools":"b"}}"#.into(),
        r#"{"type":"cache.break","data":{"expected":2,"read":1,"segment":"tools[3]","cause":"unknown","message":"m"}}"#.into(),
        r#"{"type":"request.diagnostic","data":{"what":"w","why":"y"}}"#.into(),
    ];
    texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
}
