//! Which calls of a step run, and which run beside each other.

use std::sync::Arc;

use agent_core::{RawJson, ToolCall, ToolInput, ToolOutput};

use crate::{Concurrency, Tool, ToolSet};

/// Whether a call can run at all.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_enums, reason = "a driver must handle both")]
pub enum Preflight {
    /// It can: this tool with this input, after the permission check.
    Run(Arc<dyn Tool>, RawJson),
    /// It cannot, and this answers it.
    Answer(ToolOutput),
}

/// Finds the tool of a call and judges its input; never runs anything.
pub fn preflight(tools: &ToolSet, call: &ToolCall) -> Preflight {
    let Some(tool) = tools.get(&call.name) else {
        return Preflight::Answer(ToolOutput::error(format!(
            "There is no tool called `{}`. Nothing was done. Call one of: {}.",
            call.name,
            tools.names()
        )));
    };
    match &call.input {
        ToolInput::Json(input) => Preflight::Run(tool.clone(), input.clone()),
        ToolInput::Invalid(text) => {
            let cause =
                RawJson::parse(text.as_str()).err().map_or_else(String::new, |error| error.to_string());
            Preflight::Answer(ToolOutput::error(format!(
                "The input of `{}` is not JSON ({cause}). Nothing was done. Call it again with one JSON object.",
                call.name
            )))
        }
        ToolInput::Truncated(text) => Preflight::Answer(ToolOutput::error(format!(
            "The call of `{}` was cut off by the output limit after {} bytes of input. Nothing was done. Call it again with less input: split the work into several calls.",
            call.name,
            text.len()
        ))),
    }
}

/// The calls of a step in the order they run: batches one after the other, the calls of a batch together.
///
/// Neighbouring parallel calls form one batch; a serial call is a batch of its own (requirement T7).
pub fn batches<'c>(tools: &ToolSet, calls: &'c [ToolCall]) -> impl Iterator<Item = &'c [ToolCall]> {
    calls.chunk_by(|one, next| parallel(tools, one) && parallel(tools, next))
}

/// A call that cannot run has no effect and may stand in any batch.
fn parallel(tools: &ToolSet, call: &ToolCall) -> bool {
    tools.get(&call.name).is_none_or(|tool| tool.traits().concurrency == Concurrency::Parallel)
}

#[cfg(test)]
mod tests {
    use agent_core::CallId;

    use super::*;
    use crate::{Access, ToolConfig};

    fn tools() -> ToolSet {
        let tool = |name, access| {
            ToolConfig::new(name, "Test.", access, |_, _: serde_json::Value| async { Ok(String::new()) })
                .build()
                .unwrap()
        };
        ToolSet::builder().with(tool("r", Access::Read)).with(tool("w", Access::Edit)).freeze().unwrap()
    }

    fn call(name: &str, input: ToolInput) -> ToolCall {
        ToolCall { id: CallId::new("c").unwrap(), name: name.into(), input, data: None }
    }

    #[test]
    fn readers_run_together_and_writers_alone() {
        let check = |names: &str, expect: &[usize]| {
            let calls: Vec<_> =
                names.chars().map(|name| call(&name.to_string(), ToolInput::finished(""))).collect();
            let sizes: Vec<_> = batches(&tools(), &calls).map(<[ToolCall]>::len).collect();
            assert_eq!(sizes, expect, "{names}");
        };
        check("", &[]);
        check("rrr", &[3]);
        check("rrwwr", &[2, 1, 1, 1]);
        check("r?r", &[3]);
    }

    #[test]
    fn calls_that_cannot_run_are_answered() {
        let check = |name: &str, input: ToolInput| match preflight(&tools(), &call(name, input)) {
            Preflight::Run(tool, input) => format!("run {} {input}", tool.card().name()),
            Preflight::Answer(output) => output.plain(),
        };
        insta::assert_snapshot!(check("r", ToolInput::finished("")), @"run r {}");
        insta::assert_snapshot!(check("grip", ToolInput::finished("")), @"There is no tool called `grip`. Nothing was done. Call one of: r, w.");
        insta::assert_snapshot!(check("r", ToolInput::finished("{a")), @"The input of `r` is not JSON (key must be a string at line 1 column 2). Nothing was done. Call it again with one JSON object.");
        insta::assert_snapshot!(check("r", ToolInput::cut("{\"a")), @"The call of `r` was cut off by the output limit after 3 bytes of input. Nothing was done. Call it again with less input: split the work into several calls.");
    }
}
