//! What a session is told of its repository.

use agent_harness::Workspace;
use agent_prompt::ENVIRONMENT_CHARS;

use super::repository::Repository;
use super::{Place, block};

/// What is told of a folder, without rules.
fn show(place: &Place, folder: &str) -> String {
    let mut shown = place.show(&place.workspace(folder).without_rules());
    shown = shown.replace(&format!("Platform: {}", std::env::consts::OS), "Platform: OS");
    shown
}

#[test]
fn branch_default_user_commits_and_status() {
    let place = Place::new(&[]);
    let repository = Repository::init(place.path("work"));
    for number in 1..=7 {
        repository.commit("a.txt", &format!("Change {number}"));
    }
    repository.git(&["checkout", "--quiet", "-b", "fix/größe"]);
    repository.git(&["config", "init.defaultBranch", "main"]);
    place.write("work/a.txt", b"changed");
    place.write("work/sub/neu é.txt", b"new");
    insta::assert_snapshot!(show(&place, "work"), @"
    == environment
    The environment when it was looked at; it is not kept up to date:
    Platform: OS
    Working directory: TMP/work
    Branch: fix/größe
    Default branch: main
    Git user: Ada
    Last commits:
    1a5a99b Change 7
    1dc6510 Change 6
    79e34eb Change 5
    fe38daf Change 4
    d1c1e3a Change 3
    Status:
     M a.txt
    ?? sub/
    ");
    // Paths are told from where the agent works.
    insta::assert_snapshot!(show(&place, "work/sub").lines().rev().take(3).collect::<Vec<_>>().join("\n"), @"
    ?? ./
     M ../a.txt
    Status:
    ");
}

#[test]
fn the_origin_says_which_branch_is_the_default() {
    let place = Place::new(&[]);
    let origin = Repository::init(place.path("origin"));
    origin.commit("a.txt", "First");
    origin.git(&["branch", "--move", "release/2.x"]);
    origin.git(&["clone", "--quiet", ".", "../clone"]);
    let clone = Repository::init(place.path("clone"));
    clone.git(&["config", "init.defaultBranch", "main"]);
    clone.git(&["checkout", "--quiet", "-b", "main"]);
    insta::assert_snapshot!(show(&place, "clone"), @"
    == environment
    The environment when it was looked at; it is not kept up to date:
    Platform: OS
    Working directory: TMP/clone
    Branch: main
    Default branch: release/2.x
    Git user: Ada
    Last commits:
    6f74486 First
    Status: clean
    ");
}

#[test]
fn without_commits_detached_and_in_a_worktree() {
    let place = Place::new(&[]);
    let repository = Repository::init(place.path("work"));
    insta::assert_snapshot!(show(&place, "work"), @"
    == environment
    The environment when it was looked at; it is not kept up to date:
    Platform: OS
    Working directory: TMP/work
    Branch: main
    Git user: Ada
    Status: clean
    ");
    repository.commit("a.txt", "First\u{1b}[31m red");
    repository.git(&["worktree", "add", "--quiet", "--detach", "../tree"]);
    insta::assert_snapshot!(show(&place, "tree"), @"
    == environment
    The environment when it was looked at; it is not kept up to date:
    Platform: OS
    Working directory: TMP/tree
    Branch: (detached)
    Git user: Ada
    Last commits:
    8a90e1a First [31m red
    Status: clean
    ");
}

#[test]
fn outside_a_repository_there_is_nothing() {
    let place = Place::new(&[]);
    assert_eq!(show(&place, "work"), "");
    let inside = Repository::init(place.path("work"));
    assert_eq!(show(&place, "work/.git"), "", "nor inside its own folder");
    inside.git(&["init", "--quiet", "--bare", "../bare"]);
    assert_eq!(show(&place, "bare"), "");
}

#[test]
fn a_repository_that_git_does_not_take_is_told() {
    let place = Place::new(&[("work/.git/HEAD", "nonsense")]);
    insta::assert_snapshot!(show(&place, "work"), @"!! environment.repository: it is left out: git refused: fatal: not a git repository (or any of the parent directories): .git");
}

#[test]
fn a_long_status_is_cut_with_a_note() {
    let place = Place::new(&[]);
    Repository::init(place.path("work"));
    for number in 0..3000 {
        std::fs::write(place.path(&format!("work/a file with quite a long name {number}.txt")), "").unwrap();
    }
    let environment = block(place.workspace("work").environment()).unwrap();
    let snapshot = environment.facts.snapshot().unwrap();
    assert_eq!(snapshot.text().chars().count(), ENVIRONMENT_CHARS);
    assert!(
        snapshot.text().ends_with("[cut here; run `git status --short` for the rest]"),
        "{}",
        snapshot.text()
    );
    assert_eq!(environment.problems, []);
}

#[test]
fn looking_takes_no_lock_and_writes_no_index() {
    let place = Place::new(&[]);
    let repository = Repository::init(place.path("work"));
    repository.commit("a.txt", "First");
    let index = place.path("work/.git/index");
    // A file whose time changed and whose content did not: an ordinary `git status` notes that in the index.
    let file = std::fs::File::options().write(true).open(place.path("work/a.txt")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000)).unwrap();
    let before = std::fs::read(&index).unwrap();
    // Another process holds the lock.
    place.write("work/.git/index.lock", b"");
    insta::assert_snapshot!(show(&place, "work").lines().last().unwrap(), @"Status: clean");
    std::fs::remove_file(place.path("work/.git/index.lock")).unwrap();
    show(&place, "work");
    assert_eq!(std::fs::read(&index).unwrap(), before);
    repository.git(&["status", "--short"]);
    assert_ne!(std::fs::read(&index).unwrap(), before, "an ordinary status would have been seen");
}

#[test]
fn a_later_look_is_told_as_a_note() {
    let place = Place::new(&[]);
    let repository = Repository::init(place.path("work"));
    let workspace = place.workspace("work");
    let look = || block(workspace.environment()).unwrap().facts.snapshot().unwrap();
    let began = look();
    assert_eq!(look(), began, "nothing changed");
    repository.commit("a.txt", "First");
    let note = look().note();
    assert!(note.text.as_str().starts_with("The environment was looked at again."), "{}", note.text);
    assert!(note.text.as_str().contains("First"), "{}", note.text);
}

#[test]
fn no_git_is_started_when_the_environment_is_left_out() {
    let place = Place::new(&[("work/.git/HEAD", "nonsense")]);
    assert_eq!(place.show(&place.workspace("work").without_environment()), "");
    let nowhere = Workspace::new(place.path("nowhere"));
    insta::assert_snapshot!(place.show(&nowhere), @"error: folder TMP/nowhere cannot be read: No such file or directory (os error 2)");
}
