//! `agent wire encode` and `agent wire convert`: transcripts and request bodies turned into request bodies.

use std::io::{Write, stdout};
use std::process::ExitCode;

use agent_providers::{Transcript, import_request};

use super::{dialect, input, print_request, tell, tell_repairs};
use crate::args::{ConvertArgs, EncodeArgs};
use crate::error::CliError;

/// A transcript in, a request body out.
pub(crate) fn encode(args: &EncodeArgs) -> Result<ExitCode, CliError> {
    let transcript = read_transcript()?;
    print_request(transcript, &args.format, &args.target)?;
    Ok(ExitCode::SUCCESS)
}

/// A request body of one format in, that of another out; either may be a transcript.
pub(crate) fn convert(args: &ConvertArgs) -> Result<ExitCode, CliError> {
    let transcript = if args.from == TRANSCRIPT { read_transcript()? } else { import(args)? };
    if args.to == TRANSCRIPT {
        writeln!(stdout(), "{}", serde_json::to_string(&transcript)?)?;
    } else {
        print_request(transcript, &args.to, &args.target)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn read_transcript() -> Result<Transcript, CliError> {
    let (transcript, repairs) = Transcript::read(&input()?)?;
    tell_repairs(&repairs)?;
    Ok(transcript)
}

fn import(args: &ConvertArgs) -> Result<Transcript, CliError> {
    let imported = import_request(&dialect(&args.from, args.from_provider.as_deref())?, &input()?)?;
    tell(&imported.diagnostics)?;
    tell_repairs(&imported.repairs)?;
    Ok(imported.into())
}

/// The name of our own form among those of the formats.
const TRANSCRIPT: &str = "transcript";
