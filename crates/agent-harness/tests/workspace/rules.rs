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
    insta::assert_snapshot!(shown, @"
    == environment
    The environment when it was looked at; it is not kept up to date:
    Platform: OS
    Working directory: TMP/work/crates/app
    Branch: main
    Git user: Ada
    Last commits:
    9816ddc First
    Status: clean
    == rules:user:AGENTS.md
    Instructions from user:AGENTS.md (user):

    Answer briefly.
    From user:style.md:
    Two spaces.
    == rules:CLAUDE.local.md
    Instructions from CLAUDE.local.md (local):

    My editor is slow.
    == rules:crates/app/AGENTS.local.md
    Instructions from crates/app/AGENTS.local.md (local):

    Skip the slow tests.
    == rules:AGENTS.md
    Instructions from AGENTS.md (project):

    Run the tests.
    From docs/commits.md:
    One idea a commit.
    @commits.md
    @../AGENTS.md
    @docs/../../outside.md
    == rules:CLAUDE.md
    Instructions from CLAUDE.md (project):

    Use the wide terminal.
    == rules:crates/app/AGENTS.md
    Instructions from crates/app/AGENTS.md (project):

    No dependencies here.
    == rules:managed:AGENTS.md
    Managed instructions from managed:AGENTS.md. They override every other instruction:

    Never push.
    From managed:more/secrets.md:
    Never print keys.
    !! rules.docs/commits.md:2: commits.md is not imported: it takes in the file that it is taken into; remove one of the two imports
    !! rules.docs/commits.md:3: ../AGENTS.md is not imported: it takes in the file that it is taken into; remove one of the two imports
    !! rules.AGENTS.md:3: docs/../../outside.md is not imported: it leads out of the folder that the rules may come from; move the file inside
    ");
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
    insta::assert_snapshot!(show(&place, "work"), @"
    == rules:AGENTS.md
    Instructions from AGENTS.md (project):

    From a.md:
    A
    From b.md:
    B
    @a.md
    @nowhere.md
    !! rules.b.md:2: a.md is not imported: it takes in the file that it is taken into; remove one of the two imports
    !! rules.b.md:3: nowhere.md is not imported: no file is there that can be read; check the path, which is relative to the file that names it
    ");
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
    insta::assert_snapshot!(show(&place, "work"), @"
    == rules:CLAUDE.local.md
    Instructions from CLAUDE.local.md (local):

    From in.md:
    Inside.
    @out.md
    @folder/x.md
    @hop.md
    @loop.md
    == rules:AGENTS.md
    Instructions from AGENTS.md (project):

    Inside.
    !! rules.AGENTS.local.md: it is not read: a symbolic link on its path leads out of the folder or is absolute; link relative to a file inside, or copy the text
    !! rules.folder/x.md: it is not read: a symbolic link on its path leads out of the folder or is absolute; link relative to a file inside, or copy the text
    !! rules.hop.md: it is not read: a symbolic link on its path leads out of the folder or is absolute; link relative to a file inside, or copy the text
    !! rules.loop.md: it is not read: Too many levels of symbolic links (os error 40); mend that, or remove it
    !! rules.out.md: it is not read: a symbolic link on its path leads out of the folder or is absolute; link relative to a file inside, or copy the text
    !! rules.CLAUDE.local.md:2: out.md is not imported: no file is there that can be read; check the path, which is relative to the file that names it
    !! rules.CLAUDE.local.md:3: folder/x.md is not imported: no file is there that can be read; check the path, which is relative to the file that names it
    !! rules.CLAUDE.local.md:4: hop.md is not imported: no file is there that can be read; check the path, which is relative to the file that names it
    !! rules.CLAUDE.local.md:5: loop.md is not imported: no file is there that can be read; check the path, which is relative to the file that names it
    ");
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
    insta::assert_snapshot!(show(&place, "work/a"), @"
    == rules:a/CLAUDE.md
    Instructions from a/CLAUDE.md (project):

    Read me.
    !! rules.AGENTS.md: it is not read: its byte 3 is not UTF-8; save it as UTF-8
    !! rules.CLAUDE.md: it is not read: it has more than 1048576 bytes; keep what the model must know and move the rest elsewhere
    !! rules.AGENTS.local.md: it is not read: it is not a regular file; put the text into a file of this name
    !! rules.CLAUDE.local.md: it is not read: it is a symbolic link to a file that is not there; mend the link or remove it
    !! rules.a/AGENTS.md: it is not read: it is not a regular file; put the text into a file of this name
    ");
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
    insta::assert_snapshot!(refused(&place), @"error: folder TMP/managed cannot be read: it is a symbolic link to a file that is not there; mend the link or remove it");

    let place = Place::new(&[]);
    place.write("managed/AGENTS.md", b"\xFF");
    insta::assert_snapshot!(refused(&place), @"error: managed:AGENTS.md cannot be read: its byte 0 is not UTF-8; save it as UTF-8");
    assert!(
        place.show(&place.workspace("work").without_rules()).starts_with("error: "),
        "rules left out or not"
    );

    let place = Place::new(&[("managed/AGENTS.md", "A\n@more.md")]);
    insta::assert_snapshot!(refused(&place), @"error: more.md, which line 2 of managed:AGENTS.md imports, cannot be read: no file is there that can be read; check the path, which is relative to the file that names it");

    let place = Place::new(&[("managed/AGENTS.md", "A\n@more.md"), ("secret.md", "x")]);
    place.link("managed/more.md", "../secret.md");
    insta::assert_snapshot!(refused(&place), @"error: managed:more.md cannot be read: a symbolic link on its path leads out of the folder or is absolute; link relative to a file inside, or copy the text");
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
    insta::assert_snapshot!(place.show(&workspace.clone().without_rules()), @"
    == rules:managed:AGENTS.md
    Managed instructions from managed:AGENTS.md. They override every other instruction:

    Policy.
    ");
    let named = RuleConfig { project: vec!["TEAM.md".into()], user: vec![], ..RuleConfig::default() };
    insta::assert_snapshot!(place.show(&workspace.clone().rules(named)), @"
    == rules:TEAM.md
    Instructions from TEAM.md (project):

    Team.
    == rules:managed:AGENTS.md
    Managed instructions from managed:AGENTS.md. They override every other instruction:

    Policy.
    ");
    let escaping = RuleConfig { project: vec!["../TEAM.md".into()], ..RuleConfig::default() };
    insta::assert_snapshot!(place.show(&workspace.rules(escaping)), @"error: one of the configured names of rule files cannot be read: it leads out of the folder that the rules may come from; move the file inside");
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
    insta::assert_snapshot!(place.show(&beside), @"error: workspace TMP/work/in/deep cannot be read: TMP/work/in does not lie in it; name a folder above it");
}
