//! Whether a call can and may run, as far as no person is needed: preflight, hooks, input, permission.

use agent_core::{ActionOutcome, Layer, ParkKind, ToolCall, ToolOutput};
use agent_tools::{Pattern, PermissionRule, Preflight, Proposal, ToolError, Verdict, preflight, resolve};

use super::child;
use super::hold::{self, Replied};
use super::hooks::{self, Hooked};
use super::{Admitted, Cleared, Done, Said, Site, classify};
use crate::drive::call::inactive;
use crate::unless::unless_cancelled;

/// What the check said of a call.
pub(super) enum Checked {
    Cleared(Cleared),
    /// A person decides.
    Ask(Admitted),
    Answered(Done),
    /// It waits for a reply that is not there yet.
    Held(ParkKind),
}

/// Checks one call; `None` when the run was stopped meanwhile.
pub(super) async fn check(site: &Site<'_>, call: &ToolCall) -> Option<Checked> {
    // From here on the call is the one that runs; the history keeps what the model wrote.
    let written = call;
    let resolved = match resolve(&site.config.tools, call) {
        Ok(resolved) => resolved,
        Err(output) => return Some(Checked::Answered(Done::at_once(call, output))),
    };
    let call = &*resolved;
    let at_once = |words| Some(Checked::Answered(Done::at_once(call, words)));
    if let Some(words) = inactive(site.active, &site.config.tools, &call.name) {
        return at_once(ToolOutput::error(words));
    }
    let (tool, input) = match preflight(&site.config.tools, call) {
        Preflight::Run(tool, input) => (tool, input),
        Preflight::Answer(output) => return at_once(child::too_deep(site, call).unwrap_or(output)),
    };
    if site.lost.contains(&call.id) && !tool.traits().idempotent {
        return at_once(ToolOutput::error(OUTCOME_UNKNOWN));
    }
    match hold::reply(site, call, &tool, &input) {
        Replied::Nothing | Replied::RunsNow => {}
        Replied::Held(kind) => return Some(Checked::Held(kind)),
        Replied::Answered(done) => return Some(Checked::Answered(*done)),
    }
    let admitted = Admitted { call: call.clone(), tool, input, said: Said::default() };
    if let Some(words) = refused_outside(site, written, call).await {
        return Some(Checked::Answered(admitted.answered(ActionOutcome::Denied, ToolOutput::denied(words))));
    }
    if site.config.tool_hooks.is_empty() {
        return judge(site, admitted).await;
    }
    match Box::pin(hooks::before(site, admitted)).await {
        Hooked::Goes(admitted) => judge(site, admitted).await,
        Hooked::Ends(done) => Some(Checked::Answered(done)),
        Hooked::Stopped => None,
    }
}

/// Why a rule refuses the call that stands for another one. All else is asked of the one inside, but a refusal that
/// somebody wrote must not come to nothing.
async fn refused_outside(site: &Site<'_>, written: &ToolCall, call: &ToolCall) -> Option<String> {
    if written.name == call.name {
        return None;
    }
    let (outer, input) = (site.config.tools.get(&written.name)?, written.input.json()?);
    let proposal = Proposal { is_classified: true, ..Proposal::new(&**outer, &written.id, input) };
    match site.permissions.check(proposal).await {
        Verdict::Deny(words) => Some(words),
        Verdict::Allow(_) | Verdict::Ask(_) => None,
    }
}

/// Looks at an input that is not the model's own, then for permission; a person is only asked about what can run.
/// `None` when the run was stopped while a classifier looked.
async fn judge(site: &Site<'_>, mut admitted: Admitted) -> Option<Checked> {
    if admitted.written().is_some()
        && let Err(misfit) = admitted.tool.validate(&admitted.input)
    {
        return Some(Checked::Answered(misplaced(admitted, &misfit)));
    }
    let verdict = match site.permissions.classifier {
        None => decide(site, &admitted).await,
        Some(_) => unless_cancelled(site.cancel, decide(site, &admitted)).await?,
    };
    Some(match verdict {
        Verdict::Allow(permit) => Checked::Cleared(Cleared { admitted, permit }),
        Verdict::Deny(words) => {
            Checked::Answered(admitted.answered(ActionOutcome::Denied, ToolOutput::denied(words)))
        }
        Verdict::Ask(request) => match admitted.tool.validate(&admitted.input) {
            Ok(()) => {
                classify::tell(&mut admitted.said, &request);
                Checked::Ask(admitted)
            }
            Err(misfit) => {
                let output = ToolOutput::error(misfit.to_string());
                Checked::Answered(admitted.answered(ActionOutcome::Failed, output))
            }
        },
    })
}

/// The permission check, with what was allowed in this session.
pub(super) async fn decide(site: &Site<'_>, admitted: &Admitted) -> Verdict {
    let Admitted { call, tool, input, said } = admitted;
    let remembered = remembered(site);
    let proposal = Proposal {
        written: admitted.written(),
        remembered: &remembered,
        allowed_by: said.allowed_by.as_deref(),
        asked_by: said.asked_by.as_deref(),
        is_classified: said.is_classified,
        ..Proposal::new(&**tool, &call.id, input)
    };
    site.permissions.check(proposal).await
}

fn remembered(site: &Site<'_>) -> Vec<PermissionRule> {
    let rule = |text: &String| match text.parse::<Pattern>() {
        Ok(pattern) => Some(PermissionRule::allow(pattern).from_layer(Layer::Session)),
        Err(error) => {
            tracing::warn!(%error, "a permission that the session remembers does not hold");
            None
        }
    };
    site.slots.read(|slots| slots.allowed.iter().filter_map(rule).collect())
}

/// A hook gave an input that the tool does not take: the model cannot mend that.
fn misplaced(admitted: Admitted, misfit: &ToolError) -> Done {
    // What else the error says is for whoever wrote the input.
    let why = if let ToolError::Input { path, cause, .. } = misfit {
        format!("at `{path}`: {cause}")
    } else {
        misfit.to_string()
    };
    let words = format!(
        "`{}` was not run: {} put another input in place of yours, and the tool does not take it ({why}). Do not repeat the call; tell the user that the hook must be mended.",
        admitted.call.name,
        admitted.said.changed_by.join(", then "),
    );
    admitted.answered(ActionOutcome::Failed, ToolOutput::error(words))
}

const OUTCOME_UNKNOWN: &str = "Outcome unknown: the program stopped while this call ran. It may have had all, part or none of its effect. Look at the present state before you decide whether to call it again.";
