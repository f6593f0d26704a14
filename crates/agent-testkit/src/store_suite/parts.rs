//! Small parts that the cases are made of.

use std::collections::BTreeMap;

use agent_core::{
    AssistantPart, CallId, Checkpoint, CompactionState, Entry, EntryId, Event, EventBody, HeldRequest,
    InputRequest, JournalRecord, OfChildren, PendingStep, RawJson, Reads, Reply, RequestId, Response,
    Retried, Rewrite, SessionId, SessionMeta, Slots, Spent, StepRecord, SystemBlock, Text, Todo, TodoStatus,
    ToolCall, ToolCard, ToolInput, ToolOutput, ToolResult, Usage, UserMessage, Wait,
};

pub(super) fn none() -> Checkpoint {
    Checkpoint::default()
}

pub(super) fn id(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

pub(super) fn call(name: &str) -> CallId {
    CallId::new(name).unwrap()
}

pub(super) fn meta(name: &str) -> SessionMeta {
    let card = ToolCard::new("look", "Looks.", &RawJson::empty_object()).unwrap();
    SessionMeta {
        id: id(name),
        created_ms: 40,
        model: "test/model".into(),
        system: vec![SystemBlock::new("Be brief.").unwrap()],
        static_blocks: 1,
        tools: vec![card],
    }
}

pub(super) fn user(text: &str) -> Entry {
    Entry::User(UserMessage::text(text).unwrap())
}

pub(super) fn asks(name: &str) -> Response {
    let input = ToolInput::finished(RAW);
    let part = AssistantPart::ToolCall(ToolCall { id: call(name), name: "look".into(), input, data: None });
    Response { usage: usage(3), ..Response::of(vec![part]) }
}

pub(super) fn step(name: &str) -> Entry {
    let result = ToolResult { call: call(name), output: ToolOutput::text("seen") };
    Entry::Step(StepRecord::new(asks(name), vec![result]).unwrap())
}

pub(super) fn summary(kept_from: usize) -> Entry {
    let text = Text::new("They talked.").unwrap();
    Entry::Boundary(Rewrite::Summary { text, kept_from: EntryId::at(kept_from), strip_reasoning: false })
}

pub(super) fn pending(name: &str) -> JournalRecord {
    JournalRecord::Response(PendingStep::new(asks(name)).unwrap())
}

pub(super) fn event(session: &str, seq: u64) -> Event {
    let body = EventBody::SessionStarted { model: format!("event {seq}") };
    Event { seq: Some(seq), session: id(session), turn: None, step: None, body }
}

pub(super) fn usage(input: u64) -> Usage {
    Usage { input, output: 1, ..Usage::default() }
}

pub(super) fn slots() -> Slots {
    let todo = Todo { id: "1".into(), text: "look".into(), status: TodoStatus::InProgress };
    // JSON, so that there is one.
    let tools = RawJson::parse(RAW).into_iter().map(|raw| ("tool:look".into(), raw)).collect();
    Slots { todos: vec![todo], skills: vec!["knots".into()], tools, ..Slots::default() }
}

/// A call that waits, with a reply.
pub(super) fn held(id: &str) -> HeldRequest {
    let input = RawJson::parse(RAW).unwrap();
    let request = InputRequest {
        id: RequestId::given("req_1"),
        call: call(id),
        tool: "ask".to_owned(),
        wait: Wait::ClientTool { input: input.clone() },
        asked_ms: 3,
        expires_ms: Some(4),
    };
    HeldRequest { request, reply: Some(Reply::Output(ToolOutput::Json(input))) }
}

/// JSON that a parse into a tree would change: the order of keys and every number.
pub(super) const RAW: &str = r#"{"z":12345678901234567890,"a":[1.0,1e2,"\u00e9"],"m":{"b":0.10,"a":null}}"#;
pub(super) static EMPTY: Checkpoint = Checkpoint {
    turn: None,
    last_turn: 0,
    slots: Slots {
        todos: Vec::new(),
        reads: Reads::new(),
        notes: None,
        skills: Vec::new(),
        allowed: Vec::new(),
        tools: BTreeMap::new(),
    },
    usage: NO_USAGE,
    asked_ms: None,
    asked_otherwise: false,
    compaction: CompactionState { failures: 0, after: 0 },
    turn_from: None,
    active: None,
    requests: Vec::new(),
    retried: Retried { step: 0, turn: 0 },
    nano_usd: 0,
    elapsed_ms: 0,
    children: OfChildren { session: NOTHING, turn: NOTHING },
};
const NOTHING: Spent = Spent { usage: NO_USAGE, nano_usd: 0, elapsed_ms: 0 };
const NO_USAGE: Usage = Usage {
    input: 0,
    output: 0,
    reasoning: 0,
    cache_read: 0,
    cache_write_5m: 0,
    cache_write_1h: 0,
    raw: None,
};

/// Holds a call to the error that it must be refused with.
macro_rules! refused {
    ($call:expr, $error:pat $(if $guard:expr)?) => {
        let answer = $call.await;
        assert!(matches!(&answer, Err($error) $(if $guard)?), "{answer:?}");
    };
}
pub(super) use refused;
