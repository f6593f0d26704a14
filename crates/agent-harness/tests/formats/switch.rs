//! One session with several providers: what one wrote, another can go on with, and the first one gets its own back.

use super::answers::{Said, Voice};
use super::{check_kept, check_prefixes, check_valid, each, process, streams};

const fn said(number: usize, text: &'static str, calls: &'static [(&'static str, &'static str)]) -> Said {
    Said { number, text, calls }
}

/// What the first provider said, then another one, then the first one again.
const FIRST: [Said; 3] = [
    said(
        0,
        "I look.",
        &[("look", r#"{"what":"a","n":12345678901234567890}"#), ("notes.add", r#"{"what":"b"}"#)],
    ),
    said(1, "", &[("picture", r#"{"what":"pot"}"#), ("fail", r#"{"what":"x"}"#), ("look", r#"{"wrong":1}"#)]),
    said(2, "Tea is ready.", &[]),
];
const OTHER: [Said; 3] = [
    said(3, "I look too.", &[("notes.add", r#"{"what":"c"}"#), ("look", r#"{"what":"d","f":1.0}"#)]),
    said(4, "", &[("look", r#"{"what":"e"}"#)]),
    said(5, "It is.", &[]),
];
const AGAIN: [Said; 2] = [said(6, "", &[("look", r#"{"what":"f"}"#)]), said(7, "Yes.", &[])];

async fn check(first: &str, other: &str) {
    let (ours, theirs, dir) = (Voice::of(first), Voice::of(other), tempfile::tempdir().unwrap());
    let begun = process(first, dir.path(), streams(ours, &FIRST), &["Make tea."]).await;
    let gone_on = process(other, dir.path(), streams(theirs, &OTHER), &["Is it ready?"]).await;
    let back = process(first, dir.path(), streams(ours, &AGAIN), &["Sure?"]).await;
    for request in &gone_on.requests {
        check_valid(other, request);
        check_untold(&FIRST, ours, request.as_ref());
    }
    check_prefixes(other, &gone_on.requests);
    for (number, request) in gone_on.requests.iter().enumerate() {
        check_kept(other, &OTHER[..number], request);
    }
    let own = [begun.requests.as_slice(), &back.requests].concat();
    own.iter().for_each(|request| check_valid(first, request));
    check_prefixes(first, &own);
    for (number, request) in back.requests.iter().enumerate() {
        check_untold(&OTHER, theirs, request.as_ref());
        check_kept(first, &[&FIRST[..], &AGAIN[..number]].concat(), request);
    }
    assert_eq!(
        ours.sealed(&FIRST[0]).is_empty(),
        !told(&gone_on.diagnostics, first),
        "{first}, {other}: {}",
        gone_on.diagnostics
    );
    assert_eq!(
        theirs.sealed(&OTHER[0]).is_empty(),
        !told(&back.diagnostics, other),
        "{other}, {first}: {}",
        back.diagnostics
    );
}

/// Whether it is told that something of this vendor was left out.
fn told(diagnostics: &str, vendor: &str) -> bool {
    let provider = agent_providers::Vendor::named(vendor).unwrap().dialect.provider;
    diagnostics.lines().any(|line| {
        line.contains(&format!(" {provider} ")) && line.contains("means nothing to this provider")
    })
}

/// Holds that nothing which only the provider of these answers understands is told to another one.
#[track_caller]
fn check_untold(answers: &[Said], voice: Voice, body: &[u8]) {
    let body = String::from_utf8_lossy(body);
    for sealed in answers.iter().flat_map(|said| voice.sealed(said)) {
        assert!(!body.contains(&sealed), "{sealed} is in {body}");
    }
}

/// One provider of each format, and those whose ids and thinking are unlike the others'.
const WRITERS: [&str; 7] =
    ["anthropic", "openai", "openai-chat", "mistral", "openrouter", "gemini", "ollama"];

#[tokio::test]
async fn every_provider_goes_on_where_another_one_was() {
    let pairs = WRITERS.iter().flat_map(|first| WRITERS.map(|other| (*first, other)));
    let pairs = pairs.filter(|(first, other)| first != other);
    each(pairs.map(|(first, other)| ((first, other), check(first, other)))).await;
}
