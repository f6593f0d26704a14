//! Item 4: every tool checks permission at its execution.

use std::sync::Arc;

use agent_core::{Layer, ToolOutput};
use agent_tools::{Access, Pattern, PermissionRule, Permissions, Tool};

use super::rehearsal::{calls, words};
use super::{Finding, Rehearsal};
use crate::config::HarnessConfig;
use crate::stand_ins::StandIns;
use crate::{HarnessError, NobodyToAsk};

pub(super) async fn examine(config: &HarnessConfig) -> Finding {
    let mut finding = Finding::new("permissions", "every tool checks permission at execution");
    if config.tools.cards().is_empty() {
        finding.saw("there are no tools");
        return finding;
    }
    if let Err(error) = refuse_all(&mut finding, config).await {
        finding.fail(format!("no call could be rehearsed: {error}"), "Mend what the error names.");
    }
    match unasked(config).await {
        Ok(ran) => judge_policy(&mut finding, config, &ran),
        Err(error) => {
            finding.fail(format!("no call could be rehearsed: {error}"), "Mend what the error names.")
        }
    }
    judge_rules(&mut finding, config);
    finding
}

/// Calls every tool under a rule that refuses it.
async fn refuse_all(finding: &mut Finding, config: &HarnessConfig) -> Result<(), HarnessError> {
    let names: Vec<&str> = config.tools.cards().iter().map(|card| card.name()).collect();
    let deny = |name: &&str| PermissionRule::deny(Pattern::tool(*name)).from_layer(Layer::Managed);
    let mut permissions: Permissions = config.permissions.clone();
    permissions.rules.extend(names.iter().map(deny));
    let refusing = HarnessConfig { permissions, asker: Arc::new(NobodyToAsk), ..config.clone() };
    let rehearsal = ask_for(&refusing, &names).await?;
    let results = rehearsal.results().await?;
    let denied = results.iter().filter(|(_, result)| matches!(result.output, ToolOutput::Denied(_))).count();
    let ran = rehearsal.stand_ins.ran();
    if ran.is_empty() && denied == names.len() {
        finding.saw(format!(
            "{denied} of {denied} tools were called under a rule that refuses them, and none ran"
        ));
    } else {
        finding.fail(
            format!(
                "of {} refused calls {denied} were answered as refused, and these ran: {}",
                names.len(),
                ran.join(", ")
            ),
            "This is a fault of the driver; please report it.",
        );
    }
    Ok(())
}

/// The tools that run under the agent's own policy when nobody can be asked.
async fn unasked(config: &HarnessConfig) -> Result<Vec<String>, HarnessError> {
    let names: Vec<&str> = config.tools.cards().iter().map(|card| card.name()).collect();
    let alone = HarnessConfig { asker: Arc::new(NobodyToAsk), ..config.clone() };
    Ok(ask_for(&alone, &names).await?.stand_ins.ran())
}

async fn ask_for(config: &HarnessConfig, names: &[&str]) -> Result<Rehearsal, HarnessError> {
    let answers = vec![calls(names.iter().copied()), words("Done.")];
    Rehearsal::guarded(config, answers, StandIns::new(|_| "ok".to_owned())).await
}

fn judge_policy(finding: &mut Finding, config: &HarnessConfig, ran: &[String]) {
    let mode = config.permissions.mode;
    let list = if ran.is_empty() { "none".to_owned() } else { ran.join(", ") };
    finding.saw(format!("mode {mode:?}; without asking run: {list}; asked is {:?}", config.asker));
    let access = |name: &String| config.tools.get(name).map(|tool| tool.traits().access);
    let reaching = |name: &&String| matches!(access(name), Some(Access::Execute | Access::Network));
    let reaching: Vec<&str> = ran.iter().filter(reaching).map(String::as_str).collect();
    if !reaching.is_empty() {
        finding.warn(
            format!("programs or the network are reached without asking by: {}", reaching.join(", ")),
            "Use this in a sandbox whose contents may be lost, or let a person decide.",
        );
    }
}

fn judge_rules(finding: &mut Finding, config: &HarnessConfig) {
    for rule in &config.permissions.rules {
        if config.tools.cards().iter().any(|card| rule.pattern.names(card.name())) {
            finding.saw(format!("rule: {rule}"));
        } else {
            finding.warn(
                format!("the rule {rule} fits no tool"),
                format!("Name one of: {}.", config.tools.names()),
            );
        }
    }
    for tool in config.tools.iter().filter(|tool| claims_to_read(tool)) {
        finding.warn(
            format!(
                "{} is declared as a reader, which runs unasked, and yet as one that must not run twice",
                tool.card().name()
            ),
            "Declare what it does: Access::Edit, Execute or Network.",
        );
    }
}

fn claims_to_read(tool: &Arc<dyn Tool>) -> bool {
    tool.traits().access == Access::Read && !tool.traits().idempotent
}
