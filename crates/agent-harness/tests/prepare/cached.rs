//! Whether the last request may still be read from the provider's cache, as tiers are told before they ask behind it.

use std::sync::{Arc, Mutex};

use agent_core::{ModelProfile, RequestSettings, SystemBlock, ToolChoice};
use agent_prepare::{Cascade, Overrides, Pipeline, StageCx, Tier, TierCx, TierVerdict};
use agent_testkit::{Reply, ScriptedModel};

use super::{Does, is_done, taken_up};
use crate::support::{Hands, Points, block, watch};

/// Keeps what it was told.
#[derive(Debug, Clone, Default)]
struct Sees(Arc<Mutex<Vec<bool>>>);

impl Tier for Sees {
    fn name(&self) -> &'static str {
        "sees"
    }

    fn run(&self, cx: &TierCx<'_>) -> TierVerdict {
        self.0.lock().unwrap().push(cx.of.cached);
        TierVerdict::Pass
    }
}

fn own() -> ScriptedModel {
    let known = ModelProfile::conservative("anthropic", "claude-opus-5");
    ScriptedModel::new(vec![Reply::text("ok")])
        .with_profile(ModelProfile { forced_tool_choice: true, ..known })
}

/// What a tier is told so many milliseconds after a step with these changes, by the process that asked and by the next one.
#[track_caller]
fn check(changes: &Overrides, passed: i64, expect: bool) {
    let told = block(async {
        let (hands, sees) = (Hands::at(1_000_000), Sees::default());
        let agent = |store: Points| {
            let changes = changes.clone();
            taken_up(own(), store, |config| {
                config.clock = Arc::new(hands.clone());
                let stage = Does("changes", move |_: &StageCx<'_>| changes.clone().into());
                config.pipeline = Pipeline::new(Cascade::new().then(sees.clone())).then(stage);
            })
        };
        let asked = agent(Points::default());
        let session = asked.session();
        is_done(&watch(session.send("go").await.unwrap()).await.1);
        hands.forward(passed);
        session.compact().await.unwrap();
        drop(session);
        agent(asked.store.clone()).session().compact().await.unwrap();
        sees.0.lock().unwrap().clone()
    });
    assert_eq!(told, [expect, expect], "{changes:?}");
}

#[test]
fn what_ran_out_or_was_asked_otherwise_is_not_found() {
    let none = Overrides::default;
    check(&none(), 299_000, true);
    check(&none(), 301_000, false);
    // What does not change the prefix.
    check(&none().remind("Be brief."), 0, true);
    let look = || Some(vec!["look".to_owned()]);
    check(&Overrides { active_tools: look(), ..none() }, 0, true);
    // What does.
    check(&Overrides { active_tools: look(), narrow_on_wire: Some(true), ..none() }, 0, false);
    check(
        &Overrides { system: Some(SystemBlock::new("Be terse.").into_iter().collect()), ..none() },
        0,
        false,
    );
    check(&Overrides { tool_choice: Some(ToolChoice::Required), ..none() }, 0, false);
    check(&Overrides { model: Some(Arc::new(own())), ..none() }, 0, false);
    let settings = RequestSettings { max_output: Some(9), ..RequestSettings::default() };
    check(&Overrides { settings, ..none() }, 0, false);
}
