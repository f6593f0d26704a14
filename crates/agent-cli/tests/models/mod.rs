//! Tables of models on the command line, and the one warning for a model that none of them names (requirement M7).

use agent_testkit::{Reply, SimProvider};

use crate::support::{Home, Output, json_lines};

const TABLE: &str = r#"{"models":[{"model":"house-blend","context_window":65536,"max_output":5000}]}"#;

/// What a session of three steps was told of its requests.
async fn told(home: &Home, model: &str, args: &[&str]) -> Vec<String> {
    let look = |path: &str| Reply::tool("read_file", format!(r#"{{"path":"{path}"}}"#));
    let sim = SimProvider::start(vec![look("a.txt"), look("b.txt"), Reply::text("Read.")]).unwrap();
    let output = home.run(&sim.base_url(), &[&["go", "--json", "--model", model], args].concat()).await;
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    assert_eq!(sim.requests().len(), 3);
    let events = json_lines(&output.stdout).into_iter();
    let told = events.filter(|event| event["type"] == "request.diagnostic");
    told.map(|event| format!("{}: {}", event["data"]["what"], event["data"]["why"])).collect()
}

#[tokio::test]
async fn an_unknown_model_is_told_of_once_a_session() {
    let home = Home::new();
    insta::assert_debug_snapshot!(told(&home, "anthropic/house-blend", &[]).await, @r#"
    [
        "\"model\": \"too little is known of the model \\\"house-blend\\\": a window of 32768 tokens and 4096 of output are assumed; say what it can do in a table of models, {\\\"models\\\":[{\\\"model\\\":\\\"house-blend\\\",\\\"context_window\\\":32768,\\\"max_output\\\":4096}]}, that `agent run --models FILE` or `Catalog::with_overrides` reads\"",
    ]
    "#);
    assert_eq!(told(&home, "anthropic/claude-haiku-5-5", &[]).await, [""; 0]);
    let file = home.work().join("table.json");
    std::fs::write(&file, TABLE).unwrap();
    let given = ["--models", file.to_str().unwrap()];
    assert_eq!(told(&home, "anthropic/house-blend", &given).await, [""; 0], "the file names it");
    assert_eq!(told(&home, "anthropic/house-roast", &given).await.len(), 1, "the file names another one");
    std::fs::write(home.data().join("models.json"), TABLE.replace("blend", "roast")).unwrap();
    assert_eq!(told(&home, "anthropic/house-roast", &[]).await, [""; 0], "the data directory has it");
    assert_eq!(told(&home, "anthropic/house-roast", &given).await, [""; 0], "both are read");
}

#[tokio::test]
async fn the_file_given_is_laid_over_that_of_the_data_directory() {
    let home = Home::new();
    std::fs::create_dir_all(home.data()).unwrap();
    std::fs::write(home.data().join("models.json"), TABLE).unwrap();
    let given = home.work().join("mine.json");
    std::fs::write(&given, r#"{"models":[{"model":"house-blend","max_output":700}]}"#).unwrap();
    let sent = async |args: &[&str]| {
        let sim = SimProvider::start(vec![Reply::text("Hi.")]).unwrap();
        let args = [&["go", "--model", "anthropic/house-blend"], args].concat();
        assert_eq!(home.run(&sim.base_url(), &args).await.code, Some(0));
        json_lines(std::str::from_utf8(&sim.requests()[0].body).unwrap())[0]["max_tokens"].clone()
    };
    assert_eq!(sent(&[]).await, 5_000);
    assert_eq!(sent(&["--models", given.to_str().unwrap()]).await, 700);
}

#[tokio::test]
async fn request_bodies_are_written_for_what_the_table_says() {
    let home = Home::new();
    let file = home.work().join("table.json");
    std::fs::write(&file, TABLE).unwrap();
    let file = file.to_str().unwrap();
    let body = r#"{"model":"house-blend","max_tokens":90000,"messages":[{"role":"user","content":"hi"}]}"#;
    let wire = async |args: &[&str], input: &str| {
        home.agent_fed(&[&["wire"], args].concat(), input.as_bytes()).await
    };
    let convert = ["convert", "--from", "anthropic", "--to"];
    let plain = wire(&[&convert[..], &["anthropic"]].concat(), body).await;
    assert!(plain.stderr.contains(r#"too little is known of the model "house-blend""#), "{}", plain.stderr);
    assert!(
        plain.stdout.contains(r#""max_tokens":90000"#),
        "what is not known is no reason: {}",
        plain.stdout
    );
    let check = |output: Output| {
        assert!(output.stdout.contains(r#""max_tokens":5000"#), "{}", output.stdout);
        assert!(!output.stderr.contains("too little is known"), "{}", output.stderr);
        assert!(output.stderr.contains("settings.max_output"), "{}", output.stderr);
    };
    check(wire(&[&convert[..], &["anthropic", "--models", file]].concat(), body).await);
    let transcript = wire(&[&convert[..], &["transcript"]].concat(), body).await.stdout;
    check(wire(&["encode", "--format", "anthropic", "--models", file], &transcript).await);
}

#[tokio::test]
async fn a_wrong_table_is_refused_before_anything_is_sent() {
    let check = async |text: Option<&str>| {
        let home = Home::new();
        let file = home.work().join("table.json");
        if let Some(text) = text {
            std::fs::write(&file, text).unwrap();
        }
        let file = file.to_str().unwrap();
        let wire = ["wire", "encode", "--format", "anthropic", "--models", file];
        let transcript = br#"{"model":"m","history":[{"user":[{"text":"hi"}]}]}"#;
        let sim = SimProvider::start(vec![Reply::text("Hi.")]).unwrap();
        let run = home.run(&sim.base_url(), &["go", "--models", file]).await;
        let said = home.agent_fed(&wire, transcript).await;
        assert_eq!((run.code, &run.stderr), (Some(2), &said.stderr), "both commands say the same");
        assert_eq!((said.code, sim.requests().len()), (Some(2), 0));
        if let Some(text) = text {
            std::fs::create_dir_all(home.data()).unwrap();
            std::fs::write(home.data().join("models.json"), text).unwrap();
            let own = home.run(&sim.base_url(), &["go"]).await;
            assert_eq!(own.code, Some(2));
            assert_eq!(
                home.placeless(&own.stderr).replace("DATA/models.json", "FILE"),
                said.stderr.replace(file, "FILE"),
                "that of the data directory is no different"
            );
        }
        said.stderr.replace(file, "FILE")
    };
    insta::assert_snapshot!(check(None).await, @r#"agent: FILE: No such file or directory (os error 2); give a file like {"models":[{"model":"NAME","context_window":200000}]}"#);
    insta::assert_snapshot!(check(Some("window: 9")).await, @r#"agent: FILE: the table of models cannot be read: expected value at line 1 column 1; write {"models":[{"model":"NAME","context_window":200000}]}"#);
    insta::assert_snapshot!(check(Some(r#"{"models":[{"model":"m","window":9}]}"#)).await, @r#"agent: FILE: entry 1 of the table of models, "m": window: there is no such field; there are model, providers, source, as_of, context_window, max_output, cache, binds_thinking_to_prefix, takes_thinking_of_siblings, allowed_tools, forced_tool_choice, forced_while_thinking, mid_conversation_system, turn_scoped_system, deferred_tools, vision, refuses, prices, known"#);
}
