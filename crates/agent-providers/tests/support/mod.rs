//! Fixtures, streams and decoded answers for the tests of this crate.

pub(crate) mod histories;

use std::path::{Path, PathBuf};

use agent_core::{ModelError, ModelEvent, Response, ResponseBuilder};
use agent_providers::{Decoded, ResponseHead, StreamDecoder, ToolNames, WireFormat, decode_response};

/// The fixtures of a format: name and bytes, sorted.
pub(crate) fn fixtures(extension: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/wire/anthropic");
    let all = files(&folder).into_iter().filter(|(name, _)| name.ends_with(extension));
    let all: Vec<_> = all.filter(|(name, _)| !name.contains(".expect.")).collect();
    assert!(!all.is_empty(), "no fixtures in {folder:?}");
    all
}

/// The files of a folder, sorted by name.
pub(crate) fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect();
    paths.sort();
    let named =
        paths.into_iter().map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), read(&path)));
    named.collect()
}

#[expect(clippy::disallowed_methods, reason = "tests read fixtures")]
pub(crate) fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

/// The large corpus, or `None` with a line that says so.
#[expect(clippy::disallowed_methods, reason = "the one setting of the tests")]
pub(crate) fn corpus(test: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("AGENT_CORPUS_DIR").map(PathBuf::from);
    if folder.is_none() {
        println!("{test}: AGENT_CORPUS_DIR is unset, passed over");
    }
    folder
}

/// Events as the data of a stream.
pub(crate) fn stream(events: &[&str]) -> Vec<u8> {
    events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>().into_bytes()
}

pub(crate) fn decode(bytes: &[u8]) -> Decoded {
    decode_response(&WireFormat::Anthropic.into(), &[bytes], &ResponseHead::unknown())
}

pub(crate) fn printed(decoded: &Decoded) -> String {
    serde_json::to_string(decoded).unwrap()
}

pub(crate) fn events(bytes: &[u8]) -> Vec<Result<ModelEvent, ModelError>> {
    let mut decoder = StreamDecoder::new(&WireFormat::Anthropic.into(), ToolNames::default());
    let mut events = decoder.push(bytes);
    events.extend(decoder.finish());
    events
}

/// The whole answer of a stream that has one.
pub(crate) fn response(bytes: &[u8]) -> Response {
    let mut builder = ResponseBuilder::default();
    for event in events(bytes) {
        builder.take(event.unwrap());
    }
    builder.finish().unwrap()
}
