//! What a parked turn waits for: requests that somebody outside answers, and the answers (requirement L7).

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{CallId, Layer, ParkKind, RawJson, ToolOutput};

/// A request's name. It is derived from what is asked, so that asking the same again after a crash is the same request,
/// and an answer holds for exactly what was shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(Arc<str>);

/// Something a turn cannot go on without: one call that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a record that drivers build, extended only with serde defaults"
)]
pub struct InputRequest {
    /// The request.
    pub id: RequestId,
    /// The call that waits.
    pub call: CallId,
    /// Its tool.
    pub tool: String,
    /// What for.
    pub wait: Wait,
    /// When it was put, milliseconds since 1970 UTC.
    pub asked_ms: i64,
    /// When it lapses, milliseconds since 1970 UTC; `None` where it never does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<i64>,
}

/// What a call waits for: all that is needed to answer it, as data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "every kind of wait has its own way to be answered")]
pub enum Wait {
    /// A person's permission to run the call.
    Approval(Approval),
    /// A person's answer to a question.
    Question(Question),
    /// A sign-in; the call runs again after it.
    Authorization(Authorization),
    /// Work of the runtime, for example a sub-agent.
    Action(Action),
    /// The client that runs the tool: its input.
    ClientTool {
        /// The input as it was checked.
        input: RawJson,
    },
}

/// A permission that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record that drivers build")]
pub struct Approval {
    /// What would run: exactly this is allowed.
    pub input: RawJson,
    /// The question in words, with what decided that a person is asked.
    pub prompt: String,
    /// Permission patterns that an answer of "always" would remember; none where no rule could say it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remembers: Vec<String>,
    /// Why it is asked again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<String>,
}

/// A question of the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record that tools build")]
pub struct Question {
    /// The question.
    pub question: String,
    /// What can be chosen; other words are an answer too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<Choice>,
    /// Whether several may be chosen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub multiple: bool,
}

/// One answer that is offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record that tools build")]
pub struct Choice {
    /// The answer.
    pub label: String,
    /// What it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A sign-in that a call needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record that tools build")]
pub struct Authorization {
    /// Where the person signs in, for people: `the issue tracker`.
    pub service: String,
    /// The address to go to.
    pub url: String,
}

/// Work for the runtime.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record that tools build")]
pub struct Action {
    /// Which work, for example `agent`.
    pub kind: String,
    /// What is to be done, in the form of its kind.
    pub input: RawJson,
}

/// An answer to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "the driver handles every reply")]
pub enum Reply {
    /// Run it. To an approval.
    Allow,
    /// Run it, and remember that in this layer. To an approval.
    Always(Layer),
    /// Run it with another input, which is checked as the model's own would be. To an approval.
    Edit(RawJson),
    /// What was chosen or said. To a question; several only where several may be chosen.
    Answer(Vec<String>),
    /// The sign-in was made. To an authorisation.
    SignedIn,
    /// What came of it. To an action and to the tool of a client.
    Output(ToolOutput),
    /// Nothing comes of it, with words for the model. To any request.
    Decline(Option<String>),
}

/// A request of an open step, and the reply once there is one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record that drivers build")]
pub struct HeldRequest {
    /// The request.
    pub request: InputRequest,
    /// The first reply to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Reply>,
}

/// A reply that is none to the request it was given for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("request {request} waits for {wants}, and was told {told}; it is still open")]
pub struct WrongReply {
    request: RequestId,
    wants: &'static str,
    told: &'static str,
}

impl RequestId {
    /// The request that a digest of what is asked names: `req_` and its first 24 hexadecimal digits.
    pub fn of_digest(digest: &[u8; 32]) -> Self {
        Self(format!("req_{}", crate::hex(&digest[..12])).into())
    }

    /// A name as somebody wrote it; that there is such a request is another matter.
    pub fn given(id: &str) -> Self {
        Self(id.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl InputRequest {
    /// Whether it has lapsed.
    pub fn is_expired(&self, now_ms: i64) -> bool {
        self.expires_ms.is_some_and(|expires| now_ms >= expires)
    }

    /// Whether a reply is one to this request.
    ///
    /// # Errors
    /// When it answers something else.
    pub fn takes(&self, reply: &Reply) -> Result<(), WrongReply> {
        let fits = match (reply, &self.wait) {
            (Reply::Decline(_), _)
            | (Reply::Allow | Reply::Always(_) | Reply::Edit(_), Wait::Approval(_))
            | (Reply::SignedIn, Wait::Authorization(_))
            | (Reply::Output(_), Wait::Action(_) | Wait::ClientTool { .. }) => true,
            (Reply::Answer(said), Wait::Question(question)) => question.takes(said),
            _ => false,
        };
        if fits {
            return Ok(());
        }
        Err(WrongReply { request: self.id.clone(), wants: self.wait.wants(), told: reply.told() })
    }
}

impl Question {
    fn takes(&self, said: &[String]) -> bool {
        let says_something = said.iter().all(|words| !words.trim().is_empty());
        !said.is_empty() && says_something && (self.multiple || said.len() == 1)
    }
}

impl Wait {
    /// What kind of wait the turn is parked on.
    pub fn kind(&self) -> ParkKind {
        match self {
            Self::Approval(_) => ParkKind::Approval,
            Self::Question(_) => ParkKind::Question,
            Self::Authorization(_) => ParkKind::Authorization,
            Self::Action(_) => ParkKind::Action,
            Self::ClientTool { .. } => ParkKind::ClientTool,
        }
    }

    fn wants(&self) -> &'static str {
        match self {
            Self::Approval(_) => "allow, always, edit or decline",
            Self::Question(Question { multiple: true, .. }) => "answers that are not blank",
            Self::Question(_) => "one answer that is not blank",
            Self::Authorization(_) => "a sign-in",
            Self::Action(_) => "what came of the work",
            Self::ClientTool { .. } => "the output of the tool",
        }
    }
}

impl Reply {
    fn told(&self) -> &'static str {
        match self {
            Self::Allow => "to allow",
            Self::Always(_) => "to allow it always",
            Self::Edit(_) => "another input",
            Self::Answer(_) => "an answer to a question that it does not take",
            Self::SignedIn => "of a sign-in",
            Self::Output(_) => "an output",
            Self::Decline(_) => "to decline",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(wait: Wait) -> InputRequest {
        let (id, call) = (RequestId::of_digest(&[7; 32]), CallId::new("c").unwrap());
        InputRequest { id, call, tool: "t".into(), wait, asked_ms: 5, expires_ms: Some(9) }
    }

    fn input() -> RawJson {
        RawJson::parse(r#"{"n":1.0}"#).unwrap()
    }

    fn waits() -> [Wait; 6] {
        let approval = Approval { input: input(), prompt: "Run it?".into(), remembers: vec![], again: None };
        let question = |multiple| Question { question: "Which?".into(), options: vec![], multiple };
        let sign_in = Authorization { service: "the harbour".into(), url: "https://harbour.test".into() };
        [
            Wait::Approval(approval),
            Wait::Question(question(false)),
            Wait::Question(question(true)),
            Wait::Authorization(sign_in),
            Wait::Action(Action { kind: "agent".into(), input: input() }),
            Wait::ClientTool { input: input() },
        ]
    }

    #[test]
    fn a_reply_answers_its_kind_of_request() {
        let replies = [
            Reply::Allow,
            Reply::Always(Layer::Session),
            Reply::Edit(input()),
            Reply::Answer(vec!["red".into()]),
            Reply::Answer(vec!["red".into(), "blue".into()]),
            Reply::Answer(vec![" ".into()]),
            Reply::Answer(vec![]),
            Reply::SignedIn,
            Reply::Output(ToolOutput::text("done")),
            Reply::Decline(None),
        ];
        let row = |wait: Wait| {
            let request = request(wait);
            let fits = replies.iter().map(|reply| if request.takes(reply).is_ok() { 'x' } else { '.' });
            fits.collect::<String>()
        };
        insta::assert_snapshot!(waits().map(row).join("\n"), @r"
        xxx......x
        ...x.....x
        ...xx....x
        .......x.x
        ........xx
        ........xx
        ");
    }

    #[test]
    fn a_wrong_reply_says_what_is_wanted() {
        let [approval, ..] = waits();
        let error = request(approval).takes(&Reply::SignedIn).unwrap_err();
        insta::assert_snapshot!(error, @"request req_070707070707070707070707 waits for allow, always, edit or decline, and was told of a sign-in; it is still open");
    }

    #[test]
    fn requests_are_stored_with_the_bytes_of_their_input() {
        for wait in waits() {
            let held = HeldRequest { request: request(wait), reply: Some(Reply::Edit(input())) };
            let text = serde_json::to_string(&held).unwrap();
            assert!(text.contains(r#""edit":{"n":1.0}"#), "{text}");
            assert_eq!(serde_json::from_str::<HeldRequest>(&text).unwrap(), held);
        }
    }

    #[test]
    fn a_request_lapses_at_its_time() {
        let [wait, ..] = waits();
        let request = request(wait);
        assert_eq!([8, 9, 10].map(|now| request.is_expired(now)), [false, true, true]);
        assert!(!InputRequest { expires_ms: None, ..request }.is_expired(i64::MAX));
    }
}
