//! Reading one file of settings: a regular file of a bounded size, or an error that names it.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use agent::ToolSettings;
use agent_core::Layer;

use crate::error::CliError;

/// More than this is no settings.
const MOST_BYTES: u64 = 1024 * 1024;

/// Settings that must be there: half of a policy is none.
pub(super) fn required(layer: Layer, path: &Path) -> Result<ToolSettings, CliError> {
    let text = text(path).map_err(|cause| CliError::SettingsFile { path: path.to_owned(), cause })?;
    understood(layer, path, &text)
}

/// Settings that may be missing.
pub(super) fn optional(layer: Layer, path: &Path) -> Result<Option<ToolSettings>, CliError> {
    match text(path) {
        Ok(text) => understood(layer, path, &text).map(Some),
        Err(cause) if is_missing(&cause) => Ok(None),
        Err(cause) => Err(CliError::SettingsFile { path: path.to_owned(), cause }),
    }
}

fn understood(layer: Layer, path: &Path, text: &str) -> Result<ToolSettings, CliError> {
    ToolSettings::read(layer, text).map_err(|cause| CliError::Settings { path: path.to_owned(), cause })
}

/// Whether there is no such file, or a file where its folder would be.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The text of a file; a pipe or a device is refused before it could hold the program up.
#[expect(clippy::disallowed_methods, reason = "the program owns its settings files")]
pub(crate) fn text(path: &Path) -> io::Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    std::fs::File::open(path)?.take(MOST_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MOST_BYTES {
        return Err(io::Error::other(format!("it has more than {MOST_BYTES} bytes")));
    }
    Ok(text)
}

/// A path with every link followed; `None` where nothing is.
pub(super) fn real(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}
