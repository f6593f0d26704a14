//! Search of the web that the model's provider runs itself.

use std::sync::Arc;

use agent_core::{ProviderData, RawJson};
use agent_tools::{HostedTool, Tool};

/// The provider's own search, as its list of tools has it; `None` where the provider has none (requirement T8). `provider`
/// is the one that the model's profile names ([`agent_core::ModelProfile::provider`]).
///
/// The provider searches while it answers, and what it found stays in the answer as it was received. Nothing of it runs
/// here, so no rule and no hook sees a search. Gemini takes it beside tools of one's own from version 3 on.
///
/// ```
/// use agent_builtins::web_search;
///
/// assert_eq!(web_search("gemini").map(|tool| tool.card().name().to_owned()).as_deref(), Some("web_search"));
/// assert!(web_search("ollama").is_none());
/// ```
pub fn web_search(provider: &str) -> Option<Arc<dyn Tool>> {
    let (provider, entry) = OFFERED.iter().find(|(name, _)| *name == provider)?;
    let json =
        RawJson::parse(*entry).unwrap_or_else(|error| unreachable!("an entry is written here: {error}"));
    let data = ProviderData { provider: (*provider).to_owned(), json };
    let tool = HostedTool::new("web_search", data);
    Some(tool.unwrap_or_else(|error| unreachable!("a built-in tool has a card: {error}")))
}

/// What each provider calls it.
const OFFERED: &[(&str, &str)] = &[
    ("anthropic", r#"{"type":"web_search_20250305","name":"web_search"}"#),
    ("openai-responses", r#"{"type":"web_search"}"#),
    ("gemini", r#"{"googleSearch":{}}"#),
];

#[cfg(test)]
mod tests {
    use agent_core::CallId;
    use agent_tools::{Permissions, Proposal, ToolCx, Verdict};

    use super::*;

    #[test]
    fn each_provider_is_offered_its_own() {
        for (provider, entry) in OFFERED {
            let card = web_search(provider).unwrap().card().clone();
            let data = card.data().unwrap();
            assert!(card.is_hosted());
            assert_eq!((data.provider.as_str(), data.json.get()), (*provider, *entry));
        }
        for provider in ["openai-chat", "ollama", "groq", ""] {
            assert!(web_search(provider).is_none(), "{provider}");
        }
    }

    #[tokio::test]
    async fn nothing_of_it_runs_here() {
        let tool = web_search("anthropic").unwrap();
        let (call, input) = (CallId::new("c").unwrap(), RawJson::empty_object());
        let verdict = Permissions::default().check(Proposal::new(&*tool, &call, &input)).await;
        let Verdict::Allow(permit) = verdict else { panic!("nobody is asked about what does not run") };
        let said =
            tool.run(&ToolCx::for_test("s", "c").unwrap(), permit, &input).await.unwrap_err().to_string();
        assert!(said.contains("is run by the model's provider and not here"), "{said}");
    }
}
