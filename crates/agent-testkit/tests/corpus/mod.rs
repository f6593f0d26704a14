//! Reading recorded conversations, and asking the simulated provider what the real one was asked.

use agent_testkit::{
    Exchange, Pick, RawReply, Reply, SimOptions, SimProvider, Source, corpus_dir, corpus_files,
    read_exchanges,
};

use crate::client::{Client, KEYS};

#[expect(clippy::disallowed_methods, reason = "the test makes the file it reads")]
#[test]
fn a_file_of_exchanges_is_read_and_a_wrong_line_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.jsonl");
    let line = r#"{"request":{"method":"POST","path":"/v1/messages","headers":{"a":"b"},"body":"{}"},"response":{"status":200,"headers":{"content-type":"application/json"},"body":"{\"n\":1.0}"}}"#;
    std::fs::write(&path, format!("{line}\n\n{line}\n")).unwrap();
    let exchanges = read_exchanges(&path).unwrap();
    assert_eq!(exchanges.len(), 2);
    assert_eq!(exchanges[0].response, RawReply::json(r#"{"n":1.0}"#));
    assert_eq!(
        (exchanges[0].request.path.as_str(), exchanges[0].request.body.as_deref()),
        ("/v1/messages", Some("{}"))
    );
    assert_eq!(corpus_files(folder.path(), "jsonl").unwrap(), std::slice::from_ref(&path));

    std::fs::write(&path, format!("{line}\n{{}}\n")).unwrap();
    let error = read_exchanges(&path).unwrap_err().to_string();
    assert!(error.contains("talk.jsonl:2: missing field `request`"), "{error}");
    assert!(corpus_files(folder.path(), "txt").unwrap_err().to_string().contains("holds no \"txt\" file"));
    assert!(read_exchanges(&folder.path().join("none")).is_err());
}

/// What the real service took, the simulated one takes; all recorded answers come back byte for byte.
#[tokio::test]
async fn recorded_requests_are_taken_and_answers_replayed() {
    let Some(dir) = corpus_dir() else { return };
    let mut accepted = 0;
    for path in corpus_files(&dir.join("recorded/exchanges/anthropic"), "jsonl").unwrap() {
        let exchanges = read_exchanges(&path).unwrap();
        let replies = exchanges.iter().map(|exchange| exchange.response.clone()).collect();
        let replay = SimProvider::replaying(replies).unwrap();
        let options = SimOptions { pick: Pick::InOrder, ..SimOptions::default() };
        let script = exchanges.iter().map(|_| Reply::text("ok")).collect();
        let judge = SimProvider::start_with(Source::Script(script), options).unwrap();
        let (mut player, mut judge) = (Client::connect(&replay).await, Client::connect(&judge).await);
        for Exchange { request, response, .. } in &exchanges {
            let body = request.body.as_deref().unwrap_or_default();
            let played = player.send(&request.method, &request.path, &KEYS, body).await.unwrap();
            assert_eq!((played.status, &played.frames.concat()[..]), (response.status, &response.body[..]));
            let judged = judge.send(&request.method, &request.path, &KEYS, body).await.unwrap();
            if response.status == 200 {
                assert_eq!(judged.status, 200, "{}: {}", path.display(), judged.text());
                accepted += 1;
            }
        }
    }
    assert!(accepted > 0, "the corpus holds accepted requests");
}
