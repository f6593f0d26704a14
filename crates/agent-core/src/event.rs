//! What happened, with coordinates, for people and programs that watch.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::step::Repair;
use crate::{
    CallId, Diagnostic, EntryId, Excerpt, Finish, InputRequest, ModelErrorKind, ParkKind, RequestId,
    SessionId, StepNo, TerminalReason, TurnId, Usage,
};

/// One event (requirement L9). As JSON: `{"type", "seq"?, "session", "turn"?, "step"?, "data"}`.
///
/// A durable event has a `seq`, free of gaps in its session and given at commit; a delta has none and is live
/// only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "the envelope is a contract with consumers")]
pub struct Event {
    /// Number of a durable event in its session, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The session.
    pub session: SessionId,
    /// The turn, for events inside one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// The step, for events inside one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<StepNo>,
    /// What happened.
    #[serde(flatten)]
    pub body: EventBody,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data")]
#[non_exhaustive]
pub enum EventBody {
    /// The first event of a session.
    #[serde(rename = "session.started")]
    SessionStarted {
        /// The model's name.
        model: String,
    },
    /// The session began as a copy of another one's beginning.
    #[serde(rename = "session.forked")]
    SessionForked {
        /// The other one.
        from: SessionId,
        /// The last entry that both have.
        at: EntryId,
    },
    /// A turn began.
    #[serde(rename = "turn.started")]
    TurnStarted {},
    /// The user's message entered the history.
    #[serde(rename = "message.received")]
    MessageReceived {
        /// Where it stands.
        entry: EntryId,
        /// Its words.
        text: String,
    },
    /// A step begins; tools are assembled after this.
    #[serde(rename = "step.started")]
    StepStarted {},
    /// Words arrive.
    #[serde(rename = "text.delta")]
    TextDelta {
        /// Which try of the model call.
        attempt: u32,
        /// Which block.
        index: u32,
        /// The words.
        text: String,
    },
    /// Thinking arrives.
    #[serde(rename = "reasoning.delta")]
    ReasoningDelta {
        /// Which try of the model call.
        attempt: u32,
        /// Which block.
        index: u32,
        /// The thinking.
        text: String,
    },
    /// The input of a call arrives.
    #[serde(rename = "tool_input.delta")]
    ToolInputDelta {
        /// Which try of the model call.
        attempt: u32,
        /// Which block.
        index: u32,
        /// The call, as the provider names it.
        call: CallId,
        /// The tool; all deltas of a call share it.
        #[serde(with = "shared_text")]
        tool: Arc<str>,
        /// The next piece of JSON.
        json: String,
    },
    /// What was streamed in an attempt of this step is void (requirement M11): drop the deltas that carry its number.
    ///
    /// It comes after the last delta of that attempt and before the first one of the next, also when no other attempt
    /// follows. An attempt of which nothing was streamed has none.
    #[serde(rename = "tombstone")]
    Tombstone {
        /// The void attempt.
        attempt: u32,
        /// Its message id, where known.
        message: Option<String>,
        /// `streaming_fallback` when the next attempt is made without streaming; else the class of the failure, for
        /// example `interrupted` or `overloaded`.
        reason: String,
    },
    /// An attempt of the model call failed, and after a wait there will be another one (requirement M10).
    #[serde(rename = "step.retrying")]
    StepRetrying {
        /// The attempt that failed, from 0 as in deltas; the next one has the next number.
        attempt: u32,
        /// The class of the failure.
        kind: ModelErrorKind,
        /// What happened.
        message: String,
        /// How long is waited, in milliseconds.
        wait_ms: u64,
        /// Tokens spent on the attempt.
        usage: Usage,
    },
    /// The model asks for these calls to be executed.
    #[serde(rename = "actions.requested")]
    ActionsRequested {
        /// The calls, in order.
        calls: Vec<ActionCall>,
    },
    /// One call has its result; also an invalid, refused or cancelled one.
    #[serde(rename = "action.result")]
    ActionResult {
        /// The call.
        call: CallId,
        /// The tool.
        tool: String,
        /// How it went.
        outcome: ActionOutcome,
        /// The beginning of its output.
        preview: Excerpt,
        /// Length of the whole output in bytes.
        bytes: u64,
    },
    /// Somebody outside is asked for something; the turn waits for it.
    #[serde(rename = "input.requested")]
    InputRequested(InputRequest),
    /// A sign-in is needed; the turn waits for it.
    #[serde(rename = "authorization.required")]
    AuthorizationRequired(InputRequest),
    /// A request is no longer open.
    #[serde(rename = "input.closed")]
    InputClosed {
        /// The request.
        request: RequestId,
        /// The call that waited.
        call: CallId,
        /// How it was closed.
        how: Closed,
    },
    /// A sub-agent begins a task (requirement L10). Its own events are those of its session. It is told again, with the same
    /// session, when a crash came between this and the beginning.
    #[serde(rename = "subagent.started")]
    SubagentStarted {
        /// The call that asked for it.
        call: CallId,
        /// Where it works.
        child: SessionId,
        /// Which kind of agent; none for one like its parent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<String>,
        /// What it is to do.
        task: Excerpt,
    },
    /// A sub-agent is done; once for each task that has a result.
    #[serde(rename = "subagent.completed")]
    SubagentCompleted {
        /// The call that asked for it.
        call: CallId,
        /// Where it worked.
        child: SessionId,
        /// How its turn ended; none when it broke down before its turn did, which was ended for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<TerminalReason>,
        /// How many steps it took.
        steps: u32,
        /// Its tokens and those of its own sub-agents. They are not in the usage of the turn that asked.
        usage: Usage,
    },
    /// A compaction begins.
    #[serde(rename = "compaction.requested")]
    CompactionRequested {
        /// Tokens before.
        before: u64,
        /// Which tier.
        tier: String,
    },
    /// A compaction ended.
    #[serde(rename = "compaction.completed")]
    CompactionCompleted {
        /// Tokens before.
        before: u64,
        /// Tokens after.
        after: u64,
        /// Which tier.
        tier: String,
        /// How long it took.
        millis: u64,
    },
    /// A tier of compaction failed; the history is as it was.
    #[serde(rename = "compaction.failed")]
    CompactionFailed {
        /// Which tier.
        tier: String,
        /// Why.
        message: String,
    },
    /// The context crossed one of its thresholds, upwards or downwards.
    #[serde(rename = "context.level")]
    ContextLevel {
        /// `calm`, `warning`, `error`, `compact` or `blocked`.
        level: String,
        /// Tokens of the next request, as far as known.
        used: u64,
        /// Tokens that fit beside an answer.
        window: u64,
    },
    /// A step is in the history.
    #[serde(rename = "step.completed")]
    StepCompleted {
        /// Where it stands.
        entry: EntryId,
        /// Why the model stopped.
        finish: Finish,
        /// Tokens of the answer that was kept: its input is the size of the context.
        usage: Usage,
        /// Tokens of the attempts that failed before it. They cost as others do and count in the usage of turn and
        /// session, but nothing of them is in the context.
        #[serde(default, skip_serializing_if = "is_nothing")]
        voided: Usage,
        /// The model that was asked, `provider/name`; `None` in events of older releases.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// A step failed; nothing of it is in the history.
    #[serde(rename = "step.failed")]
    StepFailed {
        /// The class of the failure.
        kind: ModelErrorKind,
        /// What happened.
        message: String,
        /// Tokens spent on it, in all its attempts.
        usage: Usage,
    },
    /// The turn waits; it stays open.
    #[serde(rename = "turn.waiting")]
    TurnWaiting {
        /// What for.
        on: ParkKind,
    },
    /// The turn ended.
    #[serde(rename = "turn.completed")]
    TurnCompleted {
        /// Why.
        reason: TerminalReason,
        /// How many steps it took.
        steps: u32,
        /// What it cost.
        usage: Usage,
        /// The stop condition that ended it, by its name; `None` when none did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stopped_by: Option<String>,
    },
    /// The turn failed.
    #[serde(rename = "turn.failed")]
    TurnFailed {
        /// Why.
        reason: TerminalReason,
        /// What happened.
        message: String,
        /// How many steps it took.
        steps: u32,
        /// What it cost.
        usage: Usage,
    },
    /// The session waits for the next message; after a failed turn too.
    #[serde(rename = "session.waiting")]
    SessionWaiting {},
    /// The session is over.
    #[serde(rename = "session.completed")]
    SessionCompleted {},
    /// The session cannot go on.
    #[serde(rename = "session.failed")]
    SessionFailed {
        /// What happened.
        message: String,
    },
    /// A loaded history broke the pairing rules and was mended in the view.
    #[serde(rename = "history.repaired")]
    HistoryRepaired {
        /// The entry.
        entry: EntryId,
        /// What was mended.
        repair: Repair,
    },
    /// What the prompt begins with, told for each step (requirement A7): while one of the two stays, so do its bytes.
    #[serde(rename = "cache.system_hash")]
    CacheSystemHash {
        /// First 16 hex digits of SHA-256 of the full system prompt.
        system: Arc<str>,
        /// The same of the list of tools.
        tools: Arc<str>,
    },
    /// A step read less from the provider's cache than the last one left in it (requirement A7).
    #[serde(rename = "cache.break")]
    CacheBreak {
        /// Tokens that could have been read: what the last step read and wrote.
        expected: u64,
        /// Tokens that were read.
        read: u64,
        /// The first segment of the request that is another one than before, for example `tools[3]`, `system[1]` or
        /// `messages[12].content[0]`; none when the bytes are the same, or the last request is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        segment: Option<String>,
        /// The cause in one word, for example `clock_in_system`, `tools_reordered`, `expired` or `unknown`.
        cause: String,
        /// What happened, and what to do.
        message: String,
    },
    /// Part of a request could not be sent as asked.
    #[serde(rename = "request.diagnostic")]
    RequestDiagnostic(Diagnostic),
}

fn is_nothing(usage: &Usage) -> bool {
    *usage == Usage::default()
}

/// A call as events show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record of three texts")]
pub struct ActionCall {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// The input as the model wrote it, which may not be JSON.
    pub input: String,
}

/// How a call went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ActionOutcome {
    /// It gave a result.
    Completed,
    /// It failed, and the model was told how.
    Failed,
    /// Permission was refused.
    Denied,
    /// It was not run, or stopped, because the turn was aborted.
    Cancelled,
}

/// How a request was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Closed {
    /// Somebody replied.
    Answered,
    /// Nobody replied in time.
    Expired,
    /// The turn was stopped.
    Withdrawn,
    /// A later message of the user took its place.
    Superseded,
}

impl EventBody {
    /// Whether the event is kept and numbered; deltas are not.
    pub fn is_durable(&self) -> bool {
        !matches!(self, Self::TextDelta { .. } | Self::ReasoningDelta { .. } | Self::ToolInputDelta { .. })
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire {
            seq: Option<u64>,
            session: SessionId,
            turn: Option<TurnId>,
            step: Option<StepNo>,
            #[serde(rename = "type")]
            kind: String,
            data: Box<RawValue>,
        }
        // Raw JSON inside `data` does not survive serde's buffering of flattened fields: read it on its own.
        let Wire { seq, session, turn, step, kind, data } = Wire::deserialize(deserializer)?;
        let kind = serde_json::to_string(&kind).map_err(serde::de::Error::custom)?;
        let text = format!(r#"{{"type":{kind},"data":{}}}"#, data.get());
        let body = serde_json::from_str(&text).map_err(serde::de::Error::custom)?;
        Ok(Self { seq, session, turn, step, body })
    }
}

/// A text that clones share, as the text it is.
mod shared_text {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
        String::deserialize(deserializer).map(Arc::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FinishKind, RawJson};

    #[test]
    fn events_round_trip_with_raw_usage() {
        let usage =
            Usage { input: 3, raw: Some(RawJson::parse(r#"{"b":1,"a":1.0}"#).unwrap()), ..Usage::default() };
        let finish = Finish { kind: FinishKind::Stop, raw: "end_turn".into() };
        let event = Event {
            seq: Some(7),
            session: SessionId::new("s").unwrap(),
            turn: Some(TurnId::FIRST),
            step: Some(StepNo::FIRST),
            body: EventBody::StepCompleted {
                entry: EntryId::at(1),
                finish,
                usage,
                voided: Usage::default(),
                model: None,
            },
        };
        let text = serde_json::to_string(&event).unwrap();
        insta::assert_snapshot!(text, @r#"{"seq":7,"session":"s","turn":"turn_1","step":0,"type":"step.completed","data":{"entry":1,"finish":{"kind":"stop","raw":"end_turn"},"usage":{"input":3,"output":0,"reasoning":0,"cache_read":0,"cache_write_5m":0,"cache_write_1h":0,"raw":{"b":1,"a":1.0}}}}"#);
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
    }

    #[test]
    fn a_shared_text_is_written_as_any_other() {
        let (call, json) = (CallId::new("c").unwrap(), "{".to_owned());
        let body = EventBody::ToolInputDelta { attempt: 0, index: 1, call, tool: "look".into(), json };
        let text = serde_json::to_string(&body).unwrap();
        assert!(text.contains(r#""tool":"look""#), "{text}");
        assert_eq!(serde_json::from_str::<EventBody>(&text).unwrap(), body);
    }

    #[test]
    fn deltas_are_live_only() {
        assert!(!EventBody::TextDelta { attempt: 0, index: 0, text: "x".into() }.is_durable());
        assert!(EventBody::TurnStarted {}.is_durable());
    }
}
