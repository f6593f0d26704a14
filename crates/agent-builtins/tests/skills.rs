//! Skills on real folders, and the tool that loads them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_builtins::{LISTING_BYTES, SKILL_BYTES, SKILLS, SkillSource, Skills, load_skill};
use agent_tools::{Access, PermissionDecision, PermissionMode, Tool, ToolCx};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{Bench, call, create_dir_all, write};

const SHELF: &str = ".agent/skills";

fn text(name: &str, does: &str) -> String {
    format!("---\nname: {name}\ndescription: {does}\n---\n# {name}\n\nDo it well.\n")
}

fn file(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    let path = folder.join(name);
    create_dir_all(path.parent().unwrap());
    write(&path, bytes.as_ref());
}

fn of_workspace(root: &Path) -> Skills {
    Skills::find(root, &[SkillSource::Workspace(SHELF.into())])
}

fn skipped(skills: &Skills) -> Vec<String> {
    skills.skipped().iter().map(ToString::to_string).collect()
}

fn names(skills: &Skills) -> Vec<&str> {
    skills.iter().map(|skill| skill.name.as_str()).collect()
}

/// What a session with these skills would send of them.
fn sent(skills: &Skills) -> (Option<String>, String) {
    let tool = load_skill(skills).map(|tool| serde_json::to_string(tool.card()).unwrap());
    (skills.listing(), tool.unwrap_or_default())
}

async fn load(tools: &[Arc<dyn Tool>], cx: &ToolCx, name: &str) -> String {
    match call(tools, cx, "load_skill", &json!({"name": name})).await {
        Ok(text) => text,
        Err(error) => format!("ERROR: {error}"),
    }
}

#[tokio::test]
async fn a_skill_is_listed_and_loaded() {
    let bench = Bench::new();
    bench.put(".agent/skills/knots/SKILL.md", text("knots", "Ties ropes. Use it at sea."));
    bench.put(".agent/skills/knots/charts/bowline.txt", "o");
    bench.put(".agent/skills/knots/hitch.sh", "h");
    bench.put(".agent/skills/knots/.hidden", "h");
    bench.put(".agent/skills/bread/SKILL.md", text("bread", "Bakes. Use it at home."));
    bench.put(".agent/skills/README.md", "no skill");
    bench.link(bench.outside(), ".agent/skills/knots/away");
    let skills = of_workspace(&bench.root());
    assert_eq!(skipped(&skills), Vec::<String>::new());
    insta::assert_snapshot!(skills.listing().unwrap(), @"
    Skills are instructions for one kind of task each. Before you begin a task that one of them is for, load it with load_skill and follow it. There are:
    - bread: Bakes. Use it at home.
    - knots: Ties ropes. Use it at sea.
    ");

    let tools = [load_skill(&skills).unwrap()];
    let first = load(&tools, &bench.cx, "knots").await;
    insta::assert_snapshot!(first, @"
    Skill knots, in the folder .agent/skills/knots.

    # knots

    Do it well.

    Other files of the skill; read those that you need with read_file:
    - .agent/skills/knots/charts/bowline.txt
    - .agent/skills/knots/hitch.sh
    ");
    let shown = bench.run("read_file", json!({"path": ".agent/skills/knots/charts/bowline.txt"})).await;
    assert!(shown.contains("1\to"), "the path is one that read_file takes: {shown}");
    assert_eq!(
        load(&tools, &bench.cx, "bread").await,
        "Skill bread, in the folder .agent/skills/bread.\n\n# bread\n\nDo it well.\n"
    );
    let again = load(&tools, &bench.cx, " knots").await;
    assert_eq!(
        again,
        first.replace("knots.\n", "knots. It was active already; these are its instructions again.\n")
    );
    assert_eq!(bench.cx.slots.snapshot().skills, ["knots", "bread"], "each once, in the order of loading");

    insta::assert_snapshot!(load(&tools, &bench.cx, "knot").await, @"ERROR: There is no skill `knot`. Did you mean `knots`? There are: bread, knots. Load one of these, or do the task without a skill.");
    insta::assert_snapshot!(load(&tools, &bench.cx, "../knots").await, @"ERROR: There is no skill `../knots`. Did you mean `knots`? There are: bread, knots. Load one of these, or do the task without a skill.");
    assert_eq!(bench.cx.slots.snapshot().skills.len(), 2);
}

#[test]
fn what_the_tool_says_and_may() {
    let bench = Bench::new();
    assert!(load_skill(&of_workspace(&bench.root())).is_none(), "no folder, no tool");
    bench.put(".agent/skills/a/SKILL.md", text("a", "b"));
    let tool = load_skill(&of_workspace(&bench.root())).unwrap();
    let (words, traits) = (tool.card().description(), tool.traits());
    assert!(
        words.len() < 1_024 && words.contains("Use it ") && words.contains("Next, ") && words.ends_with('.')
    );
    assert_eq!((traits.access, traits.idempotent), (Access::Session, true));
    assert_eq!(PermissionMode::Plan.decide(traits.access), PermissionDecision::Allow);
}

#[tokio::test]
async fn all_of_long_instructions_is_shown() {
    let bench = Bench::new();
    let head = "---\nname: a\ndescription: b\n---\n";
    for body in ["x\n".repeat(30_000), "x".repeat(60_000)] {
        bench.put(".agent/skills/a/SKILL.md", format!("{head}{body}"));
        let tool = load_skill(&of_workspace(&bench.root())).unwrap();
        let shown = load(std::slice::from_ref(&tool), &bench.cx, "a").await;
        assert!(shown.ends_with(&format!("\n\n{}\n", body.trim_end())), "{}", shown.len());
        let cap = tool.traits().cap;
        assert!(shown.len() <= cap.bytes && shown.lines().count() <= cap.lines);
        assert!(shown.lines().all(|line| line.chars().count() <= cap.line_chars));
    }
}

#[tokio::test]
async fn the_earlier_source_wins_and_the_loser_is_told() {
    let bench = Bench::new();
    let far = bench.outside();
    bench.put(".agent/skills/x/SKILL.md", text("knots", "Ours."));
    bench.put(".agent/skills/y/SKILL.md", text("knots", "Ours too."));
    file(&far, "knots/SKILL.md", text("knots", "Theirs."));
    file(&far, "tides/SKILL.md", text("tides", "Theirs."));
    file(&far, "tides/table.txt", "1");
    let workspace = SkillSource::Workspace(SHELF.into());
    let user = SkillSource::Folder(far.clone());
    let skills = Skills::find(&bench.root(), &[workspace.clone(), user.clone()]);
    assert_eq!(names(&skills), ["knots", "tides"]);
    assert_eq!(skills.get("knots").unwrap().description, "Ours.");
    let told = skipped(&skills).join("\n").replace(far.to_str().unwrap(), "FAR");
    insta::assert_snapshot!(told, @"
    skill .agent/skills/y is left out: the skill of .agent/skills/x is called `knots` too and comes first; rename one of them, or remove it
    skill FAR/knots is left out: the skill of .agent/skills/x is called `knots` too and comes first; rename one of them, or remove it
    ");
    let other = Skills::find(&bench.root(), &[user, workspace]);
    assert_eq!(other.get("knots").unwrap().description, "Theirs.");

    let shown = load(&[load_skill(&skills).unwrap()], &bench.cx, "tides").await;
    assert!(shown.contains("they lie outside the workspace"), "{shown}");
    assert!(shown.ends_with(&format!("- {}/tides/table.txt\n", far.display())), "{shown}");
    // A folder that was chosen and lies in the workspace is one of the workspace.
    let inside = Skills::find(&bench.root(), &[SkillSource::Folder(bench.root().join(SHELF))]);
    assert_eq!(inside.get("knots").unwrap().folder, ".agent/skills/x");
}

/// What becomes of one folder beside a good one.
#[track_caller]
fn check(make: impl FnOnce(&Bench, PathBuf), expect: &str) {
    let bench = Bench::new();
    bench.put(".agent/skills/good/SKILL.md", text("good", "Is fine."));
    bench.put("secret/SKILL.md", text("secret", "Not below the folder."));
    make(&bench, bench.root().join(SHELF).join("bad"));
    let skills = of_workspace(&bench.root());
    assert_eq!(names(&skills), ["good"]);
    let told = skipped(&skills);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("skill .agent/skills/bad is left out: "), "{told:?}");
    assert!(told[0].contains(expect), "{told:?}");
}

#[test]
fn what_cannot_be_taken_is_left_out_alone() {
    check(|_, bad| file(&bad, "skill.md", text("bad", "b")), "it has no SKILL.md");
    check(|_, bad| file(&bad, "SKILL.md", "# Bad\n"), "does not begin with front matter");
    check(|_, bad| file(&bad, "SKILL.md", b"---\nname: a\xff"), "byte 11 of its SKILL.md is not UTF-8");
    let long = format!("{}{}", text("bad", "b"), "x".repeat(usize::try_from(SKILL_BYTES).unwrap()));
    check(|_, bad| file(&bad, "SKILL.md", long), "has more than 65536 bytes");
    check(|_, bad| create_dir_all(&bad.join("SKILL.md")), "not a regular file");
    check(
        |_, bad| {
            create_dir_all(&bad);
            let made = std::process::Command::new("mkfifo").arg(bad.join("SKILL.md")).status().unwrap();
            assert!(made.success());
        },
        "not a regular file",
    );
}

#[test]
fn nothing_leads_out() {
    let out = "a link leads out of it";
    for absolute in [false, true] {
        let make = |bench: &Bench, _| {
            let target = if absolute { bench.root().join("secret") } else { "../../secret".into() };
            bench.link(target, ".agent/skills/bad");
        };
        check(make, out);
    }
    let linked = |target: PathBuf| {
        move |bench: &Bench, bad: PathBuf| {
            create_dir_all(&bad);
            bench.link(target, ".agent/skills/bad/SKILL.md");
        }
    };
    check(linked("../../../secret/SKILL.md".into()), out);
    check(linked("../good/SKILL.md".into()), out);
    check(linked("/etc/passwd".into()), out);
    check(linked("nowhere".into()), "it has no SKILL.md");
    // Not the folder of skills itself either, where it comes with a workspace.
    let bench = Bench::new();
    file(&bench.outside(), "far/SKILL.md", text("far", "f"));
    create_dir_all(&bench.root().join(".agent"));
    bench.link(bench.outside(), SHELF);
    let skills = of_workspace(&bench.root());
    assert!(skills.is_empty());
    assert_eq!(
        skipped(&skills),
        ["skill .agent/skills is left out: a link leads out of it; put the files themselves there"]
    );
    // A link that stays inside is followed.
    let bench = Bench::new();
    bench.put(".agent/skills/a/text.md", text("a", "b"));
    bench.link("text.md", ".agent/skills/a/SKILL.md");
    assert_eq!(names(&of_workspace(&bench.root())), ["a"]);
}

#[test]
fn the_list_has_a_limit() {
    let bench = Bench::new();
    for at in 0..SKILLS + 2 {
        bench.put(&format!(".agent/skills/s{at:02}/SKILL.md"), text(&format!("s{at:02}"), "Short."));
    }
    let skills = of_workspace(&bench.root());
    assert_eq!(skills.iter().count(), SKILLS);
    assert_eq!(skipped(&skills).len(), 2);
    assert!(skipped(&skills)[0].starts_with("skill .agent/skills/s64 is left out: there are 64 skills"));

    let bench = Bench::new();
    for at in 10..40 {
        bench.put(&format!(".agent/skills/s{at}/SKILL.md"), text(&format!("s{at}"), &"long ".repeat(200)));
    }
    let skills = of_workspace(&bench.root());
    assert_eq!(skills.iter().count() + skills.skipped().len(), 30);
    assert!(
        !skills.skipped().is_empty()
            && skipped(&skills).iter().all(|why| why.contains("16384 bytes already"))
    );
    assert!(skills.listing().unwrap().len() < LISTING_BYTES + 300);
}

#[test]
fn many_files_are_named_in_part() {
    let bench = Bench::new();
    bench.put(".agent/skills/a/SKILL.md", text("a", "b"));
    for at in 0..60 {
        bench.put(&format!(".agent/skills/a/f{at:02}.txt"), "x");
    }
    let skills = of_workspace(&bench.root());
    let skill = skills.get("a").unwrap();
    assert!(skill.files.len() == 50 && skill.more_files && skill.files.is_sorted());
    bench.put(".agent/skills/b/SKILL.md", text("b", "b")).put(".agent/skills/b/1/2/3/4/5.txt", "deep");
    assert!(of_workspace(&bench.root()).get("b").unwrap().more_files);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// A folder lists what was put into it in an order of its own, often that of creation.
    #[test]
    fn the_order_on_disk_changes_no_byte(order in Just((0..12).collect::<Vec<u32>>()).prop_shuffle()) {
        let put = |order: &[u32]| {
            let bench = Bench::new();
            for at in order {
                // Names of folders and of skills are in different orders.
                bench.put(&format!(".agent/skills/{at}/SKILL.md"), text(&format!("s{}", 99 - at), "Does."));
                bench.put(&format!(".agent/skills/{at}/{}.txt", 99 - at), "x").put(&format!(".agent/skills/{at}/a.txt"), "x");
            }
            let skills = of_workspace(&bench.root());
            let all = skills.iter().cloned().collect::<Vec<_>>();
            (sent(&skills), all)
        };
        let usual: Vec<u32> = (0..12).collect();
        prop_assert_eq!(put(&order), put(&usual));
    }
}
