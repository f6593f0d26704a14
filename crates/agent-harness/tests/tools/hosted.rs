//! Tools that a provider runs itself: on its wire as it has them, on no other, and never run here.

use agent_builtins::web_search;
use agent_core::{
    Entry, History, ModelProfile, ModelRequest, RequestSettings, ToolChoice, ToolOutput, UserMessage,
};
use agent_providers::{ToolNames, Vendor, encoder};
use agent_testkit::Reply;
use agent_tools::{PermissionMode, ToolSet};

use super::{agent, results};
use crate::support::block;

/// The body that a vendor is sent with the search of a provider in the list.
fn body(vendor: &str, provider: &str) -> String {
    let dialect = Vendor::named(vendor).unwrap().dialect;
    let profile = ModelProfile::conservative(dialect.provider.clone(), "m");
    let mut log = History::new();
    log.push(Entry::User(UserMessage::text("go").unwrap())).unwrap();
    let tools = [web_search(provider).unwrap().card().clone()];
    let encoded = encoder(&dialect, profile, ToolNames::default()).encode(&ModelRequest {
        system: &[],
        tools: &tools,
        draft: &log.draft(),
        settings: &RequestSettings::default(),
        tool_choice: &ToolChoice::Auto,
        marks: &[],
        stream: true,
    });
    String::from_utf8(encoded.request.body.to_vec()).unwrap()
}

#[test]
fn a_search_is_on_the_wire_of_its_provider_alone() {
    let check = |vendor: &str, provider: &str, entry: &str| {
        let body = body(vendor, provider);
        assert!(body.contains(&format!(r#""tools":[{entry}]"#)), "{vendor}: {body}");
        let elsewhere = self::body("openai-chat", provider);
        assert!(!elsewhere.contains(r#""tools""#), "{elsewhere}");
    };
    check("anthropic", "anthropic", r#"{"type":"web_search_20250305","name":"web_search"}"#);
    check("openai", "openai-responses", r#"{"type":"web_search"}"#);
    check("gemini", "gemini", r#"{"googleSearch":{}}"#);
}

#[test]
fn a_call_of_it_is_answered_and_nobody_is_asked() {
    block(async {
        let replies = vec![Reply::tool("web_search", r#"{"query":"tide"}"#), Reply::text("ok")];
        let agent = agent(replies, |config, _| {
            config.permissions.mode = PermissionMode::Default;
            config.tools = ToolSet::builder().extend(web_search("anthropic")).freeze().unwrap();
        });
        agent.say("go").await;
        let outputs = results(&agent.history().await);
        assert!(matches!(&outputs[..], [ToolOutput::Error(_)]), "{outputs:?}");
        assert!(outputs[0].plain().contains("is run by the model's provider"), "{outputs:?}");
    });
}
