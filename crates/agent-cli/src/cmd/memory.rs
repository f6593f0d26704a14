//! `agent memory`: what is kept for later sessions on a project.

use std::io::{Write, stderr, stdout};
use std::process::ExitCode;

use agent_memory::{
    Memory, MemoryDir, MemoryError, MemoryName, MemoryPlace, MemoryType, TrustedSource, Written,
};
use serde::Serialize;

use crate::args::{MemoryAddArgs, MemoryListArgs, MemoryNameArgs, MemoryPlaceArgs, MemoryShowArgs};
use crate::env;
use crate::error::CliError;
use crate::show::plain;

/// A memory for programs.
#[derive(Debug, Serialize)]
struct Row<'m> {
    name: &'m MemoryName,
    #[serde(rename = "type")]
    kind: MemoryType,
    description: &'m str,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'m str>,
}

pub(crate) fn list(args: MemoryListArgs) -> Result<ExitCode, CliError> {
    let place = place(args.place)?;
    let mut out = stdout();
    let Some(memories) = existing(&place)? else {
        if !args.json {
            writeln!(out, "No memories in {} yet.", plain(&place.path.display().to_string()))?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    for stored in memories.list()?.memories {
        let memory = &stored.memory;
        if args.json {
            writeln!(out, "{}", serde_json::to_string(&row(memory, None))?)?;
        } else {
            let line = format!("{}  {}  {}", memory.name(), memory.kind(), memory.description());
            writeln!(out, "{}", plain(&line))?;
        }
    }
    out.flush()?;
    let view = memories.index()?;
    let told = [
        view.left_out_names()
            .iter()
            .map(|name| format!("not shown to a session, the index is full: {name}"))
            .collect(),
        view.dangling.iter().map(|name| format!("listed, and the file is gone: {name}")).collect(),
        view.strange.iter().map(|file| format!("no memory: {}: {}", file.file, file.why)).collect::<Vec<_>>(),
        view.fault.into_iter().collect(),
    ];
    for line in told.concat() {
        writeln!(stderr(), "agent: {}", plain(&line))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn show(args: MemoryShowArgs) -> Result<ExitCode, CliError> {
    let name = name(args.name)?;
    let memories = some(&place(args.place)?, &name)?;
    let mut out = stdout();
    if args.json {
        let memory = memories.memory(&name)?;
        writeln!(out, "{}", serde_json::to_string(&row(&memory, Some(memory.body())))?)?;
    } else {
        for line in memories.read(&name)?.lines() {
            writeln!(out, "{}", plain(line))?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn add(args: MemoryAddArgs) -> Result<ExitCode, CliError> {
    let fault = |fault| {
        let file = format!("{}.md", args.name);
        CliError::Memory(MemoryError::Fault { file, fault })
    };
    let kind: MemoryType =
        args.kind.parse().map_err(|error: agent_memory::NoSuchType| fault(error.into()))?;
    let memory = Memory::new(name(args.name.clone())?, kind, &args.description, &args.body).map_err(fault)?;
    let memories = MemoryDir::open(&place(args.place)?.path)?;
    let written = memories.add(&memory)?;
    tell("Kept", &written, &memories)
}

pub(crate) fn rm(args: MemoryNameArgs) -> Result<ExitCode, CliError> {
    let name = name(args.name)?;
    let memories = some(&place(args.place)?, &name)?;
    let written = memories.remove(&name)?;
    tell("Removed", &written, &memories)
}

pub(crate) fn path(args: MemoryPlaceArgs) -> Result<ExitCode, CliError> {
    writeln!(stdout(), "{}", plain(&place(args)?.path.display().to_string()))?;
    Ok(ExitCode::SUCCESS)
}

fn place(args: MemoryPlaceArgs) -> Result<MemoryPlace, CliError> {
    let data = env::data_dir(args.data.data_dir)?;
    let absolute = |path: &std::path::Path| {
        std::path::absolute(path).map_err(|cause| CliError::File { path: path.to_owned(), cause })
    };
    let said = match args.memory_dir {
        Some(dir) => vec![(TrustedSource::Override, absolute(&dir)?)],
        None => Vec::new(),
    };
    Ok(MemoryPlace::resolve(&said, &absolute(&data)?, &agent_memory::project_root(&args.cwd))?)
}

/// The directory when it is there: looking makes nothing.
fn existing(place: &MemoryPlace) -> Result<Option<MemoryDir>, CliError> {
    if place.path.is_dir() { Ok(Some(MemoryDir::open(&place.path)?)) } else { Ok(None) }
}

fn some(place: &MemoryPlace, name: &MemoryName) -> Result<MemoryDir, CliError> {
    let missing = || MemoryError::Missing { name: name.to_string(), near: Vec::new() };
    Ok(existing(place)?.ok_or_else(missing)?)
}

fn name(given: String) -> Result<MemoryName, CliError> {
    Ok(MemoryName::new(given).map_err(MemoryError::Name)?)
}

fn row<'m>(memory: &'m Memory, body: Option<&'m str>) -> Row<'m> {
    Row { name: memory.name(), kind: memory.kind(), description: memory.description(), body }
}

fn tell(done: &str, written: &Written, memories: &MemoryDir) -> Result<ExitCode, CliError> {
    let path = memories.path().display().to_string();
    writeln!(stdout(), "{done} {} in {}.", written.name, plain(&path))?;
    if let Some(advice) = written.advice() {
        writeln!(stderr(), "agent: {advice}")?;
    }
    Ok(ExitCode::SUCCESS)
}
