//! The end of the todo list.

use crate::stop::{Stop, StopCondition, StopCx};

/// Ends the turn when the todo list is done; see [`todos_done`].
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "a condition with nothing in it")]
pub struct TodosDone;

/// Ends the turn, as `stopped(todos_done)`, when there is a todo list and every item of it is done.
///
/// ```
/// use agent_turn::{StopConditionExt, step_count, todos_done};
/// let stop = step_count(40).or(todos_done());
/// # let _ = stop;
/// ```
pub fn todos_done() -> TodosDone {
    TodosDone
}

impl StopCondition for TodosDone {
    fn check(&self, cx: &StopCx<'_>) -> Option<Stop> {
        (cx.todos.all > 0 && cx.todos.open == 0).then_some(Stop::Todos)
    }

    fn name(&self) -> String {
        Stop::Todos.to_string()
    }
}
