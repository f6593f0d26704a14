//! Case P07: what a hook adds to one step neither piles up nor undoes what was made durable.

use agent_core::{
    AssistantPart, Entry, EntryId, NoteKind, Response, Rewrite, StepRecord, Text, ToolChoice, UserMessage,
};
use agent_prepare::{Narrow, Pipeline, PrepareError, Prepared, Reminders, Scene, Verdict, stage_fn};

use super::{prepare, scene};

/// A turn of five steps as a driver runs it: notes are appended before each request, and the answer behind it. At one
/// step a compaction was made before, which is no business of a stage.
fn five_steps(can: &str, pipeline: &Pipeline, compacted_at: Option<u32>) -> (Scene, Vec<Prepared>) {
    let mut scene = scene(can);
    scene.history.push(Entry::User(UserMessage::text("Moor the boat.").unwrap())).unwrap();
    let mut steps = Vec::new();
    for step in 0..5 {
        if compacted_at == Some(step) {
            let kept_from = EntryId::at(scene.history.len());
            let text = Text::new("They began to moor.").unwrap();
            let boundary = Rewrite::Summary { text, kept_from, strip_reasoning: true };
            scene.history.push(Entry::Boundary(boundary)).unwrap();
        }
        let prepared = prepare(&scene, pipeline);
        for note in &prepared.append {
            scene.history.push(Entry::Note(note.clone())).unwrap();
        }
        steps.push(prepared);
        let said = Response::of(AssistantPart::text(format!("Line {step}.")).into_iter().collect());
        scene.history.push(Entry::Step(StepRecord::new(said, vec![]).unwrap())).unwrap();
        scene.step = scene.step.next();
    }
    (scene, steps)
}

fn notes(scene: &Scene) -> Vec<NoteKind> {
    let kinds = scene.history.entries().iter().filter_map(|entry| match entry {
        Entry::Note(note) => Some(note.kind),
        Entry::User(_) | Entry::Step(_) | Entry::Boundary(_) => None,
    });
    kinds.collect()
}

#[test]
fn a_reminder_of_each_step_does_not_pile_up() {
    let pipeline = Pipeline::standard().then(Reminders::these(["Mind the tide."]));
    let (scene, steps) = five_steps("", &pipeline, None);
    assert!(steps.iter().all(|step| step.ephemeral.len() == 1 && step.append.is_empty()));
    assert_eq!(notes(&scene), []);

    // Where thinking is bound to its prefix it is said once, and stays.
    let (scene, steps) = five_steps("b", &pipeline, None);
    assert!(steps.iter().all(|step| step.ephemeral.is_empty()));
    assert_eq!(notes(&scene), [NoteKind::Reminder]);
    // The same step again, after a process died between its notes and its answer.
    assert!(prepare(&scene, &pipeline).append.is_empty());
}

#[test]
fn a_compaction_outlives_the_step_it_was_made_at() {
    let pipeline = Pipeline::standard().then(Reminders::these(["Mind the tide."]));
    let (scene, _) = five_steps("", &pipeline, Some(2));
    let seen = scene.history.view().rendered().count();
    assert_eq!((seen, scene.history.len(), notes(&scene)), (1 + 1 + 3, 1 + 5 + 1, vec![]));
    // What was said before the summary may be gone with it, so that it is said again.
    let (scene, _) = five_steps("b", &pipeline, Some(2));
    assert_eq!(notes(&scene), [NoteKind::Reminder, NoteKind::Reminder]);
}

#[test]
fn a_hook_that_returns_nothing_changes_nothing() {
    let silent = Pipeline::standard().then(stage_fn("silent", |_| Verdict::unchanged()));
    let (scene, steps) = five_steps("fab", &silent, None);
    let nothing = format!("{:?}", Prepared::default());
    assert!(steps.iter().all(|step| format!("{step:?}") == nothing));
    assert_eq!(notes(&scene), []);
}

#[test]
fn an_empty_list_is_refused() {
    let empty = Pipeline::standard().then(Narrow::to(Vec::<String>::new()));
    assert!(matches!(scene("").prepare(&empty), Err(PrepareError::NoTools { stage: "narrow" })));
}

#[test]
fn narrowing_leaves_every_other_field_alone() {
    let (scene, steps) = five_steps("fa", &Pipeline::standard().then(Narrow::to(["grep"])), None);
    for step in steps {
        let only = ToolChoice::Allowed { tools: vec!["grep".into()], required: false };
        let expect =
            Prepared { active: Some(["grep".to_owned()].into()), tool_choice: only, ..Prepared::default() };
        assert_eq!(format!("{step:?}"), format!("{expect:?}"));
    }
    assert_eq!(notes(&scene), []);
}
