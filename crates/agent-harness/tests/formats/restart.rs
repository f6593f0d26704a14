//! One session in two processes: the second one sends the very bytes of the first, and goes on.

use agent_testkit::{RawReply, RecordedRequest};

use super::answers::{Said, Voice};
use super::{
    VENDORS, check_kept, check_prefixes, check_valid, conversation, each, is_streamed, process, streams,
};

const fn said(number: usize, text: &'static str, calls: &'static [(&'static str, &'static str)]) -> Said {
    Said { number, text, calls }
}

/// Input that a model wrote in no form of ours.
const ODD: &str = r#"{ "z":1.0,"what":"a\u00e9","n":12345678901234567890 }"#;

/// Two turns of one process: parallel calls, calls that fail, an image, and a last word.
fn before(voice: Voice) -> [Said; 6] {
    let wrong: &[_] = if voice.writes_text() {
        &[("look", r#"{"what":"#), ("look", r#"{"wrong":1}"#), ("fail", r#"{"what":"x"}"#)]
    } else {
        &[("look", r#"{"what":7}"#), ("look", r#"{"wrong":1}"#), ("fail", r#"{"what":"x"}"#)]
    };
    [
        said(0, "I look.", &[("look", ODD), ("notes.add", r#"{"what":"b"}"#), ("look", r#"{"what":"c"}"#)]),
        said(1, "", wrong),
        said(2, "And see.", &[("picture", r#"{"what":"pot"}"#), ("look", r#"{"what":"d"}"#)]),
        said(3, "Tea is ready.", &[]),
        said(4, "", &[("look", r#"{"what":"e"}"#)]),
        said(5, "Still ready.", &[]),
    ]
}

const AFTER: [Said; 2] =
    [said(6, "Once more.", &[("look", r#"{"what":"f"}"#)]), said(7, "It is cold now.", &[])];

/// Each answer as a stream; in front of some, two that break and one that is not streamed takes its place.
fn replies(voice: Voice, answers: &[Said], breaks: bool) -> Vec<RawReply> {
    let reply = |said: &Said| match breaks && said.number.is_multiple_of(2) {
        true => vec![voice.broken(said), voice.broken(said), voice.whole(said)],
        false => streams(voice, &[*said]),
    };
    answers.iter().flat_map(reply).collect()
}

/// Whether a session with one provider alone may tell this: nothing is lost, but images where none are taken.
fn may_tell(vendor: &str, line: &str) -> bool {
    vendor == "deepseek" && line.starts_with("file: image/png was named in words")
}

/// Both processes of a session; the requests that were answered.
async fn play(vendor: &str, breaks: bool) -> Vec<RecordedRequest> {
    let (voice, dir) = (Voice::of(vendor), tempfile::tempdir().unwrap());
    let first = replies(voice, &before(voice), breaks);
    let first = process(vendor, dir.path(), first, &["Make tea.", "Is it ready?"]).await;
    let second = process(vendor, dir.path(), replies(voice, &AFTER, breaks), &["And now?"]).await;
    for told in [&first.diagnostics, &second.diagnostics] {
        assert!(told.lines().all(|line| may_tell(vendor, line)), "{vendor}: {told}");
    }
    let all = [first.requests, second.requests].concat();
    all.iter().for_each(|request| check_valid(vendor, request));
    check_prefixes(vendor, &all);
    let mut answered = Vec::new();
    let mut requests = all.into_iter();
    for said in [&before(voice)[..], &AFTER].concat() {
        let tries = if breaks && said.number.is_multiple_of(2) { 3 } else { 1 };
        let tries: Vec<_> = requests.by_ref().take(tries).collect();
        let modes: Vec<bool> = tries.iter().map(is_streamed).collect();
        assert_eq!(modes, [&[true, true, false][..], &[true]][usize::from(tries.len() == 1)], "{vendor}");
        answered.extend(tries.into_iter().next_back());
    }
    answered
}

/// Plays a session of this vendor with and without broken streams.
async fn check(vendor: &str) {
    let voice = Voice::of(vendor);
    let answers = [&before(voice)[..], &AFTER].concat();
    let streamed = play(vendor, false).await;
    for (number, request) in streamed.iter().enumerate() {
        check_kept(vendor, &answers[..number], request);
    }
    let fallen_back = play(vendor, true).await;
    assert_eq!(streamed.len(), fallen_back.len(), "{vendor}");
    for (one, other) in streamed.iter().zip(&fallen_back) {
        let (one, other) = (conversation(vendor, one), conversation(vendor, other));
        assert_eq!(one, other, "{vendor}: an answer is the same, streamed or not");
    }
}

#[tokio::test]
async fn every_provider_gets_back_what_it_said() {
    each(VENDORS.map(|(vendor, _)| (vendor, check(vendor)))).await;
}
