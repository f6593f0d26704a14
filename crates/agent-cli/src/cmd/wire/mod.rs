//! `agent wire`: what goes over the wire to a provider, taken apart and put together.

pub(crate) mod convert;
pub(crate) mod decode;
pub(crate) mod replay;

use std::io::{Read, Write, stderr, stdin, stdout};

use agent_core::{Diagnostic, EntryId, ModelProfile, Repair};
use agent_providers::openai_chat::Quirks;
use agent_providers::{Catalog, Dialect, Transcript, Vendor, WireFormat};

use crate::args::TargetArgs;
use crate::error::CliError;
use crate::models;
use crate::show::plain;

/// A format by name.
pub(crate) fn format(name: &str) -> Result<WireFormat, CliError> {
    WireFormat::parse(name).ok_or_else(|| {
        let known = WireFormat::ALL.map(WireFormat::as_str).join(", ");
        CliError::Format { given: name.to_owned(), known }
    })
}

/// A format as a provider speaks it; without one, as its inventor does.
pub(crate) fn dialect(format_name: &str, provider: Option<&str>) -> Result<Dialect, CliError> {
    let format = format(format_name)?;
    let Some(provider) = provider else { return Ok(format.into()) };
    let speaks =
        || Vendor::names().filter_map(Vendor::named).filter(|vendor| vendor.dialect.format == format);
    if let Some(vendor) = speaks().find(|vendor| vendor.name == provider) {
        return Ok(vendor.dialect);
    }
    let dialect = Dialect::of(format, provider);
    let is_plain = dialect.quirks == Quirks::default();
    if is_plain && speaks().all(|vendor| vendor.dialect.provider != provider) {
        let known: Vec<String> = speaks().map(|vendor| vendor.name).collect();
        let known = known.join(", ");
        writeln!(
            stderr(),
            "provider: nothing is known of {:?} with this format; the least is assumed. Known: {known}",
            plain(provider)
        )?;
    }
    Ok(dialect)
}

fn input() -> Result<Vec<u8>, CliError> {
    let mut input = Vec::new();
    stdin().lock().read_to_end(&mut input).map_err(CliError::Input)?;
    Ok(input)
}

/// Prints the request body of a transcript on standard output; on standard error, what could not be sent as asked.
fn print_request(mut transcript: Transcript, format: &str, target: &TargetArgs) -> Result<(), CliError> {
    let dialect = dialect(format, target.provider.as_deref())?;
    if let Some(model) = &target.model {
        transcript.model.clone_from(model);
    }
    if transcript.model.is_empty() {
        return Err(CliError::NoModel);
    }
    let known = models::of_wire(target.known.file.as_deref())?;
    let encoded = transcript.encode(&dialect, known.profile(&dialect.provider, &transcript.model));
    tell(&encoded.diagnostics)?;
    for (name, value) in &encoded.request.headers {
        writeln!(stderr(), "header {name}: {value}")?;
    }
    let mut out = stdout().lock();
    out.write_all(&encoded.request.body.to_vec())?;
    writeln!(out)?;
    Ok(())
}

/// What is known of a model by itself.
fn profile(dialect: &Dialect, model: &str) -> ModelProfile {
    Catalog::builtin().profile(&dialect.provider, model)
}

fn tell(diagnostics: &[Diagnostic]) -> Result<(), CliError> {
    for Diagnostic { what, why } in diagnostics {
        writeln!(stderr(), "{}: {}", plain(what), plain(why))?;
    }
    Ok(())
}

fn tell_repairs(repairs: &[(EntryId, Repair)]) -> Result<(), CliError> {
    for (entry, repair) in repairs {
        let what = match repair {
            Repair::Answered(call) => format!("call {call} had no result and was given one"),
            Repair::Dropped(call) => format!("the result for {call} answers no call and was dropped"),
            Repair::Renamed { from, to } => format!("the id of call {from} was taken; it is now {to}"),
            _ => "it was mended".to_owned(),
        };
        writeln!(stderr(), "entry {entry}: {}", plain(&what))?;
    }
    Ok(())
}
