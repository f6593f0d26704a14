//! Anthropic Messages: the rules of the simulated provider, and the fields there are.

use agent_testkit::check_request;

use agent_providers::WireFormat;

use super::{Rules, check_body};

pub(super) const RULES: Rules = Rules {
    format: WireFormat::Anthropic,
    fields: &[
        "model",
        "max_tokens",
        "messages",
        "system",
        "tools",
        "tool_choice",
        "thinking",
        "output_config",
        "cache_control",
        "diagnostics",
        "container",
        "metadata",
        "service_tier",
        "speed",
        "stop_sequences",
        "stream",
        "inference_geo",
        "compaction",
        "context_management",
        "mcp_servers",
        "temperature",
        "top_p",
        "top_k",
    ],
    list: "messages",
    check: |request| {
        let checked = check_request("/v1/messages", request.to_string().as_bytes());
        checked.map_err(|refusal| refusal.message)
    },
};

#[test]
fn what_is_refused() {
    let with = |messages: &str| format!(r#"{{"model":"m","max_tokens":1,"messages":{messages}}}"#);
    check_body(&RULES, &with(r#"[{"role":"user","content":"go"}]"#), "");
    check_body(&RULES, &with(r#"[{"role":"assistant","content":"go"}]"#), "first message");
    check_body(&RULES, &with("[]"), "must not be empty");
    check_body(&RULES, r#"{"seed":1}"#, "seed: there is no such field");
}
