//! `agent sessions fork | export | import | delete`: sessions as things to keep and to move.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write, stderr, stdin, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agent::memory::AutoFile;
use agent::{Clock, EntryId, Family, LeftOut, SessionId, SqliteStore, Store, SystemClock};
use agent_memory::NotesFile;

use super::found;
use crate::args::{DeleteArgs, ExportArgs, ForkArgs, ImportArgs};
use crate::env;
use crate::error::CliError;
use crate::show::plain;

pub(crate) async fn fork(args: ForkArgs) -> Result<ExitCode, CliError> {
    let id = SessionId::new(args.id)?;
    let data = env::data_dir(args.data.data_dir.clone())?;
    let store = found(args.data.data_dir, &id).await?;
    let at = match args.at {
        Some(at) => at,
        None => {
            let entries = store.load(&id).await?.map_or(0, |record| record.entries.len() as u64);
            entries.checked_sub(1).ok_or_else(|| CliError::NothingToFork { session: id.clone() })?
        }
    };
    let new = SessionId::new(args.name.unwrap_or_else(|| uuid::Uuid::now_v7().to_string()))?;
    let at = EntryId::at(usize::try_from(at).unwrap_or(usize::MAX - 1));
    agent::fork_stored(&store, (&id, at), &new, SystemClock.now_ms()).await?;
    // What memories were taken from already is not looked at again.
    let looked = AutoFile::new(&data, &id).read()?.state.cursor.min(EntryId::at(at.position() + 1));
    if looked > EntryId::at(0) {
        AutoFile::new(&data, &new).update(|record| record.state.cursor = looked)?;
    }
    writeln!(stdout(), "{new}")?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn export(args: ExportArgs) -> Result<ExitCode, CliError> {
    let id = SessionId::new(args.id)?;
    let store = found(args.data.data_dir, &id).await?;
    let mut out: Box<dyn Write + Send> = match &args.out {
        Some(path) => Box::new(BufWriter::new(create(path)?)),
        None => Box::new(BufWriter::new(stdout())),
    };
    let done = agent::export(&store, &id, &mut *out).await;
    drop(out);
    if let (Err(_), Some(path)) = (&done, &args.out) {
        // A part of a session is no export, and would be in the way of the next try.
        remove(path)?;
    }
    told(&done?, "was not written")
}

pub(crate) async fn import(args: ImportArgs) -> Result<ExitCode, CliError> {
    let name = args.name.map(SessionId::new).transpose()?;
    let mut lines: Box<dyn BufRead + Send> = match &args.file {
        Some(path) => Box::new(BufReader::new(open(path)?)),
        None => Box::new(BufReader::new(stdin())),
    };
    let store = SqliteStore::open(&env::data_dir(args.data.data_dir)?)?;
    let imported = agent::import(&store, &mut *lines, name, SystemClock.now_ms()).await?;
    writeln!(stdout(), "{}", imported.session)?;
    for repair in &imported.repairs {
        writeln!(stderr(), "note: mended whenever it is loaded, so that calls and results pair: {repair:?}")?;
    }
    told(&imported.left_out, "was not read")
}

pub(crate) async fn delete(args: DeleteArgs) -> Result<ExitCode, CliError> {
    let data = env::data_dir(args.data.data_dir.clone())?;
    for id in args.ids {
        let id = SessionId::new(id)?;
        let store = found(args.data.data_dir.clone(), &id).await?;
        let family = Family::hold(&store, &id).await?;
        // First, so that a session of the same name that begins later never finds it, wherever this process dies.
        for one in family.ids() {
            NotesFile::new(&data, one).remove()?;
        }
        for deleted in family.delete(&store).await? {
            // What a run beside it wrote meanwhile.
            NotesFile::new(&data, &deleted).remove()?;
            writeln!(stdout(), "deleted {deleted}")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Success, or what is missing of it.
fn told(left_out: &[LeftOut], how: &str) -> Result<ExitCode, CliError> {
    for left in left_out {
        writeln!(stderr(), "agent: {how}: {}", plain(&left.to_string()))?;
    }
    Ok(if left_out.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A file that is new: an export takes nothing's place.
fn create(path: &Path) -> Result<File, CliError> {
    File::create_new(path).map_err(|cause| CliError::File { path: PathBuf::from(path), cause })
}

#[expect(clippy::disallowed_methods, reason = "the file the user named, which this program has just made")]
fn remove(path: &Path) -> Result<(), CliError> {
    std::fs::remove_file(path).map_err(|cause| CliError::File { path: PathBuf::from(path), cause })
}

#[expect(clippy::disallowed_methods, reason = "the file the user names, outside any workspace")]
fn open(path: &Path) -> Result<File, CliError> {
    File::open(path).map_err(|cause| CliError::File { path: PathBuf::from(path), cause })
}
