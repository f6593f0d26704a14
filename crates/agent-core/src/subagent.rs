//! Sub-agents: the task one is given, and the session it works in (requirement L10).

use serde::{Deserialize, Serialize};

use crate::{InputRequest, RawJson, SessionId, Wait};

/// The kind of [`crate::Action`] that is a task for a sub-agent.
pub const AGENT_ACTION: &str = "agent";

/// A task for a sub-agent: the input of a [`crate::Action`] of kind [`AGENT_ACTION`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record that the runtime reads")]
pub struct AgentTask {
    /// What is to be done, complete in itself.
    pub task: String,
    /// Which kind of agent does it; `None` for one like the agent that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

impl InputRequest {
    /// The task that this asks a sub-agent to do, as it was written; `None` for every other request.
    pub fn agent_task(&self) -> Option<&RawJson> {
        match &self.wait {
            Wait::Action(action) if action.kind == AGENT_ACTION => Some(&action.input),
            Wait::Action(_)
            | Wait::Approval(_)
            | Wait::Question(_)
            | Wait::Authorization(_)
            | Wait::ClientTool { .. } => None,
        }
    }

    /// The session in which a sub-agent does what this asks of one, when `parent` asks it: the same one in every process,
    /// so that whoever takes the parent up finds it.
    pub fn child_session(&self, parent: &SessionId) -> Option<SessionId> {
        self.agent_task().map(|_| parent.child(&self.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, CallId, RequestId};

    fn request(kind: &str) -> InputRequest {
        let input = RawJson::of(&AgentTask { task: "Count.".into(), kind: None }).unwrap();
        InputRequest {
            id: RequestId::of_digest(&[0xab; 32]),
            call: CallId::new("c").unwrap(),
            tool: "agent".into(),
            wait: Wait::Action(Action { kind: kind.into(), input }),
            asked_ms: 0,
            expires_ms: None,
        }
    }

    #[test]
    fn a_child_is_named_after_its_parent_and_what_was_asked() {
        let name =
            |parent: &str| request(AGENT_ACTION).child_session(&SessionId::new(parent).unwrap()).unwrap();
        assert_eq!(name("s").as_str(), "s.sub-abababababababab");
        assert_eq!(name("s").parent(), Some("s"));
        let grandchild = request(AGENT_ACTION).child_session(&name("s")).unwrap();
        assert_eq!(grandchild.parent(), Some("s.sub-abababababababab"));
        let (long, longer) = ("x".repeat(128), "x".repeat(127) + "y");
        assert_eq!(name(&long).as_str().len(), 128, "it stays a session's name");
        assert_eq!(name(&longer).as_str().len(), 128);
        assert_eq!(request("job").child_session(&SessionId::new("s").unwrap()), None);
    }

    #[test]
    fn other_names_have_no_parent() {
        for name in ["s", "s.sub-", "s.sub-abc", "s.sub-abababababababaX", "sub-abababababababab"] {
            assert_eq!(SessionId::new(name).unwrap().parent(), None, "{name}");
        }
    }
}
