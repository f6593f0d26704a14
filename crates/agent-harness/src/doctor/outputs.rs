//! Item 7: outputs of tools are capped, cut and kept elsewhere.

use agent_core::{BlobHash, ToolResult};
use agent_store::Store;
use agent_tools::{OutputCap, ToolTraits};

use super::rehearsal::{calls, words};
use super::{Finding, Rehearsal};
use crate::HarnessError;
use crate::config::HarnessConfig;
use crate::stand_ins::StandIns;

/// More than any sensible cap: what is allowed more counts as not capped.
const UNCAPPED: usize = 1024 * 1024;
/// Bytes that the mark of a cut takes.
const MARK: usize = 400;
const LINE: &str = "A line of an output that is far too long for the history of any session.\n";
/// The tool that reads what was left out.
const READER: &str = "read_file";

pub(super) async fn examine(config: &HarnessConfig) -> Finding {
    let mut finding = Finding::new("outputs", "outputs capped, truncated, offloaded");
    if config.tools.cards().is_empty() {
        finding.saw("there are no tools");
        return finding;
    }
    let mut capped = Vec::new();
    for tool in config.tools.iter() {
        let (name, OutputCap { bytes, .. }) = (tool.card().name(), tool.traits().cap);
        if bytes <= UNCAPPED {
            capped.push(name);
            continue;
        }
        finding.fail(
            format!("{name} may put {bytes} bytes into the history at once"),
            "Give it an OutputCap; what is left out is kept and can be read later.",
        );
    }
    match flood(config, &capped).await {
        Ok(rehearsal) => {
            if let Err(error) = judge(&mut finding, config, &capped, &rehearsal).await {
                finding.fail(
                    format!("the rehearsed outputs cannot be read: {error}"),
                    "Mend what the error names.",
                );
            }
        }
        Err(error) => {
            finding.fail(format!("no output could be rehearsed: {error}"), "Mend what the error names.")
        }
    }
    finding
}

/// Lets every tool with a cap say twice what it may.
async fn flood(config: &HarnessConfig, names: &[&str]) -> Result<Rehearsal, HarnessError> {
    let answers = vec![calls(names.iter().copied()), words("Done.")];
    Rehearsal::of(config, answers, StandIns::new(flood_of)).await
}

fn flood_of(traits: &ToolTraits) -> String {
    LINE.repeat(traits.cap.bytes.min(UNCAPPED) * 2 / LINE.len() + 2)
}

async fn judge(
    finding: &mut Finding,
    config: &HarnessConfig,
    names: &[&str],
    rehearsal: &Rehearsal,
) -> Result<(), HarnessError> {
    let mut kept = 0;
    for (name, result) in rehearsal.results().await? {
        let Some(tool) = config.tools.get(&name) else { continue };
        let whole = flood_of(tool.traits());
        match fault(&result, tool.traits().cap, &whole, rehearsal).await? {
            None => kept += 1,
            Some(fault) => finding.fail(
                format!("{name} said {} bytes, and {fault}", whole.len()),
                "This is a fault of the driver; please report it.",
            ),
        }
    }
    let caps = config.tools.iter().map(|tool| tool.traits().cap.bytes).filter(|bytes| *bytes <= UNCAPPED);
    let caps: Vec<usize> = caps.collect();
    let (least, most) = (caps.iter().min().copied().unwrap_or(0), caps.iter().max().copied().unwrap_or(0));
    finding.saw(format!(
        "{kept} of {} tools said twice what they may: each output was cut to its cap ({least} to {most} bytes), and the whole \
         of it was kept under the name the cut gives",
        names.len()
    ));
    if config.tools.get(READER).is_none() {
        finding.warn(
            format!("a cut output says to read on with {READER}, and there is no such tool"),
            format!("Give the agent a {READER} that reads `blob:…`, as the built-in one does."),
        );
    }
    Ok(())
}

/// What is wrong with a cut output.
async fn fault(
    result: &ToolResult,
    cap: OutputCap,
    whole: &str,
    rehearsal: &Rehearsal,
) -> Result<Option<String>, HarnessError> {
    let text = result.output.plain();
    if text.len() > cap.bytes + MARK {
        return Ok(Some(format!("{} of them are in the history", text.len())));
    }
    let hash = text.split("blob:").nth(1).and_then(|rest| BlobHash::parse(rest.get(..64)?));
    let Some(hash) = hash else { return Ok(Some("the cut does not say where the rest is".to_owned())) };
    let stored = rehearsal.store.get_blob(&hash).await?;
    let is_whole = stored.is_some_and(|stored| stored == whole.as_bytes());
    Ok((!is_whole).then(|| format!("{hash} does not hold them")))
}
