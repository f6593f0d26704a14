//! What every format promises, held against its fixtures and against any history: a new format is in by being one.

mod decoding;
mod encoding;
mod found;
mod framing;
mod siblings;
mod validate;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use agent_providers::WireFormat;

use crate::support::{files, read};

/// A recorded answer, and what it decodes to as it is printed.
struct Fixture {
    format: WireFormat,
    /// `anthropic/text.sse`.
    name: String,
    bytes: Vec<u8>,
    expect: String,
}

impl Fixture {
    /// Whether the bytes are a stream, and no plain body.
    fn is_streamed(&self) -> bool {
        !self.name.ends_with(".json")
    }
}

fn folder(format: WireFormat) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/wire").join(format.as_str())
}

/// The fixtures of all formats. `NAME.expect.json` stands beside `NAME.sse`, `NAME.json` or `NAME.ndjson`.
fn fixtures() -> &'static [Fixture] {
    static ALL: LazyLock<Vec<Fixture>> = LazyLock::new(read_fixtures);
    &ALL
}

fn read_fixtures() -> Vec<Fixture> {
    let mut all = Vec::new();
    for format in WireFormat::ALL {
        let folder = folder(format);
        let of_format = files(&folder).into_iter();
        let of_format: Vec<_> =
            of_format.filter(|(name, _)| !name.ends_with(".md") && !name.ends_with(".expect.json")).collect();
        assert!(of_format.len() >= 8, "{format:?} has too few fixtures in {folder:?}");
        for (name, bytes) in of_format {
            let stem = name.rsplit_once('.').unwrap().0;
            let expect = String::from_utf8(read(&folder.join(format!("{stem}.expect.json")))).unwrap();
            let name = format!("{}/{name}", format.as_str());
            all.push(Fixture { format, name, bytes, expect: expect.trim_end().to_owned() });
        }
    }
    all
}

#[test]
fn every_format_has_rules() {
    for format in WireFormat::ALL {
        assert_eq!(validate::rules(format).format, format);
    }
}
