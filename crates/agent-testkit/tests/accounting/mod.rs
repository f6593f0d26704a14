//! What the simulated provider reports as usage is what the rules of the prompt cache say, on every wire.

use std::time::Duration;

use agent_cache::{Format, Request, RuleBook, Simulator};
use agent_core::Usage;
use agent_providers::{ResponseHead, WireFormat, decode_response};
use agent_testkit::{Fault, Reply, SimCache, SimClock, SimOptions, SimProvider, Source};

use crate::client::{Answer, BEARER, Client, KEYS};

/// A service: its path, how its bodies are read and how its answers are.
#[derive(Clone, Copy)]
struct Service {
    path: &'static str,
    rules: &'static str,
    read: Format,
    answers: WireFormat,
}

const MESSAGES: Service = Service {
    path: "/v1/messages",
    rules: "anthropic",
    read: Format::Anthropic,
    answers: WireFormat::Anthropic,
};
const CHAT: Service = Service {
    path: "/v1/chat/completions",
    rules: "openai",
    read: Format::OpenaiChat,
    answers: WireFormat::OpenAiChat,
};
const RESPONSES: Service = Service {
    path: "/v1/responses",
    rules: "openai",
    read: Format::OpenaiResponses,
    answers: WireFormat::OpenAiResponses,
};

/// A request after a wait: seconds since the one before, and the body without its last brace.
type Step = (u64, String);

fn echoing(cache: SimCache) -> SimProvider {
    SimProvider::start_with(Source::Echo, SimOptions { cache, ..SimOptions::default() }).unwrap()
}

fn streamed(body: &str, stream: bool) -> String {
    let more = if stream { r#","stream":true,"stream_options":{"include_usage":true}"# } else { "" };
    format!("{body}{more}}}")
}

async fn post(sim: &SimProvider, service: Service, body: &str) -> Answer {
    let keys = [&KEYS[..], &BEARER].concat();
    Client::connect(sim).await.send("POST", service.path, &keys, body).await.unwrap()
}

fn usage(service: Service, answer: &Answer) -> Usage {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let head = ResponseHead { status: Some(200), headers: &[], now: std::time::SystemTime::UNIX_EPOCH };
    let text = answer.text();
    decode_response(&service.answers.into(), &[text.as_bytes()], &head).usage
}

/// `read / short / long / new` as the service told it. Chat tells no lifetimes: all writes count as short there.
fn sketch(service: Service, usage: &Usage) -> String {
    let Usage { input, cache_read, cache_write_5m, cache_write_1h, .. } = usage;
    let lifeless = service.read == Format::OpenaiChat;
    let (short, long) = if lifeless { (usage.cache_write(), 0) } else { (*cache_write_5m, *cache_write_1h) };
    format!("{cache_read} / {short} / {long} / {input}")
}

/// Asks the simulated provider and the simulator in parallel, streamed and not: they must agree, and read as expected
/// (`+` for something, `0` for nothing) in each step.
async fn check(service: Service, steps: &[Step], reads: &str) {
    for stream in [false, true] {
        let clock = SimClock::manual();
        let sim = echoing(SimCache { clock: clock.clone(), ..SimCache::default() });
        let mut simulator = Simulator::new(RuleBook::builtin(), service.rules);
        let (mut told, mut expected, mut read) = (Vec::new(), Vec::new(), String::new());
        for (wait, body) in steps {
            clock.advance(Duration::from_secs(*wait));
            let body = streamed(body, stream);
            let request = Request::read(body.as_bytes(), Some(service.read)).unwrap();
            let outcome = simulator.ask(&request, clock.now()).unwrap();
            let usage = usage(service, &post(&sim, service, &body).await);
            read.push(if usage.cache_read > 0 { '+' } else { '0' });
            told.push(sketch(service, &usage));
            expected.push(sketch(service, &outcome.usage));
        }
        assert_eq!(told, expected, "stream: {stream}");
        assert_eq!(read, reads, "{told:?}");
    }
}

const SHORT: &str = r#","cache_control":{"type":"ephemeral"}"#;
const LONG: &str = r#","cache_control":{"type":"ephemeral","ttl":"1h"}"#;

/// So many texts of one message, some marked, behind system text.
fn messages(system: &str, texts: usize, marks: &[usize], more: &str) -> String {
    let blocks = (1..=texts).map(|at| {
        let mark = if marks.contains(&at) { SHORT } else { "" };
        format!(r#"{{"type":"text","text":"{at} {}"{mark}}}"#, "words ".repeat(60))
    });
    let blocks = blocks.collect::<Vec<_>>().join(",");
    format!(
        r#"{{"model":"claude-sonnet-4-6","max_tokens":9,{more}"system":{system},"messages":[{{"role":"user","content":[{blocks}]}}]"#
    )
}

fn system(words: &str, mark: &str) -> String {
    format!(r#"[{{"type":"text","text":"{}"{mark}}}]"#, words.repeat(900))
}

#[tokio::test]
async fn messages_are_accounted_by_the_published_rules() {
    let plain = system("Rules. ", "");
    let marked = |words: &str, mark: &str| system(words, mark);
    let of = |texts, marks: &[usize]| messages(&plain, texts, marks, "");
    check(MESSAGES, &[(0, of(15, &[15])), (1, of(35, &[35]))], "00").await;
    check(MESSAGES, &[(0, of(15, &[15])), (1, of(34, &[34])), (1, of(40, &[40]))], "0++").await;
    check(MESSAGES, &[(0, of(9, &[9])), (299, of(9, &[9])), (299, of(9, &[9])), (301, of(9, &[9]))], "0++0")
        .await;
    let mixed = messages(&marked("Rules. ", LONG), 20, &[20], "");
    check(MESSAGES, &[(0, mixed.clone()), (60, mixed.clone()), (301, mixed.clone()), (3601, mixed)], "0++0")
        .await;
    let small = messages(r#""Brief.""#, 1, &[1], "");
    check(MESSAGES, &[(0, small.clone()), (1, small)], "00").await;
    let tool = |name: &str| format!(r#""tools":[{{"name":"{name}","input_schema":{{"type":"object"}}}}],"#);
    let with = |words: &str, more: &str| messages(&marked(&format!("{words} "), SHORT), 20, &[20], more);
    let choice = format!(r#"{}"tool_choice":{{"type":"any"}},"#, tool("a"));
    let steps = [
        (0, with("Rules.", &tool("a"))),
        (1, with("Rules.", &choice)),
        (1, with("Other.", &tool("a"))),
        (1, with("Rules.", &tool("b"))),
        (1, with("Rules.", &tool("a"))),
    ];
    check(MESSAGES, &steps, "0+00+").await;
    let automatic = format!(r#""cache_control":{{"type":"ephemeral"}},{}"#, tool("a"));
    check(MESSAGES, &[(0, with("Rules.", &automatic)), (1, with("Rules.", &automatic))], "0+").await;
}

/// A conversation of a service of OpenAI: instructions, and so many messages of the user.
fn talk(service: Service, model: &str, words: &str, turns: usize, more: &str) -> String {
    let rules = words.repeat(800);
    let said = (0..turns).map(|at| match (service.read, at % 2) {
        (_, 0) => format!(r#"{{"role":"user","content":"{at} {}"}}"#, "please ".repeat(90)),
        (_, _) => format!(r#"{{"role":"assistant","content":"{at} done"}}"#),
    });
    let said = said.collect::<Vec<_>>().join(",");
    if service.read == Format::OpenaiChat {
        format!(r#"{{"model":"{model}",{more}"messages":[{{"role":"system","content":"{rules}"}},{said}]"#)
    } else {
        format!(r#"{{"model":"{model}",{more}"instructions":"{rules}","input":[{said}]"#)
    }
}

#[tokio::test]
async fn both_services_of_openai_are_accounted_by_the_rules_of_the_model() {
    for service in [CHAT, RESPONSES] {
        let new = |words: &str, turns, more: &str| talk(service, "gpt-5.6-sol", words, turns, more);
        let steps = [
            (0, new("Rules. ", 1, "")),
            (9, new("Rules. ", 3, "")),
            (1801, new("Rules. ", 5, "")),
            (9, new("Other. ", 5, "")),
            (9, new("Rules. ", 7, r#""prompt_cache_key":"k","#)),
            (9, new("Rules. ", 7, "")),
        ];
        check(service, &steps, "0+000+").await;
        let hours = r#""prompt_cache_options":{"ttl":"12h"},"#;
        check(service, &[(0, new("Rules. ", 1, hours)), (40_000, new("Rules. ", 3, hours))], "0+").await;
        let old = |words: &str, turns| talk(service, "gpt-5.4", words, turns, "");
        let steps = [
            (0, old("Rules. ", 1)),
            (9, old("Rules. ", 3)),
            (9, old("Other. ", 3)),
            (301, old("Rules. ", 3)),
        ];
        check(service, &steps, "0+00").await;
    }
}

#[tokio::test]
async fn writes_are_told_where_the_model_has_them_and_by_lifetime_on_responses() {
    let details = async |service: Service, model: &str, more: &str| {
        let sim = echoing(SimCache::default());
        let body = streamed(&talk(service, model, "Rules. ", 1, more), false);
        let told = post(&sim, service, &body).await.json()["usage"].clone();
        let field =
            if service.read == Format::OpenaiChat { "prompt_tokens_details" } else { "input_tokens_details" };
        told[field].to_string()
    };
    assert_eq!(details(CHAT, "gpt-5.4", "").await, r#"{"audio_tokens":0,"cached_tokens":0}"#);
    assert_eq!(details(RESPONSES, "gpt-5.4", "").await, r#"{"cache_write_tokens":0,"cached_tokens":0}"#);
    insta::assert_snapshot!(details(CHAT, "gpt-5.6", "").await, @r#"{"audio_tokens":0,"cache_write_tokens":1560,"cached_tokens":0}"#);
    insta::assert_snapshot!(details(RESPONSES, "gpt-5.6", r#""prompt_cache_options":{"ttl":"12h"},"#).await, @r#"{"cache_write_tokens":1566,"cache_write_tokens_details":{"ttl_12h_tokens":1566,"ttl_30m_tokens":0},"cached_tokens":0}"#);
}

#[tokio::test]
async fn an_entry_is_readable_once_the_answer_that_writes_it_begins() {
    for stream in [false, true] {
        let body = messages(&system("Rules. ", SHORT), 1, &[], "");
        check_concurrent(MESSAGES, &streamed(&body, stream)).await;
        for service in [CHAT, RESPONSES] {
            for model in ["gpt-5.6-sol", "gpt-5.4"] {
                let body = talk(service, model, "Rules. ", 1, "");
                check_concurrent(service, &streamed(&body, stream)).await;
            }
        }
    }
}

/// A second request four seconds after the first, both answered after ten, and a third one then.
async fn check_concurrent(service: Service, body: &str) {
    let clock = SimClock::manual();
    let cache = SimCache { clock: clock.clone(), ..SimCache::default() };
    let options = SimOptions { cache, ..SimOptions::default() };
    let script = vec![Reply::text("at last").held()];
    let sim = SimProvider::start_with(Source::Script(script.into()), options).unwrap();
    let request = Request::read(body.as_bytes(), Some(service.read)).unwrap();
    let mut simulator =
        Simulator::new(RuleBook::builtin(), service.rules).with_begin(Duration::from_secs(10));
    let mut asked = |at| sketch(service, &simulator.ask(&request, Duration::from_secs(at)).unwrap().usage);
    let expected = [asked(0), asked(4), asked(10)];

    let (first, second) = (post(&sim, service, body), async {
        sim.request(0).await;
        clock.advance(Duration::from_secs(4));
        post(&sim, service, body).await
    });
    let release = async {
        sim.request(1).await;
        clock.advance(Duration::from_secs(6));
        sim.release();
        sim.release();
    };
    let (first, second, ()) = tokio::join!(first, second, release);
    sim.release();
    let third = post(&sim, service, body).await;
    let told = [first, second, third].map(|answer| sketch(service, &usage(service, &answer)));
    assert_eq!(told, expected);
    assert!(told[1].starts_with("0 / ") && !told[2].starts_with("0 / "), "{told:?}");
}

#[tokio::test]
async fn what_no_answer_began_for_leaves_nothing_and_a_cut_answer_was_begun() {
    let read_after = async |fault: Fault| {
        let reply = Reply::text("four words of text").fault(fault);
        let sim = SimProvider::start(vec![reply]).unwrap();
        let body = streamed(&messages(&system("Rules. ", SHORT), 1, &[], ""), true);
        post(&sim, MESSAGES, &body).await;
        usage(MESSAGES, &post(&sim, MESSAGES, &body).await).cache_read > 0
    };
    assert!(!read_after(Fault::status(529)).await);
    assert!(!read_after(Fault::overflow()).await);
    assert!(!read_after(Fault::Cut { after: 0 }).await);
    assert!(read_after(Fault::Cut { after: 1 }).await);
    assert!(read_after(Fault::overloaded_event(2)).await);
}

#[tokio::test]
async fn rules_and_provider_can_be_chosen() {
    let read = async |cache: SimCache| {
        let sim = echoing(cache);
        let body = streamed(&messages(&system("Rules. ", SHORT), 1, &[], ""), false);
        post(&sim, MESSAGES, &body).await;
        usage(MESSAGES, &post(&sim, MESSAGES, &body).await).cache_read
    };
    assert!(read(SimCache::default()).await > 0);
    assert_eq!(read(SimCache { provider: Some("none".into()), ..SimCache::default() }).await, 0);
    let strict = r#"{"as_of":"2026-11-30","rules":[{"provider":"anthropic","min_tokens":90000,"model":"claude-sonnet-4-6","source":"here"}]}"#;
    let rules = RuleBook::builtin().with_overrides(strict).unwrap();
    assert_eq!(read(SimCache { rules, ..SimCache::default() }).await, 0);
}

#[tokio::test]
async fn a_request_for_no_tokens_fills_the_cache_and_uses_up_no_reply() {
    let sim = SimProvider::start(vec![Reply::text("one")]).unwrap();
    let body =
        messages(&system("Rules. ", SHORT), 1, &[], "").replace(r#""max_tokens":9"#, r#""max_tokens":0"#);
    let warm = post(&sim, MESSAGES, &streamed(&body, false)).await.json();
    assert_eq!((&warm["content"], &warm["stop_reason"]), (&serde_json::json!([]), &"max_tokens".into()));
    assert!(sim.check_complete().is_err(), "no reply was given");
    let real = streamed(&messages(&system("Rules. ", SHORT), 1, &[], ""), false);
    let told = post(&sim, MESSAGES, &real).await.json();
    assert_eq!(told["usage"]["cache_read_input_tokens"], warm["usage"]["cache_creation_input_tokens"]);
    assert_eq!((&told["content"][0]["text"], &told["id"]), (&"one".into(), &"msg_sim_0000".into()));
}

#[tokio::test]
async fn a_prompt_longer_than_the_window_is_refused_in_the_words_of_the_wire() {
    let told = async |service: Service, body: &str| {
        let options = SimOptions { context_window: Some(400), ..SimOptions::default() };
        let sim = SimProvider::start_with(Source::Echo, options).unwrap();
        let answer = post(&sim, service, &streamed(body, false)).await;
        assert_eq!((answer.status, sim.refusals().len()), (400, 1));
        let error = answer.json()["error"].clone();
        format!("{} {}", error["code"], error["message"].as_str().unwrap())
    };
    insta::assert_snapshot!(told(MESSAGES, &messages(&system("Rules. ", ""), 1, &[], "")).await, @"null prompt is too long: 1682 tokens > 400 maximum");
    insta::assert_snapshot!(told(CHAT, &talk(CHAT, "m", "Rules. ", 1, "")).await, @r#""context_length_exceeded" This model's maximum context length is 400 tokens. However, your messages resulted in 1560 tokens. Please reduce the length of the messages."#);
    insta::assert_snapshot!(told(RESPONSES, &talk(RESPONSES, "m", "Rules. ", 1, "")).await, @r#""context_length_exceeded" Your input exceeds the context window of this model. Please adjust your input and try again."#);
    let known = echoing(SimCache::default());
    let long = format!(
        r#"{{"model":"claude-haiku-4-5","max_tokens":9,"messages":[{{"role":"user","content":"{}"}}]}}"#,
        "words ".repeat(140_000)
    );
    assert!(
        post(&known, MESSAGES, &long).await.text().contains("> 200000 maximum"),
        "the model's own window"
    );
}

#[tokio::test]
async fn markers_and_settings_the_service_refuses() {
    let sim = echoing(SimCache::default());
    let told = async |body: String| {
        let answer = post(&sim, MESSAGES, &streamed(&body, false)).await;
        assert_eq!(answer.status, 400, "{body}");
        answer.json()["error"]["message"].as_str().unwrap().to_owned()
    };
    let order =
        messages(&system("Rules. ", SHORT), 1, &[], "").replace("words \"}", &format!("words \"{LONG}}}"));
    insta::assert_snapshot!(told(order).await, @"messages.0.content.0.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.");
    let ttl = messages(&system("a ", r#","cache_control":{"type":"ephemeral","ttl":"2h"}"#), 1, &[], "");
    insta::assert_snapshot!(told(ttl).await, @"system.0.cache_control.ttl: Input should be '5m' or '1h'");
    let deferred = messages(
        r#""s""#,
        1,
        &[],
        r#""tools":[{"name":"b","input_schema":{"type":"object"}},{"name":"a","input_schema":{"type":"object"},"defer_loading":true,"cache_control":{"type":"ephemeral"}}],"#,
    );
    insta::assert_snapshot!(told(deferred).await, @"tools.1.cache_control: cache_control cannot be set for tools with defer_loading");
    let thinking = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"b","signature":"c","cache_control":{"type":"ephemeral"}},{"type":"text","text":"d"}]},{"role":"user","content":"e"}]"#;
    let refusal =
        agent_testkit::check_request("/v1/messages", streamed(thinking, false).as_bytes()).unwrap_err();
    insta::assert_snapshot!(refusal.message, @"messages.1.content.0.cache_control: cache_control cannot be set for thinking blocks");
    let automatic = messages(r#""s""#, 1, &[1], r#""cache_control":{"type":"ephemeral","ttl":"1h"},"#);
    insta::assert_snapshot!(told(automatic).await, @"messages[0].content[0]: the automatic cache_control has another ttl than the marker on the last block; give both the same");
    let opus = |more: &str| messages(r#""s""#, 1, &[], more).replace("claude-sonnet-4-6", "claude-opus-5-5");
    insta::assert_snapshot!(told(opus(r#""temperature":0.5,"#)).await, @"temperature: this parameter is not supported by this model");
    let forced = r#""tools":[{"name":"a","input_schema":{"type":"object"}}],"tool_choice":{"type":"any"},"#;
    insta::assert_snapshot!(told(opus(forced)).await, @"tool_choice: this model does not support forcing a tool; use 'auto' or 'none'");
    let union = r#""tools":[{"name":"a","input_schema":{"type":"object","anyOf":[]}}],"#;
    insta::assert_snapshot!(told(messages(r#""s""#, 1, &[], union)).await, @"tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level");

    let old = talk(CHAT, "gpt-5.4", "a", 1, r#""prompt_cache_options":{"ttl":"30m"},"#);
    let answer = post(&sim, CHAT, &streamed(&old, false)).await;
    assert!(
        answer.text().contains("'prompt_cache_options' is not supported with this model"),
        "{}",
        answer.text()
    );
}
