//! Which tool must be called, in every format: what a choice names is among the tools that are sent.

use agent_core::{
    Entry, History, ModelProfile, ModelRequest, ProviderData, RawJson, RequestSettings, ToolCard, ToolChoice,
    UserMessage,
};
use agent_providers::{Dialect, ToolNames, WireFormat, encoder};

use WireFormat::{Anthropic, Gemini, Ollama, OpenAiChat, OpenAiResponses};

fn card(name: &str, schema: &str) -> ToolCard {
    ToolCard::new(name, "", &RawJson::parse(schema).unwrap()).unwrap()
}

/// Two tools that every provider takes, one that none does, and one that somebody else runs.
fn tools() -> Vec<ToolCard> {
    let json = RawJson::parse(r#"{"type":"search"}"#).unwrap();
    vec![
        card("look", r#"{"type":"object"}"#),
        card("pour", r#"{"type":"object"}"#),
        card("broken", r##"{"type":"object","properties":{"x":{"$ref":"#/$defs/Nope"}}}"##),
        ToolCard::hosted("theirs", ProviderData { provider: "somebody else".into(), json }).unwrap(),
    ]
}

/// A model that can be forced to call a tool, and held to some of them.
fn able(dialect: &Dialect) -> ModelProfile {
    ModelProfile {
        known: true,
        forced_tool_choice: true,
        allowed_tools: dialect.format != Anthropic,
        ..ModelProfile::conservative(dialect.provider.clone(), "oolong")
    }
}

/// The body, and what was told of the choice.
fn sent(
    dialect: &Dialect,
    profile: ModelProfile,
    tools: &[ToolCard],
    choice: &ToolChoice,
) -> (String, String) {
    let mut history = History::new();
    history.push(Entry::User(UserMessage::text("go").unwrap())).unwrap();
    let encoded = encoder(dialect, profile, ToolNames::default()).encode(&ModelRequest {
        system: &[],
        tools,
        draft: &history.draft(),
        settings: &RequestSettings { parallel_tool_calls: Some(false), ..RequestSettings::default() },
        tool_choice: choice,
        marks: &[],
        stream: false,
    });
    let told = encoded.diagnostics.into_iter().filter(|note| note.what == "tool_choice");
    let told: Vec<String> = told.map(|note| note.why).collect();
    (String::from_utf8(encoded.request.body.to_vec()).unwrap(), told.join(" | "))
}

/// What each format writes, in the order of [`FORMATS`]; nothing where the model decides.
type Written = [&'static str; 4];

const FORMATS: [WireFormat; 4] = [Anthropic, OpenAiChat, OpenAiResponses, Gemini];

/// With this choice each format writes this, and each tells of it in these words.
#[track_caller]
fn check(choice: &ToolChoice, change: fn(&mut ModelProfile), expect: Written, told: &str) {
    for (format, expect) in FORMATS.into_iter().zip(expect) {
        let dialect = Dialect::from(format);
        let mut profile = able(&dialect);
        change(&mut profile);
        let (body, notes) = sent(&dialect, profile, &tools(), choice);
        let field = if format == Gemini { "\"functionCallingConfig\":" } else { "\"tool_choice\":" };
        let written = body.split_once(field).map(|(_, rest)| rest).unwrap_or_default();
        assert!(written.starts_with(expect) && written.is_empty() == expect.is_empty(), "{format:?}: {body}");
        assert!(!written.contains("broken") && !written.contains("theirs"), "{format:?}: {body}");
        assert_eq!(notes, told, "{format:?}");
    }
}

fn tool(name: &str) -> ToolChoice {
    ToolChoice::Tool(name.into())
}

fn allowed(names: &[&str], required: bool) -> ToolChoice {
    ToolChoice::Allowed { tools: names.iter().map(|name| (*name).to_owned()).collect(), required }
}

/// One format says here too that tools are called one at a time.
const UNDECIDED: Written = [r#"{"type":"auto","disable"#, "", "", ""];
const NONE: Written = [r#"{"type":"none"}"#, r#""none""#, r#""none""#, r#"{"mode":"NONE"}"#];
const REQUIRED: Written =
    [r#"{"type":"any","disable"#, r#""required""#, r#""required""#, r#"{"mode":"ANY"}"#];

#[test]
fn a_choice_names_only_what_is_sent() {
    const MISSING: &str = "the tool is not among the tools that are sent; the model decides";
    check(&ToolChoice::Auto, |_| {}, UNDECIDED, "");
    check(&ToolChoice::None, |_| {}, NONE, "");
    check(&ToolChoice::Required, |_| {}, REQUIRED, "");
    let named = [
        r#"{"type":"tool","name":"look","disable"#,
        r#"{"type":"function","function":{"name":"look"}}"#,
        r#"{"type":"function","name":"look"}"#,
        r#"{"mode":"ANY","allowedFunctionNames":["look"]}"#,
    ];
    check(&tool("look"), |_| {}, named, "");
    for name in ["broken", "theirs", "never heard of"] {
        check(&tool(name), |_| {}, UNDECIDED, MISSING);
    }
    let unforced = "this model cannot be forced to call a tool; the model decides";
    check(&tool("look"), |profile| profile.forced_tool_choice = false, UNDECIDED, unforced);
    check(&ToolChoice::Required, |profile| profile.forced_tool_choice = false, UNDECIDED, unforced);
}

/// Formats with words for it, of a model that knows them; the first one has none.
#[track_caller]
fn check_allowed(choice: &ToolChoice, expect: [&'static str; 3], told: &str) {
    for (format, expect) in FORMATS.into_iter().zip(["", expect[0], expect[1], expect[2]]).skip(1) {
        let dialect = Dialect::from(format);
        let (body, notes) = sent(&dialect, able(&dialect), &tools(), choice);
        assert!(body.contains(expect), "{format:?}: {body}");
        assert_eq!(notes, told, "{format:?}");
    }
}

#[test]
fn a_choice_of_some_tools_holds_those_that_are_sent() {
    let some = [
        r#""tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"look"}}]}}"#,
        r#""tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"look"}]}"#,
        r#""functionCallingConfig":{"mode":"VALIDATED","allowedFunctionNames":["look"]}"#,
    ];
    check_allowed(&allowed(&["look"], false), some, "");
    let lost = "some of the allowed tools are not among the tools that are sent; left out";
    check_allowed(&allowed(&["broken", "look", "theirs"], false), some, lost);
    let one = [
        r#""allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"pour"}},{"type":"function","function":{"name":"look"}}]}"#,
        r#"{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"pour"},{"type":"function","name":"look"}]}"#,
        r#""functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["pour","look"]}"#,
    ];
    check_allowed(&allowed(&["pour", "look"], true), one, "");
}

#[test]
fn what_cannot_be_held_to_some_tools_is_told() {
    let open: fn(&mut ModelProfile) = |profile| profile.allowed_tools = false;
    let all = "this model cannot be held to some of its tools; all of them are allowed";
    check(&allowed(&["look"], false), open, UNDECIDED, all);
    check(&allowed(&["look"], true), open, REQUIRED, all);
    let free: fn(&mut ModelProfile) =
        |profile| (profile.allowed_tools, profile.forced_tool_choice) = (false, false);
    let both = format!("this model cannot be forced to call a tool; it may answer without | {all}");
    check(&allowed(&["look"], true), free, UNDECIDED, &both);
    check(&allowed(&[], false), open, NONE, "");
    let lost = "none of the allowed tools is among the tools that are sent; no tool may be called";
    check(&allowed(&["broken", "theirs"], true), open, NONE, lost);
}

#[test]
fn without_a_tool_that_is_sent_there_is_no_choice() {
    let broken = [tools().remove(2)];
    for format in FORMATS {
        let dialect = Dialect::from(format);
        let told = |choice: &ToolChoice| {
            let (body, notes) = sent(&dialect, able(&dialect), &broken, choice);
            let fields = ["tool_choice", "toolConfig", "parallel_tool_calls", "\"tools\""];
            assert!(fields.iter().all(|field| !body.contains(field)), "{format:?}: {body}");
            notes
        };
        assert_eq!(told(&ToolChoice::None), "");
        assert_eq!(told(&allowed(&[], false)), "");
        assert_eq!(told(&ToolChoice::Required), "there are no tools; the model decides");
        assert_eq!(told(&tool("broken")), "the tool is not among the tools that are sent; the model decides");
    }
}

#[test]
fn a_format_without_choices_says_so() {
    let dialect = Dialect::from(Ollama);
    for choice in [ToolChoice::None, ToolChoice::Required, tool("look"), allowed(&["look"], false)] {
        let (body, notes) = sent(&dialect, able(&dialect), &tools(), &choice);
        assert!(!body.contains("tool_choice"), "{body}");
        assert_eq!(notes, "this provider takes no choice of tools; the model decides", "{choice:?}");
    }
}
