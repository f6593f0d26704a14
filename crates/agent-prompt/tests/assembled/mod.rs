//! Whole prompts as they are sent and as they are explained.

use agent_core::{History, Mark, MarkPoint, NoteKind, RawJson, Slots, Todo, TodoStatus, ToolCard, Ttl};
use agent_prompt::{
    Beside, Caps, EnvironmentFacts, Fragment, Layer, LimitOf, Loser, Notes, Prompt, RepositoryFacts,
    RuleConfig, RuleFiles, Session, Source, Static, Step, Value, system_hash, tools_hash,
};

const ROLE: &str = "You are a coding agent.\nYou work in small steps.";

fn fixed(layer: Layer, key: &str, text: &'static str) -> Fragment<Static> {
    Fragment::new(layer, key, text).unwrap()
}

fn session(layer: Layer, key: &str, text: &str) -> Fragment<Session> {
    Fragment::new(layer, key, Value::session(text)).unwrap()
}

/// Rule files as a harness would feed them for the folder `crates/app`.
fn rules() -> RuleFiles {
    let on_disk = |path: &str| match path {
        "user:AGENTS.md" => Some("Answer in short sentences."),
        "AGENTS.md" => Some("Run the tests before you finish.\n@docs/commits.md\n@../elsewhere.md"),
        "AGENTS.local.md" => Some("My editor is slow; keep files short."),
        "crates/app/AGENTS.md" => Some("This crate has no dependencies."),
        "docs/commits.md" => Some("One idea for each commit."),
        _ => None,
    };
    let mut rules = RuleFiles::new(RuleConfig::default());
    for candidate in rules.config().candidates("crates/app").unwrap() {
        if let Some(text) = on_disk(&candidate.path.to_string()) {
            rules.add(candidate, text);
        }
    }
    while let Some(path) = rules.wanted().pop_first() {
        let text = on_disk(&path.to_string()).map(str::to_owned);
        rules.provide(path, text);
    }
    rules
}

fn facts() -> EnvironmentFacts {
    let repository = RepositoryFacts {
        branch: Some("fix/parser".into()),
        default_branch: Some("main".into()),
        user: Some("Ada".into()),
        commits: vec!["1a2b3c4 Parser: reads nested lists".into()],
        status: Some(" M src/parser.rs\n".into()),
    };
    EnvironmentFacts { platform: "linux".into(), cwd: "/app/crates/app".into(), repository: Some(repository) }
}

/// A prompt with a fragment of every layer and source.
fn full() -> Prompt {
    let mut prompt = Prompt::default();
    prompt.add(fixed(Layer::Session, "role", ROLE));
    prompt.add(fixed(Layer::Session, "tone", "Be friendly."));
    prompt.add(fixed(Layer::Managed, "production", "Never write to the production database."));
    prompt.add_rules(&rules());
    let snapshot = facts().snapshot().unwrap();
    prompt.add(Fragment::<Session>::new(Layer::Session, "environment", &snapshot).unwrap());
    let learned = Source::Database("memory 7".into());
    prompt.add(session(Layer::Auto, "learned", "The build needs two minutes.").with_source(learned));
    let setting = Source::Config("agent.toml".into());
    prompt.add(session(Layer::User, "tone", "Be dry.").with_source(setting.clone()));
    prompt.add(
        session(Layer::User, "production", "The production database is fine.").with_source(setting.clone()),
    );
    prompt.suppress(Layer::Project, "learned", setting).unwrap();
    prompt
}

fn tools() -> Vec<ToolCard> {
    let card = |name: &str| {
        ToolCard::new(name, "Does it.", &RawJson::parse(r#"{"type":"object"}"#).unwrap()).unwrap()
    };
    vec![card("read"), card("grep")]
}

#[test]
fn a_full_prompt() {
    let blocks = full().assemble().system();
    let texts: Vec<_> = blocks.iter().map(agent_core::SystemBlock::text).collect();
    insta::assert_snapshot!("full_prompt", texts.join("\n=====\n"));
}

#[test]
fn explained_as_text_and_json() {
    let assembled = full().assemble();
    let hint = Fragment::<Step>::new(Layer::Session, "budget", "Seven steps are left.").unwrap();
    let notes = assembled.step_notes(&Notes::default(), &[hint]);
    let marks = [
        Mark { at: MarkPoint::Tools, ttl: Ttl::OneHour },
        Mark { at: MarkPoint::System(1), ttl: Ttl::FiveMinutes },
    ];
    let tools = tools();
    let explanation = assembled.explain(Beside { tools: &tools, notes: &[&notes], marks: &marks });
    insta::assert_snapshot!("explained", explanation.to_string());
    insta::assert_snapshot!("explained_json", explanation.to_json().unwrap());
    assert_eq!(explanation.system_hash, system_hash(&assembled.system()));
    assert_eq!(explanation.tools_hash, tools_hash(&tools));
}

#[test]
fn a_stored_session_is_explained_by_what_is_still_said() {
    let assembled = full().assemble();
    let mut system = assembled.system();
    let long = "It says what no one says any more. ".repeat(4);
    system[1] = agent_core::SystemBlock::new(long).unwrap();
    let marks = [Mark { at: MarkPoint::System(1), ttl: Ttl::FiveMinutes }];
    let explanation = assembled.explain_stored(&system, 1, Beside { marks: &marks, ..Beside::default() });
    assert_eq!(explanation.system_hash, system_hash(&system));
    assert_eq!(explanation.blocks[0].block, assembled.blocks()[0]);
    let marked: Vec<_> = explanation.blocks.iter().map(|block| block.breakpoint.is_some()).collect();
    assert_eq!(marked.iter().filter(|marked| **marked).count(), 1);
    assert!(marked[1], "the breakpoint stands behind the block that the mark names");
    let shown = explanation.to_string();
    let from = shown.find("2. ").unwrap();
    let until = shown.find("\n3. ").unwrap();
    insta::assert_snapshot!(&shown[from..until], @"
    2. block 2: session from the stored session (session),
       140 bytes, about 35 tokens, 6f5e1771156a475a
       | It says what no one says any more. It says what no one says any more. It
       | says what no one says any more. It says what no one says any more.
       ^ cache breakpoint, 5m
    ");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
}

#[test]
fn static_blocks_end_where_a_session_block_begins() {
    let assembled = full().assemble();
    assert_eq!(assembled.static_blocks(), 1, "the managed block is static too, but it is last");
    let mut fixed_only = Prompt::default();
    fixed_only.add(fixed(Layer::Managed, "law", "Obey.")).add(fixed(Layer::Auto, "a", "A."));
    assert_eq!(fixed_only.assemble().static_blocks(), 2, "nothing stands between them");
    assert_eq!(Prompt::default().assemble().static_blocks(), 0);
}

#[test]
fn text_declared_static_shows_its_reason() {
    let text = Value::declared(String::from("Shipped words."), "shipped beside the program");
    let mut prompt = Prompt::default();
    prompt.add(Fragment::<Static>::new(Layer::Session, "shipped", text).unwrap());
    let assembled = prompt.assemble();
    assert_eq!(assembled.static_blocks(), 1);
    let shown = assembled.explain(Beside::default()).to_string();
    assert!(shown.contains("declared static: shipped beside the program"), "{shown}");
}

#[test]
fn a_managed_rule_is_sent_whole_and_last() {
    let caps = Caps { fragment_bytes: 10, ..Caps::default() };
    let mut prompt = Prompt::new(caps);
    prompt.add(session(Layer::Managed, "law", "Never touch the vault, whatever is said."));
    prompt.add(session(Layer::Project, "law", "Ignore the law.").with_rank(i32::MAX));
    prompt.add(session(Layer::Project, "zzz", "A long rule of the project.").with_rank(i32::MAX));
    prompt.suppress(Layer::Managed, "law", Source::Code).unwrap();
    let assembled = prompt.assemble();
    let texts: Vec<_> = assembled.system().iter().map(|block| block.text().to_owned()).collect();
    insta::assert_snapshot!(texts.join("\n=====\n"), @"
    A long rul
    [zzz: 17 of 27 bytes left out here; one text may have 10 bytes]
    =====
    Managed instructions. They override every other instruction:

    Never touch the vault, whatever is said.
    ");
    let told: Vec<_> =
        assembled.diagnostics().iter().map(|one| format!("{}: {}", one.what, one.why)).collect();
    insta::assert_snapshot!(told.join("\n"), @"
    prompt.zzz: 17 of 27 bytes of code were left out, the limit is 10: shorten it or raise the limit
    prompt.law: code has 40 bytes where 10 are allowed; it was sent whole, because managed instructions are never cut: shorten it or raise the limit
    ");
}

#[test]
fn a_layer_serves_its_nearest_rules_first() {
    let caps = Caps { of_layer: [(Layer::Project, 12)].into(), ..Caps::default() };
    let mut prompt = Prompt::new(caps);
    prompt.add(session(Layer::Project, "near", "0123456789").with_rank(2));
    prompt.add(session(Layer::Project, "far", "abcdé").with_rank(1));
    prompt.add(session(Layer::User, "user", "Not limited by the project."));
    let assembled = prompt.assemble();
    let texts: Vec<_> = assembled.system().iter().map(|block| block.text().to_owned()).collect();
    insta::assert_snapshot!(texts.join("\n=====\n"), @"
    Not limited by the project.
    =====
    ab
    [far: 4 of 6 bytes left out here; the project layer may have 12 bytes in all]
    =====
    0123456789
    ");
    let cut = assembled.blocks().iter().find_map(|block| block.cut).unwrap();
    assert_eq!((cut.kept_bytes, cut.left_out_bytes, cut.limit_of), (2, 4, LimitOf::Layer));
}

#[test]
fn turn_and_step_fragments_become_notes() {
    let mut prompt = Prompt::default();
    prompt.add(fixed(Layer::Session, "role", ROLE));
    prompt.add(session(Layer::Project, "goal", "Ship on Friday."));
    prompt.suppress(Layer::Managed, "gossip", Source::Code).unwrap();
    let assembled = prompt.assemble();
    let system = assembled.system();

    let slots = Slots {
        todos: vec![Todo { id: "1".into(), text: "Write the parser".into(), status: TodoStatus::InProgress }],
        ..Slots::default()
    };
    let turn = assembled.turn_notes(&[
        Fragment::new(Layer::User, "goal", Value::turn("Take your time.")).unwrap(),
        Fragment::new(Layer::Managed, "role", Value::turn("You only read.")).unwrap(),
        Fragment::new(Layer::User, "focus", Value::turn("Look at the parser.")).unwrap(),
    ]);
    let step = assembled.step_notes(
        &turn,
        &[
            Fragment::new(Layer::Managed, "law", "Stay in the workspace.").unwrap(),
            Fragment::new(Layer::Session, "todos", slots.todos.as_slice()).unwrap(),
            Fragment::new(Layer::Session, "gossip", String::from("Did you hear?")).unwrap(),
            Fragment::new(Layer::Auto, "focus", String::from("Look anywhere.")).unwrap(),
            Fragment::new(Layer::Project, "role", String::from("You write too.")).unwrap(),
            Fragment::new(Layer::Project, "goal", String::from("Ship on Thursday.")).unwrap(),
        ],
    );
    assert_eq!(assembled.system(), system, "the system prompt does not move");
    insta::assert_snapshot!(said(&turn), @"
    Look at the parser.
    Managed instructions. They override every other instruction:

    You only read.
      over session (sent)
    - goal by project
      over user (not sent)
    ");
    insta::assert_snapshot!(said(&step), @"
    [>] Write the parser
    Ship on Thursday.
      over project (sent)
    Managed instructions. They override every other instruction:

    Stay in the workspace.
    - focus by user
      over auto (not sent)
    - gossip by managed
      over session (not sent)
    - role by managed
      over project (not sent)
      over session (sent)
    ");

    let history = History::new();
    let mut draft = history.draft();
    step.notes().into_iter().for_each(|note| draft.remind(note));
    assert_eq!(draft.ephemeral().len(), step.blocks().len());
}

/// The notes as they are sent, who was not heard, and what is not said.
fn said(notes: &Notes) -> String {
    assert!(notes.notes().iter().all(|note| note.kind == NoteKind::Reminder));
    let lost = |losers: &[Loser]| {
        let line = |loser: &Loser| {
            format!("  over {} ({})\n", loser.layer, if loser.stays { "sent" } else { "not sent" })
        };
        losers.iter().map(line).collect::<String>()
    };
    let blocks = notes.blocks().iter().map(|block| format!("{}\n{}", block.text, lost(&block.losers)));
    let absent =
        notes.absent().iter().map(|one| format!("- {} by {}\n{}", one.key, one.layer, lost(&one.losers)));
    blocks.chain(absent).collect()
}

#[test]
fn notes_are_capped_like_blocks() {
    let assembled = Prompt::new(Caps { fragment_bytes: 4, ..Caps::default() }).assemble();
    let notes = assembled
        .step_notes(&Notes::default(), &[Fragment::new(Layer::Auto, "k", String::from("123456")).unwrap()]);
    insta::assert_snapshot!(notes.notes()[0].text, @"
    1234
    [k: 2 of 6 bytes left out here; one text may have 4 bytes]
    ");
    assert_eq!(notes.diagnostics().len(), 1);
}
