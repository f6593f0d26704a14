//! `agent sim`: a real process that real HTTP reaches.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout};
use tokio::time::timeout;

use crate::support::{Home, json_lines};

struct Sim {
    child: Child,
    stdout: Lines<BufReader<ChildStdout>>,
    base_url: String,
    first_lines: Vec<String>,
}

impl Sim {
    async fn start(home: &Home, args: &[&str]) -> Self {
        let mut child = home.command(&[&["sim", "--port", "0"], args].concat()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        let many = if args.contains(&"--json") { 1 } else { 5 };
        let mut first_lines = Vec::new();
        for _ in 0..many {
            first_lines.push(stdout.next_line().await.unwrap().unwrap());
        }
        let (_, after) = first_lines[0].split_once("http://").unwrap();
        let address = after.split(['"', ' ']).next().unwrap();
        Self { child, stdout, base_url: format!("http://{address}"), first_lines }
    }

    /// Asks with what the services of both vendors want in the head.
    fn post(&self, path: &str, body: &str) -> (u16, Value) {
        let host = self.base_url.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\nauthorization: Bearer any\r\nanthropic-version: 2023-06-01\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap())
    }

    /// Sends a signal and waits for the end: the status, and what was still written.
    async fn end(mut self, signal: rustix::process::Signal) -> (Option<i32>, String, String) {
        let pid = i32::try_from(self.child.id().unwrap()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        let (mut out, mut err) = (String::new(), String::new());
        self.stdout.get_mut().read_to_string(&mut out).await.unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut err).await.unwrap();
        let status = timeout(Duration::from_secs(10), self.child.wait()).await.unwrap().unwrap();
        (status.code(), out, err)
    }
}

fn rules() -> String {
    "Read before you write. ".repeat(400)
}

#[tokio::test]
async fn without_a_script_it_says_what_it_got_on_every_wire() {
    let home = Home::new();
    let sim = Sim::start(&home, &[]).await;
    let told = sim.first_lines.join("\n").replace(&sim.base_url, "BASE");
    insta::assert_snapshot!(told, @r#"
    Simulated provider at BASE (any key will do; Ctrl-C ends it)
      Anthropic Messages       ANTHROPIC_BASE_URL=BASE ANTHROPIC_API_KEY=any
      OpenAI Chat Completions  OPENAI_BASE_URL=BASE/v1 OPENAI_API_KEY=any   client.chat.completions
      OpenAI Responses         OPENAI_BASE_URL=BASE/v1 OPENAI_API_KEY=any   client.responses
      this program             ANTHROPIC_API_KEY=any agent run --base-url BASE "…"
    "#);
    let rules = rules();
    let anthropic = format!(
        r#"{{"model":"claude-opus-5-5","max_tokens":9,"system":[{{"type":"text","text":"{rules}","cache_control":{{"type":"ephemeral"}}}}],"messages":[{{"role":"user","content":"Hello there"}}]}}"#
    );
    let chat = format!(
        r#"{{"model":"gpt-5.6-sol","messages":[{{"role":"system","content":"{rules}"}},{{"role":"user","content":"Hello there"}}]}}"#
    );
    // Not the words of the other wire: OpenAI's services share what they keep.
    let responses =
        format!(r#"{{"model":"gpt-5.6-sol","instructions":"New: {rules}","input":"Hello there"}}"#);
    for (path, body, cached) in [
        ("/v1/messages", &anthropic, "/usage/cache_read_input_tokens"),
        ("/v1/chat/completions", &chat, "/usage/prompt_tokens_details/cached_tokens"),
        ("/v1/responses", &responses, "/usage/input_tokens_details/cached_tokens"),
    ] {
        let (status, first) = sim.post(path, body);
        assert_eq!((status, first.pointer(cached).and_then(Value::as_u64)), (200, Some(0)), "{first}");
        assert!(
            first.to_string().contains("You said: ") && first.to_string().contains("Hello there"),
            "{first}"
        );
        let (_, second) = sim.post(path, body);
        assert!(second.pointer(cached).and_then(Value::as_u64) > Some(2_000), "{second}");
    }
    let (code, _, told) = sim.end(rustix::process::Signal::TERM).await;
    assert_eq!(code, Some(0));
    insta::assert_snapshot!(told, @"
    POST /v1/messages claude-opus-5-5  200  read 0 written 2307 new 12 out 32
    POST /v1/messages claude-opus-5-5  200  read 2307 written 0 new 12 out 32
    POST /v1/chat/completions gpt-5.6-sol  200  read 0 written 2305 new 0 out 32
    POST /v1/chat/completions gpt-5.6-sol  200  read 2305 written 0 new 0 out 32
    POST /v1/responses gpt-5.6-sol  200  read 0 written 2306 new 0 out 32
    POST /v1/responses gpt-5.6-sol  200  read 2306 written 0 new 0 out 32
    ");
}

#[tokio::test]
async fn a_script_fails_as_it_says_and_wrong_requests_are_refused_in_words() {
    let home = Home::new();
    let script =
        r#"[{"text":"one","faults":[{"rate_limited":{"wait_ms":7660,"told":"words"}}]},{"text":"two"}]"#;
    std::fs::write(home.work().join("script.json"), script).unwrap();
    let sim = Sim::start(&home, &["--json", "--script", "script.json"]).await;
    let good = r#"{"model":"claude-opus-5-5","max_tokens":9,"messages":[{"role":"user","content":"go"}]}"#;
    let (status, limited) = sim.post("/v1/messages", good);
    assert_eq!(status, 429);
    assert!(limited["error"]["message"].as_str().unwrap().ends_with("try again in 7.66s."), "{limited}");
    assert_eq!(sim.post("/v1/messages", good).1["content"][0]["text"], "one");
    let late = r#"{"model":"claude-opus-5-5","max_tokens":9,"system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"b","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]}"#;
    assert_eq!(sim.post("/v1/messages", late).0, 400);
    let (code, out, err) = sim.end(rustix::process::Signal::INT).await;
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let lines = json_lines(&out);
    let told: Vec<String> = lines
        .iter()
        .map(|line| format!("{} {} {}", line["request"], line["status"], line["error"]))
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    0 429 "This request would exceed your account's rate limit. Please try again later. Please try again in 7.66s."
    1 200 null
    2 400 "messages.0.content.0.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`."
    "#);
    assert_eq!((&lines[0]["refused"], &lines[2]["refused"]), (&false.into(), &true.into()));
    assert_eq!((&lines[1]["usage"]["output"], &lines[1]["model"]), (&1.into(), &"claude-opus-5-5".into()));
}

#[tokio::test]
async fn this_program_talks_to_it() {
    let home = Home::new();
    let sim = Sim::start(&home, &[]).await;
    let mut run = home.command(&["run", "--base-url", &sim.base_url, "What do you see?"]);
    let output = run.env("ANTHROPIC_API_KEY", "any").output().await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let heard = text.contains("You said: ") && text.contains("What do you see?");
    assert!(output.status.success() && heard, "{text}");
    let (_, _, told) = sim.end(rustix::process::Signal::TERM).await;
    assert!(told.starts_with("POST /v1/messages claude-opus-5-5  200  read 0 written "), "{told}");
}

#[tokio::test]
async fn what_cannot_be_served_is_told() {
    let home = Home::new();
    let check = async |name: &str, text: &str, option: &str| {
        std::fs::write(home.work().join(name), text).unwrap();
        let output = home.agent(&["sim", "--port", "0", option, name]).await;
        format!("{:?} {}", output.code, output.stderr)
    };
    let script = check("wrong.json", r#"[{"text":"a","faults":[{"explode":{}}]}]"#, "--script").await;
    insta::assert_snapshot!(script, @"Some(2) agent: wrong.json: reply 1 of the script is not understood: unknown variant `explode`, expected one of `status`, `rate_limited`, `overflow`, `error_event`, `cut`, `stall`, `slow`, `duplicate`, `hangup`, `raw` at line 1 column 32; a reply has the fields reasoning, text, calls, stop_reason, usage, delay_ms, hold and faults");
    let rules = check("rules.json", r#"{"rules":[{"provider":"p","source":"s"}]}"#, "--rules").await;
    assert!(rules.starts_with("Some(2) agent: rules.json: rule 1") && rules.contains("as_of"), "{rules}");
    let missing = home.agent(&["sim", "--script", "none.json"]).await;
    assert_eq!(missing.code, Some(2));
    assert!(
        missing.stderr.contains("none.json") && missing.stderr.contains("JSON array"),
        "{}",
        missing.stderr
    );
    let nobody = home.agent(&["sim", "--port", "0", "--provider", "deepsek"]).await;
    assert_eq!(nobody.code, Some(2));
    assert!(nobody.stderr.contains("bedrock, deepseek, "), "{}", nobody.stderr);
}
