//! Every setting is mapped, or named with what was sent instead.

use std::collections::BTreeSet;

use agent_core::{Effort, ModelProfile, RequestSettings, ServiceTier, Setting, Thinking, ToolChoice};
use agent_providers::openai_chat::Quirks;

use super::ask::{Ask, data, history, talk, user};

/// With these settings the tail of the body is this, and this was told.
#[track_caller]
fn check(ask: &Ask, expect: &str, told: &[&str]) {
    let (sent, notes) = ask.told(&talk());
    let (_, tail) = sent.rsplit_once("}]").unwrap();
    let tail = tail.strip_prefix("}]").unwrap_or(tail);
    let tail = tail.split_once(r#","stream":true"#).unwrap().0;
    let notes: Vec<&str> = notes.iter().map(|note| note.what.as_str()).collect();
    assert_eq!((tail, notes.as_slice()), (expect, told), "{}: {sent}", ask.provider);
}

fn with(provider: &'static str, settings: RequestSettings) -> Ask {
    Ask { settings, ..Ask::full(provider) }
}

#[test]
fn limits_have_the_name_the_provider_takes() {
    let limit =
        |provider, max| with(provider, RequestSettings { max_output: Some(max), ..Default::default() });
    check(&limit("openai-chat", 50), r#","max_completion_tokens":50"#, &[]);
    check(&limit("deepseek", 50), r#","max_tokens":50"#, &[]);
    check(&limit("unheard-of", 0), r#","max_tokens":1"#, &[]);
    check(&limit("groq", 99_000), r#","max_completion_tokens":64000"#, &["settings.max_output"]);
    let unknown = ModelProfile { known: false, max_output: 10, ..Ask::bare("groq").profile };
    check(
        &Ask { profile: unknown, ..limit("groq", 99_000) },
        r#","max_completion_tokens":99000"#,
        &["model"],
    );
    check(&with("openai-chat", RequestSettings::default()), "", &[]);
}

#[test]
fn sampling_is_sent_where_it_is_taken() {
    let all = || RequestSettings {
        temperature: Some(0.7),
        top_p: Some(0.5),
        top_k: Some(40),
        presence_penalty: Some(0.25),
        frequency_penalty: Some(-0.5),
        seed: Some(-7),
        stop_sequences: vec!["a".into(), "b".into(), "c".into(), "d".into(), "e".into()],
        ..Default::default()
    };
    check(
        &with("llamacpp", all()),
        r#","temperature":0.7,"top_p":0.5,"top_k":40,"presence_penalty":0.25,"frequency_penalty":-0.5,"seed":-7,"stop":["a","b","c","d","e"]"#,
        &[],
    );
    check(
        &with("openai-chat", all()),
        r#","temperature":0.7,"top_p":0.5,"presence_penalty":0.25,"frequency_penalty":-0.5,"seed":-7,"stop":["a","b","c","d"]"#,
        &["settings.top_k", "settings.stop_sequences"],
    );
    check(
        &with("mistral", RequestSettings { top_k: None, ..all() }),
        r#","temperature":0.7,"top_p":0.5,"presence_penalty":0.25,"frequency_penalty":-0.5,"random_seed":-7,"stop":["a","b","c","d","e"]"#,
        &[],
    );
    let wild = RequestSettings { temperature: Some(9.0), top_p: Some(f32::NAN), ..Default::default() };
    check(&with("groq", wild), r#","temperature":2.0"#, &["settings.temperature", "settings.top_p"]);
    let refuses: BTreeSet<Setting> =
        [Setting::Sampling, Setting::Penalties, Setting::Seed, Setting::StopSequences].into();
    let profile = ModelProfile { refuses, ..Ask::bare("llamacpp").profile };
    check(
        &Ask { profile, ..with("llamacpp", all()) },
        "",
        &[
            "settings.temperature",
            "settings.top_p",
            "settings.top_k",
            "settings.presence_penalty",
            "settings.frequency_penalty",
            "settings.seed",
            "settings.stop_sequences",
        ],
    );
}

#[test]
fn thinking_is_asked_for_in_the_words_of_the_provider() {
    let thinks = |provider, thinking| {
        with(provider, RequestSettings { thinking: Some(thinking), ..Default::default() })
    };
    let (on, off, budget) = (Thinking::Adaptive, Thinking::Disabled, Thinking::Budget(2048));
    let told = &["settings.thinking"];
    check(&thinks("deepseek", on), r#","thinking":{"type":"enabled"}"#, &[]);
    check(&thinks("deepseek", off), r#","thinking":{"type":"disabled"}"#, &[]);
    check(&thinks("deepseek", budget), r#","thinking":{"type":"enabled"}"#, told);
    check(&thinks("openrouter", on), r#","reasoning":{"enabled":true}"#, &[]);
    check(&thinks("openrouter", off), r#","reasoning":{"enabled":false}"#, &[]);
    check(&thinks("openrouter", budget), r#","reasoning":{"max_tokens":2048}"#, &[]);
    check(&thinks("vllm", off), r#","chat_template_kwargs":{"enable_thinking":false}"#, &[]);
    check(&thinks("vllm", budget), r#","chat_template_kwargs":{"enable_thinking":true}"#, told);
    check(&thinks("openai-chat", off), r#","reasoning_effort":"none""#, &[]);
    check(&thinks("openai-chat", on), "", told);
    check(&thinks("openai-chat", budget), "", told);
    check(&thinks("xai-chat", off), "", told);
    let profile =
        ModelProfile { refuses: [Setting::ThinkingDisabled].into(), ..Ask::bare("deepseek").profile };
    check(&Ask { profile, ..thinks("deepseek", off) }, "", told);
}

#[test]
fn efforts_are_the_nearest_the_provider_has_a_word_for() {
    let effort =
        |provider, effort| with(provider, RequestSettings { effort: Some(effort), ..Default::default() });
    let told = &["settings.effort"];
    check(&effort("openai-chat", Effort::Minimal), r#","reasoning_effort":"minimal""#, &[]);
    check(&effort("openai-chat", Effort::Max), r#","reasoning_effort":"xhigh""#, told);
    check(&effort("groq", Effort::Minimal), r#","reasoning_effort":"low""#, told);
    check(&effort("xai-chat", Effort::Medium), r#","reasoning_effort":"low""#, told);
    check(&effort("deepseek", Effort::Max), r#","reasoning_effort":"max""#, &[]);
    check(&effort("openrouter", Effort::High), r#","reasoning":{"effort":"high"}"#, &[]);
    check(&effort("llamacpp", Effort::High), r#","chat_template_kwargs":{"reasoning_effort":"high"}"#, &[]);
    check(&effort("vllm", Effort::Max), r#","reasoning_effort":"high""#, told);
    check(&effort("unheard-of", Effort::High), "", told);
    let refused = |setting: Setting, provider: &'static str, wanted: Effort, sent: &str| {
        let profile = ModelProfile { refuses: [setting].into(), ..Ask::bare(provider).profile };
        let sent = format!(r#","reasoning_effort":"{sent}""#);
        check(&Ask { profile, ..effort(provider, wanted) }, &sent, told);
    };
    refused(Setting::EffortAboveHigh, "openai-chat", Effort::XHigh, "high");
    refused(Setting::EffortXHigh, "openai-chat", Effort::XHigh, "high");
    refused(Setting::EffortMinimal, "openai-chat", Effort::Minimal, "low");
    refused(Setting::EffortAboveHigh, "deepseek", Effort::Max, "high");
    let both = |thinking| RequestSettings {
        effort: Some(Effort::High),
        thinking: Some(thinking),
        ..Default::default()
    };
    check(&with("openai-chat", both(Thinking::Disabled)), r#","reasoning_effort":"none""#, told);
    check(&with("openrouter", both(Thinking::Budget(9))), r#","reasoning":{"max_tokens":9}"#, told);
    check(
        &with("openrouter", both(Thinking::Adaptive)),
        r#","reasoning":{"enabled":true,"effort":"high"}"#,
        &[],
    );
}

#[test]
fn choices_have_the_words_of_the_provider() {
    let chooses = |provider, choice: ToolChoice| Ask { choice, ..Ask::full(provider) };
    let tool = |name: &str| ToolChoice::Tool(name.into());
    let told = &["tool_choice"];
    check(&chooses("openai-chat", ToolChoice::Auto), "", &[]);
    check(&chooses("openai-chat", ToolChoice::Required), r#","tool_choice":"required""#, &[]);
    check(&chooses("mistral", ToolChoice::Required), r#","tool_choice":"any""#, &[]);
    check(&chooses("mistral", ToolChoice::None), r#","tool_choice":"none""#, &[]);
    check(
        &chooses("groq", tool("notes.add")),
        r#","tool_choice":{"type":"function","function":{"name":"notes_add_e1253ccd"}}"#,
        &[],
    );
    check(&chooses("groq", tool("missing")), "", told);
    check(&chooses("llamacpp", tool("look")), "", told);
    check(&chooses("ollama-chat", ToolChoice::Required), "", told);
    let one = Ask { tools: Ask::full("llamacpp").tools[..1].to_vec(), ..chooses("llamacpp", tool("look")) };
    check(&one, r#","tool_choice":"required""#, &[]);
    let none = Ask { tools: vec![], ..chooses("groq", ToolChoice::Required) };
    check(&none, "", told);
    check(&Ask { tools: vec![], ..chooses("groq", ToolChoice::None) }, "", &[]);
    let free = ModelProfile { forced_tool_choice: false, ..Ask::bare("groq").profile };
    check(&Ask { profile: free, ..chooses("groq", ToolChoice::Required) }, "", told);
}

#[test]
fn tiers_speed_and_parallel_calls() {
    let tier =
        |provider, tier| with(provider, RequestSettings { service_tier: Some(tier), ..Default::default() });
    let told = &["settings.service_tier"];
    check(&tier("openai-chat", ServiceTier::Standard), r#","service_tier":"default""#, &[]);
    check(&tier("groq", ServiceTier::Standard), r#","service_tier":"on_demand""#, &[]);
    check(&tier("groq", ServiceTier::Priority), r#","service_tier":"performance""#, &[]);
    check(&tier("openai-chat", ServiceTier::Other("scale".into())), r#","service_tier":"scale""#, &[]);
    check(&tier("deepseek", ServiceTier::Flex), "", told);
    check(&with("openai-chat", RequestSettings { fast: true, ..Default::default() }), "", &["settings.fast"]);
    let parallel =
        |provider| with(provider, RequestSettings { parallel_tool_calls: Some(false), ..Default::default() });
    check(&parallel("openai-chat"), r#","parallel_tool_calls":false"#, &[]);
    check(&parallel("ollama-chat"), "", &["settings.parallel_tool_calls"]);
    check(&Ask { tools: vec![], ..parallel("openai-chat") }, "", &["settings.parallel_tool_calls"]);
}

#[test]
fn further_fields_are_laid_over_ours() {
    let extra = vec![
        data("openrouter", r#"{"provider":{"order":["a"]},"reasoning":{"exclude":true},"model":"x"}"#),
        data("else", "{}"),
    ];
    let settings = RequestSettings { extra, effort: Some(Effort::Low), ..Default::default() };
    check(
        &with("openrouter", settings),
        r#","reasoning":{"effort":"low","exclude":true},"provider":{"order":["a"]}"#,
        &["settings.extra", "settings.extra"],
    );
}

/// What a step adds to the options of its call is merged into them, key by key, whatever format they are written in.
#[test]
fn options_of_a_step_are_laid_over_those_of_the_call() {
    let options = |json| RequestSettings { extra: vec![data("openrouter", json)], ..Default::default() };
    let call = options(r#"{"provider":{"order":["a"],"sort":"price"},"user":"u"}"#);
    let step = options(r#"{"provider":{"order":["b"]},"route":"fallback"}"#);
    check(
        &with("openrouter", call.overlaid(&step)),
        r#","provider":{"order":["b"],"sort":"price"},"user":"u","route":"fallback""#,
        &[],
    );
}

#[test]
fn a_user_may_correct_every_quirk() {
    let quirks =
        r#"{"limit":"max_completion_tokens","system":"developer","thinking":"thinking","stream_usage":true}"#;
    let quirks: Quirks = serde_json::from_str(quirks).unwrap();
    let settings =
        RequestSettings { max_output: Some(9), thinking: Some(Thinking::Disabled), ..Default::default() };
    let ask = Ask { quirks, settings, ..Ask::full("unheard-of") };
    let sent = ask.text(&history(vec![user("go")]));
    for expect in [
        r#"{"role":"developer","#,
        r#","max_completion_tokens":9,"thinking":{"type":"disabled"},"stream":true,"stream_options":{"include_usage":true}}"#,
    ] {
        assert!(sent.contains(expect), "{sent}");
    }
}
