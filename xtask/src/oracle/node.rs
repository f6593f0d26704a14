//! The pinned TypeScript clients under node.

use std::fs;
use std::path::{Path, PathBuf};

use super::{HOME, fault, read, shown};
use crate::Shop;
use crate::command::Call;
use crate::error::Error;

/// The folder in which the packages are installed.
pub(super) struct Node(PathBuf);

/// Installed anew when the pins change.
pub(super) fn install(place: &Path, shop: &mut Shop<'_>) -> Result<Node, Error> {
    let dir = place.join("npm");
    // Inside of what is installed, so that it goes with it.
    let stamp = dir.join("node_modules/installed.json");
    let lock = read(&shop.root.join(PINS).join("package-lock.json"))?;
    if !fs::read_to_string(&stamp).is_ok_and(|installed| installed == lock) {
        writeln!(shop.out, "oracle: installing the TypeScript clients in target/oracle/npm")?;
        shop.out.flush()?;
        fs::create_dir_all(&dir).map_err(fault(&dir))?;
        for name in ["package.json", "package-lock.json"] {
            let copy = dir.join(name);
            fs::write(&copy, read(&shop.root.join(PINS).join(name))?).map_err(fault(&copy))?;
        }
        let install = "ci --ignore-scripts --no-audit --no-fund --loglevel=error";
        needed(Call::program("npm", install).run(&dir))?;
        fs::write(&stamp, lock).map_err(fault(&stamp))?;
    }
    needed(Call::program("node", "--eval 0").run(&dir))?;
    Ok(Node(dir))
}

fn needed(result: Result<(), Error>) -> Result<(), Error> {
    result.map_err(|cause| Error::Gate {
        problem: cause.to_string(),
        next: "the oracle needs node, 20 or later, with npm, and a package registry that npm can reach; nothing else does",
    })
}

impl Node {
    /// Where the packages are found from.
    pub(super) fn dir(&self) -> &Path {
        &self.0
    }

    /// A call of one of our scripts, to be run in [`Self::dir`].
    pub(super) fn script(&self, name: &str, root: &Path) -> Call {
        Call::program("node", "").arg(shown(&root.join(HOME).join(name))).env("NO_PROXY", "127.0.0.1")
    }
}

/// What is installed, and exactly which bytes of it.
const PINS: &str = "xtask/oracle/npm";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_pinned_and_no_registry_is() {
        let home = crate::workspace::root().join(PINS);
        let wanted = read(&home.join("package.json")).unwrap();
        let wanted: serde_json::Value = serde_json::from_str(&wanted).unwrap();
        let wanted = wanted["dependencies"].as_object().unwrap();
        let exact = |version: &str| version.split('.').all(|part| part.parse::<u32>().is_ok());
        assert!(wanted.len() >= 2 && wanted.values().all(|version| exact(version.as_str().unwrap())));

        let lock = read(&home.join("package-lock.json")).unwrap();
        assert!(!lock.contains("://"), "whoever installs asks the registry of his own configuration");
        let lock: serde_json::Value = serde_json::from_str(&lock).unwrap();
        let packages = lock["packages"].as_object().unwrap().iter().filter(|(path, _)| !path.is_empty());
        for (path, package) in packages {
            assert!(package["integrity"].is_string(), "{path} may be anything");
        }
    }
}
