//! Keeps the API key out of the program's environment, where every command it runs could read it.
//!
//! A process cannot take a variable out of the environment it was started with: `/proc/PID/environ` shows it to its
//! children as long as it lives. So the program starts itself again without it and hands the key over in a pipe.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::{FdFlags, fcntl_setfd};

use crate::env;

/// Names the descriptor that holds the key, in the program as it was started again.
const HANDED_OVER: &str = "AGENT_KEY_FD";
/// A pipe takes at least this much without a reader.
const LONGEST: usize = 4_096;

/// The key, under the first of these names that is set. When it stands in the environment, the program starts again without it and this returns in
/// that second program.
pub(crate) fn take_key(names: &[String]) -> Option<String> {
    if let Some(descriptor) = env::var(HANDED_OVER) {
        let key = read(&descriptor);
        return key
            .inspect_err(|error| tracing::warn!(%error, "the key that was handed over cannot be read"))
            .ok();
    }
    let key = names.iter().find_map(|name| env::var(name))?;
    if key.len() <= LONGEST {
        let error = start_again(&key);
        tracing::warn!(%error, "the key stays in the environment, where commands can read it");
    }
    Some(key)
}

/// Returns only when it failed.
fn start_again(key: &str) -> io::Error {
    let handed_over = io::pipe().and_then(|(reader, mut writer)| {
        writer.write_all(key.as_bytes())?;
        fcntl_setfd(&reader, FdFlags::empty())?;
        Ok((reader, std::env::current_exe()?))
    });
    let (reader, program) = match handed_over {
        Ok(parts) => parts,
        Err(error) => return error,
    };
    let mut command = Command::new(program);
    command.args(std::env::args_os().skip(1)).env(HANDED_OVER, reader.as_raw_fd().to_string());
    for (name, _) in env::vars().into_iter().filter(|(name, _)| is_secret(name)) {
        command.env_remove(name);
    }
    command.exec()
}

#[expect(
    clippy::disallowed_methods,
    reason = "a descriptor is opened by its name, so that no unsafe code is needed"
)]
fn read(descriptor: &str) -> io::Result<String> {
    let mut key = String::new();
    File::open(format!("/dev/fd/{descriptor}"))?.read_to_string(&mut key)?;
    Ok(key)
}

/// Whether a variable holds a secret by its name.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["_KEY", "_TOKEN", "_SECRET", "_PASSWORD"].iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_names() {
        for secret in ["ANTHROPIC_API_KEY", "openai_api_key", "GITHUB_TOKEN", "DB_PASSWORD"] {
            assert!(is_secret(secret), "{secret}");
        }
        for open in ["PATH", "HOME", "HTTPS_PROXY", "KEYBOARD", HANDED_OVER] {
            assert!(!is_secret(open), "{open}");
        }
    }
}
