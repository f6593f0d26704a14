//! The simulated provider as a program, while it runs.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde::Deserialize;

use super::shown;
use crate::command::Call;
use crate::error::Error;

/// A running simulator. It is ended when this is dropped.
pub(super) struct Sim {
    child: Child,
    address: String,
}

/// A line of cargo's messages, as far as it is of interest.
#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
}

/// Builds the program and says where it lies, so that the process we end later is not cargo.
pub(super) fn build(root: &Path) -> Result<PathBuf, Error> {
    let call = Call::cargo(&format!("build --quiet {TARGET} --message-format json"));
    let told = call.capture(root)?;
    let messages = told.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok());
    messages.filter_map(|message| message.executable).next_back().ok_or_else(|| Error::Gate {
        problem: format!("`{call}` names no executable"),
        next: "run it by hand and look at what it says; then adapt xtask/src/oracle/sim.rs",
    })
}

impl Sim {
    pub(super) fn start(program: &Path, script: &Path, root: &Path) -> Result<Self, Error> {
        let call = Call::program(shown(program), ARGS).arg(shown(script));
        let child = call.spawn_piped(root)?;
        let mut sim = Sim { child, address: String::new() };
        let heard = sim.child.stdout.take().map(|stdout| listen(BufReader::new(stdout)));
        let address = heard.and_then(|heard| heard.recv_timeout(LONGEST_START).ok());
        sim.address = address.ok_or_else(|| Error::Gate {
            problem: format!("`{call}` gives no address on its standard output"),
            next: "run it by hand and look at what it says",
        })?;
        Ok(sim)
    }

    /// For example `http://127.0.0.1:41234`.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Ends it; an error when it had ended before, whatever its clients say.
    pub(super) fn stop(mut self) -> Result<(), Error> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(Error::Gate {
                problem: format!("the simulated provider ended by itself ({status})"),
                next: "look above for what it says",
            }),
        }
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        // It may have ended, which is all that is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Gives the first address it says, and reads on, since a full pipe would stop it.
fn listen(stdout: impl BufRead + Send + 'static) -> Receiver<String> {
    let (tell, heard) = channel();
    std::thread::spawn(move || {
        let mut addresses = stdout.lines().map_while(Result::ok).filter_map(|line| address(&line));
        if let Some(address) = addresses.next() {
            // Nobody listens any more when it came too late.
            let _ = tell.send(address);
        }
        addresses.for_each(drop);
    });
    heard
}

fn address(line: &str) -> Option<String> {
    let start = line.find(LOOPBACK)?;
    let rest = &line[start + LOOPBACK.len()..];
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then(|| format!("{LOOPBACK}{}", &rest[..digits]))
}

/// What is built, and how it is started; the script follows.
const TARGET: &str = "--package agent-cli --bin agent";
/// As JSON all it says is on standard output, where only the address is of interest.
const ARGS: &str = "sim --port 0 --json --script";
const LOOPBACK: &str = "http://127.0.0.1:";
const LONGEST_START: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_address_is_heard() {
        let check = |said: &'static str, expect: Option<&str>| {
            let heard = listen(said.as_bytes()).recv_timeout(Duration::from_secs(9)).ok();
            assert_eq!(heard.as_deref(), expect, "{said}");
        };
        check(
            "sim: listens\nat http://127.0.0.1:41234, with a script\nhttp://127.0.0.1:9\n",
            Some("http://127.0.0.1:41234"),
        );
        check("http://127.0.0.1:\nhttp://localhost:80\n", None);
        check("", None);
    }
}
