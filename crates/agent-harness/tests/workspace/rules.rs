//! Rule files on disk: the walk, imports, and what is refused.

use agent_prompt::RuleConfig;

use super::repository::Repository;
use super::{Place, assemble};

#[test]
fn the_whole_prompt_of_a_folder() {
    let place = Place::new(&[
        ("user/AGENTS.md", "Answer briefly.\n@style.md\n"),
        ("user/style.md", "Two spaces.\n"),
        ("managed/AGENTS.md", "Never push.\n@more/secrets.md\n"),
        ("managed/more/secrets.md", "Never print keys.\n"),
        ("work/AGENTS.md", "Run the tests.\n@docs/commits.md\n@docs/../../outside.md\n"),
        ("work/docs/commits.md", "One idea a commit.\n@commits.md\n@../AGENTS.md\n"),
        ("work/CLAUDE.md", "@AGENTS.md\nUse the wide terminal.\n"),
        ("work/CLAUDE.local.md", "My editor is slow.\n"),
        ("work/crates/app/AGENTS.md", "\u{feff}No dependencies here.\r\n"),
        ("work/crates/app/AGENTS.local.md", "Skip the slow tests.\n"),
        ("work/crates/other/AGENTS.md", "Not on the way.\n"),
        ("AGENTS.md", "Above the workspace.\n"),
        ("outside.md", "Outside.\n"),
    ]);
    Repository::init(place.path("work")).commit("a.txt", "First");
    let workspace = place.workspace("work/crates/app");
    let shown =
        place.show(&workspace).replace(&format!("Platform: {}", std::env::consts::OS), "Platform: OS");
    insta::assert_snapshot!(shown, @"");
    assert_eq!(place.show(&workspace), place.show(&workspace.clone()), "equal bytes each time");
    let last = assemble(&workspace).unwrap().blocks().last().unwrap().key.clone();
    assert_eq!(last, "rules:managed:AGENTS.md");
}

/// Rules alone, as they are shown.
fn show(place: &Place, folder: &str) -> String {
    place.show(&place.workspace(folder).without_environment())
}

#[test]
fn imports_in_a_circle_end() {
    let place = Place::new(&[
        ("work/AGENTS.md", "@a.md"),
        ("work/a.md", "A\n@b.md"),
        ("work/b.md", "B\n@a.md\n@nowhere.md"),
    ]);
    insta::assert_snapshot!(show(&place, "work"), @"");
}

#[cfg(unix)]
#[test]
fn links_stay_inside() {
    let place = Place::new(&[
        ("secret.md", "Secret."),
        ("outside/x.md", "Secret."),
        ("work/real/rules.md", "Inside."),
        ("work/CLAUDE.local.md", "@in.md\n@out.md\n@folder/x.md\n@hop.md\n@loop.md"),
    ]);
    place.link("work/AGENTS.md", "real/rules.md");
    // The same file under its other usual name is not worth a word.
    place.link("work/CLAUDE.md", "AGENTS.md");
    place.link("work/AGENTS.local.md", place.path("secret.md"));
    place.link("work/in.md", "./real/../real/rules.md");
    place.link("work/out.md", "../secret.md");
    place.link("work/folder", "../outside");
    place.link("work/hop.md", "real/hop.md");
    place.link("work/real/hop.md", "../../secret.md");
    place.link("work/loop.md", "loop.md");
    insta::assert_snapshot!(show(&place, "work"), @"");
}

#[cfg(unix)]
#[test]
fn what_cannot_be_read_is_told() {
    let place = Place::new(&[("work/.git/HEAD", ""), ("work/a/CLAUDE.md", "Read me.")]);
    place.write("work/AGENTS.md", b"caf\xE9");
    place.write("work/CLAUDE.md", &vec![b'x'; 1024 * 1024 + 1]);
    std::fs::create_dir(place.path("work/AGENTS.local.md")).unwrap();
    place.link("work/CLAUDE.local.md", "gone.md");
    let pipe = std::process::Command::new("mkfifo").arg(place.path("work/a/AGENTS.md")).status().unwrap();
    assert!(pipe.success());
    insta::assert_snapshot!(show(&place, "work/a"), @"");
}

#[test]
fn a_file_over_the_cap_is_cut_and_a_managed_one_is_not() {
    let long = "Rule. ".repeat(10_000);
    let place = Place::new(&[("work/AGENTS.md", &long), ("managed/AGENTS.md", &long)]);
    let assembled = assemble(&place.workspace("work").without_environment()).unwrap();
    let [project, managed] = assembled.blocks() else { panic!("two blocks") };
    assert!(project.cut.is_some() && project.text.as_str().len() < 40_000);
    assert!(managed.cut.is_none() && managed.text.as_str().contains(long.trim_end()));
    assert_eq!(assembled.diagnostics().len(), 2, "both are told");
}

#[cfg(unix)]
#[test]
fn a_policy_is_whole_or_no_session_begins() {
    let refused = |place: &Place| {
        let shown = show(place, "work");
        assert!(shown.starts_with("error: "), "{shown}");
        shown
    };
    let place = Place::new(&[]);
    assert_eq!(show(&place, "work"), "", "no folder, no policy");

    place.link("managed", "nowhere");
    insta::assert_snapshot!(refused(&place), @"");

    let place = Place::new(&[]);
    place.write("managed/AGENTS.md", b"\xFF");
    insta::assert_snapshot!(refused(&place), @"");
    assert!(
        place.show(&place.workspace("work").without_rules()).starts_with("error: "),
        "rules left out or not"
    );

    let place = Place::new(&[("managed/AGENTS.md", "A\n@more.md")]);
    insta::assert_snapshot!(refused(&place), @"");

    let place = Place::new(&[("managed/AGENTS.md", "A\n@more.md"), ("secret.md", "x")]);
    place.link("managed/more.md", "../secret.md");
    insta::assert_snapshot!(refused(&place), @"");
}

#[test]
fn rules_can_be_left_out_and_named_otherwise() {
    let place = Place::new(&[
        ("work/AGENTS.md", "Project."),
        ("work/TEAM.md", "Team."),
        ("user/AGENTS.md", "User."),
        ("managed/AGENTS.md", "Policy."),
    ]);
    let workspace = place.workspace("work").without_environment();
    insta::assert_snapshot!(place.show(&workspace.clone().without_rules()), @"");
    let named = RuleConfig { project: vec!["TEAM.md".into()], user: vec![], ..RuleConfig::default() };
    insta::assert_snapshot!(place.show(&workspace.clone().rules(named)), @"");
    let escaping = RuleConfig { project: vec!["../TEAM.md".into()], ..RuleConfig::default() };
    insta::assert_snapshot!(place.show(&workspace.rules(escaping)), @"");
}

#[test]
fn the_root_is_the_nearest_repository_or_what_is_said() {
    let place = Place::new(&[
        ("work/AGENTS.md", "Outer."),
        ("work/in/AGENTS.md", "Inner."),
        ("work/in/deep/AGENTS.md", "Deep."),
    ]);
    let keys = |workspace: agent_harness::Workspace| {
        let assembled = assemble(&workspace.without_environment()).unwrap();
        assembled.blocks().iter().map(|block| block.key.clone()).collect::<Vec<_>>()
    };
    assert_eq!(keys(place.workspace("work/in/deep")), ["rules:AGENTS.md"], "no repository: the folder alone");
    place.write("work/in/.git", b"gitdir: elsewhere");
    assert_eq!(keys(place.workspace("work/in/deep")), ["rules:AGENTS.md", "rules:deep/AGENTS.md"]);
    let outer = place.workspace("work/in/deep").root(place.path("work"));
    assert_eq!(keys(outer), ["rules:AGENTS.md", "rules:in/AGENTS.md", "rules:in/deep/AGENTS.md"]);
    let beside = place.workspace("work/in").root(place.path("work/in/deep"));
    insta::assert_snapshot!(place.show(&beside), @"");
}
