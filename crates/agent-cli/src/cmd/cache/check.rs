//! `agent cache check`: scenarios through the real harness, against the simulated provider and their budgets (V3).

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::scenario::{Scenario, name};
use super::verdict::judge;
use super::{report, tell};
use crate::args::CheckArgs;
use crate::cmd::run::stopped;
use crate::cmd::signals::Signals;
use crate::error::CliError;

pub(crate) async fn check(args: &CheckArgs) -> Result<ExitCode, CliError> {
    let mut files = Vec::new();
    for path in &args.paths {
        collect(path, &mut files)?;
    }
    if files.is_empty() {
        return Err(CliError::NoScenario { paths: args.paths.clone() });
    }
    // All are read first: a mistake in the last is not told after minutes.
    let scenarios = files.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    args.report.as_deref().map_or(Ok(()), can_write)?;
    let mut signals = Signals::listen().map_err(CliError::Runtime)?;
    let mut verdicts = Vec::with_capacity(scenarios.len());
    let mut out = stdout();
    for (path, scenario) in files.iter().zip(scenarios) {
        // What is given up takes its processes and its folder with it.
        let verdict = tokio::select! {
            verdict = judge(name(path), scenario) => verdict?,
            () = signals.next() => return Ok(stopped()),
        };
        if args.json {
            writeln!(out, "{}", tell::json(&verdict))?;
        } else {
            out.write_all(tell::text(&verdict, args.rows).as_bytes())?;
        }
        verdicts.push(verdict);
    }
    if let Some(path) = &args.report {
        write(path, &report::page(&verdicts))?;
    }
    let failed = verdicts.iter().filter(|verdict| !verdict.holds()).count();
    if !args.json {
        let plural = if verdicts.len() == 1 { "" } else { "s" };
        writeln!(out, "{} scenario{plural}, {failed} failed", verdicts.len())?;
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The scenario files at a path, in the order of their names; those of folders below come last.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), CliError> {
    let fault = |cause| CliError::File { path: path.to_owned(), cause };
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let entries = path.read_dir().map_err(fault)?.collect::<Result<Vec<_>, _>>().map_err(fault)?;
    let mut paths: Vec<PathBuf> = entries.iter().map(std::fs::DirEntry::path).collect();
    paths.sort_by_key(|path| (path.is_dir(), path.clone()));
    for path in paths {
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "json") {
            files.push(path);
        }
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "files the user names, outside any workspace")]
fn read(path: &Path) -> Result<Scenario, CliError> {
    let fault = |cause| CliError::Given {
        path: path.to_owned(),
        cause,
        give: "files or folders of scenarios, as docs/guides/cache-scenarios.md shows them",
    };
    let text = std::fs::read_to_string(path).map_err(fault)?;
    Scenario::read(&text).map_err(|cause| CliError::Scenario { path: path.to_owned(), cause })
}

/// Says at once what would be said after minutes; what the file holds stays.
fn can_write(path: &Path) -> Result<(), CliError> {
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
    opened.map(drop).map_err(|cause| CliError::File { path: path.to_owned(), cause })
}

#[expect(clippy::disallowed_methods, reason = "a file the user names, outside any workspace")]
fn write(path: &Path, text: &str) -> Result<(), CliError> {
    std::fs::write(path, text).map_err(|cause| CliError::File { path: path.to_owned(), cause })
}
