//! Profiles by name, tables of the user's, and what is wrong with bad ones.

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
        entries += table.len();
    }
    assert_eq!(BUILTIN.len(), entries);
}

/// Window, most output, shortest kept prefix and refusals of a Claude.
#[track_caller]
fn check_claude(model: &str, window: (u32, u32), min_tokens: u32, refuses: &[Setting]) {
    let profile = profile("anthropic", model);
    let cache = CacheProfile::Marked { max_marks: 4, min_tokens, lookback: 20 };
    assert_eq!((profile.context_window, profile.max_output), window, "{model}");
    assert_eq!((&profile.cache, profile.vision, profile.known), (&cache, true, true), "{model}");
    assert_eq!(profile.refuses.iter().copied().collect::<Vec<_>>(), refuses, "{model}");
    assert_eq!(profile.model, model, "the name stays as it was given");
}

#[test]
fn claude_models() {
    use Setting::{Sampling, ThinkingAdaptive, ThinkingBudget, ThinkingDisabled};
    let (large, small) = ((1_000_000, 128_000), (200_000, 64_000));
    let (new, always) = ([Sampling, ThinkingBudget], [Sampling, ThinkingBudget, ThinkingDisabled]);
    check_claude("claude-fable-5-1", large, 512, &always);
    check_claude("claude-fable-5", large, 512, &always);
    check_claude("claude-mythos-5-1", large, 512, &always);
    check_claude("claude-mythos-5", large, 512, &always);
    check_claude("claude-opus-5-5", large, 512, &always);
    check_claude("claude-opus-5-20260401", large, 512, &new);
    check_claude("claude-opus-4-8", small, 1_024, &new);
    check_claude("claude-opus-4-7", small, 2_048, &new);
    check_claude("claude-opus-4-6", small, 4_096, &[]);
    check_claude("claude-opus-4-5", small, 4_096, &[ThinkingAdaptive]);
    check_claude("claude-sonnet-5-5", large, 512, &new);
    check_claude("claude-sonnet-5", small, 1_024, &new);
    check_claude("claude-sonnet-4-6", small, 1_024, &[]);
    check_claude("anthropic/claude-sonnet-4-5@20250929", small, 1_024, &[ThinkingAdaptive]);
    check_claude("claude-haiku-5-5", large, 512, &[ThinkingBudget]);
    check_claude("us.anthropic.claude-haiku-4-5-20251001-v1:0", small, 4_096, &[ThinkingAdaptive]);
}

#[test]
fn what_claude_models_can_do() {
    /// Binding of thinking, forced tools, system messages inside the conversation.
    #[track_caller]
    fn check(model: &str, expect: (bool, bool, bool)) {
        let it = profile("anthropic", model);
        let facts = (it.binds_thinking_to_prefix, it.forced_tool_choice, it.mid_conversation_system);
        assert_eq!(facts, expect, "{model}");
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
        let little = ModelProfile::conservative(provider, model);
        assert_eq!(
            profile(provider, model),
            ModelProfile { context_window, max_output, cache, vision, ..little }
        );
    }
    let marked = || CacheProfile::Marked { max_marks: 4, min_tokens: 4_096, lookback: 20 };
    check("anthropic", "claude-next", (200_000, 64_000), marked(), true);
    check("anthropic", "eu.anthropic.claude-next-1-v1:0", (200_000, 64_000), marked(), true);
    check("anthropic", "claude-opus-50", (200_000, 64_000), marked(), true);
    check("anthropic", "claude-fable-5-2", (200_000, 64_000), marked(), true);
    check("anthropic", "llama3.1:8b", (32_768, 4_096), marked(), false);
    check("anthropic", "my-claude", (32_768, 4_096), marked(), false);
    check("anthropic", "gpt-5", (32_768, 4_096), marked(), false);
    check("anthropic", "", (32_768, 4_096), marked(), false);
    check("openai-chat", "claude-opus-5", (32_768, 4_096), CacheProfile::None, false);
    check("ollama", "llama3.1:8b", (32_768, 4_096), CacheProfile::None, false);
    check("nobody", "nothing", (32_768, 4_096), CacheProfile::None, false);
    let least = BUILTIN.iter().filter(|entry| entry.is_for("anthropic")).filter_map(|entry| {
        let mut profile = ModelProfile::conservative("", "");
        entry.lay_over(&mut profile);
        profile.known.then_some((profile.context_window, profile.max_output))
    });
    assert_eq!(least.min(), Some((200_000, 64_000)), "an unknown Claude is taken for the least of the known");
}

#[test]
fn models_of_others() {
    #[track_caller]
    fn check(provider: &str, model: &str, expect: &str) {
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
        assert_eq!(format!("{window} {cache} {} {refuses:?}", can.join("+")), expect, "{provider} {model}");
    }
    check(
        "openai-responses",
        "gpt-6.1-sol",
        "1050000/128000 4 from 1024 forced+allowed+sees [Sampling, Penalties]",
    );
    check("openai-chat", "gpt-6-luna", "1050000/128000 4 from 1024 forced+sees [Sampling, Penalties]");
    check(
        "openai-responses",
        "gpt-5.6",
        "1050000/128000 4 from 1024 forced+allowed+sees [Sampling, Penalties]",
    );
    check(
        "openai-responses",
        "gpt-5.4-2026-03-05",
        "1050000/128000 automatic forced+allowed+sees [Sampling, Penalties]",
    );
    check("openai-chat", "gpt-5-nano", "? automatic forced+sees [Sampling, Penalties]");
    check("openai-chat", "gpt-5-chat-latest", "? automatic forced+sees []");
    check("openai-chat", "gpt-4o-mini-2024-07-18", "? automatic forced+sees []");
    check("openai-responses", "gpt-4.1-nano", "? automatic forced+allowed+sees []");
    check("openai-chat", "gpt-4-1106-preview", "? automatic  []");
    check("openai-chat", "o4-mini", "? automatic  [Sampling, Penalties]");
    check("gemini", "models/gemini-2.5-flash-lite", "? automatic forced+sees []");
    check("gemini", "gemini-3-flash-preview", "? automatic  []");
    check("gemini", "gemini-3.8-flash", "1048576/65000 automatic  []");
    check("deepseek", "deepseek-v4-flash", "1000000/393000 automatic forced []");
    check("deepseek", "deepseek-reasoner", "? automatic  []");
    check("mistral", "mistral-small-latest", "? automatic forced+sees []");
    check("mistral", "mistral-large-latest", "? automatic  []");
    check("groq", "llama-3.3-70b-versatile", "? none forced []");
    check("xai", "grok-4-0709", "? automatic forced []");
    check("xai", "grok-4.3", "? automatic  []");
    check("llamacpp", "Qwen3-1.7B-Q4_K_M", "? none forced []");
    check("llamacpp", "Qwen3-VL-2B-Instruct-Q8_0", "? none forced+sees []");
    check("ollama", "qwen3:4b", "? none  []");
    check("openrouter", "anthropic/claude-haiku-4.5", "200000/64000 4 from 4096 sees []");
    check("openrouter", "openai/gpt-4o-mini", "? automatic forced []");
}

#[test]
fn prices_are_those_of_the_day_they_were_looked_up() {
    let usage = Usage { input: 1_000_000, output: 1_000_000, cache_read: 1_000_000, ..Usage::default() };
    let check = |provider: &str, model: &str, expect: Option<f64>| {
        let prices = profile(provider, model).prices;
        assert!(prices.as_ref().is_none_or(|prices| prices.as_of == "2026-11-30"), "{prices:?}");
        assert_eq!(prices.map(|prices| prices.cost(&usage)), expect, "{model}");
    };
    check("anthropic", "claude-opus-5-5", Some(24.2));
    check("anthropic", "claude-haiku-5-5", Some(0.61));
    check("openai-responses", "gpt-5.4", Some(17.75));
    check("gemini", "gemini-4-argon", Some(12.1));
    check("deepseek", "deepseek-v4-flash", Some(1.506));
    check("anthropic", "claude-opus-4-8", None);
    check("openrouter", "anthropic/claude-opus-5-5", None);
}

#[test]
fn a_table_of_the_users_is_laid_over_what_is_known() {
    let mine = r#"{"as_of":"2027-01-02","models":[
        {"model":"claude-opus-5-5","max_output":32000,"refuses":["sampling"]},
        {"model":"claude-opus-5-5","max_output":16000,"prices":{"input":1,"output":2}},
        {"model":"claude-opus-5-5-20270101","vision":false},
        {"model":"gpt-4o-*","context_window":128000,"known":true},
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
    assert_eq!((family.context_window, family.forced_tool_choice, family.known), (128_000, true, true));
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
    insta::assert_snapshot!(one(r#"{"model":"b","window":9}"#), @r#"entry 2 of the table of models, "b": window: there is no such field; there are model, providers, source, as_of, context_window, max_output, cache, binds_thinking_to_prefix, allowed_tools, forced_tool_choice, mid_conversation_system, vision, refuses, prices, known"#);
    insta::assert_snapshot!(one(r#"{"model":"b","refuses":["colour"]}"#), @r#"entry 2 of the table of models, "b": refuses: unknown variant `colour`, expected one of `sampling`, `penalties`, `seed`, `stop_sequences`, `thinking_adaptive`, `thinking_budget`, `thinking_disabled`, `effort`, `effort_above_high`, `parallel_tool_calls`, `service_tier`, `fast` at line 1 column 9"#);
    insta::assert_snapshot!(one(r#"{"model":"b","cache":"sometimes"}"#), @r#"entry 2 of the table of models, "b": cache: unknown variant `sometimes`, expected one of `none`, `automatic`, `marked` at line 1 column 11"#);
    insta::assert_snapshot!(one(r#"{"model":"b","prices":{"input":1}}"#), @r#"entry 2 of the table of models, "b": prices: missing field `output` at line 1 column 11"#);
    insta::assert_snapshot!(one(r#"{"model":"b","prices":{"input":-1,"output":1}}"#), @r#"entry 2 of the table of models, "b": prices: a price is below 0; give US dollars for a million tokens"#);
    insta::assert_snapshot!(one(r#"{"model":"b","as_of":"30.11.2026"}"#), @r#"entry 2 of the table of models, "b": as_of: "30.11.2026" is no day; write it as 2026-11-30"#);
}
