//! `agent doctor`: the ten points of a sound agent, looked at on the agent that `agent run` would put together.

use std::io::{Write, stdout};
use std::process::ExitCode;
use std::sync::Arc;

use agent::SqliteStore;

use crate::args::DoctorArgs;
use crate::error::CliError;
use crate::show::plain;
use crate::{assemble, env};

pub(crate) async fn doctor(args: DoctorArgs) -> Result<ExitCode, CliError> {
    let data = env::data_dir(args.agent.data.data_dir.clone())?;
    // Where nothing was ever stored, a store of the same kind is looked at elsewhere, so that nothing is left behind.
    let elsewhere = tempfile::tempdir()
        .map_err(|cause| CliError::File { path: "the directory for temporary files".into(), cause })?;
    let store = match assemble::stored(&data)? {
        Some(store) => store,
        None => SqliteStore::open(elsewhere.path())?,
    };
    let checkup = assemble::keyless(&args.agent, Arc::new(store))?.examine().await;
    let mut out = stdout();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&checkup)?)?;
    } else {
        for line in checkup.to_string().lines() {
            writeln!(out, "{}", plain(line))?;
        }
    }
    Ok(if checkup.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
