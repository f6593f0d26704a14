//! Skills through the real tool: what is active stays so behind a summary, and the list has the same bytes in every session
//! (requirements T8, P14, A1).

use std::path::Path;
use std::sync::Arc;

use agent_builtins::{LocalSandbox, SkillSource, Skills, all, load_skill};
use agent_core::ModelProfile;
use agent_harness::TurnEnd;
use agent_prepare::{Cascade, Pipeline, Summarise};
use agent_prompt::{Fragment, Layer, Session, Value};
use agent_store::Store;
use agent_testkit::{Reply, ScriptedModel};
use agent_tools::{Access, OutputCap, ToolConfig, ToolSet};

use super::{bodies, lines, taken_up};
use crate::support::{Agent, Points, block, id, talk};

#[expect(clippy::disallowed_methods, reason = "the folders that the skills of the test are in")]
fn put(workspace: &Path, name: &str) {
    let folder = workspace.join(".agent/skills").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!(
        "---\nname: {name}\ndescription: All about {name}. Use it in the garden.\n---\nThink of {name}.\n"
    );
    std::fs::write(folder.join("SKILL.md"), text).unwrap();
}

fn model(replies: Vec<Reply>) -> ScriptedModel {
    ScriptedModel::new(replies).with_profile(ModelProfile {
        context_window: 32_000,
        max_output: 4_000,
        ..ModelProfile::conservative("scripted", "small")
    })
}

/// An agent with the skills of a folder, as a program puts it together, and a tool that fills its window.
fn gardener(own: ScriptedModel, store: Points, dir: &Path) -> Agent {
    let log = ToolConfig::new("log", "Shows the log.", Access::Read, |_, _: super::Nothing| async {
        Ok(lines(26_000))
    });
    let cap = OutputCap { lines: usize::MAX, bytes: usize::MAX, ..OutputCap::default() };
    let skills = Skills::find(dir, &[SkillSource::Workspace(".agent/skills".into())]);
    let sandbox = Arc::new(LocalSandbox::open(dir).unwrap());
    let tools = ToolSet::builder().extend(all(sandbox)).extend(load_skill(&skills)).with(log.cap(cap));
    let list = Value::session(skills.listing().unwrap());
    taken_up(own, store, |config| {
        config.tools = tools.freeze().unwrap();
        config.prompt.add(Fragment::<Session>::new(Layer::Session, "skills", list).unwrap());
        config.summary_model = Some(Arc::new(model(vec![Reply::text("## Done\nSomething.")])));
        config.pipeline = Pipeline::new(Cascade::new().then(Summarise::default()));
    })
}

async fn say(agent: &Agent) -> TurnEnd {
    let (_, end) = agent.say("Tend the garden.").await;
    assert!(end.reason.is_success(), "{:?} {:?}", end.reason, end.error);
    end
}

fn load(name: &str) -> Reply {
    Reply::tool("load_skill", format!(r#"{{"name":"{name}"}}"#))
}

#[test]
fn active_skills_stay_active_behind_a_summary() {
    block(async {
        let dir = tempfile::tempdir().unwrap();
        for name in ["beans", "roses", "weeds"] {
            put(dir.path(), name);
        }
        let first = load("roses").call("load_skill", r#"{"name":"beans"}"#);
        let replies = vec![first, Reply::tool("log", "{}"), load("roses"), Reply::text("Done.")];
        let agent = gardener(model(replies), Points::default(), dir.path());
        say(&agent).await;

        let asked = bodies(&agent.model);
        assert_eq!(asked.len(), 4);
        let kept = "Skills that stay active: roses, beans.";
        let is_put_back: Vec<_> = asked.iter().map(|body| body.matches(kept).count()).collect();
        assert_eq!(is_put_back, [0, 0, 1, 1], "once, and only behind the boundary");
        let shows: Vec<_> = asked.iter().map(|body| body.contains("Think of roses.")).collect();
        assert_eq!(
            shows,
            [false, true, false, true],
            "the instructions come back when they are loaded again"
        );
        assert!(
            asked.iter().all(|body| body.contains("- weeds: All about weeds.")),
            "the list is in the prefix"
        );
        assert!(talk(&agent.history().await).contains("It was active already"));
        let slots = agent.store.load(&id()).await.unwrap().unwrap().checkpoint.slots;
        assert_eq!(slots.skills, ["roses", "beans"], "each once");
    });
}

#[test]
fn the_order_of_folders_changes_no_byte_of_a_request() {
    block(async {
        let request = async |names: &[&str]| {
            let dir = tempfile::tempdir().unwrap();
            for name in names {
                put(dir.path(), name);
            }
            let agent =
                gardener(model(vec![load("roses"), Reply::text("Done.")]), Points::default(), dir.path());
            say(&agent).await;
            bodies(&agent.model)
        };
        let one = request(&["beans", "roses", "weeds", "ants"]).await;
        assert_eq!(one, request(&["weeds", "ants", "roses", "beans"]).await);
        assert_ne!(one, request(&["weeds", "roses", "beans"]).await, "it is in the request at all");
    });
}

#[test]
fn a_session_keeps_its_list() {
    block(async {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "roses");
        let store = Points::default();
        let before = gardener(model(vec![Reply::text("Done.")]), store.clone(), dir.path());
        say(&before).await;
        put(dir.path(), "ants");
        let next = gardener(model(vec![load("ants"), Reply::text("Done.")]), store, dir.path());
        say(&next).await;
        let asked = bodies(&next.model);
        assert!(asked.iter().all(|body| !body.contains("All about ants.")), "the prefix is as it was");
        assert!(asked[1].contains("Think of ants."), "who knows of it by other ways can load it");
    });
}
