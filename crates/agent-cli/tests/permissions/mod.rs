//! `agent permissions check`, and the settings files behind it.

mod settings;

use crate::support::{Home, json_lines};

#[tokio::test]
async fn what_the_rules_say_and_why() {
    let home = Home::new();
    let check = async |flags: &[&str], tool: &str, input: &str, expect: &str| {
        let output = home.agent(&[&["permissions", "check"], flags, &[tool, input]].concat()).await;
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{flags:?} {input}");
        assert_eq!(output.stdout.trim_end().replace('\n', " | "), expect, "{flags:?} {input}");
    };
    let bash = |command: &str| serde_json::json!({ "command": command }).to_string();
    let mode = "decided by: the mode default, for no rule covers the call";
    check(&[], "read_file", r#"{"path":"a"}"#, &format!("allow | {mode}")).await;
    check(&[], "bash", &bash("ls"), &format!("ask | {mode}")).await;
    check(
        &["--mode", "bypass"],
        "bash",
        &bash("ls"),
        "allow | decided by: the mode bypass, for no rule covers the call",
    )
    .await;
    check(
        &["--mode", "plan"],
        "bash",
        &bash("ls"),
        "deny | decided by: the mode plan, for no rule covers the call",
    )
    .await;

    let status = ["--allow", "bash(git status)"];
    check(
        &status,
        "bash",
        &bash("git status"),
        "allow | decided by: the rule allow bash(git status) (session)",
    )
    .await;
    let rest = format!("ask | {mode} | because of: rm -rf x");
    check(&status, "bash", &bash("git status && rm -rf x"), &rest).await;
    let no_rm = ["--deny", "bash(rm:*)", "--allow", "bash", "--mode", "bypass"];
    let denied = "deny | decided by: the rule deny bash(rm:*) (user) | because of: rm -rf x";
    for hidden in
        ["rm -rf x", "true; rm -rf x", "(true && (rm -rf x))", "echo $(rm -rf x)", "bash -c 'rm -rf x'"]
    {
        check(&no_rm, "bash", &bash(hidden), denied).await;
    }
    let both = ["--allow", "bash", "--ask", "bash(git push:*)"];
    let asked = "ask | decided by: the rule ask bash(git push:*) (user) | because of: git push --force";
    check(&both, "bash", &bash("git push --force"), asked).await;
    check(&both, "bash", &bash("git fetch"), "allow | decided by: the rule allow bash (user)").await;
}

#[tokio::test]
async fn paths_are_held_against_where_they_lead() {
    let home = Home::new();
    std::fs::create_dir_all(home.work().join("src")).unwrap();
    std::fs::create_dir_all(home.work().join("secrets")).unwrap();
    std::fs::write(home.work().join("secrets/key"), "k").unwrap();
    std::os::unix::fs::symlink("../secrets/key", home.work().join("src/link")).unwrap();
    let check = async |path: &str, expect: &str| {
        let input = serde_json::json!({ "path": path, "edits": [{"old": "a", "new": "b"}] }).to_string();
        let flags = ["--json", "--allow", "edit_file(src/**)"];
        let output =
            home.agent(&[&["permissions", "check"], &flags[..], &["edit_file", &input]].concat()).await;
        let json = json_lines(&output.stdout).remove(0);
        assert_eq!(json["decision"], expect, "{path}: {json} {}", output.stderr);
    };
    check("src/new.rs", "allow").await;
    check("src/../secrets/key", "ask").await;
    check("src/link", "ask").await;
    // No tool that edits gives itself permission without a question.
    let edit = r#"{"path":".agent/settings.local.json","content":"{}"}"#;
    let output = home.agent(&["permissions", "check", "--mode", "accept-edits", "write_file", edit]).await;
    assert!(
        output.stdout.starts_with("ask\ndecided by: the rule ask write_file(.agent/"),
        "{}",
        output.stdout
    );
}

#[tokio::test]
async fn a_check_that_cannot_be_made() {
    let home = Home::new();
    let check = async |args: &[&str], expect: &str| {
        let output = home.agent(&[&["permissions", "check"], args].concat()).await;
        assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(output.stderr.contains(expect), "{args:?}: {}", output.stderr);
    };
    check(&["grip", "{}"], "there is no tool called \"grip\"; there are: read_file, write_file, ").await;
    check(&["bash", "{"], "the input is not JSON").await;
    check(&["bash", "{}", "--deny", "bash()"], "the argument is blank").await;
    check(&["bash", "{}", "--mode", "yolo"], "plan").await;
    check(&["bash", "{}", "--cwd", "nowhere"], "nowhere").await;
}

#[tokio::test]
async fn a_rule_that_speaks_of_no_tool_is_told() {
    let home = Home::new();
    let output =
        home.agent(&["permissions", "check", "--deny", "bsh(rm:*)", "bash", r#"{"command":"ls"}"#]).await;
    assert!(output.stdout.starts_with("ask\n"), "{}", output.stdout);
    insta::assert_snapshot!(output.stderr.trim_end(), @"note: the rule deny bsh(rm:*) (user) speaks of none of the tools there are here: read_file, write_file, edit_file, glob, grep, bash, bash_output, bash_kill, todo, complete, web_fetch");
}

#[tokio::test]
async fn input_that_does_not_fit_is_told() {
    let home = Home::new();
    let output = home.agent(&["permissions", "check", "bash", r#"{"cmd":"ls"}"#]).await;
    assert_eq!(output.code, Some(0));
    assert!(output.stdout.starts_with("ask\n"), "{}", output.stdout);
    assert!(
        output.stderr.contains("the call would not run") && output.stderr.contains("missing field `command`"),
        "{}",
        output.stderr
    );
}
