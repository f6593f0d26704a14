//! `agent memory`.

use agent_testkit::{Fault, Pick, RecordedRequest, Reply, SimOptions, SimProvider, Source};

use crate::support::{Home, json_lines};

const ADD: [&str; 10] = [
    "memory",
    "add",
    "--name",
    "short",
    "--type",
    "feedback",
    "--description",
    "Wants: short answers",
    "--body",
    "Be short.\n\n**Why:** reads diffs\n\n**How to apply:** no summary",
];

#[tokio::test]
async fn memories_are_kept_listed_shown_and_removed() {
    let home = Home::new();
    let place = home.agent(&["memory", "path"]).await.stdout;
    let place = std::path::Path::new(place.trim());
    assert!(place.starts_with(home.data().join("projects")) && place.ends_with("memory"), "{place:?}");
    let none = home.agent(&["memory", "list"]).await;
    assert!(none.stdout.starts_with("No memories in ") && !home.data().exists(), "{}", none.stdout);

    assert_eq!(home.agent(&ADD).await.stdout, format!("Kept short in {}.\n", place.display()));
    assert_eq!(home.agent(&["memory", "list"]).await.stdout, "short  feedback  Wants: short answers\n");
    let shown = home.agent(&["memory", "show", "short"]).await.stdout;
    assert!(shown.starts_with("---\nname: short\ndescription: \"Wants: short answers\"\n"), "{shown}");
    let row = json_lines(&home.agent(&["memory", "list", "--json"]).await.stdout);
    assert_eq!(
        row,
        [serde_json::json!({"name": "short", "type": "feedback", "description": "Wants: short answers"})]
    );
    let one = json_lines(&home.agent(&["memory", "show", "short", "--json"]).await.stdout);
    assert!(one[0]["body"].as_str().unwrap().starts_with("Be short."), "{one:?}");

    // A folder in the project is the same project; another data directory holds others.
    std::fs::create_dir_all(home.work().join(".git")).unwrap();
    std::fs::create_dir(home.work().join("deep")).unwrap();
    let deep = home.agent(&["memory", "list", "--cwd", "deep"]).await.stdout;
    assert_eq!(deep, "short  feedback  Wants: short answers\n");
    let other = home.agent(&["memory", "list", "--data-dir", "elsewhere"]).await.stdout;
    assert!(other.starts_with("No memories in "), "{other}");

    assert!(home.agent(&["memory", "rm", "short"]).await.stdout.starts_with("Removed short in "));
    assert_eq!(home.agent(&["memory", "list"]).await.stdout, "");
}

#[tokio::test]
async fn what_cannot_be_done_says_why() {
    let home = Home::new();
    let check = async |args: &[&str], expect: &str| {
        let output = home.agent(&[&["memory"], args].concat()).await;
        assert_eq!(output.code, Some(2), "{}", output.stderr);
        assert!(output.stderr.contains(expect), "{args:?}: {}", output.stderr);
    };
    check(&["show", "short"], "there is no memory `short`. There are none yet.").await;
    check(&["rm", "../short"], "is no name of a memory").await;
    check(&["list", "--memory-dir", "/"], "name a folder of its own").await;
    let lacking = [&ADD[1..9], &["Be short."]].concat();
    check(&lacking, "`short.md` is no memory: a memory of type feedback needs").await;
    let fact = [&ADD[1..5], &["fact"], &ADD[6..]].concat();
    check(&fact, "it is `user`, `feedback`, `project` or `reference`").await;
    assert!(!home.data().exists(), "nothing was made");
    assert_eq!(home.agent(&ADD).await.code, Some(0));
    check(&ADD[1..], "there is a memory `short` already").await;
    let place = home.agent(&["memory", "path"]).await.stdout;
    std::fs::write(std::path::Path::new(place.trim()).join("Odd.md"), "x").unwrap();
    let listed = home.agent(&["memory", "list"]).await;
    assert!(listed.stderr.starts_with("agent: no memory: Odd.md: "), "{}", listed.stderr);
}

/// The file of a memory as a model writes it.
fn create(name: &str, about: &str) -> Reply {
    let text = format!(r"---\nname: {name}\ndescription: {about}\ntype: user\n---\n{about}.\n");
    Reply::tool(
        "memory",
        format!(r#"{{"command":"create","path":"/memories/{name}.md","file_text":"{text}"}}"#),
    )
}

fn in_order(replies: Vec<Reply>) -> SimProvider {
    let options = SimOptions { pick: Pick::InOrder, ..SimOptions::default() };
    SimProvider::start_with(Source::Script(replies.into()), options).unwrap()
}

fn system(request: &RecordedRequest) -> String {
    let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
    body["system"].to_string()
}

#[tokio::test]
async fn what_one_session_taught_the_next_one_knows() {
    let home = Home::new();
    let sim = in_order(vec![
        Reply::text("Hello Ada."),
        create("user_name", "Is called Ada"),
        Reply::text("Kept."),
        Reply::text("Hello again."),
        Reply::text("Nothing to keep."),
        Reply::text("You are Ada."),
        Reply::text("Nothing to keep."),
    ]);
    let base = sim.base_url();
    let first = home.run(&base, &["I am Ada.", "--session", "a", "--memory"]).await;
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    assert_eq!(first.stderr, "note: kept for later sessions: /memories/user_name.md\n");
    let listed = home.agent(&["memory", "list"]).await.stdout;
    assert_eq!(listed, "user_name  user  Is called Ada\n");

    // The session that runs keeps the prompt it began with; a new one is told.
    home.run(&base, &["Hello again.", "--session", "a", "--memory"]).await;
    let second = home.run(&base, &["Who am I?", "--session", "b", "--memory"]).await;
    assert_eq!((second.code, second.stderr.as_str()), (Some(0), ""));
    let requests = sim.requests();
    assert_eq!(requests.len(), 7);
    let systems: Vec<_> = requests.iter().map(system).collect();
    assert!(systems[..5].iter().all(|system| *system == systems[0] && !system.contains("Is called Ada")));
    assert!(systems[5].contains("Is called Ada"), "{}", systems[5]);

    let stats = json_lines(&home.agent(&["stats", "a", "--json"]).await.stdout);
    let background = &stats[0]["total"]["background"];
    assert!(background["usage"]["cache_read"].as_u64().unwrap() > 0, "{background}");
    assert!(background["cost_usd"].as_f64().unwrap() > 0.0, "{background}");
}

#[tokio::test]
async fn memories_are_kept_where_trusted_settings_say() {
    let home = Home::new();
    let place = home.config().join("kept");
    std::fs::create_dir_all(home.config()).unwrap();
    std::fs::create_dir_all(home.work().join(".agent")).unwrap();
    let settings = |on: bool, dir: &std::path::Path| {
        format!(r#"{{"memory":{{"on":{on},"dir":{:?}}}}}"#, dir.display().to_string())
    };
    let elsewhere = home.work().join("taken").join("memory");
    std::fs::write(home.work().join(".agent/settings.json"), settings(true, &elsewhere)).unwrap();
    let told = |sim: &SimProvider| {
        sim.requests().iter().any(|request| system(request).contains("## Index of memories"))
    };

    let sim = SimProvider::start(vec![Reply::text("Hello.")]).unwrap();
    let project = home.run(&sim.base_url(), &["hello"]).await;
    assert!(project.stderr.contains(".agent/settings.json: memory"), "{}", project.stderr);
    assert!(!told(&sim) && !elsewhere.exists(), "no project says where memories are");

    std::fs::write(home.config().join("settings.json"), settings(true, &place)).unwrap();
    let sim = in_order(vec![Reply::text("Hello."), create("user_tea", "Likes tea"), Reply::text("Kept.")]);
    home.run(&sim.base_url(), &["hello"]).await;
    assert!(told(&sim) && place.join("user_tea.md").exists());

    let sim = SimProvider::start(vec![Reply::text("Hello.")]).unwrap();
    home.run(&sim.base_url(), &["hello", "--bare"]).await;
    assert!(!told(&sim), "--bare begins without");

    let other = home.work().join("other");
    let sim = in_order(vec![Reply::text("Hello."), create("user_pie", "Likes pie"), Reply::text("Kept.")]);
    home.run(&sim.base_url(), &["hello", "--memory-dir", "other"]).await;
    assert!(other.join("user_pie.md").exists() && !place.join("user_pie.md").exists());
}

#[tokio::test]
async fn looking_makes_nothing() {
    let home = Home::new();
    let explained = home.agent(&["explain", "hello", "--memory"]).await;
    assert!(explained.stdout.contains("memory"), "{}{}", explained.stdout, explained.stderr);
    assert!(!home.data().exists());
}

/// An extractor that never answers: a signal ends the program, and the next turn is followed by all that was missed.
#[tokio::test]
async fn a_signal_stops_what_is_behind_a_turn_and_loses_nothing() {
    let home = Home::new();
    let sim = in_order(vec![
        Reply::text("Hello."),
        // What the run behind the turn waits for in vain, and the next turn gets.
        Reply::text("Hello again.").fault(Fault::Stall { after: 0 }),
        create("user_tea", "Likes tea"),
        Reply::text("Kept."),
    ]);
    let base = sim.base_url();
    let args =
        ["run", "--base-url", &base, "I like tea.", "--session", "s", "--memory", "--max-attempts", "1"];
    let child = home.command(&args).spawn().unwrap();
    let asked = async {
        while sim.requests().len() < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), asked).await.unwrap();
    let pid = rustix::process::Pid::from_raw(child.id().unwrap().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let output = child.wait_with_output().await.unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("the extraction of memories was stopped"), "{stderr}");

    let next = home.run(&base, &["hello", "--session", "s", "--memory"]).await;
    assert_eq!(next.stderr, "note: kept for later sessions: /memories/user_tea.md\n");
}

#[tokio::test]
async fn a_model_that_costs_less_extracts_them() {
    let home = Home::new();
    let sim = in_order(vec![Reply::text("Hello."), Reply::text("Nothing to keep.")]);
    let args = ["hello", "--memory", "--memory-model", "claude-haiku-4-5", "--session", "s"];
    let output = home.run(&sim.base_url(), &args).await;
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    let models = sim.requests().into_iter().map(|request| {
        let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
        body["model"].as_str().unwrap().to_owned()
    });
    assert_eq!(models.collect::<Vec<_>>(), ["claude-opus-5-5", "claude-haiku-4-5"]);
    let stats = json_lines(&home.agent(&["stats", "s", "--json"]).await.stdout);
    let models = &stats[0]["models"];
    assert!(
        models["anthropic/claude-haiku-4-5"]["background"]["usage"]["output"].as_u64() > Some(0),
        "{models}"
    );
}

/// What was looked at goes with its session: along to a fork, and away with the session.
#[tokio::test]
async fn how_far_a_session_was_looked_at_goes_with_it() {
    let home = Home::new();
    let texts = ["1", "Nothing.", "2", "Nothing.", "3", "Nothing."].map(Reply::text).to_vec();
    let sim = in_order(texts);
    let base = sim.base_url();
    let run = async |session: &str| home.run(&base, &["hello", "--memory", "--session", session]).await;
    run("s").await;
    let fork = home.agent(&["sessions", "fork", "s", "--as", "f"]).await;
    assert_eq!(fork.code, Some(0), "{}", fork.stderr);
    run("f").await;
    assert_eq!(home.agent(&["sessions", "delete", "s"]).await.code, Some(0));
    assert!(!home.data().join("tmp/s").exists());
    run("s").await;
    let asked: Vec<_> =
        sim.requests().iter().map(|request| String::from_utf8_lossy(&request.body).into_owned()).collect();
    let all = |at: usize| asked[at].contains("all of it is new");
    assert_eq!([1, 3, 5].map(all), [true, false, true]);
}
