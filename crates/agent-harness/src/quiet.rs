//! An agent that is only looked at: whoever would be asked beside its model is stood in for too.

use std::sync::Arc;

use agent_prepare::{Pipeline, Stage, StageCx, Verdict};
use agent_tools::{Permissions, ToolSet, ToolSetError};
use async_trait::async_trait;

use crate::config::HarnessConfig;
use crate::hooks::{CallChanges, CallCx, PrepareCall};
use crate::spy::Spy;
use crate::stand_ins::StandIns;
use crate::{Background, Process, SourceError};

/// The agent with a spy for each of its models and a stand-in for each of its tools; nobody is told of compactions or
/// calls, nothing is done behind it, and nothing is remembered or counted.
pub(crate) fn quiet(
    config: HarnessConfig,
    spy: &Arc<Spy>,
    stand_ins: &StandIns,
) -> Result<HarnessConfig, ToolSetError> {
    let prepare_call = config.prepare_call.map(|hook| {
        let quiet = QuietCall { hook, spy: spy.clone(), stand_ins: stand_ins.clone() };
        Arc::new(quiet) as Arc<dyn PrepareCall>
    });
    Ok(HarnessConfig {
        model: spy.clone(),
        summary_model: None,
        tools: stand_ins.of(&config.tools)?,
        pipeline: quiet_stages(config.pipeline, spy),
        prepare_call,
        after_compaction: Vec::new(),
        tool_hooks: Vec::new(),
        permissions: Permissions { classifier: None, ..config.permissions },
        rule_sink: None,
        after_turn: Vec::new(),
        after_step: Vec::new(),
        background: Background::default(),
        process: Process::default(),
        children: None,
        ..config
    })
}

fn quiet_stages(pipeline: Pipeline, spy: &Arc<Spy>) -> Pipeline {
    pipeline.map_stages(|stage| Arc::new(QuietStage { stage, spy: spy.clone() }))
}

/// A stage whose models are spies.
#[derive(Debug)]
struct QuietStage {
    stage: Arc<dyn Stage>,
    spy: Arc<Spy>,
}

/// A preparation whose models are spies and whose tools do nothing.
#[derive(Debug)]
struct QuietCall {
    hook: Arc<dyn PrepareCall>,
    spy: Arc<Spy>,
    stand_ins: StandIns,
}

impl Stage for QuietStage {
    fn name(&self) -> &'static str {
        self.stage.name()
    }

    fn run(&self, cx: &StageCx<'_>) -> Verdict {
        match self.stage.run(cx) {
            Verdict::Pass(mut changes) => {
                changes.model = changes.model.map(|model| self.spy.of(model));
                Verdict::Pass(changes)
            }
            verdict @ (Verdict::Ask(_) | Verdict::Finish(_)) => verdict,
        }
    }
}

#[async_trait]
impl PrepareCall for QuietCall {
    async fn prepare_call(&self, cx: &CallCx<'_>) -> Result<CallChanges, SourceError> {
        let changes = self.hook.prepare_call(cx).await?;
        let tools = changes.tools.map(|tools: ToolSet| self.stand_ins.of(&tools)).transpose();
        Ok(CallChanges {
            model: changes.model.map(|model| self.spy.of(model)),
            tools: tools.map_err(|error| SourceError::new("the tools of `prepare_call`", error))?,
            pipeline: changes.pipeline.map(|pipeline| quiet_stages(pipeline, &self.spy)),
            ..changes
        })
    }
}
