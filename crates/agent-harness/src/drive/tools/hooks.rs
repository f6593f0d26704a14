//! The hooks before and behind a call (requirement T3): each sees what those before it left, and its failure is told.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::pin;

use agent_core::{ActionOutcome, Diagnostic, RawJson, ToolOutput};
use agent_tools::{After, Before, HookCx, HookDecision, HookError, Subject, ToolHook};
use futures_util::FutureExt;

use super::execute::{GRACE, words_of_panic};
use super::{Admitted, Done, Said, Site};
use crate::unless::unless_cancelled;

/// What the hooks before a call made of it.
pub(super) enum Hooked {
    Goes(Admitted),
    /// It does not run.
    Ends(Done),
    /// The run was stopped while they looked.
    Stopped,
}

/// What one hook made of a call.
enum Looked {
    Passes,
    Blocks(String),
}

/// Shows the call to each hook that looks at its tool. One that blocks it ends it; so does one that fails, because what
/// it was to prevent is not known.
pub(super) async fn before(site: &Site<'_>, mut admitted: Admitted) -> Hooked {
    // Of the input that would run: looked up anew when a hook changed it.
    let mut looked_up: Option<(RawJson, Subject)> = None;
    for hook in &site.config.tool_hooks {
        if !hook.looks_at(&admitted.call.name) {
            continue;
        }
        let Admitted { call, tool, input, .. } = &admitted;
        if looked_up.as_ref().is_none_or(|(of, _)| of != input) {
            let Some(subject) = unless_cancelled(site.cancel, Subject::of(&**tool, input)).await else {
                return Hooked::Stopped;
            };
            looked_up = Some((input.clone(), subject));
        }
        let subject = looked_up.as_ref().map(|(_, subject)| subject);
        let cx = HookCx { session: &site.session, call: &call.id, tool: &call.name, subject };
        let looked = unless_cancelled(site.cancel, guarded(&**hook, hook.before(&cx, input))).await;
        match looked {
            None => return Hooked::Stopped,
            Some(Ok(before)) => match take(&mut admitted, hook.name(), before) {
                Looked::Passes => {}
                Looked::Blocks(reason) => return Hooked::Ends(blocked(admitted, hook.name(), &reason)),
            },
            Some(Err(error)) => return Hooked::Ends(failed_closed(admitted, &error)),
        }
    }
    Hooked::Goes(admitted)
}

fn take(admitted: &mut Admitted, hook: &str, before: Before) -> Looked {
    let Before { decision, updated_input, context } = before;
    let said = &mut admitted.said;
    said.context.extend(context);
    if let Some(updated) = updated_input.filter(|updated| *updated != admitted.input) {
        admitted.input = updated;
        said.changed_by.push(format!("the hook `{hook}`"));
        // What was allowed is not what would run now.
        said.allowed_by = None;
    }
    match decision {
        None => Looked::Passes,
        Some(HookDecision::Allow) => {
            said.allowed_by.get_or_insert_with(|| hook.to_owned());
            Looked::Passes
        }
        Some(HookDecision::Ask) => {
            said.asked_by.get_or_insert_with(|| hook.to_owned());
            Looked::Passes
        }
        Some(HookDecision::Block(reason)) => Looked::Blocks(reason),
    }
}

fn blocked(admitted: Admitted, hook: &str, reason: &str) -> Done {
    let words = format!("`{}` was not run: the hook `{hook}` blocks it. {reason}", admitted.call.name);
    admitted.answered(ActionOutcome::Denied, ToolOutput::denied(words))
}

fn failed_closed(mut admitted: Admitted, error: &HookError) -> Done {
    let words = format!(
        "`{}` was not run: {error}, and without it no call of this tool runs. Do not repeat the call; go on without it, or tell the user that the hook must be mended.",
        admitted.call.name
    );
    tell(&mut admitted.said, error);
    admitted.answered(ActionOutcome::Failed, ToolOutput::error(words))
}

/// Shows what came of a call to each hook that looks at its tool; the output that one put in its place, if one did. A
/// hook that fails changes nothing.
pub(super) async fn behind(site: &Site<'_>, done: &mut Done, output: &ToolOutput) -> Option<ToolOutput> {
    let mut replaced = None;
    let input = done.input.clone().unwrap_or_else(|| as_text(done.call.input.as_str()));
    let mut looked_up: Option<Subject> = None;
    for hook in &site.config.tool_hooks {
        if !hook.looks_at(&done.call.name) {
            continue;
        }
        if let Some(tool) = site.config.tools.get(&done.call.name).filter(|_| looked_up.is_none()) {
            looked_up = Some(Subject::of(&**tool, &input).await);
        }
        let subject = looked_up.as_ref();
        let cx = HookCx { session: &site.session, call: &done.call.id, tool: &done.call.name, subject };
        let now = replaced.as_ref().unwrap_or(output);
        let looking = match done.outcome {
            ActionOutcome::Completed => hook.after(&cx, &input, now),
            ActionOutcome::Failed | ActionOutcome::Denied | ActionOutcome::Cancelled | _ => {
                hook.failed(&cx, &input, now)
            }
        };
        match in_time(site, &**hook, looking).await {
            Ok(After { output, context }) => {
                done.said.context.extend(context);
                replaced = output.or(replaced);
            }
            Err(error) => tell(&mut done.said, &error),
        }
    }
    replaced
}

/// A hook behind a call sees also one that was stopped, but does not hold up the stop for long.
async fn in_time<T>(
    site: &Site<'_>,
    hook: &dyn ToolHook,
    looking: impl Future<Output = Result<T, HookError>>,
) -> Result<T, HookError> {
    let mut looking = pin!(guarded(hook, looking));
    if let Some(looked) = unless_cancelled(site.cancel, &mut looking).await {
        return looked;
    }
    let looked = tokio::time::timeout(GRACE, looking).await;
    looked.unwrap_or_else(|_| Err(HookError::new(hook.name(), "it was still busy when the run was stopped")))
}

/// A hook that panics has failed.
async fn guarded<T>(
    hook: &dyn ToolHook,
    looking: impl Future<Output = Result<T, HookError>>,
) -> Result<T, HookError> {
    AssertUnwindSafe(looking).catch_unwind().await.unwrap_or_else(|panic| {
        Err(HookError::new(hook.name(), format!("it broke down ({})", words_of_panic(&*panic))))
    })
}

fn tell(said: &mut Said, error: &HookError) {
    tracing::warn!(%error, "a hook failed");
    said.told.push(Diagnostic { what: "tool_hooks".to_owned(), why: error.to_string() });
}

/// What a model wrote that is no JSON, as a JSON text.
fn as_text(written: &str) -> RawJson {
    RawJson::of(written).unwrap_or_else(|_| RawJson::empty_object())
}
