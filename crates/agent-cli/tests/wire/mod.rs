//! `agent wire`.

use agent_testkit::{corpus_dir, corpus_files};
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
    insta::assert_snapshot!(check(&["--format", "anthropic", "--chunks"], r#"{"chunks_hex":["00","0x"]}"#).await, @"Some(2) agent: chunk 1 is not hexadecimal");
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
    request: the calls of the answer before it are [CallId("toolu_tea_1")], decoded were [CallId("toolu_tea_9")]
    3 exchanges, 1 with a mismatch
    "#);
}

#[tokio::test]
async fn replay_passes_on_the_corpus() {
    let Some(corpus) = corpus_dir() else { return };
    let files = corpus_files(&corpus.join("recorded/exchanges/anthropic"), "jsonl").unwrap();
    let files: Vec<_> = files.iter().map(|file| file.to_str().unwrap()).collect();
    let output = Home::new().agent(&[&["wire", "replay"], files.as_slice()].concat()).await;
    assert_eq!(output.code, Some(0), "{}", output.stdout);
    assert!(output.stdout.trim_end().ends_with("with a mismatch"));
}
