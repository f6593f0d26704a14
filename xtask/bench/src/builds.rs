//! What a program pays for the crates before its first step: compilation, size and start.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::bench::Fault;
use crate::benches::Found;
use crate::child::{Look, Order, Server};
use crate::figures::{Table, Unit};
use crate::options::Ask;
use crate::{child, machine};

pub(crate) const HEADING: &str = "Building and starting";

pub(crate) const ABOUT: &str = "\
Each crate built alone, in release, from nothing, with its default features; *crates* are all that its library needs,
itself included, those that only run at build time not. The first line is the facade as a program gets it, the second
the facade with nothing chosen. Programs are built in release as they are, and stripped. Starting is the mean of 100 runs:
the program of the command line asked for its version, and the example with one step, which is all from its start over
building the agent to its first answer.";

const RUNS: u32 = 100;

pub(crate) fn measure(_: &Ask, out: &mut dyn Write) -> Result<Found, Fault> {
    std::fs::create_dir_all("target")?;
    let home = tempfile::tempdir_in("target")?;
    let mut found = Found { tables: vec![builds(home.path(), out)?], ..Found::default() };
    let programs = programs(home.path(), out)?;
    found.tables.push(sizes(&programs, home.path())?);
    found.tables.push(starts(&programs, out)?);
    Ok(found)
}

/// One build from nothing.
struct Build {
    name: String,
    package: String,
    bare: bool,
}

fn builds(home: &Path, out: &mut dyn Write) -> Result<Table, Fault> {
    let mut table = Table::new(
        "crate",
        &[("crates", Unit::Whole), ("seconds to build", Unit::Tenth), ("seconds of CPU", Unit::Tenth)],
    );
    for build in plan(&packages(Path::new("crates"))?) {
        writeln!(out, "bench: building {} from nothing", build.name)?;
        let target = home.join("alone");
        let mut cargo = cargo("build --release --quiet");
        cargo.args(["--package", &build.package]).args(build.bare.then_some("--no-default-features"));
        cargo.arg("--target-dir").arg(&target);
        let (wall, cpu) = timed(&mut cargo)?;
        std::fs::remove_dir_all(&target)?;
        table.row(&build.name, [Some(crates(&build)? as f64), Some(wall), Some(cpu)]);
    }
    Ok(table)
}

/// The facade first, with and without what it chooses, then the others by name.
fn plan(packages: &[String]) -> Vec<Build> {
    let build = |package: &str, bare: bool| {
        let name = if bare { format!("{package}, nothing chosen") } else { package.to_owned() };
        Build { name, package: package.to_owned(), bare }
    };
    let others = packages.iter().filter(|package| *package != FACADE).map(|package| build(package, false));
    [build(FACADE, false), build(FACADE, true)].into_iter().chain(others).collect()
}

fn packages(folder: &Path) -> Result<Vec<String>, Fault> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.path().join("Cargo.toml").exists() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// How many crates its library needs.
fn crates(build: &Build) -> Result<usize, Fault> {
    let mut cargo = cargo("tree --edges normal --prefix none --no-dedupe --format {p}");
    cargo.args(["--package", &build.package]).args(build.bare.then_some("--no-default-features"));
    Ok(distinct(&said(&mut cargo)?))
}

fn distinct(lines: &str) -> usize {
    let mut names: Vec<&str> = lines.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    names.sort_unstable();
    names.dedup();
    names.len()
}

/// What is built to be run.
struct Programs {
    agent: PathBuf,
    example: PathBuf,
}

fn programs(home: &Path, out: &mut dyn Write) -> Result<Programs, Fault> {
    writeln!(out, "bench: building the programs")?;
    let target = home.join("programs");
    for line in ["--package agent-cli", "--package agent --example bench_client"] {
        let mut cargo = cargo("build --release --quiet");
        timed(cargo.args(line.split(' ')).arg("--target-dir").arg(&target))?;
    }
    let release = target.join("release");
    Ok(Programs { agent: release.join("agent"), example: release.join("examples/bench_client") })
}

fn sizes(programs: &Programs, home: &Path) -> Result<Table, Fault> {
    let mut table = Table::new("program", &[("MiB", Unit::Tenth), ("MiB stripped", Unit::Tenth)]);
    let mebibytes = |path: &Path| std::fs::metadata(path).map(|file| file.len() as f64 / 1_048_576.0);
    for (name, path) in
        [("agent", &programs.agent), ("bench_client, the facade in an example", &programs.example)]
    {
        let stripped = home.join("stripped");
        // Without the tool the cell stays empty.
        let ran = Command::new("strip").arg("-o").arg(&stripped).arg(path).status();
        let without = ran.ok().filter(|status| status.success()).map(|_| mebibytes(&stripped)).transpose()?;
        table.row(name, [Some(mebibytes(path)?), without]);
    }
    Ok(table)
}

fn starts(programs: &Programs, out: &mut dyn Write) -> Result<Table, Fault> {
    writeln!(out, "bench: starting programs {RUNS} times each")?;
    let mut table = Table::new("run", &[("wall ms", Unit::Tenth), ("CPU ms", Unit::Tenth)]);
    let server = Server::start()?;
    let mut run = |name: &str, start: &mut dyn FnMut() -> Result<(), Fault>| -> Result<(), Fault> {
        let (mut wall, before) = (0.0, machine::children_cpu_s());
        for _ in 0..RUNS {
            let begun = Instant::now();
            start()?;
            wall += begun.elapsed().as_secs_f64();
        }
        let cpu = machine::children_cpu_s() - before;
        table.row(name, [wall, cpu].map(|seconds| Some(seconds * 1e3 / f64::from(RUNS))));
        Ok(())
    };
    run("agent --version", &mut || said(Command::new(&programs.agent).arg("--version")).map(drop))?;
    let order = Order { form: "bench_client", steps: 1, sessions: 1, look: Look::Nothing };
    run("bench_client, one step", &mut || child::example(&programs.example, &server, order))?;
    Ok(table)
}

fn cargo(line: &str) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(line.split(' ')).stdin(Stdio::null()).stderr(Stdio::inherit());
    cargo
}

/// Runs it to its end and gives seconds of wall and of processor time, its children's included.
fn timed(command: &mut Command) -> Result<(f64, f64), Fault> {
    let (begun, before) = (Instant::now(), machine::children_cpu_s());
    said(command)?;
    Ok((begun.elapsed().as_secs_f64(), machine::children_cpu_s() - before))
}

fn said(command: &mut Command) -> Result<String, Fault> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{command:?} failed: {}", output.status).into())
    }
}

const FACADE: &str = "agent";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_facade_is_built_first_and_bare_too() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
        let plan = plan(&packages(&root).unwrap());
        let names: Vec<&str> = plan.iter().map(|build| build.name.as_str()).collect();
        assert!(names.starts_with(&["agent", "agent, nothing chosen"]), "{names:?}");
        assert!(names.contains(&"agent-core") && names.contains(&"agent-cli"), "{names:?}");
        assert_eq!(names.iter().filter(|name| **name == "agent").count(), 1);
    }

    #[test]
    fn a_crate_counts_once() {
        assert_eq!(distinct("a v1\nb v1\na v1\n\nb v2\n"), 3);
    }
}
