//! Images and documents: where providers take them, and in which words where they do not.

use agent_core::{
    ContentPart, Entry, FilePart, FileSource, ModelProfile, Text, ToolOutput, UserMessage, UserPart,
};

use super::ask::{Ask, call, history, lines, messages, step, user};

fn image(source: FileSource) -> FilePart {
    FilePart { media_type: "image/png".into(), source, name: None }
}

#[test]
fn images_of_results_follow_behind_all_results() {
    let shot = || {
        ToolOutput::Content(vec![
            ContentPart::Text(Text::new("screenshot").unwrap()),
            ContentPart::File(image(FileSource::Base64("AA==".into()))),
        ])
    };
    let log = history(vec![
        user("go"),
        step(
            vec![call("call_a", "look", "{}"), call("call_b", "look", "{}")],
            vec![shot(), ToolOutput::text("seen")],
        ),
        user("on"),
    ]);
    insta::assert_snapshot!(lines(messages(&Ask::bare("openai-chat").text(&log))), @r#"
    [{"role":"user","content":"go"},
    {"role":"assistant","content":null,"tool_calls":[{"id":"call_a","type":"function","function":{"name":"look","arguments":"{}"}},{"id":"call_b","type":"function","function":{"name":"look","arguments":"{}"}}]},
    {"role":"tool","tool_call_id":"call_a","content":[{"type":"text","text":"screenshot"},{"type":"text","text":"[image/png: shown in the next message]"}]},
    {"role":"tool","tool_call_id":"call_b","content":"seen"},
    {"role":"user","content":[{"type":"text","text":"[image/png of call_a]"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]},
    {"role":"user","content":"on"}]
    "#);
    let inside = Ask::bare("llamacpp").text(&log);
    assert!(inside.contains(r#"{"type":"text","text":"screenshot"},{"type":"image_url""#), "{inside}");
    let blind = ModelProfile { vision: false, ..Ask::bare("openai-chat").profile };
    let (sent, notes) = Ask { profile: blind, ..Ask::bare("openai-chat") }.told(&log);
    assert!(sent.contains("[image/png: not sent, the model does not see images]"), "{sent}");
    assert!(!sent.contains("image_url") && notes.len() == 1, "{notes:?}");
}

#[test]
fn files_of_users() {
    let with = |file: FilePart| {
        let parts = vec![UserPart::Text(Text::new("see").unwrap()), UserPart::File(file)];
        history(vec![Entry::User(UserMessage::new(parts).unwrap())])
    };
    let sent = Ask::bare("openai-chat").text(&with(image(FileSource::Url("https://a.example/b".into()))));
    assert!(
        sent.contains(r#""content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"https://a.example/b"}}]"#),
        "{sent}"
    );
    let (sent, notes) = Ask::bare("deepseek").told(&with(image(FileSource::Base64("AA==".into()))));
    assert!(sent.contains(r#""content":"see\n\n[image/png: not sent"#) && notes.len() == 1, "{sent}");
}

#[test]
fn documents_of_text_are_sent_in_their_words() {
    let document = |data: &str, name: Option<&str>| {
        let (media_type, source) = ("text/csv".to_owned(), FileSource::Base64(data.into()));
        FilePart { media_type, source, name: name.map(str::to_owned) }
    };
    let said = vec![UserPart::File(document("YSxi", None)), UserPart::File(document("Yw==", Some("c.csv")))];
    let shown = ToolOutput::Content(vec![ContentPart::File(document("ZA==", None))]);
    let log = history(vec![
        Entry::User(UserMessage::new(said).unwrap()),
        step(vec![call("call_a", "look", "{}")], vec![shown]),
    ]);
    let sent = Ask::bare("deepseek").text(&log);
    assert!(sent.contains(r#"{"role":"user","content":"a,b\n\nc.csv:\nc"}"#), "{sent}");
    assert!(sent.contains(r#""tool_call_id":"call_a","content":"d"}"#), "{sent}");
}
