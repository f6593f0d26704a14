//! The cheap model shortens an output (requirement T6): asked apart from the conversation, and given up when it fails.

use agent_core::{Diagnostic, Text, Usage};
use agent_tools::OutputCap;

use super::{Done, Site};
use crate::HarnessError;
use crate::drive::ask::{apart, asked};

/// What the model made of an output.
#[derive(Default)]
pub(super) struct Summary {
    /// `None` when the output stays as it is.
    pub(super) words: Option<String>,
    pub(super) spent: Usage,
    pub(super) told: Option<Diagnostic>,
}

/// Asks it. An attempt that fails keeps the output, and so does a run that is stopped.
pub(super) async fn summarise(site: &Site<'_>, done: &Done, whole: &str) -> Result<Summary, HarnessError> {
    let config = site.config;
    let Some(model) = &config.summary_model else { return Ok(Summary::default()) };
    let system = Text::or(INSTRUCTIONS, "Shorten the output.");
    let words = Text::or(question(done, whole), "(no output)");
    let request = apart(&**model, &system, &words, MAX_OUTPUT)?;
    let (answer, spent) = asked(config, &**model, &request, site.cancel).await;
    let Some(answer) = answer else { return Ok(Summary { spent, ..Summary::default() }) };
    let why = match answer {
        Ok(words) if words.as_str().len() < whole.len() => {
            site.shortening.worked();
            return Ok(Summary { words: Some(words.as_str().to_owned()), spent, told: None });
        }
        Ok(_) => "the answer was not shorter".to_owned(),
        Err(failure) => failure.to_string(),
    };
    Ok(Summary { words: None, spent, told: Some(failed(site, done, &why)) })
}

fn failed(site: &Site<'_>, done: &Done, why: &str) -> Diagnostic {
    let last = if site.shortening.failed() {
        "; this was the third failure in a row, so that no output is shortened any more as long as the session is open"
    } else {
        ""
    };
    let why = format!("the output of {} was not shortened: {why}{last}", done.call.name);
    tracing::warn!(why, "a model could not shorten an output");
    Diagnostic { what: "compact".to_owned(), why }
}

/// The call and its output, each with its end marked; neither can close its own mark.
fn question(done: &Done, whole: &str) -> String {
    let input = INPUT_CAP.apply(done.call.input.as_str(), "").text;
    let output = OUTPUT_CAP.apply(whole, "").text.replace("</output>", "<\\/output>");
    format!("Tool: {}\nInput: {input}\n\n<output>\n{output}\n</output>", done.call.name)
}

const INSTRUCTIONS: &str = include_str!("../../../prompt/shorten.md");
/// Tokens of an answer.
const MAX_OUTPUT: u32 = 1_000;
/// How much of the input the model is shown.
const INPUT_CAP: OutputCap = OutputCap { lines: 50, bytes: 4_000, line_chars: 4_000 };
/// How much of the output it is shown: about 50,000 tokens.
const OUTPUT_CAP: OutputCap = OutputCap { lines: 10_000, bytes: 200_000, line_chars: 20_000 };
