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
/// Reads `messages` with the role `assistant` and Gemini's `contents` with the role `model`. In the `input` of
/// Responses, where one answer is several items, items of the model without another between them are one.
pub(crate) fn assistant_messages(body: &[u8]) -> usize {
    #[derive(Deserialize)]
    struct Conversation {
        #[serde(default, alias = "contents")]
        messages: Vec<Turn>,
    }
    #[derive(Deserialize)]
    struct Items {
        input: Vec<Turn>,
    }
    #[derive(Deserialize)]
    struct Turn {
        #[serde(default)]
        role: String,
        #[serde(default, rename = "type")]
        kind: String,
    }
    let is_model = |turn: &Turn| match turn.role.as_str() {
        "assistant" | "model" => true,
        // Every other item of the model, calls of the provider's own tools too, has a type and no role.
        "" => !turn.kind.is_empty() && !turn.kind.ends_with("_output"),
        _ => false,
    };
    if let Ok(Items { input }) = serde_json::from_slice(body) {
        let runs = input.chunk_by(|one, next| is_model(one) == is_model(next));
        return runs.filter(|run| run.first().is_some_and(is_model)).count();
    }
    serde_json::from_slice::<Conversation>(body)
        .map_or(0, |conversation| conversation.messages.iter().filter(|turn| is_model(turn)).count())
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
        check(r#"{"input":"assistant"}"#, 0);
        check(
            r#"{"input":[{"role":"user"},{"type":"reasoning"},{"type":"message","role":"assistant"},
            {"type":"function_call"},{"type":"function_call_output"},{"role":"assistant"},{"role":"user"}]}"#,
            2,
        );
    }
}
