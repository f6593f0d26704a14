//! What a step is made of, for stages alone and together.

mod hooks;
mod order;

use agent_core::{ModelErrorKind, ModelProfile, ProviderData, RawJson, Text, ToolCard, ToolChoice};
use agent_prepare::{
    Answer, Ask, AskFailure, Choose, Context, Narrow, Need, Overrides, Pipeline, PrepareError, Prepared,
    Reminders, Scene, SwitchModel, Synthesised, Verdict, Way, stage_fn,
};
use agent_testkit::ScriptedModel;

pub(crate) fn card(name: &str) -> ToolCard {
    ToolCard::new(name, "", &RawJson::empty_object()).unwrap()
}

/// A web search that one provider runs.
fn hosted(provider: &str) -> ToolCard {
    let json = RawJson::parse(r#"{"type":"web_search"}"#).unwrap();
    ToolCard::hosted("web_search", ProviderData { provider: provider.into(), json }).unwrap()
}

/// A model that is held to the words of a choice: `f` it can be forced, `a` it can be held to some tools, `b` its thinking
/// is bound to its prefix.
pub(crate) fn model(can: &str) -> ModelProfile {
    ModelProfile {
        forced_tool_choice: can.contains('f'),
        allowed_tools: can.contains('a'),
        binds_thinking_to_prefix: can.contains('b'),
        ..ModelProfile::conservative("harbour", "pilot")
    }
}

pub(crate) fn scene(can: &str) -> Scene {
    let mut scene = Scene::new(model(can));
    scene.tools = vec![card("grep"), card("read_file"), card("bash")];
    scene
}

pub(crate) fn prepare(scene: &Scene, pipeline: &Pipeline) -> Prepared {
    scene.prepare(pipeline).unwrap().ready().unwrap()
}

#[test]
fn without_stages_nothing_is_changed() {
    let mut scene = scene("fab");
    scene.context = Context::default().with(7_u8);
    let prepared = prepare(&scene, &Pipeline::standard());
    let expect = Prepared { context: scene.context.clone(), ..Prepared::default() };
    assert_eq!(format!("{prepared:?}"), format!("{expect:?}"));
    assert_eq!(prepared.context.get::<u8>(), Some(&7));
    assert_eq!(Pipeline::standard().names().count(), 0);
}

fn asks(words: &str) -> Verdict {
    Verdict::Ask(Ask { way: Way::OnPrefix { words: Text::new(words).unwrap() }, max_output: 9 })
}

#[test]
fn an_answer_goes_to_who_asked() {
    let asker = |name: &'static str| {
        stage_fn(name, move |cx| match cx.answer {
            None => asks(name),
            Some(Ok(answer)) => Overrides::default().remind(format!("{name}: {answer}")).into(),
            Some(Err(failure)) => Overrides::default().remind(format!("{name} failed: {failure}")).into(),
        })
    };
    let looks = stage_fn("looks", |cx| {
        assert!(cx.answer.is_none());
        Verdict::unchanged()
    });
    let pipeline = Pipeline::standard().then(asker("first")).then(looks).then(asker("second"));
    let scene = scene("");
    let mut preparing = pipeline.begin();
    let mut told: Vec<Answer> = vec![
        Err(AskFailure::Model { kind: ModelErrorKind::Overloaded, message: "busy".into() }),
        Ok(Text::new("aye").unwrap()),
    ];
    let mut asked = Vec::new();
    let prepared = loop {
        match preparing.advance(&pipeline, &scene.cx()).unwrap() {
            Need::Ask { stage, .. } => {
                asked.push(stage);
                preparing.answer(told.pop().unwrap());
            }
            Need::Ready(prepared) => break prepared,
            Need::Finish(end) => panic!("{end:?}"),
        }
    };
    assert_eq!(asked, ["first", "second"]);
    let words = prepared.ephemeral[0].as_str();
    assert!(
        words.contains("\nfirst: aye\n") && words.contains("\nsecond failed: overloaded: busy\n"),
        "{words}"
    );
}

#[test]
fn who_asks_for_ever_is_stopped() {
    let pipeline = Pipeline::standard().then(stage_fn("curious", |_| asks("And then?")));
    let scene = scene("");
    let mut preparing = pipeline.begin();
    for _ in 0..4 {
        assert!(matches!(preparing.advance(&pipeline, &scene.cx()), Ok(Need::Ask { stage: "curious", .. })));
        preparing.answer(Err(AskFailure::Blank));
    }
    let refused = preparing.advance(&pipeline, &scene.cx()).unwrap_err();
    assert_eq!(refused, PrepareError::AsksForEver { stage: "curious", asks: 5 });
}

#[test]
fn a_stage_may_end_the_turn() {
    let end = Synthesised {
        text: Text::new("Nothing is left to do.").unwrap(),
        reason: agent_core::TerminalReason::Done,
    };
    let given = end.clone();
    let pipeline = Pipeline::standard()
        .then(stage_fn("ends", move |_| Verdict::Finish(given.clone())))
        .then(stage_fn("never", |_| panic!("a stage behind the end has nothing to say")));
    assert!(matches!(scene("").prepare(&pipeline), Ok(Need::Finish(said)) if said == end));
}

/// What a wanted choice among the active tools becomes: the choice, the words, and how many diagnostics.
fn check(can: &str, wanted: ToolChoice, active: Option<&[&str]>, expect: (&ToolChoice, &str, usize)) {
    let mut pipeline = Pipeline::standard().then(Choose::from_step(0, wanted.clone()));
    if let Some(active) = active {
        pipeline = pipeline.then(Narrow::to(active.iter().copied()));
    }
    let prepared = prepare(&scene(can), &pipeline);
    let words = prepared.ephemeral.first().map_or("", |text| text.as_str());
    let lines: Vec<&str> = words.lines().filter(|line| !line.starts_with(['[', '<'])).collect();
    let got = (&prepared.tool_choice, lines.join("|"), prepared.diagnostics.len());
    assert_eq!(got, (expect.0, expect.1.to_owned(), expect.2), "{can:?} {wanted:?} {active:?}");
}

#[test]
fn a_choice_is_put_as_the_model_takes_it() {
    use ToolChoice::{Auto, None as NoTool, Required};
    let grep = || ToolChoice::Tool("grep".into());
    let some = |tools: &[&str], required| {
        let tools = tools.iter().map(|name| (*name).to_owned()).collect();
        ToolChoice::Allowed { tools, required }
    };
    let two: Option<&[&str]> = Some(&["bash", "grep", "grep"]);
    let only = "For now, call only these tools: grep, bash. A call of another tool is refused.";
    let (now, it) = ("Call a tool now; do not answer with words alone.", "Call the tool grep now.");

    check("fa", Required, None, (&Required, "", 0));
    check("", Required, None, (&Auto, now, 1));
    check("f", grep(), None, (&grep(), "", 0));
    check("a", grep(), None, (&some(&["grep"], false), it, 1));
    check("", grep(), None, (&Auto, it, 1));
    check("", NoTool, two, (&NoTool, "", 0));
    // Narrowed, in the order of the tools.
    check("fa", Auto, two, (&some(&["grep", "bash"], false), "", 0));
    check("fa", Required, two, (&some(&["grep", "bash"], true), "", 0));
    check("a", Required, two, (&some(&["grep", "bash"], false), now, 1));
    check("f", Required, two, (&Required, only, 0));
    check("", Auto, two, (&Auto, only, 0));
    check("fa", grep(), two, (&grep(), "", 0));
    check("fa", some(&["bash"], true), None, (&some(&["bash"], true), "", 0));
    check("f", some(&["bash", "grep"], true), None, (&Required, only, 0));
    // All of them is no narrowing.
    check("fa", Required, Some(&["bash", "grep", "read_file"]), (&Required, "", 0));
}

/// Where thinking is bound to what comes first, that is left alone where it can be.
#[test]
fn a_bound_prefix_is_left_alone() {
    let system = Some(agent_core::SystemBlock::new("Be terse.").into_iter().collect());
    let terse = Overrides { system, ..Overrides::default() };
    let pipeline = Pipeline::standard()
        .then(Narrow::to(["grep"]).on_wire())
        .then(stage_fn("terse", move |_| terse.clone().into()));
    let free = prepare(&scene("fa"), &pipeline);
    assert_eq!(
        (free.narrow_on_wire, &free.tool_choice, free.diagnostics.len()),
        (true, &ToolChoice::Auto, 0)
    );
    let bound = prepare(&scene("fab"), &pipeline);
    let grep = ToolChoice::Allowed { tools: vec!["grep".into()], required: false };
    assert_eq!((bound.narrow_on_wire, &bound.tool_choice), (false, &grep));
    let told = bound.diagnostics.iter().map(|told| format!("{}: {}", told.what, told.why));
    insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"), @"
    narrow_on_wire: pilot binds its thinking to the system prompt and the list of tools; the list was left whole
    system: pilot binds its thinking to the system prompt and the list of tools; another prompt was sent, and what it thought before may be refused
    ");
}

#[test]
fn what_is_not_allowed_is_not_active() {
    let allowed = ToolChoice::Allowed { tools: vec!["bash".into()], required: false };
    let prepared = prepare(&scene("f"), &Pipeline::standard().then(Choose::from_step(0, allowed)));
    assert_eq!(prepared.active, Some(["bash".to_owned()].into()));
    let one = Choose::from_step(0, ToolChoice::Tool("bash".into()));
    assert_eq!(prepare(&scene("f"), &Pipeline::standard().then(one)).active, None);
}

fn refusal(scene: &Scene, pipeline: &Pipeline) -> String {
    scene.prepare(pipeline).unwrap_err().to_string()
}

#[test]
fn what_cannot_be_is_refused_in_words_that_help() {
    let force = |tool: &str| Choose::from_step(0, ToolChoice::Tool(tool.into()));
    let none = ToolChoice::Allowed { tools: vec![], required: true };
    let mut scene = scene("fa");
    let errors = [
        refusal(&scene, &Pipeline::standard().then(Narrow::to(["grep", "sail"]))),
        refusal(&scene, &Pipeline::standard().then(force("sail"))),
        refusal(&scene, &Pipeline::standard().then(Narrow::to(Vec::<String>::new()))),
        refusal(&scene, &Pipeline::standard().then(Choose::from_step(0, none))),
        refusal(&scene, &Pipeline::standard().then(force("grep")).then(Narrow::to(["bash"]))),
    ];
    insta::assert_snapshot!(errors.join("\n"), @r#"
    stage "narrow" names the tool "sail", which the session does not have; it has grep, read_file, bash
    stage "choose" names the tool "sail", which the session does not have; it has grep, read_file, bash
    stage "narrow" leaves no tool active; leave `active_tools` out, or set `tool_choice` to none for a step without tools
    stage "choose" leaves no tool active; leave `active_tools` out, or set `tool_choice` to none for a step without tools
    after stage "narrow" the tool "grep" is chosen for this step and not active in it; activate it as well
    "#);
    // A later stage may mend what does not fit together.
    let mended =
        Pipeline::standard().then(force("grep")).then(Narrow::to(["bash"])).then(Narrow::to(["grep"]));
    assert_eq!(prepare(&scene, &mended).tool_choice, ToolChoice::Tool("grep".into()));
    scene.tools.clear();
    insta::assert_snapshot!(refusal(&scene, &Pipeline::standard().then(Narrow::to(["grep"]))), @r#"stage "narrow" names the tool "grep", which the session does not have; it has none"#);
}

/// A model switch holds the tools against the model that is switched to.
#[test]
fn a_switched_model_lacks_what_another_provider_runs() {
    let other = || {
        let profile = ModelProfile { provider: "quay".into(), model: "rower".into(), ..model("fa") };
        Pipeline::standard().then(SwitchModel::from_step(0, ScriptedModel::new(vec![]).with_profile(profile)))
    };
    let force = |tool: &str| Choose::from_step(0, ToolChoice::Tool(tool.into()));
    let mut scene = scene("fa");
    scene.tools.push(hosted("harbour"));
    let stays = Pipeline::standard().then(force("web_search"));
    assert_eq!(prepare(&scene, &stays).tool_choice, ToolChoice::Tool("web_search".into()));
    let errors = [
        refusal(&scene, &other().then(force("web_search"))),
        refusal(&scene, &other().then(Narrow::to(["web_search"]))),
    ];
    insta::assert_snapshot!(errors.join("\n"), @r#"
    after stage "choose" the step needs the tool "web_search", which only harbour runs, but its model is rower; choose another tool as well, or keep the model
    after stage "narrow" the step needs the tool "web_search", which only harbour runs, but its model is rower; choose another tool as well, or keep the model
    "#);
    // With others beside it, it is left out.
    let prepared = prepare(&scene, &other().then(Narrow::to(["web_search", "grep"])));
    let only = ToolChoice::Allowed { tools: vec!["grep".into()], required: false };
    assert_eq!((prepared.active, prepared.tool_choice), (Some(["grep".to_owned()].into()), only));
}

#[test]
fn what_stages_shared_reaches_those_behind() {
    let pipeline = Pipeline::standard()
        .then(stage_fn("one", |_| {
            Overrides { context: Context::default().with(1_u8), ..Overrides::default() }.into()
        }))
        .then(stage_fn("two", |cx| {
            let sum = u16::from(*cx.context.get::<u8>().unwrap()) + 1;
            Overrides { context: Context::default().with(sum), ..Overrides::default() }.into()
        }))
        .then(Reminders::by(|cx| cx.context.get::<u16>().map(u16::to_string)));
    let prepared = prepare(&scene(""), &pipeline);
    assert!(prepared.ephemeral[0].as_str().contains("\n2\n"));
    assert_eq!((prepared.context.get::<u8>(), prepared.context.get::<u16>()), (Some(&1), Some(&2)));
}
