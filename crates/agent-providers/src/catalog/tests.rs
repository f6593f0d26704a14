//! Profiles by name, tables of the user's, and what is wrong with bad ones.

use std::collections::BTreeSet;

use agent_core::{CacheProfile, Setting, Usage};

use super::*;

fn profile(provider: &str, model: &str) -> ModelProfile {
    Catalog::builtin().profile(provider, model)
}

#[test]
fn every_file_is_read_and_dated() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let mut names: Vec<_> =
        folder.read_dir().unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let mut listed: Vec<_> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
    listed.sort();
    assert_eq!(names, listed, "every file of the folder is a table of the crate");
    let mut entries = 0;
    for (name, text) in FILES {
        let table = entry::read(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(table.iter().all(|entry| entry.as_of().is_some()), "{name}");
        let raw: serde_json::Value = serde_json::from_str(text).unwrap();
        let mut sources = raw["models"].as_array().unwrap().iter().map(|entry| entry["source"].as_str());
        assert!(sources.all(|source| source.is_some_and(|source| !source.is_empty())), "{name}");
        entries += table.len();
    }
    assert_eq!(BUILTIN.len(), entries);
}

/// Window, most output, shortest kept prefix and refusals of a Claude.
#[track_caller]
fn check_claude(model: &str, window: (u32, u32), min_tokens: u32, refuses: &[Setting]) {
    let profile = profile("anthropic", model);
    let cache = CacheProfile::Marked { max_marks: 4, min_tokens, lookback: 20, collapse_runs: true };
    assert_eq!((profile.context_window, profile.max_output), window, "{model}");
    assert_eq!((&profile.cache, profile.vision, profile.known), (&cache, true, true), "{model}");
    assert_eq!(profile.refuses.iter().copied().collect::<Vec<_>>(), refuses, "{model}");
    assert_eq!(profile.model, model, "the name stays as it was given");
}

#[test]
fn claude_models() {
    use Setting::{
        Effort, EffortAboveHigh, EffortXHigh, Fast, Sampling, ThinkingAdaptive, ThinkingBudget,
        ThinkingDisabled,
    };
    let (large, small) = ((1_000_000, 128_000), (200_000, 64_000));
    let (new, always) =
        ([Sampling, ThinkingBudget, Fast], [Sampling, ThinkingBudget, ThinkingDisabled, Fast]);
    let old = [ThinkingAdaptive, Effort, Fast];
    check_claude("claude-fable-5-1", large, 512, &always);
    check_claude("claude-fable-5", large, 512, &always);
    check_claude("claude-mythos-5-1", large, 512, &always);
    check_claude("claude-mythos-5", large, 512, &always);
    check_claude("claude-opus-5-5", large, 512, &always[..3]);
    check_claude("claude-opus-5-20260401", large, 512, &new[..2]);
    check_claude("claude-opus-4-8", large, 1_024, &new);
    check_claude("claude-opus-4-7", large, 2_048, &new);
    check_claude("claude-opus-4-6", large, 4_096, &[EffortXHigh, Fast]);
    check_claude("claude-opus-4-5", small, 4_096, &[ThinkingAdaptive, EffortAboveHigh, Fast]);
    check_claude("claude-opus-4-1-20250805", (200_000, 32_000), 1_024, &old);
    check_claude("claude-sonnet-5-5", large, 512, &new);
    check_claude("claude-sonnet-5", large, 1_024, &new);
    check_claude("claude-sonnet-4-6", large, 1_024, &[EffortXHigh, Fast]);
    check_claude("anthropic/claude-sonnet-4-5@20250929", small, 1_024, &old);
    check_claude("claude-haiku-5-5", large, 512, &new);
    check_claude("us.anthropic.claude-haiku-4-5-20251001-v1:0", small, 4_096, &old);
}

#[test]
fn what_claude_models_can_do() {
    /// Binding of thinking, forced tools, system messages inside the conversation.
    #[track_caller]
    fn check(model: &str, expect: (bool, bool, bool)) {
        let it = profile("anthropic", model);
        let facts = (it.binds_thinking_to_prefix, it.forced_tool_choice, it.mid_conversation_system);
        assert_eq!(facts, expect, "{model}");
        assert_eq!(it.turn_scoped_system, it.mid_conversation_system, "{model}");
    }
    for model in ["claude-fable-5-1", "claude-opus-4-5", "claude-haiku-5-5", "claude-sonnet-4-5@20250929"] {
        assert!(profile("anthropic", model).deferred_tools, "{model}");
    }
    for model in ["claude-opus-4-1", "claude-haiku-3-5", "claude-unheard-of", "m"] {
        assert!(!profile("anthropic", model).deferred_tools, "{model}");
    }
    check("claude-fable-5-1", (true, false, true));
    check("claude-mythos-5-1", (false, false, true));
    check("claude-opus-5-5", (true, false, true));
    check("claude-opus-5", (false, true, true));
    check("claude-opus-4-8", (false, true, true));
    check("claude-opus-4-7", (false, true, false));
    check("claude-sonnet-5-5", (true, true, true));
    check("claude-sonnet-5", (false, true, false));
    check("claude-haiku-5-5", (true, true, true));
    check("claude-haiku-4-5", (false, true, false));
}

#[test]
fn an_unknown_model_is_assumed_to_do_little() {
    #[track_caller]
    fn check(provider: &str, model: &str, window: (u32, u32), cache: CacheProfile, vision: bool) {
        let (context_window, max_output) = window;
        // What this format can force is known of all its models.
        let little = ModelProfile {
            forced_while_thinking: provider != "anthropic",
            // Those that are known to be Claudes see, and their provider drops what they cannot read.
            takes_thinking_of_siblings: vision,
            ..ModelProfile::conservative(provider, model)
        };
        let ours = profile(provider, model);
        let refuses = if vision { ours.refuses.clone() } else { BTreeSet::new() };
        assert_eq!(ours, ModelProfile { context_window, max_output, cache, vision, refuses, ..little });
    }
    let marked =
        || CacheProfile::Marked { max_marks: 4, min_tokens: 4_096, lookback: 20, collapse_runs: true };
    check("anthropic", "claude-next", (200_000, 64_000), marked(), true);
    check("anthropic", "eu.anthropic.claude-next-1-v1:0", (200_000, 64_000), marked(), true);
    check("anthropic", "claude-opus-50", (200_000, 64_000), marked(), true);
    check("anthropic", "claude-fable-5-2", (200_000, 64_000), marked(), true);
    check("anthropic", "llama3.1:8b", (32_768, 4_096), marked(), false);
    check("anthropic", "my-claude", (32_768, 4_096), marked(), false);
    check("anthropic", "gpt-5", (32_768, 4_096), marked(), false);
    check("anthropic", "", (32_768, 4_096), marked(), false);
    check("openai-chat", "claude-opus-5", (32_768, 4_096), CacheProfile::None, false);
    for server in ["ollama", "ollama-chat", "vllm", "lmstudio"] {
        check(server, "llama3.1:8b", (32_768, 4_096), CacheProfile::None, false);
        check(server, "openai/gpt-oss-20b", (32_768, 4_096), CacheProfile::None, false);
    }
    check("nobody", "nothing", (32_768, 4_096), CacheProfile::None, false);
}

#[test]
fn an_unknown_claude_is_taken_for_the_least_of_the_current_ones() {
    let unknown = profile("anthropic", "claude-next");
    for model in [
        "claude-fable-5-1",
        "claude-mythos-5-1",
        "claude-opus-5-5",
        "claude-opus-5",
        "claude-sonnet-5-5",
        "claude-sonnet-5",
        "claude-haiku-5-5",
        "claude-haiku-4-5",
    ] {
        let known = profile("anthropic", model);
        assert!(known.known && unknown.context_window <= known.context_window, "{model}");
        assert!(unknown.max_output <= known.max_output, "{model}");
        let only_old = [Setting::ThinkingAdaptive, Setting::Effort];
        let mut refused = known.refuses.iter().filter(|setting| !only_old.contains(setting));
        assert!(refused.all(|setting| unknown.refuses.contains(setting)), "{model} {:?}", known.refuses);
    }
}

/// Window and output where known, caching, what it can do and what it refuses, a line a model.
fn of(provider: &str, models: &str) -> String {
    let line = |model| format!("{provider} {model}: {}", line(provider, model));
    models.split(' ').map(line).collect::<Vec<_>>().join("\n")
}

fn line(provider: &str, model: &str) -> String {
    let it = profile(provider, model);
    let cache = match it.cache {
        CacheProfile::None => "none".to_owned(),
        CacheProfile::Automatic => "automatic".to_owned(),
        CacheProfile::Marked { max_marks, min_tokens, .. } => format!("{max_marks} from {min_tokens}"),
        _ => unreachable!("there is no other"),
    };
    let words = [("forced", it.forced_tool_choice), ("allowed", it.allowed_tools), ("sees", it.vision)];
    let can: Vec<_> = words.into_iter().filter(|(_, can)| *can).map(|(word, _)| word).collect();
    let window = if it.known { format!("{}/{}", it.context_window, it.max_output) } else { "?".into() };
    let refuses: Vec<_> = it.refuses.iter().collect();
    format!("{window} {cache} {} {refuses:?}", can.join("+"))
}

#[test]
fn models_of_openai() {
    insta::assert_snapshot!(of("openai-responses", "gpt-4o gpt-4.1-nano o3-mini gpt-5 gpt-5-mini gpt-5.1 gpt-5.2 gpt-5.3-codex gpt-5.4-2026-03-05 gpt-5.6 gpt-6-sol gpt-6.1-sol gpt-7"), @"
    openai-responses gpt-4o: 128000/16384 automatic forced+allowed+sees [ThinkingAdaptive, ThinkingBudget, ThinkingDisabled, Effort]
    openai-responses gpt-4.1-nano: 1047576/32768 automatic forced+allowed+sees [ThinkingAdaptive, ThinkingBudget, ThinkingDisabled, Effort]
    openai-responses o3-mini: 200000/100000 automatic forced [Sampling, Penalties, StopSequences, ThinkingDisabled, EffortMinimal, EffortAboveHigh, ParallelToolCalls]
    openai-responses gpt-5: 400000/128000 automatic forced+allowed+sees [Sampling, Penalties, StopSequences, ThinkingDisabled, EffortAboveHigh]
    openai-responses gpt-5-mini: 400000/128000 automatic forced+allowed+sees [Sampling, Penalties, StopSequences, ThinkingDisabled, EffortAboveHigh]
    openai-responses gpt-5.1: 400000/128000 automatic forced+allowed+sees [Sampling, Penalties, StopSequences, EffortMinimal, EffortAboveHigh]
    openai-responses gpt-5.2: 400000/128000 automatic forced+allowed+sees [Sampling, Penalties, StopSequences, EffortMinimal]
    openai-responses gpt-5.3-codex: 400000/128000 automatic forced+allowed+sees [Sampling, Penalties, StopSequences, EffortMinimal]
    openai-responses gpt-5.4-2026-03-05: 1050000/128000 automatic forced+allowed+sees [Sampling, Penalties, StopSequences, EffortMinimal]
    openai-responses gpt-5.6: 1050000/128000 3 from 1024 forced+allowed+sees [Sampling, Penalties, StopSequences, EffortMinimal]
    openai-responses gpt-6-sol: 1050000/128000 3 from 1024 forced+allowed+sees [Sampling, Penalties, StopSequences, EffortMinimal]
    openai-responses gpt-6.1-sol: 1050000/128000 3 from 1024 forced+allowed+sees [Sampling, Penalties, StopSequences, ThinkingDisabled, EffortMinimal]
    openai-responses gpt-7: ? none  []
    ");
    insta::assert_snapshot!(of("openai-chat", "gpt-4-1106-preview gpt-4o-2024-05-13 gpt-4o-mini-2024-07-18 o1 o4-mini gpt-5-nano gpt-5-chat-latest gpt-5.1-chat-latest gpt-5.4-mini gpt-6-luna"), @"
    openai-chat gpt-4-1106-preview: 128000/4096 automatic forced [ThinkingAdaptive, ThinkingBudget, ThinkingDisabled, Effort]
    openai-chat gpt-4o-2024-05-13: 128000/4096 automatic forced+sees [ThinkingAdaptive, ThinkingBudget, ThinkingDisabled, Effort]
    openai-chat gpt-4o-mini-2024-07-18: 128000/16384 automatic forced+sees [ThinkingAdaptive, ThinkingBudget, ThinkingDisabled, Effort]
    openai-chat o1: 200000/100000 automatic forced+sees [Sampling, Penalties, ThinkingDisabled, EffortMinimal, EffortAboveHigh, ParallelToolCalls]
    openai-chat o4-mini: 200000/100000 automatic forced+sees [Sampling, Penalties, StopSequences, ThinkingDisabled, EffortMinimal, EffortAboveHigh, ParallelToolCalls]
    openai-chat gpt-5-nano: 400000/128000 automatic forced+sees [Sampling, Penalties, StopSequences, ThinkingDisabled, EffortAboveHigh]
    openai-chat gpt-5-chat-latest: 128000/16384 automatic forced+sees [ThinkingAdaptive, ThinkingBudget, ThinkingDisabled, Effort]
    openai-chat gpt-5.1-chat-latest: 128000/16384 automatic forced+sees [Sampling, Penalties, StopSequences, ThinkingDisabled, Effort]
    openai-chat gpt-5.4-mini: 400000/128000 automatic forced+sees [Sampling, Penalties, StopSequences, EffortMinimal]
    openai-chat gpt-6-luna: 1050000/128000 3 from 1024 forced+sees [Sampling, Penalties, StopSequences, EffortMinimal]
    ");
}

#[test]
fn models_of_others() {
    insta::assert_snapshot!(of("gemini", "models/gemini-2.5-flash-lite gemini-2.5-pro gemini-3-pro-preview gemini-3-flash-preview gemini-3.1-pro-preview gemini-3.8-flash gemini-4-argon gemini-flash-latest gemini-2.0-flash"), @"
    gemini models/gemini-2.5-flash-lite: 1048576/65536 automatic forced+sees []
    gemini gemini-2.5-pro: 1048576/65536 automatic forced+sees [ThinkingDisabled]
    gemini gemini-3-pro-preview: 1048576/65536 automatic forced+sees [EffortAboveHigh]
    gemini gemini-3-flash-preview: 1048576/65536 automatic forced+sees [EffortAboveHigh]
    gemini gemini-3.1-pro-preview: 1048576/65536 automatic forced+sees [EffortAboveHigh]
    gemini gemini-3.8-flash: 1048576/65536 automatic forced+sees [Sampling, EffortMinimal, EffortAboveHigh]
    gemini gemini-4-argon: 1048576/1048576 automatic forced+sees [EffortMinimal, EffortAboveHigh]
    gemini gemini-flash-latest: 1048576/65536 automatic forced+sees [Sampling, EffortMinimal, EffortAboveHigh]
    gemini gemini-2.0-flash: ? none  []
    ");
    insta::assert_snapshot!(of("deepseek", "deepseek-v4-flash deepseek-v4-pro deepseek-reasoner"), @"
    deepseek deepseek-v4-flash: 1000000/393216 automatic forced+sees []
    deepseek deepseek-v4-pro: 1000000/393216 automatic  []
    deepseek deepseek-reasoner: ? automatic  []
    ");
    insta::assert_snapshot!(of("mistral", "mistral-small-latest mistral-large-latest codestral-latest ministral-8b-latest magistral-medium-latest mistral-small-2402"), @"
    mistral mistral-small-latest: 256000/256000 automatic forced+sees []
    mistral mistral-large-latest: 262144/262144 automatic forced+sees [Effort]
    mistral codestral-latest: 128000/4096 automatic forced [Effort]
    mistral ministral-8b-latest: 128000/128000 automatic forced+sees [Effort]
    mistral magistral-medium-latest: 128000/16384 automatic forced []
    mistral mistral-small-2402: ? automatic forced+sees []
    ");
    insta::assert_snapshot!(of("groq", "llama-3.3-70b-versatile llama-3.1-8b-instant openai/gpt-oss-120b qwen/qwen3-32b"), @"
    groq llama-3.3-70b-versatile: 131072/32768 none forced [ThinkingAdaptive, ThinkingBudget, ThinkingDisabled, Effort]
    groq llama-3.1-8b-instant: 131072/131072 none  [ThinkingAdaptive, ThinkingBudget, ThinkingDisabled, Effort]
    groq openai/gpt-oss-120b: 131072/65536 automatic forced [ThinkingDisabled, EffortMinimal, EffortAboveHigh]
    groq qwen/qwen3-32b: 131072/40960 none  [Effort]
    ");
    insta::assert_snapshot!(of("xai", "grok-3-mini grok-4-0709 grok-4.20-0309-reasoning grok-4.3 grok-4.7 grok-code-fast-1"), @"
    xai grok-3-mini: ? automatic forced [EffortMinimal, EffortAboveHigh]
    xai grok-4-0709: ? automatic forced+sees [Effort]
    xai grok-4.20-0309-reasoning: 1000000/30000 automatic forced+sees [EffortMinimal, EffortAboveHigh]
    xai grok-4.3: 1000000/30000 automatic forced+sees [EffortMinimal, EffortAboveHigh]
    xai grok-4.7: 500000/500000 automatic forced+sees [EffortMinimal, EffortAboveHigh]
    xai grok-code-fast-1: 256000/256000 automatic forced+sees [EffortMinimal, EffortAboveHigh]
    ");
    insta::assert_snapshot!(of("llamacpp", "Qwen3-1.7B-Q4_K_M Qwen3-VL-2B-Instruct-Q8_0"), @"
    llamacpp Qwen3-1.7B-Q4_K_M: ? none forced []
    llamacpp Qwen3-VL-2B-Instruct-Q8_0: ? none forced+sees []
    ");
    insta::assert_snapshot!(of("openrouter", "anthropic/claude-haiku-4.5 openai/gpt-4o-mini openai/gpt-5.1 google/gemini-2.5-pro x-ai/grok-4.3 meta-llama/llama-3.3-70b-instruct"), @"
    openrouter anthropic/claude-haiku-4.5: 200000/64000 4 from 4096 sees []
    openrouter openai/gpt-4o-mini: 128000/16384 automatic forced+sees []
    openrouter openai/gpt-5.1: 400000/128000 automatic sees []
    openrouter google/gemini-2.5-pro: 1048576/65536 automatic sees []
    openrouter x-ai/grok-4.3: 1000000/30000 none sees []
    openrouter meta-llama/llama-3.3-70b-instruct: ? none  []
    ");
}

/// A router passes on what the maker's model can do, at prices of its own.
#[test]
fn a_router_knows_no_more_of_a_model_than_its_maker() {
    let table: serde_json::Value =
        serde_json::from_str(include_str!("../../models/openrouter.json")).unwrap();
    let names = table["models"].as_array().unwrap().iter().map(|entry| entry["model"].as_str().unwrap());
    let makers = ["anthropic", "openai-responses", "gemini", "xai"];
    let mut seen = 0;
    for name in names.filter(|name| !name.ends_with('*')) {
        let routed = profile("openrouter", name);
        let made = makers.iter().map(|maker| profile(maker, name)).find(|made| made.known).unwrap();
        assert_eq!(
            (routed.context_window, routed.max_output),
            (made.context_window, made.max_output),
            "{name}"
        );
        assert!(routed.known && routed.vision <= made.vision, "{name}");
        assert_eq!(routed.prices, None, "{name}");
        seen += 1;
    }
    assert!(seen > 50, "{seen}");
}

#[test]
fn prices_are_those_of_the_day_they_were_looked_up() {
    let usage = Usage { input: 1_000_000, output: 1_000_000, cache_read: 1_000_000, ..Usage::default() };
    let check = |provider: &str, model: &str, expect: Option<f64>| {
        let prices = profile(provider, model).prices;
        assert_eq!(prices.map(|prices| prices.cost(&usage)), expect, "{model}");
    };
    check("anthropic", "claude-opus-5-5", Some(24.2));
    check("anthropic", "claude-haiku-5-5", Some(0.61));
    check("openai-responses", "gpt-5.4", Some(17.75));
    check("gemini", "gemini-4-argon", Some(12.1));
    check("deepseek", "deepseek-v4-flash", Some(1.506));
    check("anthropic", "claude-opus-4-8", Some(30.5));
    check("openai-chat", "gpt-5-mini", Some(2.275));
    check("groq", "llama-3.1-8b-instant", Some(0.18));
    check("openai-chat", "gpt-7", None);
    check("openrouter", "anthropic/claude-opus-5-5", None);
    let day = |provider: &str, model: &str| profile(provider, model).prices.unwrap().as_of;
    assert_eq!(day("anthropic", "claude-opus-5-5"), "2026-11-30");
    assert_eq!(day("anthropic", "claude-opus-4-1"), "2026-05-21", "the day of an older source");
}

#[test]
fn a_table_of_the_users_is_laid_over_what_is_known() {
    let mine = r#"{"as_of":"2027-01-02","models":[
        {"model":"claude-opus-5-5","max_output":32000,"refuses":["sampling"]},
        {"model":"claude-opus-5-5","max_output":16000,"prices":{"input":1,"output":2}},
        {"model":"claude-opus-5-5-20270101","vision":false},
        {"model":"gpt-4o-*","context_window":64000,"known":true},
        {"model":"llama3.1:8b","providers":["ollama"],"context_window":8192}]}"#;
    let catalog = Catalog::builtin().with_overrides(mine).unwrap();
    let opus = catalog.profile("anthropic", "claude-opus-5-5");
    let before = profile("anthropic", "claude-opus-5-5");
    assert_eq!((opus.max_output, opus.context_window), (16_000, 1_000_000), "the later entry wins");
    assert_eq!(opus.refuses, [Setting::Sampling].into());
    assert_eq!((&opus.cache, opus.binds_thinking_to_prefix), (&before.cache, true));
    let prices = opus.prices.unwrap();
    assert_eq!((prices.cache_read, prices.cache_write_1h, prices.as_of.as_str()), (1.0, 1.0, "2027-01-02"));
    let dated = catalog.profile("anthropic", "claude-opus-5-5-20270101");
    assert_eq!(
        dated,
        ModelProfile { vision: false, model: dated.model.clone(), ..before },
        "the longest name"
    );
    let family = catalog.profile("openai-chat", "gpt-4o-mini");
    assert_eq!((family.context_window, family.forced_tool_choice, family.known), (64_000, true, true));
    assert_eq!(catalog.profile("ollama", "llama3.1:8b").context_window, 8_192);
    assert!(catalog.profile("ollama", "llama3.1:8b").known);
    assert!(!catalog.profile("vllm", "llama3.1:8b").known, "another provider's model of that name");
    let again = catalog.with_overrides(r#"{"models":[{"model":"claude-opus-5-5","max_output":9}]}"#).unwrap();
    assert_eq!(again.profile("anthropic", "claude-opus-5-5").max_output, 9, "the later table wins");
}

#[test]
fn what_is_wrong_with_a_table_is_named() {
    let check = |json: &str| Catalog::builtin().with_overrides(json).unwrap_err().to_string();
    let one = |entry: &str| check(&format!(r#"{{"models":[{{"model":"a"}},{entry}]}}"#));
    insta::assert_snapshot!(check("nonsense"), @r#"the table of models cannot be read: expected ident at line 1 column 2; write {"models":[{"model":"NAME","context_window":200000}]}"#);
    insta::assert_snapshot!(check("{}"), @r#"the table of models cannot be read: missing field `models` at line 1 column 2; write {"models":[{"model":"NAME","context_window":200000}]}"#);
    insta::assert_snapshot!(check(r#"{"as_of":"today","models":[]}"#), @r#"as_of of the table of models: "today" is no day; write it as 2026-11-30"#);
    insta::assert_snapshot!(one("7"), @"entry 2 of the table of models, without a name: model: give the model's name, or the beginning of several and a star");
    insta::assert_snapshot!(one(r#"{"vision":true}"#), @"entry 2 of the table of models, without a name: model: give the model's name, or the beginning of several and a star");
    insta::assert_snapshot!(one(r#"{"model":"b","max_output":"many"}"#), @r#"entry 2 of the table of models, "b": max_output: invalid type: string "many", expected u32 at line 1 column 6"#);
    insta::assert_snapshot!(one(r#"{"model":"b","max_output":0}"#), @r#"entry 2 of the table of models, "b": max_output: 0 tokens are none; leave the field out when they are not known"#);
    insta::assert_snapshot!(one(r#"{"model":"b","window":9}"#), @r#"entry 2 of the table of models, "b": window: there is no such field; there are model, providers, source, as_of, context_window, max_output, cache, binds_thinking_to_prefix, takes_thinking_of_siblings, allowed_tools, forced_tool_choice, forced_while_thinking, mid_conversation_system, turn_scoped_system, deferred_tools, vision, refuses, prices, known"#);
    insta::assert_snapshot!(one(r#"{"model":"b","refuses":["colour"]}"#), @r#"entry 2 of the table of models, "b": refuses: unknown variant `colour`, expected one of `sampling`, `penalties`, `seed`, `stop_sequences`, `thinking_adaptive`, `thinking_budget`, `thinking_disabled`, `effort`, `effort_minimal`, `effort_x_high`, `effort_above_high`, `parallel_tool_calls`, `service_tier`, `fast` at line 1 column 9"#);
    insta::assert_snapshot!(one(r#"{"model":"b","cache":"sometimes"}"#), @r#"entry 2 of the table of models, "b": cache: unknown variant `sometimes`, expected one of `none`, `automatic`, `marked` at line 1 column 11"#);
    insta::assert_snapshot!(one(r#"{"model":"b","prices":{"input":1}}"#), @r#"entry 2 of the table of models, "b": prices: missing field `output` at line 1 column 11"#);
    insta::assert_snapshot!(one(r#"{"model":"b","prices":{"input":-1,"output":1}}"#), @r#"entry 2 of the table of models, "b": prices: a price is below 0; give US dollars for a million tokens"#);
    insta::assert_snapshot!(one(r#"{"model":"b","as_of":"30.11.2026"}"#), @r#"entry 2 of the table of models, "b": as_of: "30.11.2026" is no day; write it as 2026-11-30"#);
}
