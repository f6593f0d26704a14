//! Stages that have nothing to do with each other may stand in any order.

use std::sync::Arc;

use agent_core::{Note, NoteKind, RequestSettings, SystemBlock, Text, ToolChoice};
use agent_prepare::{
    Choose, ClearToolUses, Context, FnStage, Narrow, Overrides, Pipeline, Reminders, Scene, ServerEdits,
    Stage, StageCx, Verdict, stage_fn,
};
use proptest::prelude::*;

use super::{prepare, scene};

/// One stage in several pipelines.
#[derive(Debug, Clone)]
struct Shared(Arc<dyn Stage>);

impl Stage for Shared {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn run(&self, cx: &StageCx<'_>) -> Verdict {
        self.0.run(cx)
    }
}

fn gives(name: &'static str, changes: Overrides) -> FnStage {
    stage_fn(name, move |_| changes.clone().into())
}

/// Each changes another field, or a list of its own.
fn stages() -> Vec<Shared> {
    let system = Some(SystemBlock::new("Be terse.").into_iter().collect());
    let settings = RequestSettings { max_output: Some(99), ..RequestSettings::default() };
    let note = Note { kind: NoteKind::State, text: Text::new("The tests pass.").unwrap() };
    let all: Vec<Arc<dyn Stage>> = vec![
        Arc::new(Reminders::these(["Mind the tide."])),
        Arc::new(Narrow::to(["grep", "bash"])),
        Arc::new(Choose::from_step(0, ToolChoice::Required)),
        Arc::new(ServerEdits::default().clear_tool_uses(ClearToolUses::default())),
        Arc::new(gives("system", Overrides { system, ..Overrides::default() })),
        Arc::new(gives("settings", Overrides { settings, ..Overrides::default() })),
        Arc::new(gives(
            "shares",
            Overrides { context: Context::default().with(5_u8), ..Overrides::default() },
        )),
        Arc::new(gives("notes", Overrides::default().note(note))),
    ];
    all.into_iter().map(Shared).collect()
}

fn outcome(scene: &Scene, stages: Vec<Shared>) -> String {
    let pipeline = stages.into_iter().fold(Pipeline::standard(), Pipeline::then);
    format!("{:?}", prepare(scene, &pipeline))
}

proptest! {
    #[test]
    fn the_order_does_not_matter(stages in Just(stages()).prop_shuffle(), can in "[fab]{0,3}") {
        let mut scene = scene(&can);
        scene.model.provider = "anthropic".into();
        prop_assert_eq!(outcome(&scene, stages), outcome(&scene, self::stages()));
    }

    /// A stage that says nothing is as good as none, wherever it stands.
    #[test]
    fn a_silent_stage_is_no_stage(at in 0_usize..9, can in "[fab]{0,3}") {
        let mut with = stages();
        with.insert(at.min(with.len()), Shared(Arc::new(gives("silent", Overrides::default()))));
        prop_assert_eq!(outcome(&scene(&can), with), outcome(&scene(&can), stages()));
    }
}
