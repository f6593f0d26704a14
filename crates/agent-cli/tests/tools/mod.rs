//! `agent tools`: the built-in tools as the model sees them, and one of them run.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

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
    check("bash", r#"{"command":"rm notes.txt"}"#, &[], 1, "note: `--yes` answers a question with yes").await;
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
    let edit = r#"{"path":"notes.txt","edits":[{"old":"tea","new":"milk"}]}"#;
    check("edit_file", edit, &["--yes"], 1, "read").await;
    check("edit_file", edit, &["--yes", "--read", "notes.txt"], 0, "+milk").await;
    check("edit_file", edit, &["--yes", "--read", "nowhere.txt", "--read", "notes.txt"], 1, "was not found")
        .await;
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

/// Answers every request with a page; its address.
async fn site() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let page = "<title>Knots</title><h1>Bowline</h1>";
            let length = page.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{page}"
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    base
}

#[tokio::test]
async fn a_page_is_fetched_where_the_command_line_lets_it() {
    let (home, base) = (Home::new(), site().await);
    let input = format!(r#"{{"url":"{base}/knots"}}"#);
    let check = async |more: &[&str], code: i32, expect: &str| {
        let (exit, text) = call(&home, "web_fetch", &input, more).await;
        assert_eq!(exit, Some(code), "{more:?}: {text}");
        assert!(text.contains(expect), "{more:?}: {text}");
    };
    check(&[], 1, "nobody can be asked").await;
    check(&["--yes"], 1, "127.0.0.1 is an address of the loopback range").await;
    check(&["--yes", "--allow-host", "10.0.0.0/8"], 1, "of the loopback range").await;
    check(&["--yes", "--allow-host", "127.0.0.1"], 0, "Title: Knots\n\n# Bowline").await;
    let rule = ["--allow", "web_fetch(domain:127.0.0.1)", "--allow-host", "127.0.0.0/8"];
    check(&rule, 0, "# Bowline").await;
    check(&["--allow", "web_fetch(domain:docs.rs)", "--allow-host", "127.0.0.1"], 1, "nobody can be asked")
        .await;
    check(&["--yes", "--allow-host", "http://127.0.0.1"], 2, "names no host; write a host such as").await;
    // A proxy of the environment would connect to what cannot be checked here.
    let args = ["tools", "call", "web_fetch", &input, "--yes", "--allow-host", "127.0.0.1"];
    let dead = "http://127.0.0.1:1";
    let mut command = home.command(&args);
    command.env("HTTP_PROXY", dead).env("http_proxy", dead).env("ALL_PROXY", dead);
    let output = command.output().await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
}

fn put(folder: &std::path::Path, name: &str, text: &str) {
    std::fs::create_dir_all(folder.join(name)).unwrap();
    std::fs::write(folder.join(name).join("SKILL.md"), text).unwrap();
}

fn skill(name: &str, does: &str) -> String {
    format!("---\nname: {name}\ndescription: {does}\n---\nMind the {does}\n")
}

#[tokio::test]
async fn skills_are_loaded_where_there_are_some() {
    let home = Home::new();
    let listed = async |more: &[&str]| {
        let output = home.agent(&[&["tools", "list"], more].concat()).await;
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        (output.stdout.lines().any(|line| line.starts_with("load_skill ")), output.stderr)
    };
    assert_eq!(listed(&[]).await, (false, String::new()));

    put(&home.work().join(".agent/skills"), "knots", &skill("knots", "ours."));
    put(&home.work().join(".agent/skills"), "odd", "# Odd\n");
    let (is_there, told) = listed(&[]).await;
    assert!(is_there);
    assert!(
        told.starts_with("note: skill .agent/skills/odd is left out: its SKILL.md does not begin"),
        "{told}"
    );
    std::fs::remove_dir_all(home.work().join(".agent/skills/odd")).unwrap();

    put(&home.config().join("skills"), "knots", &skill("knots", "the user's."));
    put(&home.config().join("skills"), "tides", &skill("tides", "the user's."));
    let more = home.data().join("more");
    put(&more, "tides", &skill("tides", "named."));
    let more = more.to_str().unwrap();
    let load = async |name: &str, args: &[&str]| {
        let input = format!(r#"{{"name":"{name}"}}"#);
        call(&home, "load_skill", &input, args).await
    };
    let check = async |name: &str, args: &[&str], code: i32, expect: &str| {
        let (exit, text) = load(name, args).await;
        assert!(exit == Some(code) && text.contains(expect), "{name} {args:?}: {exit:?} {text}");
    };
    // It changes nothing but the session, so that nobody is asked.
    check("knots", &[], 0, "Mind the ours.").await;
    check("knots", &[], 0, "note: skill ").await;
    check("tides", &[], 0, "Mind the the user's.").await;
    check("tides", &["--skills", more], 0, "Mind the named.").await;
    check("tide", &[], 1, "Did you mean `tides`?").await;
    check("tides", &["--skills", "nowhere"], 2, "give a folder that holds a folder with a SKILL.md").await;
    check("tides", &["--deny", "load_skill"], 1, "load_skill").await;

    let checked = home.agent(&["permissions", "check", "load_skill", r#"{"name":"knots"}"#]).await;
    assert!(checked.stdout.starts_with("allow\n"), "{}{}", checked.stdout, checked.stderr);
}

#[tokio::test]
async fn a_run_is_told_of_skills_unless_it_is_bare() {
    let home = Home::new();
    put(&home.work().join(".agent/skills"), "knots", &skill("knots", "ours."));
    put(&home.config().join("skills"), "tides", &skill("tides", "the user's."));
    let more = home.data().join("more");
    put(&more, "winds", &skill("winds", "named."));
    let more = more.to_str().unwrap();
    let check = async |args: &[&str], told: [bool; 3]| {
        let output = home.agent(&[&["explain", "--wire", "Tie it."], args].concat()).await;
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
        let body = output.stdout;
        assert_eq!(
            ["- knots: ours.", "- tides: the user's.", "- winds: named."].map(|line| body.contains(line)),
            told
        );
        assert_eq!(body.contains("load_skill"), told.contains(&true), "{args:?}");
    };
    check(&[], [true, true, false]).await;
    check(&["--skills", more], [true, true, true]).await;
    check(&["--skills", more, "--bare"], [false, false, true]).await;
    check(&["--bare"], [false, false, false]).await;
}
