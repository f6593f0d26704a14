//! `agent run` with models of other vendors than Anthropic: where it asks, how it shows its key, what it makes of answers.

use std::collections::BTreeMap;

use agent_testkit::{RawReply, Reply, SimProvider};

use crate::support::{Home, Output};

/// A call and a last word as Gemini streams them.
const GEMINI: [&str; 2] = [
    r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Where?","thought":true},{"functionCall":{"name":"read_file","args":{"path":"notes.txt"}},"thoughtSignature":"c2ln"}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":3,"totalTokenCount":12}}"#,
    r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Tea and rice."}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":3,"totalTokenCount":12}}"#,
];

/// The same as Ollama says it.
const OLLAMA: [&str; 2] = [
    r#"{"model":"m","message":{"role":"assistant","content":"","thinking":"Where?","tool_calls":[{"function":{"name":"read_file","arguments":{"path":"notes.txt"}}}]},"done":true,"done_reason":"stop","prompt_eval_count":9,"eval_count":3}"#,
    r#"{"model":"m","message":{"role":"assistant","content":"Tea and rice."},"done":true,"done_reason":"stop","prompt_eval_count":9,"eval_count":3}"#,
];

/// A provider on loopback that has a file read and tells what is in it.
fn provider(vendor: &str) -> SimProvider {
    let recorded = match vendor {
        "gemini" => GEMINI.map(|event| RawReply::sse(format!("data: {event}\n\n"))),
        "ollama" => OLLAMA.map(|line| RawReply {
            status: 200,
            headers: BTreeMap::from([("content-type".into(), "application/x-ndjson".into())]),
            body: format!("{line}\n").into(),
        }),
        _ => {
            let look = Reply::tool("read_file", r#"{"path":"notes.txt"}"#);
            return SimProvider::start(vec![look, Reply::text("Tea and rice.")]).unwrap();
        }
    };
    SimProvider::replaying(recorded.into()).unwrap()
}

/// Runs with this model and environment against a provider at `under` its address.
async fn run(home: &Home, sim: &SimProvider, model: &str, under: &str, env: &[(&str, &str)]) -> Output {
    let url = format!("{}{under}", sim.base_url());
    let args = ["run", "What is in notes.txt?", "--session", "s", "--model", model, "--base-url", &url];
    let output = home.command(&args).envs(env.iter().copied()).output().await.unwrap();
    Output {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A conversation with a model of this name: both requests go to the path, with the key in this header.
async fn check(model: &str, under: &str, env: &[(&str, &str)], path: &str, key: &str) {
    let (home, sim) = (Home::new(), provider(model.split_once('/').unwrap().0));
    std::fs::write(home.work().join("notes.txt"), "tea\nrice\n").unwrap();
    let output = run(&home, &sim, model, under, env).await;
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{model}: {}", output.stdout);
    assert!(output.stdout.contains("✓ read_file: 1 tea 2 rice"), "{model}: {}", output.stdout);
    assert!(output.stdout.contains("Tea and rice."), "{model}: {}", output.stdout);
    assert_eq!(sim.refusals(), [], "{model}");
    let requests = sim.requests();
    assert_eq!(requests.len(), 2, "{model}");
    for request in requests {
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", path), "{model}");
        assert_eq!(request.header("content-type"), Some("application/json"), "{model}");
        for header in ["authorization", "x-api-key", "x-goog-api-key"] {
            let shown = (header == key).then_some("[redacted]");
            assert_eq!(request.header(header), shown, "{model}: {header}");
        }
    }
}

#[tokio::test]
async fn each_vendor_is_asked_in_its_own_way() {
    let bearer = "authorization";
    check("openai/gpt-6-sol", "", &[], "/v1/responses", bearer).await;
    check("openai/gpt-6-sol", "/v1", &[("OPENAI_API_KEY", "sk-1")], "/v1/responses", bearer).await;
    check("openai-chat/gpt-6-sol", "", &[], "/v1/chat/completions", bearer).await;
    check("openrouter/a/b:free", "/api/v1", &[], "/api/v1/chat/completions", bearer).await;
    check("deepseek/deepseek-v4-flash", "", &[], "/chat/completions", bearer).await;
    check("ollama/leaf:4b", "", &[], "/api/chat", bearer).await;
    let stream = "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse";
    check("gemini/gemini-3.8-flash", "", &[], stream, "x-goog-api-key").await;
    let second = [("GOOGLE_API_KEY", "g-1")];
    check("gemini/models/gemini-3.8-flash", "/v1beta/", &second, stream, "x-goog-api-key").await;
}

#[tokio::test]
async fn a_missing_key_names_the_variables_of_its_vendor() {
    let check = async |model: &str, expect: &str| {
        let home = Home::new();
        // Neither the key nor the address of another vendor stands in.
        let mut command = home.command(&["run", "go", "--model", model]);
        command.env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9").env("ANTHROPIC_API_KEY", "sk-ant");
        let output = command.output().await.unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{told}");
        let expect = format!("no API key: looked for {expect} in the environment.");
        assert!(told.contains(&expect), "{model}: {told}");
        assert!(!home.data().join("sessions.db").exists(), "no session was begun");
    };
    check("openai/gpt-6-sol", "OPENAI_API_KEY").await;
    check("openai-chat/gpt-6-sol", "OPENAI_API_KEY").await;
    check("gemini/gemini-3.8-flash", "GEMINI_API_KEY and GOOGLE_API_KEY").await;
    check("mistral/mistral-small-latest", "MISTRAL_API_KEY").await;
    check("xai/grok-4", "XAI_API_KEY").await;
}

#[tokio::test]
async fn commands_cannot_read_the_key_of_any_vendor() {
    let home = Home::new();
    let sim = SimProvider::start(vec![
        Reply::tool("bash", r#"{"command":"env; tr '\\0' '\\n' < /proc/$PPID/environ; echo looked"}"#),
        Reply::text("ok"),
    ])
    .unwrap();
    let url = sim.base_url();
    let args = ["run", "go", "--base-url", &url, "--model", "openai/m", "--permission-mode", "bypass"];
    let mut command = home.command(&args);
    let keys = ["OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "ANTHROPIC_API_KEY", "XAI_API_KEY"];
    command.envs(keys.map(|name| (name, "very-secret")));
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = String::from_utf8(sim.request(1).await.body.to_vec()).unwrap();
    assert!(told.contains("looked") && !told.contains("very-secret"), "{told}");
    assert_eq!(sim.requests()[0].header("authorization"), Some("[redacted]"), "the key was sent");
}
