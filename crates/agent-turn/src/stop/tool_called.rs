//! The call of a certain tool.

use crate::stop::{Stop, StopCondition, StopCx};

/// Ends the turn when a tool was called; see [`tool_called`].
#[derive(Debug, Clone)]
pub struct ToolCalled {
    tool: String,
}

/// Ends the turn when the last step called `tool` and the call did not fail: a refused `complete` does not end it.
pub fn tool_called(tool: impl Into<String>) -> ToolCalled {
    ToolCalled { tool: tool.into() }
}

impl StopCondition for ToolCalled {
    fn check(&self, cx: &StopCx<'_>) -> Option<Stop> {
        let mut pairs = cx.last.pairs();
        let called = pairs.any(|(call, result)| call.name == self.tool && !result.output.is_error());
        called.then(|| Stop::Tool(self.tool.clone()))
    }

    fn name(&self) -> String {
        Stop::Tool(self.tool.clone()).to_string()
    }
}
