//! `agent wire`.

use std::path::{Path, PathBuf};

use agent_testkit::{corpus_dir, corpus_files, read_exchanges};
use serde_json::{Value, json};

use crate::support::{Home, fixtures};

async fn decode(args: &[&str], input: &[u8]) -> Value {
    let all = [&["wire", "decode", "--format", "anthropic"], args].concat();
    let output = Home::new().agent_fed(&all, input).await;
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    serde_json::from_str(&output.stdout).unwrap()
}

#[tokio::test]
async fn decode_gives_the_expected_outcome_of_every_fixture() {
    let dir = fixtures().join("wire/anthropic");
    let mut seen = 0;
    for expect in corpus_files(&dir, "json").unwrap() {
        let Some(stem) = expect.to_str().unwrap().strip_suffix(".expect.json") else { continue };
        let body = ["sse", "json"].map(|ending| format!("{stem}.{ending}"));
        let body = body.iter().find_map(|path| std::fs::read(path).ok()).unwrap();
        let wanted: Value = serde_json::from_str(&std::fs::read_to_string(&expect).unwrap()).unwrap();
        let args: &[&str] = if stem.ends_with("/error") { &["--status", "529"] } else { &[] };
        let decoded = decode(args, &body).await;
        assert_eq!(decoded["text"], wanted["text"], "{stem}");
        assert_eq!(decoded["calls"], wanted["calls"], "{stem}");
        seen += 1;
    }
    assert!(seen > 15, "{seen} fixtures");
}

#[tokio::test]
async fn decode_takes_chunks_status_and_headers() {
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let error = r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#;
    let limited = decode(&["--status", "429", "--header", "retry-after: 7"], error.as_bytes()).await;
    assert_eq!(
        limited["error"],
        json!({"kind":"rate_limited","retryable":true,"retry_after_ms":7000,"message":limited["error"]["message"]})
    );

    let start =
        "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":3}}}\r";
    let cut = json!({"chunks_hex": [hex(start), hex("\n\r\n: ping\n")], "end": "eof"});
    let cut = decode(&["--chunks"], cut.to_string().as_bytes()).await;
    assert_eq!(
        (&cut["error"]["kind"], &cut["usage"]["input"], &cut["finish"]),
        (&json!("interrupted"), &json!(3), &Value::Null)
    );
}

#[tokio::test]
async fn a_stream_of_another_format_is_named_as_such() {
    let other = "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: [DONE]\n\n";
    let decoded = decode(&[], other.as_bytes()).await;
    assert_eq!(
        (&decoded["error"]["kind"], &decoded["error"]["retryable"]),
        (&json!("protocol"), &json!(false))
    );
    assert!(
        decoded["error"]["message"].as_str().unwrap().contains("check that the address speaks the format")
    );
    let cut = "data: {\"type\":\"future_event\"}\n\ndata: {\"type\":\"ping\"}\n\n";
    assert_eq!(
        decode(&[], cut.as_bytes()).await["error"]["kind"],
        "interrupted",
        "one known event is enough"
    );
}

#[tokio::test]
async fn decode_refuses_what_it_cannot_do() {
    let check = async |args: &[&str], input: &str| {
        let output = Home::new().agent_fed(&[&["wire", "decode"], args].concat(), input.as_bytes()).await;
        assert_eq!(output.stdout, "");
        format!("{:?} {}", output.code, output.stderr)
    };
    insta::assert_snapshot!(check(&["--format", "cobol"], "").await, @r#"Some(2) agent: format "cobol" is not known; known: anthropic, openai-chat, openai-responses, gemini, ollama"#);
    insta::assert_snapshot!(check(&["--format", "anthropic", "--header", "nonsense"], "").await, @r#"Some(2) agent: header "nonsense" has no colon; write it as 'name: value'"#);
    insta::assert_snapshot!(check(&["--format", "anthropic", "--chunks"], "[]").await, @r#"Some(2) agent: standard input is not {"chunks_hex": ["…"], "end": "eof"}: invalid length 0, expected struct Chunks with 1 element at line 1 column 2"#);
    insta::assert_snapshot!(check(&["--format", "anthropic", "--chunks"], r#"{"chunks_hex":["00","0x"]}"#).await, @"Some(2) agent: chunk 1 is not hexadecimal; write two digits for each byte");
}

#[tokio::test]
async fn replay_passes_on_what_was_recorded_and_fails_on_what_was_tampered_with() {
    let home = Home::new();
    let good = fixtures().join("exchanges/anthropic/tea-merchant.jsonl");
    let refused = fixtures().join("exchanges/anthropic/refused.jsonl");
    let output = home.agent(&["wire", "replay", good.to_str().unwrap(), refused.to_str().unwrap()]).await;
    assert_eq!(output.code, Some(0));
    insta::assert_snapshot!(output.stdout, @"
    ok       tea-merchant.jsonl:1 200 33 bytes of text, 1 calls, 412 tokens in, 38 out, begins
    ok       tea-merchant.jsonl:2 200 32 bytes of text, 1 calls, 508 tokens in, 52 out, extends
    ok       tea-merchant.jsonl:3 200 68 bytes of text, 0 calls, 569 tokens in, 24 out, extends
    ok       refused.jsonl:1 529 overloaded, begins
    ok       refused.jsonl:2 401 authentication, repeats
    5 exchanges, 0 with a mismatch
    ");

    let text = std::fs::read_to_string(&good).unwrap();
    let check = async |from: &str, to: &str| {
        let tampered = home.work().join("tampered.jsonl");
        assert!(text.contains(from), "{from}");
        std::fs::write(&tampered, text.replacen(from, to, 1)).unwrap();
        let output = home.agent(&["wire", "replay", "tampered.jsonl"]).await;
        assert_eq!(output.code, Some(1), "{from}");
        let lines = output.stdout.lines().filter(|line| !line.starts_with("ok"));
        lines.map(|line| format!("{}\n", line.trim_start())).collect::<String>()
    };
    insta::assert_snapshot!(check(r#"{\"type\":\"message_stop\"}"#, r#"{\"type\":\"ping\"}"#).await, @"
    MISMATCH tampered.jsonl:1 200 interrupted, begins
    answer: interrupted: the answer ended after 1826 bytes, before the event that completes it; send the request again
    3 exchanges, 1 with a mismatch
    ");
    insta::assert_snapshot!(check(" house — 茶倉", " house — 茶").await, @"
    MISMATCH tampered.jsonl:2 200 32 bytes of text, 1 calls, 508 tokens in, 52 out, extends
    request: the text of the answer before it is another one
    3 exchanges, 1 with a mismatch
    ");
    insta::assert_snapshot!(check(r#"\"content\":\"7 chests\""#, r#"\"content\":\"9 chests\""#).await, @"
    MISMATCH tampered.jsonl:3 200 68 bytes of text, 0 calls, 569 tokens in, 24 out, diverges
    request: it does not extend the one before; entry 1 differs
    3 exchanges, 1 with a mismatch
    ");
    insta::assert_snapshot!(check(r#"\"id\":\"toolu_tea_1\",\"name\":\"stock\",\"input\":{}"#, r#"\"id\":\"toolu_tea_9\",\"name\":\"stock\",\"input\":{}"#).await, @r#"
    MISMATCH tampered.jsonl:2 200 32 bytes of text, 1 calls, 508 tokens in, 52 out, extends
    request: the calls of the answer before it are ["toolu_tea_1"], decoded were ["toolu_tea_9"]
    3 exchanges, 1 with a mismatch
    "#);
}

/// How many of a vendor's recorded exchanges, those with this in their path, are no match.
async fn mismatches(corpus: &Path, vendor: &str, path: &str, (format, provider): (&str, &str)) -> usize {
    let files = corpus_files(&corpus.join("recorded/exchanges").join(vendor), "jsonl").unwrap();
    let first = |file: &PathBuf| read_exchanges(file).unwrap().swap_remove(0).request.path;
    let files: Vec<_> = files.iter().filter(|file| first(file).contains(path)).collect();
    let files: Vec<_> = files.iter().map(|file| file.to_str().unwrap()).collect();
    let args = ["wire", "replay", "--format", format, "--provider", provider];
    let output = Home::new().agent(&[&args, files.as_slice()].concat()).await;
    assert!(output.stdout.starts_with("ok "), "{vendor} {path}: {}{}", output.stdout, output.stderr);
    output.stdout.lines().filter(|line| line.starts_with("MISMATCH")).count()
}

#[tokio::test]
async fn replay_passes_on_the_corpus() {
    let Some(corpus) = corpus_dir() else { return };
    for (vendor, path, dialect) in [
        ("anthropic", "/messages", ("anthropic", "anthropic")),
        ("deepseek", "/chat/", ("openai-chat", "deepseek")),
        ("gemini", ":", ("gemini", "gemini")),
        ("groq", "/chat/", ("openai-chat", "groq")),
        ("llamacpp", "/chat/", ("openai-chat", "llamacpp")),
        ("mistral", "/chat/", ("openai-chat", "mistral")),
        ("ollama", "/api/chat", ("ollama", "ollama")),
        ("openai", "/chat/", ("openai-chat", "openai-chat")),
        ("openai", "/responses", ("openai-responses", "openai-responses")),
        ("openrouter", "/chat/", ("openai-chat", "openrouter")),
        ("openrouter", "/responses", ("openai-responses", "openrouter")),
        ("xai", "/responses", ("openai-responses", "xai")),
    ] {
        // The client of two recordings put words of the answer into the thinking of its next request.
        let expect = if vendor == "ollama" { 2 } else { 0 };
        assert_eq!(mismatches(&corpus, vendor, path, dialect).await, expect, "{vendor} {path}");
    }
}

#[tokio::test]
async fn encode_prints_the_request_of_a_transcript() {
    let home = Home::new();
    let encode = async |args: &[&str], input: &str| {
        let output = home.agent_fed(&[&["wire", "encode"], args].concat(), input.as_bytes()).await;
        format!("{:?}\n{}{}", output.code, output.stdout, output.stderr)
    };
    let said = r#"{"model":"claude-haiku-4-5","system":["Be brief."],"settings":{"max_output":99,"seed":7},"history":[
        {"user":[{"text":"How deep is the well?"}]},
        {"step":{"response":{"parts":[{"tool_call":{"id":"c1","name":"well.depth","input":{"json":{"unit": "m","n":1.0}}}}],
            "finish":{"kind":"tool_calls","raw":"tool_use"}},"results":[]}}]}"#;
    for format in ["anthropic", "openai-chat", "openai-responses", "gemini", "ollama"] {
        insta::assert_snapshot!(format!("encode_{format}"), encode(&["--format", format], said).await);
    }
    let lines = [
        encode(&["--format", "anthropic"], r#"{"messages":[]}"#).await,
        encode(&["--format", "anthropic"], r#"{"history":[{"user":[{"text":"hi"}]}]}"#).await,
        encode(&["--format", "anthropic"], r#"{"model":"m","history":[{"user":[]}]}"#).await,
    ];
    insta::assert_snapshot!(lines.join("\n"), @r#"
    Some(2)
    agent: the bytes are no transcript (missing field `history` at line 1 column 15); one is {"history": [{"user": [{"text": "…"}]}, …]}, and `agent wire convert --from FORMAT --to transcript` makes one of a request

    Some(2)
    agent: the input names no model, and its format has no place for one; pass --model NAME

    Some(2)
    agent: entry 0 of the history is not readable (a user message needs text or a file; the one given has neither); export the session up to it, or restore a copy
    "#);
}

#[tokio::test]
async fn convert_goes_from_any_format_to_any_other_and_back() {
    let home = Home::new();
    let convert = async |args: &[&str], input: &str| {
        let output = home.agent_fed(&[&["wire", "convert"], args].concat(), input.as_bytes()).await;
        assert_eq!(output.code, Some(0), "{args:?} {}", output.stderr);
        output.stdout.trim_end().to_owned()
    };
    let input = r#"{"path":"b.txt","n":12345678901234567890,"x":1.0}"#;
    let body = format!(
        r#"{{"model":"claude-haiku-4-5","system":[{{"type":"text","text":"Be brief."}}],"tools":[{{"name":"read","description":"Reads.","input_schema":{{"properties":{{"path":{{"type":"string"}}}},"type":"object"}}}}],"messages":[{{"role":"user","content":[{{"type":"text","text":"Look."}}]}},{{"role":"assistant","content":[{{"type":"text","text":"I look."}},{{"type":"tool_use","id":"c1","name":"read","input":{input}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c1","content":"nothing"}}]}}],"max_tokens":99,"stream":true}}"#
    );
    for format in ["openai-chat", "openai-responses", "transcript"] {
        let there = convert(&["--from", "anthropic", "--to", format], &body).await;
        let unquoted = there.replace("\\\"", "\"");
        assert!(unquoted.contains(input), "{format} keeps the bytes of the input: {there}");
        let back = convert(&["--from", format, "--to", "anthropic"], &there).await;
        assert_eq!(back, body, "by way of {format}");
    }
    for format in ["gemini", "ollama"] {
        let there = convert(&["--from", "anthropic", "--to", format], &body).await;
        assert!(there.contains(input), "{format} keeps the bytes of the input: {there}");
        let args = ["--from", format, "--to", "anthropic", "--model", "claude-haiku-4-5"];
        let back = convert(&args, &there).await;
        assert!(
            back.contains(input) && back.contains(r#""content":"nothing""#),
            "by way of {format}: {back}"
        );
    }
}

#[tokio::test]
async fn a_provider_that_is_not_known_is_told_and_one_that_is_means_its_ways() {
    let home = Home::new();
    let told = async |format: &str, provider: &str| {
        let args = ["wire", "decode", "--format", format, "--provider", provider];
        home.agent_fed(&args, b"{}").await.stderr
    };
    assert!(told("openai-chat", "mistrl").await.contains(r#"nothing is known of "mistrl" with this format"#));
    assert!(told("anthropic", "mistral").await.is_empty(), "a name that is known for its quirks is no slip");
    for (format, provider) in
        [("openai-chat", "mistral"), ("openai-responses", "openai"), ("gemini", "gemini")]
    {
        assert_eq!(told(format, provider).await, "", "{format} {provider}");
    }
    let body = r#"{"model":"gpt-6-sol","input":"hi","max_output_tokens":9}"#;
    let args =
        ["wire", "convert", "--from", "openai-responses", "--to", "openai-responses", "--provider", "openai"];
    let output = home.agent_fed(&args, body.as_bytes()).await;
    assert!(!output.stderr.contains("too little is known"), "the vendor's name will do: {}", output.stderr);
}
