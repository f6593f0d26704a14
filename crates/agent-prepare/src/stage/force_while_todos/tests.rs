//! Turns with a todo list, written as one letter for each step, and what is chosen after each.

use agent_core::{
    AssistantPart, CallId, Entry, ModelProfile, RawJson, Response, Slots, Text, Thinking, TodoStatus,
    ToolCall, ToolCard, ToolInput, ToolResult, UserMessage,
};

use super::*;
use crate::{Narrow, Pipeline, Scene};

/// A turn whose steps are written as `o` (the list gets an open item), `O` (the same call again), `d` (all is done), `f` (a
/// failed write of the list), `.` (a call as never before), `=` (always the same call) and ` ` (no call).
fn scene(steps: &str, tools: &[&str]) -> Scene {
    let model = ModelProfile { forced_tool_choice: true, ..ModelProfile::conservative("harbour", "pilot") };
    let mut scene = Scene::new(model);
    let card = |name: &&str| ToolCard::new(*name, "", &RawJson::empty_object()).unwrap();
    scene.tools = tools.iter().map(card).collect();
    scene.history.push(Entry::User(UserMessage::text("Go.").unwrap())).unwrap();
    let mut list = String::new();
    for (at, kind) in steps.chars().enumerate() {
        let (name, input) = match kind {
            'o' | 'd' => ("todo", format!(r#"{{"{kind}":{at}}}"#)),
            'f' => ("todo", format!(r#"{{"f":{at}}}"#)),
            'O' => ("todo", list.clone()),
            '.' => ("grep", format!(r#"{{"at":{at}}}"#)),
            _ => ("grep", "{}".to_owned()),
        };
        if matches!(kind, 'o' | 'd') {
            list.clone_from(&input);
            let status = if kind == 'o' { TodoStatus::InProgress } else { TodoStatus::Done };
            scene.slots.todos = vec![Todo { id: "1".into(), text: "moor".into(), status }];
        }
        let id = CallId::new(format!("c{at}")).unwrap();
        let call =
            ToolCall { id: id.clone(), name: name.into(), input: ToolInput::finished(&input), data: None };
        let text = Text::new("x").unwrap();
        let output = if kind == 'f' { ToolOutput::Error(text) } else { ToolOutput::Text(text) };
        let step = match kind {
            ' ' => StepRecord::new(Response::of(AssistantPart::text("Hm.").into_iter().collect()), vec![]),
            _ => {
                let said = Response::of(vec![AssistantPart::ToolCall(call)]);
                StepRecord::new(said, vec![ToolResult { call: id, output }])
            }
        };
        scene.history.push(Entry::Step(step.unwrap())).unwrap();
        scene.step = scene.step.next();
    }
    scene
}

fn choice(scene: &Scene, pipeline: &Pipeline) -> ToolChoice {
    scene.prepare(pipeline).unwrap().ready().unwrap().tool_choice
}

/// What is chosen before each step of a turn and behind its last: `R` required, `-` left to the model.
fn check(steps: &str, tools: &[&str], expect: &str) {
    let pipeline = Pipeline::standard().then(ForceWhileTodos::default().patience(2));
    let chosen = (0..=steps.len()).map(|len| {
        let choice = choice(&scene(&steps[..len], tools), &pipeline);
        assert!(matches!(choice, ToolChoice::Required | ToolChoice::Auto), "{choice:?} was chosen");
        if choice == ToolChoice::Required { 'R' } else { '-' }
    });
    assert_eq!(chosen.collect::<String>(), expect, "{steps}");
}

#[test]
fn it_forces_from_the_first_open_item_on() {
    check("..", &["todo", "grep"], "---");
    check(".o..d", &["todo", "grep"], "--RRR-");
    check(".o..d.", &["todo", "grep", "complete"], "--RRRRR");
    check(".o.d.o.d", &["todo", "grep", "complete"], "--RRRRRRR");
    // A write that failed changes nothing.
    check("of.", &["todo", "grep"], "-RRR");
}

#[test]
fn it_lets_go_when_nothing_moves() {
    let (plain, ends) = (["todo", "grep"], ["todo", "grep", "complete"]);
    check("o===.", &plain, "-RRR--");
    check("oOO.", &plain, "-RR--");
    check("o  .", &plain, "-RR--");
    check("o.=.=.=", &plain, "-RRRRRRR");
    // It takes hold again when the list changes.
    check("o===o.", &plain, "-RRR-RR");
    check("o.d===.", &ends, "-RRRRR--");
    // New calls for ever, and the list as it was: sixteen steps of them are borne.
    check("o.................", &plain, "-RRRRRRRRRRRRRRRR--");
}

#[test]
fn items_of_an_earlier_turn_are_open_from_the_first_step_on() {
    let pipeline = Pipeline::standard().then(ForceWhileTodos::default());
    let tools = ["todo", "grep", "complete"];
    let later = |steps: &str| {
        let mut scene = scene(steps, &tools);
        scene.turn_from = agent_core::EntryId::at(scene.history.len());
        scene
    };
    assert_eq!(choice(&later("o."), &pipeline), ToolChoice::Required);
    assert_eq!(choice(&later("o===="), &pipeline), ToolChoice::Required);
    assert_eq!(choice(&later("o.d"), &pipeline), ToolChoice::Auto);
}

#[test]
fn who_cannot_be_forced_is_asked() {
    let todos = |scene: &Scene, stage: ForceWhileTodos| {
        let prepared = scene.prepare(&Pipeline::standard().then(stage)).unwrap().ready().unwrap();
        (prepared.tool_choice, prepared.ephemeral.len(), prepared.diagnostics.len())
    };
    let mut scene = scene("o.", &["todo", "grep"]);
    assert_eq!(todos(&scene, ForceWhileTodos::default().in_words()), (ToolChoice::Auto, 1, 0));
    // Set to think by the session's own settings, it is asked where it could not be forced.
    scene.settings.thinking = Some(Thinking::Adaptive);
    assert_eq!(todos(&scene, ForceWhileTodos::default()), (ToolChoice::Required, 0, 0));
    scene.model.forced_while_thinking = false;
    assert_eq!(todos(&scene, ForceWhileTodos::default()), (ToolChoice::Auto, 1, 0));
    scene.settings.thinking = None;
    assert_eq!(todos(&scene, ForceWhileTodos::default()), (ToolChoice::Required, 0, 0));
    scene.model.forced_tool_choice = false;
    assert_eq!(todos(&scene, ForceWhileTodos::default()), (ToolChoice::Auto, 1, 0));
    scene.slots = Slots::default();
    assert_eq!(todos(&scene, ForceWhileTodos::default()), (ToolChoice::Auto, 0, 0));
}

#[test]
fn what_stages_before_decided_stands() {
    let chosen = Pipeline::standard()
        .then(crate::Choose::from_step(0, ToolChoice::None))
        .then(ForceWhileTodos::default());
    assert_eq!(choice(&scene("o", &["todo"]), &chosen), ToolChoice::None);
    // The tool that would end the turn is not active, so the model may end it with words.
    let narrowed = Pipeline::standard().then(Narrow::to(["todo"])).then(ForceWhileTodos::default());
    assert_eq!(choice(&scene("od", &["todo", "complete"]), &narrowed), ToolChoice::Auto);
}
