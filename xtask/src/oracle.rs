//! The official Python clients against the simulated provider and against the bodies of our encoders.
//!
//! Opt-in, since it needs Python and a package index. It installs nothing outside of `target/oracle/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use crate::Shop;
use crate::command::Call;
use crate::error::Error;

/// Scripts, pinned versions and what the simulated model says.
const HOME: &str = "xtask/oracle";

pub(crate) fn run(shop: &mut Shop<'_>) -> Result<(), Error> {
    let place = shop.root.join("target/oracle");
    fs::create_dir_all(&place).map_err(fault(&place))?;
    let python = python(&place, shop)?;
    // Both are asked, so that one difference does not hide the other.
    let bodies = bodies(&python, &place, shop);
    let clients = clients(&python, &place, shop);
    bodies.and(clients)
}

/// The interpreter of an environment with the pinned clients; made anew when the pins change.
fn python(place: &Path, shop: &mut Shop<'_>) -> Result<String, Error> {
    let wanted_path = shop.root.join(HOME).join("requirements.txt");
    let wanted =
        fs::read_to_string(&wanted_path).map_err(|source| Error::Read { path: wanted_path, source })?;
    let venv = place.join("venv");
    // Inside of it, so that it goes when the environment does.
    let stamp = venv.join("installed.txt");
    let inside = if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" };
    let python = shown(&venv.join(inside));
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    writeln!(shop.out, "oracle: making a Python environment in target/oracle/venv")?;
    shop.out.flush()?;
    let make = Call::program("python3", "-m venv --clear").arg(shown(&venv));
    let install = Call::program(&*python, "-m pip install --quiet --disable-pip-version-check -r")
        .arg(format!("{HOME}/requirements.txt"));
    for call in [&make, &install] {
        call.run(&shop.root).map_err(|cause| Error::Gate {
            problem: cause.to_string(),
            next: "the oracle needs python3 with venv, and a package index that pip can reach; nothing else does",
        })?;
    }
    fs::write(&stamp, wanted).map_err(fault(&stamp))?;
    Ok(python)
}

/// What our encoders write is what the clients' own types allow.
fn bodies(python: &str, place: &Path, shop: &mut Shop<'_>) -> Result<(), Error> {
    let lines =
        Call::cargo("run --quiet --package agent-providers --example requests").capture(&shop.root)?;
    let file = place.join("requests.jsonl");
    fs::write(&file, lines).map_err(fault(&file))?;
    shop.out.flush()?;
    script(python, "bodies.py").arg(shown(&file)).run(&shop.root)
}

/// What the clients parse is what the script says.
fn clients(python: &str, place: &Path, shop: &mut Shop<'_>) -> Result<(), Error> {
    let told = shop.root.join(HOME).join("script.json");
    let sim = Sim::start(&told, &place.join("address"), shop)?;
    shop.out.flush()?;
    let result = script(python, "clients.py").arg(&sim.address).arg(shown(&told)).run(&shop.root);
    result.and(sim.stop())
}

fn script(python: &str, name: &str) -> Call {
    // Without it Python asks the environment for proxies, also for the loopback interface.
    Call::program(python, "").arg(format!("{HOME}/{name}")).env("NO_PROXY", "127.0.0.1")
}

/// The simulated provider while it runs. It ends when its standard input does, which is dropped with this.
struct Sim {
    call: Call,
    child: Child,
    address: String,
}

impl Sim {
    fn start(script: &Path, file: &Path, shop: &Shop<'_>) -> Result<Self, Error> {
        if file.exists() {
            fs::remove_file(file).map_err(fault(file))?;
        }
        // Built first: waiting for its address below must not mean waiting for a compiler.
        Call::cargo("build --quiet --package agent-testkit --example sim").run(&shop.root)?;
        let call = Call::cargo("run --quiet --package agent-testkit --example sim --");
        let call = call.arg(shown(script)).arg(shown(file));
        let child = call.spawn(&shop.root)?;
        let mut sim = Sim { call, child, address: String::new() };
        let start = Instant::now();
        while !file.exists() {
            if sim.child.try_wait()?.is_some() || start.elapsed() > LONGEST_START {
                return Err(Error::Gate {
                    problem: format!("`{}` gives no address", sim.call),
                    next: "run it by hand and look at what it says",
                });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        sim.address =
            fs::read_to_string(file).map_err(|source| Error::Read { path: file.to_path_buf(), source })?;
        Ok(sim)
    }

    fn stop(mut self) -> Result<(), Error> {
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        self.call.judge(status)
    }
}

fn fault(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path: PathBuf = path.to_path_buf();
    move |source| Error::Write { path, source }
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

const LONGEST_START: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_pinned() {
        let path = crate::workspace::root().join(HOME).join("requirements.txt");
        let text = fs::read_to_string(path).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(lines.len() >= 2 && lines.iter().all(|line| line.contains("==")), "{lines:?}");
    }
}
