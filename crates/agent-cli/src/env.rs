//! The one place that reads the environment.

use std::path::PathBuf;

use crate::error::CliError;

/// A variable, when it is set and not empty.
#[expect(clippy::disallowed_methods, reason = "the program owns the environment; crates get values")]
pub(crate) fn var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// All variables; the sandbox lets through what commands may see.
#[expect(clippy::disallowed_methods, reason = "the program owns the environment; crates get values")]
pub(crate) fn vars() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// Where sessions are kept: the option, `AGENT_DATA_DIR`, the platform's data directory.
pub(crate) fn data_dir(given: Option<PathBuf>) -> Result<PathBuf, CliError> {
    given
        .or_else(|| var("AGENT_DATA_DIR").map(PathBuf::from))
        .or_else(|| dirs::data_dir().map(|dir| dir.join("agent")))
        .ok_or(CliError::NoDataDir)
}

/// Where the user's own rule files and settings are: `AGENT_CONFIG_DIR`, the platform's folder of settings.
pub(crate) fn config_dir() -> Option<PathBuf> {
    var("AGENT_CONFIG_DIR").map(PathBuf::from).or_else(|| dirs::config_dir().map(|dir| dir.join("agent")))
}

/// The settings that no other ones outrank: what `AGENT_MANAGED_SETTINGS` names.
pub(crate) fn managed_settings() -> Option<PathBuf> {
    var("AGENT_MANAGED_SETTINGS").map(PathBuf::from)
}

/// The time for headers that hold a date.
#[expect(clippy::disallowed_methods, reason = "the program owns the clock; crates are told the time")]
pub(crate) fn now() -> std::time::SystemTime {
    std::time::SystemTime::now()
}
