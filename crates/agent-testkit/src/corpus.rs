//! The large corpus of recorded conversations, when it is there.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::fault::RawReply;

/// One recorded request with its answer: a line of a file of conversations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Exchange {
    /// What was asked.
    pub request: ExchangeRequest,
    /// What was answered; a simulated provider can play it.
    pub response: RawReply,
}

/// A recorded request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ExchangeRequest {
    /// The HTTP method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The headers, without keys.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body; none for a request without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

/// Why recorded conversations cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CorpusError {
    /// The file or folder cannot be read.
    #[error("{}: {cause}; give a file of recorded exchanges that can be read", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// A line is no exchange.
    #[error("{}:{line}: {cause}; a line is {{\"request\": {{method, path, headers, body}}, \"response\": {{status, headers, body}}}}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What the reader said.
        #[source]
        cause: serde_json::Error,
    },
    /// Nothing was found, which no test may take for success.
    #[error("{} holds no {extension:?} file: look at the folder's name", path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
        /// What was looked for.
        extension: String,
    },
}

/// The folder named by `AGENT_CORPUS_DIR`; when it is unset, says so in one line and gives `None`.
///
/// A test that gets `None` passes; one that gets a folder must find what it wants in it.
#[expect(clippy::disallowed_methods, reason = "the one place where tests read where the corpus is")]
pub fn corpus_dir() -> Option<PathBuf> {
    let dir = std::env::var_os("AGENT_CORPUS_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    if dir.is_none() {
        // A closed stderr must not fail a test that has nothing to do.
        let _closed =
            writeln!(io::stderr(), "AGENT_CORPUS_DIR is not set: a test over recorded data was skipped");
    }
    dir
}

/// Files with this extension right in a folder, sorted; never none.
pub fn corpus_files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, CorpusError> {
    let failed = |cause| CorpusError::Read { path: folder.to_owned(), cause };
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    let paths: Result<Vec<PathBuf>, io::Error> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(failed)?;
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    paths.sort();
    if paths.is_empty() {
        return Err(CorpusError::Empty { path: folder.to_owned(), extension: extension.to_owned() });
    }
    Ok(paths)
}

/// Reads a file of exchanges, one a line; blank lines are passed over.
#[expect(
    clippy::disallowed_methods,
    reason = "recorded data is read by the tests that use it, outside any sandbox"
)]
pub fn read_exchanges(path: &Path) -> Result<Vec<Exchange>, CorpusError> {
    let text =
        std::fs::read_to_string(path).map_err(|cause| CorpusError::Read { path: path.to_owned(), cause })?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let exchanges = lines.map(|(number, line)| {
        let failed = |cause| CorpusError::Line { path: path.to_owned(), line: number + 1, cause };
        serde_json::from_str(line).map_err(failed)
    });
    exchanges.collect()
}
