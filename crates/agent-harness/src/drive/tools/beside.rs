//! Words that stand beside a result: what ran when the model wrote something else, and what hooks have to say.

use std::borrow::Cow;

use agent_core::{ContentPart, Text, ToolOutput, reminder};
use agent_tools::OutputCap;

use super::shorten::offload;
use super::{Done, Site};
use crate::HarnessError;

/// The output with a block for each of the words that belong to the call.
pub(super) async fn beside(
    site: &Site<'_>,
    done: &Done,
    output: ToolOutput,
) -> Result<ToolOutput, HarnessError> {
    if done.said.changed_by.is_empty() && done.said.context.is_empty() {
        return Ok(output);
    }
    // On the heap: few calls have any.
    Box::pin(with_words(site, done, output)).await
}

async fn with_words(site: &Site<'_>, done: &Done, output: ToolOutput) -> Result<ToolOutput, HarnessError> {
    let mut blocks = Vec::new();
    if let Some(words) = changed(site, done).await? {
        blocks.push(reminder(&words));
    }
    for words in &done.said.context {
        blocks.push(reminder(&offload(site, &CONTEXT_CAP, words.as_str()).await?));
    }
    Ok(if blocks.is_empty() { output } else { with(output, blocks.join("\n")) })
}

/// What ran, or would have, when that is not what the model wrote. Its own call stays as it is in the history.
async fn changed(site: &Site<'_>, done: &Done) -> Result<Option<String>, HarnessError> {
    let input = done.input.as_ref().filter(|input| done.call.input.as_str() != input.get());
    let Some(input) = input else { return Ok(None) };
    let by = done.said.changed_by.join(", then ");
    let shown = offload(site, &INPUT_CAP, input.get()).await?;
    let what = if done.ran { "What ran" } else { "What was to run" };
    Ok(Some(format!("{what} is not what you wrote: {by} put this input in its place:\n{shown}")))
}

fn with(output: ToolOutput, words: String) -> ToolOutput {
    let behind = |before: Cow<'_, str>| format!("{}\n{words}", before.trim_end());
    match output {
        ToolOutput::Text(text) => ToolOutput::text(behind(text.as_str().into())),
        ToolOutput::Json(json) => ToolOutput::text(behind(json.get().into())),
        ToolOutput::Error(text) => ToolOutput::error(behind(text.as_str().into())),
        ToolOutput::Denied(text) => ToolOutput::denied(behind(text.as_str().into())),
        ToolOutput::Content(mut parts) => {
            parts.extend(Text::new(words).map(ContentPart::Text));
            ToolOutput::Content(parts)
        }
        other => other,
    }
}

/// How much of an input is shown; all of it can be read on.
const INPUT_CAP: OutputCap = OutputCap { lines: 100, bytes: 8_000, line_chars: 8_000 };
/// How much a hook may say; all of it can be read on.
const CONTEXT_CAP: OutputCap = OutputCap { lines: 200, bytes: 8_000, line_chars: 8_000 };

#[cfg(test)]
mod tests {
    use agent_core::{FilePart, FileSource, RawJson};

    use super::*;

    #[test]
    fn an_output_stays_of_its_kind() {
        let check = |output: ToolOutput, expect: &str| {
            let fails = output.is_error();
            let with = with(output, reminder("Mind </system-reminder>."));
            assert_eq!(with.is_error(), fails);
            assert_eq!(
                with.plain(),
                format!("{expect}\n<system-reminder>\nMind <\\/system-reminder>.\n</system-reminder>")
            );
        };
        check(ToolOutput::text("four\n"), "four");
        check(ToolOutput::Json(RawJson::parse(r#"{"n":1.0}"#).unwrap()), r#"{"n":1.0}"#);
        check(ToolOutput::error("no"), "no");
        check(ToolOutput::denied("never"), "never");
        let source = FileSource::Base64("aGk=".into());
        let file = FilePart { media_type: "image/png".into(), source, name: None };
        check(ToolOutput::Content(vec![ContentPart::File(file)]), "[image/png]");
    }
}
