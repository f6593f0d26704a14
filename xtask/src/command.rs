//! Child processes, cargo above all: run, captured, or read line by line.

use std::fmt;
use std::io::BufReader;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use crate::error::Error;

/// One call of a program; its `Display` is what a person types to repeat it.
#[derive(Debug)]
pub(crate) struct Call {
    /// Cargo, when it is none of these.
    program: Option<String>,
    args: Vec<String>,
    env: Vec<(&'static str, String)>,
}

impl Call {
    /// A call of cargo from words in one string, none of which holds a space.
    pub(crate) fn cargo(line: &str) -> Self {
        Call { program: None, args: words(line), env: Vec::new() }
    }

    /// A call of another program, which is a name or a path.
    pub(crate) fn program(program: impl Into<String>, line: &str) -> Self {
        Call { program: Some(program.into()), args: words(line), env: Vec::new() }
    }

    /// Adds one argument as it is, such as a path.
    pub(crate) fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    pub(crate) fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.env.push((name, value.into()));
        self
    }

    /// Runs it with our own output streams.
    pub(crate) fn run(&self, root: &Path) -> Result<(), Error> {
        let status = self.command(root).status().map_err(|source| self.start_error(source))?;
        self.judge(status)
    }

    /// Runs it and returns its standard output; its errors stay visible.
    pub(crate) fn capture(&self, root: &Path) -> Result<String, Error> {
        let output = self
            .command(root)
            .stderr(Stdio::inherit())
            .output()
            .map_err(|source| self.start_error(source))?;
        self.judge(output.status)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Starts it, with pipes to its standard input and from its standard output.
    pub(crate) fn spawn_piped(&self, root: &Path) -> Result<Child, Error> {
        let mut command = self.command(root);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.spawn().map_err(|source| self.start_error(source))
    }

    /// Runs it and gives everything it said, whether or not it passed.
    pub(crate) fn output(&self, root: &Path) -> Result<Output, Error> {
        self.command(root).stdin(Stdio::null()).output().map_err(|source| self.start_error(source))
    }

    /// Whether it can be started and passes, in silence.
    pub(crate) fn passes(&self, root: &Path) -> bool {
        self.output(root).is_ok_and(|output| output.status.success())
    }

    /// Runs it and hands over each line of standard output as it comes, its line break included.
    pub(crate) fn lines(
        &self,
        root: &Path,
        mut on_line: impl FnMut(&str) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut child =
            self.command(root).stdout(Stdio::piped()).spawn().map_err(|source| self.start_error(source))?;
        let mut heard = Ok(());
        if let Some(stdout) = child.stdout.take() {
            heard = each_line(BufReader::new(stdout), &mut on_line);
        }
        // The child is awaited even when we could not listen to the end, so that it is never left behind.
        let status = child.wait().map_err(|source| self.start_error(source))?;
        heard?;
        self.judge(status)
    }

    fn command(&self, root: &Path) -> Command {
        let cargo = || std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(self.program.as_ref().map_or_else(cargo, Into::into));
        command.args(&self.args).current_dir(root);
        // `cargo run` describes xtask to us; a build script that watches these would be built anew for it.
        for (name, _) in std::env::vars_os() {
            let told = name.to_string_lossy();
            if told.starts_with("CARGO_PKG_") || told.starts_with("CARGO_MANIFEST_") {
                command.env_remove(&name);
            }
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    pub(crate) fn judge(&self, status: ExitStatus) -> Result<(), Error> {
        if status.success() {
            return Ok(());
        }
        Err(Error::Command { command: self.to_string(), status: status.to_string() })
    }

    fn start_error(&self, source: std::io::Error) -> Error {
        Error::Start { command: self.to_string(), source }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.env {
            if value.contains(' ') {
                write!(f, "{name}=\"{value}\" ")?;
            } else {
                write!(f, "{name}={value} ")?;
            }
        }
        write!(f, "{} {}", self.program.as_deref().unwrap_or("cargo"), self.args.join(" "))
    }
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn each_line(
    mut from: impl std::io::BufRead,
    on_line: &mut impl FnMut(&str) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        on_line(&String::from_utf8_lossy(&line))?;
        line.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_shows_as_it_is_typed() {
        let call = Call::cargo("doc --workspace").env("RUSTDOCFLAGS", "-D warnings").env("CI", "1");
        let other = Call::program("rustup", "run nightly").arg("a b");
        assert_eq!(other.to_string(), "rustup run nightly a b");
        assert_eq!(call.to_string(), "RUSTDOCFLAGS=\"-D warnings\" CI=1 cargo doc --workspace");
    }

    #[test]
    fn lines_keep_their_break_and_survive_odd_bytes() {
        let mut seen = Vec::new();
        let heard = each_line(&b"one\n\xfftwo"[..], &mut |line| {
            seen.push(line.to_owned());
            Ok(())
        });
        assert!(heard.is_ok());
        assert_eq!(seen, ["one\n", "\u{fffd}two"]);
    }
}
