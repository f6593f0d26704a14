//! Which reply answers a request.

use serde::Deserialize;

/// How the reply to a request is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Pick {
    /// By the number of assistant messages in the request: it holds over restarts of client and server, and a
    /// repeated request gets the same reply.
    #[default]
    ByHistory,
    /// One after the other, as requests come; one that failed on purpose is not counted.
    InOrder,
}

impl Pick {
    /// The position of the reply, from what was served and what is asked.
    pub(crate) fn position(self, served: usize, body: &[u8]) -> usize {
        match self {
            Self::ByHistory => assistant_messages(body),
            Self::InOrder => served,
        }
    }
}

/// How many messages of a request body the model said; 0 for a body that is no conversation.
///
/// Reads `messages` with the role `assistant` and Gemini's `contents` with the role `model`.
pub(crate) fn assistant_messages(body: &[u8]) -> usize {
    #[derive(Deserialize)]
    struct Conversation {
        #[serde(default, alias = "contents")]
        messages: Vec<Turn>,
    }
    #[derive(Deserialize)]
    struct Turn {
        #[serde(default)]
        role: String,
    }
    let is_model = |turn: &&Turn| matches!(turn.role.as_str(), "assistant" | "model");
    serde_json::from_slice::<Conversation>(body)
        .map_or(0, |conversation| conversation.messages.iter().filter(is_model).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_model_said_is_counted() {
        let check = |body: &str, expect: usize| assert_eq!(assistant_messages(body.as_bytes()), expect);
        check(r#"{"messages":[{"role":"user","content":"assistant"}]}"#, 0);
        check(r#"{"messages":[{"role":"user"},{"role":"assistant","content":[]},{"role":"user"}]}"#, 1);
        check(r#"{"contents":[{"role":"user"},{"role":"model"},{"parts":[]}]}"#, 1);
        check("not json", 0);
    }
}
