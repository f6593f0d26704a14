//! What is said to a session from outside while a worker may be at it: it waits in the store until a commit uses it.

use serde::{Deserialize, Serialize};

use crate::{Reply, RequestId, UserMessage};

/// Number of an input in its session, from 1, in the order in which inputs were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
#[expect(clippy::exhaustive_structs, reason = "a counter with a name")]
pub struct InputId(pub u64);

/// Something said to a session whose turn is open (requirement L7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "the driver handles every input")]
pub enum Input {
    /// A message of the user.
    Message {
        /// What they say.
        message: UserMessage,
        /// When it is heard.
        heard: Heard,
    },
    /// A reply to what the turn waits for.
    Reply {
        /// The request.
        request: RequestId,
        /// The reply.
        reply: Reply,
    },
}

/// When a message is heard that comes while a turn is open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "the driver handles every policy")]
pub enum Heard {
    /// In a turn of its own after this one.
    #[default]
    After,
    /// At the next step of this turn; a turn that waits goes on waiting.
    NextStep,
    /// At once: what the turn waits for is declined, and it goes on with the message.
    Instead,
}

/// An input that no commit has used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "returned by every store")]
pub struct StoredInput {
    /// Its number.
    pub id: InputId,
    /// What was said.
    pub input: Input,
}

impl Input {
    /// What tells an input from others that say the same: a request takes one reply, messages as many as there are.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Reply { request, .. } => Some(request.as_str()),
            Self::Message { .. } => None,
        }
    }
}
