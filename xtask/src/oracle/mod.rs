//! The official Python and TypeScript clients against the simulated provider, and the bodies of our encoders.
//!
//! Opt-in, since it needs Python, node and their package indices. It installs nothing outside of `target/oracle/`.

mod facts;
mod node;
mod python;
mod sim;

use std::fs;
use std::path::{Path, PathBuf};

use crate::Shop;
use crate::command::Call;
use crate::error::Error;
use sim::Sim;

/// Scripts, pinned versions and what the simulated model says.
const HOME: &str = "xtask/oracle";

pub(crate) fn run(shop: &mut Shop<'_>) -> Result<(), Error> {
    let place = shop.root.join("target/oracle");
    fs::create_dir_all(&place).map_err(fault(&place))?;
    // All is installed first: what is missing is told before anything is checked, and nothing is passed over.
    let python = python::install(&place, shop)?;
    let node = node::install(&place, shop)?;
    // All are asked, so that one difference does not hide the other.
    let bodies = bodies(&python, &place, shop);
    let clients = clients(&python, &node, &place, shop);
    bodies.and(clients)
}

/// What our encoders write is what the clients' own types allow.
fn bodies(python: &python::Python, place: &Path, shop: &mut Shop<'_>) -> Result<(), Error> {
    let lines =
        Call::cargo("run --quiet --package agent-providers --example requests").capture(&shop.root)?;
    let file = place.join("requests.jsonl");
    fs::write(&file, lines).map_err(fault(&file))?;
    shop.out.flush()?;
    python.script("bodies.py").arg(shown(&file)).run(&shop.root)
}

/// What the clients parse is what the script says, and the same in both languages.
fn clients(
    python: &python::Python,
    node: &node::Node,
    place: &Path,
    shop: &mut Shop<'_>,
) -> Result<(), Error> {
    let told = shop.root.join(HOME).join("script.json");
    let program = sim::build(&shop.root)?;
    shop.out.flush()?;
    // One simulator each: failures are told once.
    let ask = |call: Call, dir: &Path, facts: &Path| {
        let sim = Sim::start(&program, &told, &shop.root)?;
        let result = call.arg(sim.address()).arg(shown(&told)).arg(shown(facts)).run(dir);
        result.and(sim.stop())
    };
    let (theirs, others) = (place.join("python.jsonl"), place.join("node.jsonl"));
    let first = ask(python.script("clients.py"), &shop.root, &theirs);
    let second = ask(node.script("clients.mjs", &shop.root), node.dir(), &others);
    first.and(second)?;
    let differences = facts::compare(&read(&theirs)?, &read(&others)?);
    let compared = differences.compared;
    for line in &differences.told {
        writeln!(shop.out, "oracle: {line}")?;
    }
    match differences.told.len() {
        0 => Ok(writeln!(shop.out, "oracle: Python and TypeScript: {compared} facts, the same in both")?),
        count => Err(Error::Findings { verb: "oracle", count }),
    }
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_path_buf(), source })
}

fn fault(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path: PathBuf = path.to_path_buf();
    move |source| Error::Write { path, source }
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
