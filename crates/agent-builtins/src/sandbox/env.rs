//! The environment of commands: an allow-list, and settings that keep programs from asking.

/// The variables of a program's environment that commands may see: never a key or a token (requirement T9).
///
/// Variables with a secret in them are not on the list; a proxy address with a password is left out too.
pub fn allowed_env<I>(vars: I) -> Vec<(String, String)>
where
    I: IntoIterator<Item = (String, String)>,
{
    let allowed = |(name, value): &(String, String)| {
        ALLOWED.contains(&name.as_str())
            || name.starts_with("LC_")
            || name.starts_with(super::mark::MARK)
            || (PROXIES.contains(&name.to_ascii_lowercase().as_str()) && !value.contains('@'))
    };
    vars.into_iter().filter(allowed).collect()
}

/// What every command finds in its environment, whatever the user's says.
pub(super) const FORCED: [(&str, &str); 10] = [
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    // `false`, not `true`: an editor that succeeds at once would carry a half-written rebase through.
    ("EDITOR", "false"),
    ("VISUAL", "false"),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("DEBIAN_FRONTEND", "noninteractive"),
];

/// The search path when the user's environment has none.
pub(super) const PATH: (&str, &str) =
    ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");

const ALLOWED: [&str; 26] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "NVM_DIR",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "LD_LIBRARY_PATH",
];

const PROXIES: [&str; 4] = ["http_proxy", "https_proxy", "all_proxy", "no_proxy"];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, value: &str, expect: bool) {
        let kept = allowed_env([(name.to_owned(), value.to_owned())]);
        assert_eq!(!kept.is_empty(), expect, "{name}");
    }

    #[test]
    fn keys_and_tokens_do_not_pass() {
        for name in ["PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "CARGO_HOME", "RUSTUP_HOME"] {
            check(name, "x", true);
        }
        for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GITHUB_TOKEN", "CARGO_REGISTRY_TOKEN", "CI"] {
            check(name, "x", false);
        }
        for name in ["AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "BASH_ENV", "LD_PRELOAD", "GIT_ASKPASS"] {
            check(name, "x", false);
        }
        check("HTTPS_PROXY", "http://proxy:3128", true);
        check("HTTPS_PROXY", "http://me:secret@proxy:3128", false);
    }
}
