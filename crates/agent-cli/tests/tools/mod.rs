//! `agent tools`: the built-in tools as the model sees them, and one of them run.

use crate::support::{Home, json_lines};

#[tokio::test]
async fn the_list_says_what_each_tool_does_and_may() {
    let home = Home::new();
    let output = home.agent(&["tools", "list"]).await;
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    let line = |name: &str| output.stdout.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    insta::assert_snapshot!(line("read_file"), @"read_file     read      allow  Reads a text file of the workspace and shows its lines, each with its number and a tab before it.");
    insta::assert_snapshot!(line("edit_file"), @"edit_file     edit      ask    Replaces exact pieces of text in a file and shows the change as a diff.");
    insta::assert_snapshot!(line("todo"), @"todo          session   allow  Keeps the list of what is to be done, which you and the user can see at any time.");
    let listed = json_lines(&home.agent(&["tools", "list", "--json"]).await.stdout);
    assert_eq!(listed.len(), output.stdout.lines().count());
    assert_eq!(listed[0]["name"], "read_file");
    assert_eq!((&listed[0]["access"], &listed[0]["default"]), (&"read".into(), &"allow".into()));
}

#[tokio::test]
async fn one_tool_is_shown_as_the_model_sees_it() {
    let home = Home::new();
    let text = home.agent(&["tools", "show", "bash"]).await;
    assert_eq!(text.code, Some(0), "{}", text.stderr);
    let json = json_lines(&home.agent(&["tools", "show", "bash", "--json"]).await.stdout).remove(0);
    let schema = json["input_schema"].to_string();
    assert!(text.stdout.starts_with("bash\n\n"), "{}", text.stdout);
    assert!(text.stdout.contains(json["description"].as_str().unwrap()), "{}", text.stdout);
    assert!(text.stdout.contains(&format!("input schema: {schema}\n")), "the very bytes of the card");
    assert_eq!(json["input_schema"]["properties"]["command"]["type"], "string");
    assert_eq!(json["traits"]["access"], "execute");
    assert_eq!(json["traits"]["default"], "ask");
    assert_eq!(json["traits"]["parallel"], false);
    assert_eq!(json["traits"]["render"], "terminal");
    assert!(text.stdout.ends_with("shown as: terminal\n"), "{}", text.stdout);

    let missing = home.agent(&["tools", "show", "grip"]).await;
    assert_eq!((missing.code, missing.stdout.as_str()), (Some(2), ""));
    assert!(
        missing.stderr.contains("there is no tool called \"grip\"; there are: read_file, "),
        "{}",
        missing.stderr
    );
}

/// Exit status, and what was printed.
async fn call(home: &Home, name: &str, input: &str, more: &[&str]) -> (Option<i32>, String) {
    let args = [&["tools", "call", name, input], more].concat();
    let output = home.agent(&args).await;
    (output.code, output.stdout + &output.stderr)
}

#[tokio::test]
async fn a_call_runs_as_a_models_would() {
    let home = Home::new();
    std::fs::write(home.work().join("notes.txt"), "tea\nrice\n").unwrap();
    let check = async |name: &str, input: &str, more: &[&str], code: i32, expect: &str| {
        let (exit, text) = call(&home, name, input, more).await;
        assert_eq!(exit, Some(code), "{name} {input}: {text}");
        assert!(text.contains(expect), "{name} {input}: {text}");
    };
    check("read_file", r#"{"path":"notes.txt"}"#, &[], 0, "1\ttea\n     2\trice\n").await;
    check("read_file", r#"{"path":"note.txt"}"#, &[], 1, "notes.txt").await;
    check("read_file", r#"{"path":"../x"}"#, &[], 1, "..").await;
    // What a model is taught is what is printed here.
    check("read_file", r#"{"file":"notes.txt"}"#, &[], 1, "missing field `path`").await;
    check("read_file", r#"{"path":"#, &[], 1, "is not JSON").await;
    check("grip", "{}", &[], 1, "There is no tool called `grip`").await;
    // Nobody can be asked here.
    check("bash", r#"{"command":"rm notes.txt"}"#, &[], 1, "nobody can be asked").await;
    check("bash", r#"{"command":"echo hi; exit 3"}"#, &["--yes"], 0, "hi\n[exit code 3").await;
    check("bash", r#"{"command":"echo hi"}"#, &["--allow", "bash(echo:*)"], 0, "hi\n[exit code 0").await;
    check(
        "bash",
        r#"{"command":"rm notes.txt"}"#,
        &["--yes", "--deny", "bash(rm:*)"],
        1,
        "because of `rm notes.txt`",
    )
    .await;
    check("bash", r#"{"command":"echo"}"#, &["--permission-mode", "plan", "--yes"], 1, "plan mode").await;
    check("write_file", r#"{"path":"notes.txt","content":"x"}"#, &["--yes"], 1, "read").await;
    check(
        "write_file",
        r#"{"path":"new.txt","content":"x"}"#,
        &["--permission-mode", "accept-edits"],
        0,
        "new.txt",
    )
    .await;
    assert!(home.work().join("notes.txt").exists() && home.work().join("new.txt").exists());
    check("bash", r#"{"command":"echo"}"#, &["--allow", "bash("], 2, "is no permission pattern").await;
    check("read_file", r#"{"path":"a"}"#, &["--cwd", "nowhere"], 2, "nowhere").await;
}

#[tokio::test]
async fn what_a_cap_leaves_out_is_kept_under_a_handle() {
    let home = Home::new();
    let input = r#"{"command":"seq 1 200000"}"#;
    let (code, text) = call(&home, "bash", input, &["--yes", "--json"]).await;
    assert_eq!(code, Some(0), "{text}");
    let json = json_lines(&text).remove(0);
    assert_eq!((&json["outcome"], &json["is_error"]), (&"completed".into(), &false.into()));
    let (shown, handle) = (json["text"].as_str().unwrap(), json["blob"].as_str().unwrap());
    assert!(handle.starts_with("blob:") && shown.contains(handle), "{handle}");
    assert!(shown.len() < 60_000 && json["bytes"].as_u64().unwrap() > 1_000_000, "{}", json["bytes"]);
    assert!(shown.starts_with("1\n2\n") && shown.contains("200000\n[exit code 0"));
    assert!(!home.data().exists(), "nothing is left behind");
}

#[tokio::test]
async fn a_denial_as_json() {
    let home = Home::new();
    let (code, text) = call(&home, "bash", r#"{"command":"ls"}"#, &["--json"]).await;
    assert_eq!(code, Some(1));
    insta::assert_snapshot!(text.trim_end(), @r#"{"tool":"bash","outcome":"denied","is_error":true,"text":"`bash` was not run: it needs a person's permission and nobody can be asked in this session. Do not repeat the call; use tools that need none, or finish by telling the user which command to allow.","bytes":195}"#);
}

#[tokio::test]
async fn what_cannot_be_isolated_does_not_run() {
    let home = Home::new();
    let mut command = home.command(&[
        "tools",
        "call",
        "bash",
        r#"{"command":"touch ran"}"#,
        "--yes",
        "--sandbox",
        "isolated",
    ]);
    let output = command.env("PATH", home.work()).output().await.unwrap();
    let words = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{words}");
    assert!(words.contains("bwrap") && !home.work().join("ran").exists(), "{words}");
}
