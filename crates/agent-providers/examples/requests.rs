//! Prints bodies of requests in every format, one JSON object a line: `{"format","name","body"}`.
//!
//! The conversations hold what formats write differently: parallel calls, results of every kind, thinking with its
//! seal, images and documents, odd names, all settings. `cargo xtask oracle` shows them to the official clients.

use std::error::Error;
use std::io::Write;

use agent_core::{
    AssistantPart, AssistantText, CallId, ContentPart, Effort, Entry, FilePart, FileSource, History,
    ModelProfile, ModelRequest, Note, NoteKind, ProviderData, RawJson, Reasoning, RequestSettings, Response,
    Seal, ServiceTier, StepRecord, SystemBlock, Text, Thinking, ToolCall, ToolCard, ToolChoice, ToolInput,
    ToolOutput, ToolResult, UserMessage, UserPart,
};
use agent_providers::{Dialect, ToolNames, WireFormat, encoder};

type Done<T> = Result<T, Box<dyn Error>>;

/// The formats there are to be, whether or not this build has them.
const FORMATS: [&str; 5] = ["anthropic", "openai-chat", "openai-responses", "gemini", "ollama"];

fn main() -> Done<()> {
    let mut out = std::io::stdout().lock();
    for name in FORMATS {
        match WireFormat::parse(name) {
            Some(format) => bodies(&format.into(), &mut out)?,
            None => writeln!(out, r#"{{"format":"{name}","absent":true}}"#)?,
        }
    }
    Ok(())
}

fn bodies(dialect: &Dialect, out: &mut dyn Write) -> Done<()> {
    for (name, history) in histories(&dialect.provider)? {
        for stream in [false, true] {
            let plain = (RequestSettings::default(), ToolChoice::Auto);
            print(dialect, (name, &history), plain, stream, out)?;
        }
    }
    let history = talk(vec![user("Go on.")?])?;
    for (name, settings) in settings() {
        print(dialect, (name, &history), (settings, ToolChoice::Auto), true, out)?;
    }
    let named = ToolChoice::Tool("harbour.tide".into());
    let allowed = |required| ToolChoice::Allowed { tools: vec!["harbour.tide".into()], required };
    for (name, choice) in [
        ("required", ToolChoice::Required),
        ("none", ToolChoice::None),
        ("named", named),
        ("allowed", allowed(false)),
        ("one of the allowed", allowed(true)),
    ] {
        print(dialect, (name, &history), (RequestSettings::default(), choice), false, out)?;
    }
    Ok(())
}

/// One line.
fn print(
    dialect: &Dialect,
    (name, history): (&str, &History),
    (settings, tool_choice): (RequestSettings, ToolChoice),
    stream: bool,
    out: &mut dyn Write,
) -> Done<()> {
    let profile = ModelProfile {
        context_window: 200_000,
        max_output: 8_000,
        allowed_tools: true,
        forced_tool_choice: true,
        vision: true,
        known: true,
        ..ModelProfile::conservative(dialect.provider.clone(), "some-model")
    };
    let schema = RawJson::parse(
        r#"{"type":"object","properties":{"quay":{"type":"string"},"hours":{"type":"array","items":{"type":"integer"}}},"required":["quay"]}"#,
    )?;
    let mut draft = history.draft();
    draft.remind(note("It is Monday.")?);
    let body = encoder(dialect, profile, ToolNames::default()).encode(&ModelRequest {
        system: &[block("You watch a harbour.")?, block("Be brief.")?],
        tools: &[
            ToolCard::new("harbour.tide", "Tells the tide.", &schema)?,
            ToolCard::new("boat_log", "", &RawJson::parse(r#"{"type":"object"}"#)?)?,
        ],
        draft: &draft,
        settings: &settings,
        tool_choice: &tool_choice,
        marks: &[],
        stream,
    });
    let body = String::from_utf8(body.request.body.to_vec())?;
    let format = dialect.format.as_str();
    writeln!(out, r#"{{"format":"{format}","name":"{name}, stream {stream}","body":{body}}}"#)?;
    Ok(())
}

fn histories(provider: &str) -> Done<Vec<(&'static str, History)>> {
    let image = || {
        FilePart {
        media_type: "image/png".into(),
        source: FileSource::Base64("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==".into()),
        name: Some("quay.png".into()),
    }
    };
    let document = FilePart {
        media_type: "application/pdf".into(),
        source: FileSource::Base64("JVBERi0xLjQKJSVFT0YK".into()),
        name: Some("tides.pdf".into()),
    };
    let address = FilePart {
        media_type: "image/jpeg".into(),
        source: FileSource::Url("https://example.com/boat.jpg".into()),
        name: None,
    };
    let seen = UserMessage::new(vec![
        UserPart::Text(text("What is this?")?),
        UserPart::File(image()),
        UserPart::File(document),
        UserPart::File(address),
    ])?;
    let shown =
        ToolOutput::Content(vec![ContentPart::Text(text("The quay now:")?), ContentPart::File(image())]);
    let calls = || {
        Ok::<_, Box<dyn Error>>(vec![
            words("Let me look.")?,
            call("a1", "harbour.tide", r#"{"quay":"north"}"#)?,
            call("a2", "boat_log", "{}")?,
        ])
    };
    let results = vec![
        ToolOutput::Json(RawJson::parse(r#"{"high":6,"low":12.0}"#)?),
        ToolOutput::error("The log is locked."),
    ];
    let odd = step(
        vec![call("id with spaces", "gone.tool", r#"{"cut"#)?, call("a4", "boat_log", "")?],
        vec![ToolOutput::Denied(text("Not on Sundays.")?), ToolOutput::text("")],
    )?;
    Ok(vec![
        (
            "words",
            talk(vec![user("Hello.")?, step(vec![words("Hello, captain.")?], vec![])?, user("And?")?])?,
        ),
        ("calls", talk(vec![user("How is it?")?, step(calls()?, results)?])?),
        (
            "calls and words",
            talk(vec![
                user("How?")?,
                odd,
                Entry::Note(note("The shift ends.")?),
                user("Go on.")?,
                user("Please.")?,
            ])?,
        ),
        ("thinking", talk(vec![user("Why?")?, thinking(provider)?, user("And?")?])?),
        ("files", talk(vec![Entry::User(seen)])?),
        (
            "files in results",
            talk(vec![user("Look.")?, step(vec![call("a5", "boat_log", "{}")?], vec![shown])?])?,
        ),
    ])
}

/// A step that was thought over, with the seal that this provider gives.
fn thinking(provider: &str) -> Done<Entry> {
    let mine = provider.to_owned();
    let seal = match provider {
        "openai-responses" => Seal::Item {
            provider: mine,
            raw: RawJson::parse(
                r#"{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"The moon pulls."}],"encrypted_content":"c2VhbGVk"}"#,
            )?,
        },
        _ => Seal::Signature { provider: mine, value: "c2lnbmVk".into() },
    };
    let thought = AssistantPart::Reasoning(Reasoning { text: "The moon pulls.".into(), seal: Some(seal) });
    // Words as the Responses format gives them: with the id that goes back beside the thinking.
    let json = RawJson::parse(r#"{"id":"msg_1","status":"completed"}"#)?;
    let data = (provider == "openai-responses").then(|| ProviderData { provider: provider.to_owned(), json });
    let answer = AssistantPart::Text(AssistantText { text: text("The moon.")?, data });
    let said = vec![thought, answer, call("a6", "boat_log", r#"{"z":1.0,"a":12345678901234567890}"#)?];
    step(said, vec![ToolOutput::text("two boats")])
}

fn settings() -> Vec<(&'static str, RequestSettings)> {
    let sampling = RequestSettings {
        max_output: Some(400),
        temperature: Some(0.5),
        top_p: Some(0.9),
        top_k: Some(40),
        presence_penalty: Some(0.1),
        frequency_penalty: Some(0.2),
        seed: Some(7),
        stop_sequences: vec!["END".into()],
        ..RequestSettings::default()
    };
    let thinking = |thinking| RequestSettings { thinking: Some(thinking), ..RequestSettings::default() };
    let effort = RequestSettings {
        effort: Some(Effort::Low),
        parallel_tool_calls: Some(false),
        service_tier: Some(ServiceTier::Auto),
        ..RequestSettings::default()
    };
    vec![
        ("sampling", sampling),
        ("adaptive thinking", thinking(Thinking::Adaptive)),
        ("a budget of thinking", thinking(Thinking::Budget(2_000))),
        ("no thinking", thinking(Thinking::Disabled)),
        ("effort", effort),
    ]
}

fn talk(entries: Vec<Entry>) -> Done<History> {
    let mut history = History::new();
    for entry in entries {
        history.push(entry)?;
    }
    Ok(history)
}

fn step(parts: Vec<AssistantPart>, outputs: Vec<ToolOutput>) -> Done<Entry> {
    let said = Response::of(parts);
    let ids: Vec<CallId> = said.calls().map(|call| call.id.clone()).collect();
    let results = ids.into_iter().zip(outputs).map(|(call, output)| ToolResult { call, output }).collect();
    Ok(Entry::Step(StepRecord::new(said, results)?))
}

fn call(id: &str, name: &str, input: &str) -> Done<AssistantPart> {
    let (id, name) = (CallId::new(id)?, name.to_owned());
    Ok(AssistantPart::ToolCall(ToolCall { id, name, input: ToolInput::finished(input), data: None }))
}

fn user(words: &str) -> Done<Entry> {
    Ok(Entry::User(UserMessage::text(words)?))
}

fn words(text: &str) -> Done<AssistantPart> {
    Ok(AssistantPart::text(text).ok_or("words are blank")?)
}

fn note(words: &str) -> Done<Note> {
    Ok(Note { kind: NoteKind::Reminder, text: text(words)? })
}

fn block(words: &str) -> Done<SystemBlock> {
    Ok(SystemBlock::new(words).ok_or("a block is blank")?)
}

fn text(words: &str) -> Done<Text> {
    Ok(Text::new(words).ok_or("a text is blank")?)
}
