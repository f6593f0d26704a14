//! A Python environment with the pinned clients.

use std::fs;
use std::path::Path;

use super::{HOME, fault, read, shown};
use crate::Shop;
use crate::command::Call;
use crate::error::Error;

/// The interpreter of the environment.
pub(super) struct Python(String);

/// Made anew when the pins change.
pub(super) fn install(place: &Path, shop: &mut Shop<'_>) -> Result<Python, Error> {
    let wanted = read(&shop.root.join(HOME).join("requirements.txt"))?;
    let venv = place.join("venv");
    // Inside of it, so that it goes when the environment does.
    let stamp = venv.join("installed.txt");
    let inside = if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" };
    let python = shown(&venv.join(inside));
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(Python(python));
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
    Ok(Python(python))
}

impl Python {
    /// A call of one of our scripts.
    pub(super) fn script(&self, name: &str) -> Call {
        // Without it Python asks the environment for proxies, also for the loopback interface.
        Call::program(&*self.0, "").arg(format!("{HOME}/{name}")).env("NO_PROXY", "127.0.0.1")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_pinned() {
        let text = read(&crate::workspace::root().join(HOME).join("requirements.txt")).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(lines.len() >= 2 && lines.iter().all(|line| line.contains("==")), "{lines:?}");
    }
}
