//! The documented cases of each provider's rules, one table a rule.

use std::time::Duration;

use agent_cache::{Missed, Refusal, Request, RuleBook, Simulator};
use agent_core::Usage;

use crate::support::{Parts, Tildes, call, marked, result, simulator, text, thinking, tool};

const SONNET: &str = "claude-sonnet-4-6";

/// `read / 5m / 1h / input` of each request, asked at these seconds.
fn check(provider: &str, asked: &[(u64, &Parts)], expect: &[&str]) {
    let mut cache = simulator(provider);
    let seen = asked.iter().map(|(at, parts)| {
        let outcome = cache.ask(&parts.request(), Duration::from_secs(*at));
        outcome.map_or_else(|refusal| refusal.to_string(), |outcome| sketch(&outcome.usage))
    });
    assert_eq!(seen.collect::<Vec<_>>(), expect);
}

fn sketch(usage: &Usage) -> String {
    let Usage { input, cache_read, cache_write_5m, cache_write_1h, .. } = usage;
    format!("{cache_read} / {cache_write_5m} / {cache_write_1h} / {input}")
}

/// So many texts of 100 tokens, some marked, counted from 1.
fn texts(count: usize, marks: &[usize]) -> Parts {
    let blocks = (1..=count).map(|at| {
        let block = text(&at.to_string(), 100);
        if marks.contains(&at) { marked(&block, "5m") } else { block }
    });
    Parts { messages: vec![("user", blocks.collect())], ..Parts::of(SONNET) }
}

#[test]
fn an_entry_is_found_at_most_twenty_positions_back() {
    let first = texts(15, &[15]);
    check("anthropic", &[(0, &first), (1, &texts(35, &[35]))], &["0 / 1500 / 0 / 3", "0 / 3500 / 0 / 3"]);
    check("anthropic", &[(0, &first), (1, &texts(34, &[34]))], &["0 / 1500 / 0 / 3", "1500 / 1900 / 0 / 3"]);
    check(
        "anthropic",
        &[(0, &first), (1, &texts(35, &[15, 35]))],
        &["0 / 1500 / 0 / 3", "1500 / 2000 / 0 / 3"],
    );
    let mut cache = simulator("anthropic");
    cache.ask(&first.request(), Duration::ZERO).unwrap();
    let missed = cache.ask(&texts(35, &[35]).request(), Duration::ZERO).unwrap().missed;
    assert_eq!(missed, Some(Missed::BeyondLookback { block: 14, positions: 21 }));
}

#[test]
fn stable_text_ahead_of_a_marker_alone_never_hits() {
    check(
        "anthropic",
        &[(0, &texts(20, &[20])), (1, &texts(15, &[15]))],
        &["0 / 2000 / 0 / 3", "0 / 1500 / 0 / 3"],
    );
    check("anthropic", &[(0, &texts(20, &[])), (1, &texts(20, &[]))], &["0 / 0 / 0 / 2003"; 2]);
}

#[test]
fn runs_of_calls_and_results_are_one_position_on_the_claude_api_only() {
    let step = |calls: usize| {
        let ids = || (0..calls).map(|at| format!("c{at}"));
        let mut parts = texts(11, &[]);
        parts.system = vec![text("S", 4_000)];
        if calls > 0 {
            parts.messages.push(("assistant", ids().map(|id| call(&id, 10)).collect()));
            parts.messages.push(("user", ids().map(|id| result(&id, 10)).collect()));
        }
        parts.mark_tail();
        parts
    };
    let asked = [(0, &step(0)), (1, &step(30))];
    check("anthropic", &asked, &["0 / 5100 / 0 / 3", "5100 / 600 / 0 / 1"]);
    check("bedrock", &asked, &["0 / 5100 / 0 / 3", "0 / 5700 / 0 / 1"]);
}

#[test]
fn markers_are_no_part_of_the_hash() {
    check(
        "anthropic",
        &[(0, &texts(15, &[15])), (1, &texts(16, &[16]))],
        &["0 / 1500 / 0 / 3", "1500 / 100 / 0 / 3"],
    );
}

/// A stable part of 9,366 tokens and a message of 336.
fn mixed(stable: &str, tail: &str) -> Parts {
    let mut parts = Parts::of(SONNET);
    parts.tools = vec![tool("read", 5_000)];
    parts.system = vec![marked(&text("S", 4_366), stable)];
    parts.messages = vec![("user", vec![marked(&text("U", 336), tail)])];
    parts
}

#[test]
fn mixed_lifetimes_are_written_apart_and_run_out_apart() {
    let parts = mixed("1h", "5m");
    check(
        "anthropic",
        &[(0, &parts), (10, &parts), (10 + 299, &parts), (10 + 299 + 301, &parts), (4300, &parts)],
        &[
            "0 / 336 / 9366 / 3",
            "9702 / 0 / 0 / 3",
            "9702 / 0 / 0 / 3",
            "9366 / 336 / 0 / 3",
            "0 / 336 / 9366 / 3",
        ],
    );
    // 4300 lies more than an hour after the last read at 610.
    check("anthropic", &[(0, &mixed("1h", "1h"))], &["0 / 0 / 9702 / 3"]);
    check("anthropic", &[(0, &mixed("5m", "5m"))], &["0 / 9702 / 0 / 3"]);
}

#[test]
fn lives_run_from_the_start_of_a_request_and_a_read_renews_them() {
    let parts = texts(15, &[15]);
    let (written, read) = ("0 / 1500 / 0 / 3", "1500 / 0 / 0 / 3");
    check("anthropic", &[(0, &parts), (300, &parts)], &[written, written]);
    check(
        "anthropic",
        &[(0, &parts), (299, &parts), (598, &parts), (899, &parts)],
        &[written, read, read, written],
    );
    // A read further on keeps the shorter entry on its path warm.
    let (short, long) = (texts(15, &[15]), texts(20, &[15, 20]));
    check(
        "anthropic",
        &[(0, &long), (200, &long), (400, &short)],
        &["0 / 2000 / 0 / 3", "2000 / 0 / 0 / 3", "1500 / 0 / 0 / 3"],
    );
}

#[test]
fn an_entry_is_readable_once_its_answer_has_begun() {
    let request = texts(15, &[15]).request();
    let mut cache = simulator("anthropic").with_begin(Duration::from_secs(5));
    let mut reads = |at| {
        let outcome = cache.ask(&request, Duration::from_secs(at)).unwrap();
        (outcome.usage.cache_read, matches!(outcome.missed, Some(Missed::NotYetReadable { .. })))
    };
    assert_eq!([reads(0), reads(1), reads(4), reads(5)], [(0, false), (0, true), (0, true), (1500, false)]);
}

#[test]
fn an_answer_whose_beginning_is_not_known_yet_is_begun_later() {
    let request = texts(15, &[15]).request();
    let longer = texts(18, &[18]).request();
    let mut cache = simulator("anthropic");
    let at = Duration::from_secs;
    let (first, pending) = cache.ask_pending(&request, at(0)).unwrap();
    let (second, behind) = cache.ask_pending(&longer, at(1)).unwrap();
    assert_eq!((first.usage.cache_read, second.usage.cache_read), (0, 0), "nothing has begun");
    cache.begin(&behind, at(2));
    assert_eq!(
        cache.ask(&request, at(3)).unwrap().usage.cache_read,
        0,
        "the shorter entry is the other answer's"
    );
    assert_eq!(cache.ask(&longer, at(3)).unwrap().usage.cache_read, 1800);
    let mut cold = simulator("anthropic");
    let (_, pending_too) = cold.ask_pending(&request, at(0)).unwrap();
    cold.begin(&pending_too, at(9));
    assert_eq!(cold.ask(&request, at(299)).unwrap().usage.cache_read, 1500);
    assert_eq!(pending, pending_too);
    let (_, never) = cold.ask_pending(&request, at(700)).unwrap();
    cold.begin(&never, at(710));
    assert_eq!(
        cold.ask(&request, at(1001)).unwrap().usage.cache_read,
        0,
        "a life runs from the start of its request"
    );
    assert_eq!((cold.input_tokens(&request), cold.check(&request)), (1503, Ok(())));
}

#[test]
fn prompts_below_the_minimum_are_not_kept_and_nothing_says_so() {
    let check_min = |model: &'static str, least: usize| {
        let of = |tokens| {
            let block = marked(&text("S", tokens), "5m");
            Parts { system: vec![block], messages: vec![("user", vec![text("u", 1)])], ..Parts::of(model) }
        };
        let (below, enough) = (of(least - 1), of(least));
        check("anthropic", &[(0, &below), (1, &below)], &[format!("0 / 0 / 0 / {}", least + 3).as_str(); 2]);
        check(
            "anthropic",
            &[(0, &enough), (1, &enough)],
            &[&format!("0 / {least} / 0 / 4"), &format!("{least} / 0 / 0 / 4")],
        );
    };
    check_min("claude-opus-5-5", 512);
    check_min("claude-sonnet-4-6", 1024);
    check_min("claude-opus-4-7", 2048);
    check_min("claude-haiku-4-5", 4096);
}

#[test]
fn automatic_caching_marks_the_last_block_that_can_be_marked() {
    let auto = |ttl: &str, mut parts: Parts| {
        parts.extra = format!(r#""cache_control":{{"type":"ephemeral","ttl":"{ttl}"}},"#);
        parts
    };
    let grown = auto("5m", texts(16, &[]));
    check(
        "anthropic",
        &[(0, &auto("5m", texts(15, &[]))), (1, &grown)],
        &["0 / 1500 / 0 / 3", "1500 / 100 / 0 / 3"],
    );
    check("anthropic", &[(0, &auto("5m", texts(15, &[15])))], &["0 / 1500 / 0 / 3"]);
    check("anthropic", &[(0, &auto("1h", texts(15, &[])))], &["0 / 0 / 1500 / 3"]);
    let mut ends_thinking = texts(15, &[]);
    ends_thinking.messages.push(("assistant", vec![text("a", 100), thinking(50)]));
    check("anthropic", &[(0, &auto("5m", ends_thinking))], &["0 / 1600 / 0 / 53"]);
    let refused = |parts: Parts| simulator("anthropic").ask(&parts.request(), Duration::ZERO).unwrap_err();
    assert!(matches!(refused(auto("1h", texts(15, &[15]))), Refusal::AutomaticTtl { .. }));
    let full = refused(auto("5m", texts(15, &[1, 2, 3, 4])));
    assert!(matches!(full, Refusal::TooManyMarks { found: 5, most: 4, .. }));
}

#[test]
fn markers_are_refused_as_the_service_refuses_them() {
    let check_refusal = |parts: &Parts, expect: &str| check("anthropic", &[(0, parts)], &[expect]);
    check_refusal(
        &texts(15, &[1, 2, 3, 4, 5]),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    );
    check_refusal(
        &mixed("5m", "1h"),
        "messages[0].content[0]: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block; blocks are read in the order tools, system, messages",
    );
    let on =
        |block: &str| Parts { messages: vec![("assistant", vec![marked(block, "5m")])], ..Parts::of(SONNET) };
    let said = |what: &str| {
        format!("messages[0].content[0]: cache_control cannot be set on {what}; mark the block before it")
    };
    check_refusal(&on(&thinking(9)), &said("thinking blocks"));
    check_refusal(&on(r#"{"type":"text","text":""}"#), &said("empty text blocks"));
    let late = r#"{"name":"late","defer_loading":true,"input_schema":{}}"#;
    let deferred = Parts { tools: vec![marked(late, "5m")], ..texts(1, &[]) };
    check_refusal(
        &deferred,
        "tools[0]: cache_control cannot be set on tools with defer_loading; mark the block before it",
    );
}

/// Tools of 2,000 tokens, system text of 3,000 and a message of 4,000, each marked.
fn three_levels() -> Parts {
    let mut parts = Parts::of("claude-opus-5");
    parts.tools = vec![marked(&tool("read", 2_000), "5m")];
    parts.system = vec![marked(&text("S", 3_000), "5m")];
    parts.messages = vec![("user", vec![marked(&text("U", 4_000), "5m")])];
    parts
}

#[test]
fn a_change_loses_its_level_and_all_after_it() {
    let keeps = |change: &dyn Fn(&mut Parts), expect: u64| {
        let mut changed = three_levels();
        change(&mut changed);
        let mut cache = simulator("anthropic");
        cache.ask(&three_levels().request(), Duration::ZERO).unwrap();
        let usage = cache.ask(&changed.request(), Duration::ZERO).unwrap().usage;
        assert_eq!(usage.cache_read, expect, "{}", changed.body().replace('~', ""));
    };
    let extra = |json: &'static str| move |parts: &mut Parts| parts.extra = json.into();
    keeps(&|_| {}, 9_000);
    keeps(&|parts| parts.model = "claude-opus-5-5", 0);
    keeps(&|parts| parts.tools[0] = parts.tools[0].replace("depth", "deep"), 0);
    keeps(&|parts| parts.tools.push(tool("new", 1)), 0);
    keeps(&|parts| parts.tools.push(r#"{"name":"late","defer_loading":true}"#.into()), 9_000);
    keeps(&|parts| parts.tools.push(r#"{"type":"web_search_20260318","name":"web_search"}"#.into()), 2_000);
    keeps(&|parts| parts.system[0] = parts.system[0].replace("S ", "T "), 2_000);
    keeps(&extra(r#""speed":"fast","#), 2_000);
    keeps(&extra(r#""tool_choice":{"type":"any"},"#), 5_000);
    keeps(&extra(r#""thinking":{"type":"adaptive"},"#), 5_000);
    keeps(&extra(r#""output_config":{"effort":"low"},"#), 5_000);
    keeps(&extra(r#""output_config":{"effort":"high"},"#), 9_000);
    keeps(&extra(r#""max_tokens":77,"metadata":{"user_id":"u"},"#), 9_000);
    keeps(&|parts| parts.messages[0].1[0] = parts.messages[0].1[0].replace("U ", "V "), 5_000);
    let image = r#"{"type":"image","source":{"type":"url","url":"u"}}"#;
    keeps(&|parts| parts.messages.push(("user", vec![image.into()])), 5_000);
    let header = text("x-anthropic-billing-header: a", 9);
    keeps(&|parts| parts.system.insert(0, header.clone()), 9_000);
    let cited = r#"{"type":"document","source":{},"citations":{"enabled":true}}"#;
    keeps(&|parts| parts.messages.push(("user", vec![cited.into()])), 2_000);
}

#[test]
fn a_knob_moves_thinking_ahead_of_the_tools() {
    let knob = r#"{"as_of":"2026-11-30","rules":[{"provider":"anthropic","settings_first":true,"source":"a guess"}]}"#;
    let book = RuleBook::builtin().with_overrides(knob).unwrap();
    let mut cache = Simulator::new(book, "anthropic").with_counter(Tildes);
    let changed = Parts { extra: r#""thinking":{"type":"adaptive"},"#.into(), ..three_levels() };
    cache.ask(&three_levels().request(), Duration::ZERO).unwrap();
    assert_eq!(cache.ask(&changed.request(), Duration::ZERO).unwrap().usage.cache_read, 0);
}

#[test]
fn old_thinking_leaves_the_prompt_of_older_models_when_the_user_speaks() {
    let turn = |model, next: bool| {
        let mut parts = Parts { messages: vec![("user", vec![text("u", 5_000)])], ..Parts::of(model) };
        parts.messages.push(("assistant", vec![thinking(400), text("a", 600)]));
        parts.messages.push(("user", vec![text(if next { "v" } else { "w" }, 100)]));
        if next {
            // The request before had no answer to the second question.
            parts.mark_tail();
        } else {
            parts.messages.truncate(2);
            parts.mark_tail();
        }
        parts
    };
    let check_model = |model, expect: &[&str]| {
        check("anthropic", &[(0, &turn(model, false)), (1, &turn(model, true))], expect)
    };
    check_model("claude-opus-5", &["0 / 6000 / 0 / 3", "6000 / 100 / 0 / 3"]);
    check_model("claude-haiku-4-5", &["0 / 6000 / 0 / 3", "0 / 5700 / 0 / 3"]);
}

fn chat(model: &str, extra: &str, words: &[(&str, usize)]) -> Request {
    let messages = words
        .iter()
        .map(|(role, tokens)| format!(r#"{{"role":"{role}","content":"{}"}}"#, "~".repeat(*tokens)));
    let messages = messages.collect::<Vec<_>>().join(",");
    let body = format!(r#"{{{extra}"model":"{model}","messages":[{messages}]}}"#);
    Request::read(body.as_bytes(), None).unwrap()
}

fn check_chat(provider: &str, asked: &[(u64, Request)], expect: &[&str]) {
    let mut cache = simulator(provider);
    let seen = asked
        .iter()
        .map(|(at, request)| sketch(&cache.ask(request, Duration::from_secs(*at)).unwrap().usage));
    assert_eq!(seen.collect::<Vec<_>>(), expect);
}

#[test]
fn services_without_markers_round_the_longest_prefix_down() {
    let start = [("system", 1_000), ("user", 500)];
    let grown = [("system", 1_000), ("user", 500), ("assistant", 40), ("user", 60)];
    let pair = |model: &str| vec![(0, chat(model, "", &start)), (1, chat(model, "", &grown))];
    check_chat("openai", &pair("gpt-5.4"), &["0 / 0 / 0 / 1500", "1408 / 0 / 0 / 192"]);
    check_chat("deepseek", &pair("deepseek-v4-flash"), &["0 / 0 / 0 / 1500", "1408 / 0 / 0 / 192"]);
    check_chat("xai", &pair("grok-5"), &["0 / 0 / 0 / 1500", "1472 / 0 / 0 / 128"]);
    check_chat("mistral", &pair("mistral-large"), &["0 / 0 / 0 / 1500", "1488 / 0 / 0 / 112"]);
    check_chat("gemini", &pair("gemini-2.5-flash"), &["0 / 0 / 0 / 1500", "1500 / 0 / 0 / 100"]);
    check_chat("gemini", &pair("gemini-4-argon"), &["0 / 0 / 0 / 1500", "0 / 0 / 0 / 1600"]);
    // Also inside a block, and only while the entry lives.
    let longer = chat("gpt-5.4", "", &[("system", 1_000), ("user", 900)]);
    let asked = vec![(0, chat("gpt-5.4", "", &start)), (1, longer.clone()), (302, longer)];
    check_chat("openai", &asked, &["0 / 0 / 0 / 1500", "1408 / 0 / 0 / 492", "0 / 0 / 0 / 1900"]);
    let keyed = |key: &str| chat("gpt-5.4", &format!(r#""prompt_cache_key":"{key}","#), &start);
    check_chat("openai", &[(0, keyed("a")), (1, keyed("b"))], &["0 / 0 / 0 / 1500"; 2]);
    let kept = || chat("gpt-5.4", r#""prompt_cache_retention":"24h","#, &start);
    check_chat("openai", &[(0, kept()), (4000, kept())], &["0 / 0 / 0 / 1500", "1408 / 0 / 0 / 92"]);
}

#[test]
fn openai_since_gpt_5_6_writes_at_the_ends_of_messages() {
    let model = "gpt-5.6-sol";
    let start = [("system", 1_000), ("user", 500)];
    let grown = [("system", 1_000), ("user", 500), ("assistant", 40), ("user", 60)];
    let asked =
        vec![(0, chat(model, "", &start)), (1, chat(model, "", &grown)), (1 + 1801, chat(model, "", &grown))];
    check_chat("openai", &asked, &["0 / 1500 / 0 / 0", "1500 / 100 / 0 / 0", "0 / 1600 / 0 / 0"]);
    let long = r#""prompt_cache_options":{"ttl":"12h"},"#;
    let asked = vec![(0, chat(model, long, &start)), (9000, chat(model, long, &grown))];
    check_chat("openai", &asked, &["0 / 0 / 1500 / 0", "1500 / 0 / 100 / 0"]);
    let explicit = r#""prompt_cache_options":{"mode":"explicit"},"#;
    check_chat("openai", &[(0, chat(model, explicit, &start))], &["0 / 0 / 0 / 1500"]);
    let effort = |effort: &str| chat(model, &format!(r#""reasoning_effort":"{effort}","#), &start);
    check_chat("openai", &[(0, effort("low")), (1, effort("high"))], &["0 / 1500 / 0 / 0"; 2]);
    let choice = |choice: &str| chat(model, &format!(r#""tool_choice":"{choice}","#), &start);
    check_chat(
        "openai",
        &[(0, choice("auto")), (1, choice("none"))],
        &["0 / 1500 / 0 / 0", "1500 / 0 / 0 / 0"],
    );
}
