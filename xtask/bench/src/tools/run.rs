//! One process that makes the same call some times over, bare or through the driver.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use agent::prepare::RawJson;
use agent::{
    ActionOutcome, CallId, EventBody, Harness, HarnessConfig, MemoryStore, PermissionMode, Permissions,
    Proposal, SessionId, ToolCx,
};
use agent_testkit::{Reply, ScriptedModel};
use agent_tools::Verdict;
use serde::{Deserialize, Serialize};

use super::subjects::{Always, Looks, Subject, permissions, tools};
use crate::bench::Fault;
use crate::machine::children_cpu_s;

pub(super) const BARE: &str = "bare";
pub(super) const WHOLE: &str = "whole";

/// What a process of it says.
#[derive(Serialize, Deserialize)]
pub(super) struct Said {
    /// Processor time of it and what it started.
    pub(super) cpu_us: f64,
}

/// Calls a tool as this process: `TOOL bare|whole STEPS CALLS`, so many times in each step.
pub(crate) fn run([subject, way, steps, calls]: [&str; 4]) -> Result<(), Fault> {
    let known = Subject::ALL.into_iter().find(|known| known.name() == subject);
    let subject = known.ok_or("there is no such tool")?;
    let (steps, calls) = (steps.parse()?, calls.parse()?);
    let folder = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (before, started) = (cpu_time::ProcessTime::now(), children_cpu_s());
    match way {
        BARE => runtime.block_on(bare(folder.path(), subject, steps * calls))?,
        WHOLE => runtime.block_on(whole(folder.path(), subject, [steps, calls]))?,
        _ => return Err("a call is bare or whole".into()),
    }
    let cpu_us = before.elapsed().as_secs_f64() * 1e6 + (children_cpu_s() - started) * 1e6;
    Ok(writeln!(std::io::stdout(), "{}", serde_json::to_string(&Said { cpu_us })?)?)
}

/// Nothing but the reading of the input and the function.
async fn bare(folder: &Path, subject: Subject, calls: u32) -> Result<(), Fault> {
    let tools = tools(folder)?;
    let tool = tools.get(subject.name()).ok_or("the tool is not there")?;
    let cx = ToolCx::for_test("bare", "call")?;
    let call = CallId::new("call")?;
    let input = RawJson::parse(subject.input())?;
    let anything = Permissions { mode: PermissionMode::Bypass, ..Permissions::default() };
    for _ in 0..calls {
        let Verdict::Allow(permit) = anything.check(Proposal::new(&**tool, &call, &input)).await else {
            return Err("a call without rules was not allowed".into());
        };
        let output = tool.run(&cx, permit, &input).await?;
        let output = output.output().ok_or("a bare call waits")?;
        if output.is_error() {
            return Err(format!("a bare call failed: {}", output.plain()).into());
        }
    }
    Ok(())
}

/// Each step in a session of its own: some permissions are given once, then come the calls.
async fn whole(folder: &Path, subject: Subject, [steps, calls]: [u32; 2]) -> Result<(), Fault> {
    let mut replies = Vec::new();
    for _ in 0..steps {
        let mark = |reply: Reply, at: usize| reply.call("mark", format!(r#"{{"command":"place {at}"}}"#));
        replies.push((0..REMEMBERED).fold(Reply::default(), mark));
        let call = |reply: Reply, _| reply.call(subject.name(), subject.input());
        replies.push((0..calls).fold(Reply::default(), call));
        replies.push(Reply::text("Done."));
    }
    let model = Arc::new(ScriptedModel::new(replies));
    let mut config = HarnessConfig::new(model, Arc::new(MemoryStore::default()));
    config.tools = tools(folder)?;
    config.permissions = permissions()?;
    config.asker = Arc::new(Always);
    config.tool_hooks = vec![Arc::new(Looks("one")), Arc::new(Looks("two"))];
    let harness = Harness::new(config);
    for step in 0..steps {
        session(&harness, step, calls as usize + REMEMBERED).await?;
    }
    Ok(())
}

async fn session(harness: &Harness, number: u32, expect: usize) -> Result<(), Fault> {
    let session = harness.session(SessionId::new(format!("whole-{number}"))?);
    let mut run = session.send("Please begin.").await?;
    let mut completed = 0;
    while let Some(event) = run.next().await {
        if let EventBody::ActionResult { outcome, preview, .. } = &event.body {
            if *outcome != ActionOutcome::Completed {
                return Err(format!("a call did not complete: {preview:?}").into());
            }
            completed += 1;
        }
    }
    let end = run.finish().await?;
    if !end.reason.is_success() || completed != expect {
        return Err(format!("{completed} of {expect} calls ran; the end: {:?}", end.reason).into());
    }
    Ok(())
}

/// Permissions that a session remembers.
const REMEMBERED: usize = 8;
