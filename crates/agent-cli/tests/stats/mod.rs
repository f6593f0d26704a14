//! `agent stats`, and the budgets of `agent run`.

use agent_core::{EntryId, RoundSummary, Text, Usage};
use agent_testkit::{Reply, SimProvider};

use crate::support::{Home, json_lines};

fn look(n: u32) -> Reply {
    let usage = Usage { input: 1_000, output: 10, ..Usage::default() };
    Reply::tool("glob", format!(r#"{{"pattern":"*{n}"}}"#)).costing(usage)
}

/// Two sessions of two models on a real store: sums, derived figures, and how turns ended.
#[tokio::test]
async fn sums_of_sessions_and_models() {
    let home = Home::new();
    let none = home.agent(&["stats"]).await;
    assert!(home.placeless(&none.stdout).starts_with("No sessions in DATA yet."), "{}", none.stdout);

    let sim = SimProvider::start(vec![look(0), Reply::text("Nothing.")]).unwrap();
    home.run(&sim.base_url(), &["look", "--session", "first"]).await;
    let sim = SimProvider::start(vec![look(0), look(1), Reply::text("Half.")]).unwrap();
    let other = ["look", "--session", "second", "--max-steps", "3", "--model", "anthropic/unheard-of"];
    assert_eq!(home.run(&sim.base_url(), &other).await.code, Some(1));

    let stats = json_lines(&home.agent(&["stats", "--json"]).await.stdout);
    let stats = &stats[0];
    let sessions = stats["sessions"].as_array().unwrap();
    let check = |at: usize, id: &str, steps: u64, reason: &str| {
        let session = &sessions[at];
        assert_eq!((&session["id"], &session["steps"]), (&id.into(), &steps.into()), "{session}");
        assert_eq!((&session["turns"], &session["reasons"][reason]), (&1.into(), &1.into()), "{session}");
    };
    check(0, "second", 3, "max_steps");
    check(1, "first", 2, "done");
    assert!(sessions[1]["cost_usd"].as_f64().unwrap() > 0.0, "{stats}");
    assert!(sessions[0]["cost_usd"].is_null() && stats["total"]["cost_usd"].is_null(), "{stats}");
    assert_eq!(stats["models"].as_object().unwrap().len(), 2);
    let output = |of: &serde_json::Value| of["usage"]["output"].as_u64().unwrap();
    assert_eq!(output(&stats["total"]), sessions.iter().map(output).sum::<u64>());
    assert_eq!((&stats["total"]["turns"], &stats["total"]["steps"]), (&2.into(), &5.into()));

    let one = home.agent(&["stats", "first"]).await.stdout;
    assert!(
        one.starts_with("first  anthropic/claude-opus-5-5\n  turns 1, steps 2; done 1\n  tokens: input "),
        "{one}"
    );
    assert!(one.contains("; cost $0.") && !one.contains("second"), "{one}");
    let missing = home.agent(&["stats", "third"]).await;
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains("there is no session third"), "{}", missing.stderr);
}

/// One session that two models worked on, with words that were written behind its turns by a third.
#[tokio::test]
async fn each_step_counts_for_the_model_that_was_asked() {
    let home = Home::new();
    let sim =
        SimProvider::start(vec![look(0), Reply::text("Nothing."), look(1), look(2), Reply::text("Half.")]);
    let sim = sim.unwrap();
    home.run(&sim.base_url(), &["look", "--session", "s"]).await;
    let other = ["again", "--session", "s", "--max-steps", "3", "--model", "anthropic/unheard-of"];
    assert_eq!(home.run(&sim.base_url(), &other).await.code, Some(1));
    let store = agent::SqliteStore::open(&home.data()).unwrap();
    for (turn, model) in [(1, Some("anthropic/claude-haiku-4-5")), (2, None)] {
        let round = RoundSummary {
            since: None,
            turn,
            from: EntryId::at(0),
            to: EntryId::at(1),
            text: Text::new("It looked.").unwrap(),
            usage: Usage { input: 500, output: turn, ..Usage::default() },
            model: model.map(str::to_owned),
        };
        agent::Store::put_round(&store, &agent::SessionId::new("s").unwrap(), &round).await.unwrap();
    }
    drop(store);
    let notes = agent_memory::NotesFile::new(&home.data(), &agent::SessionId::new("s").unwrap());
    let spent = Usage { input: 70, output: 4, cache_read: 700, ..Usage::default() };
    notes.save_run(&agent_memory::NotesState::default(), "anthropic/claude-opus-5-5", &spent).unwrap();

    let stats = json_lines(&home.agent(&["stats", "--json"]).await.stdout);
    let check = |model: &str, turns: u64, steps: u64, reasons: &str, background: u64| {
        let sums = &stats[0]["models"][model];
        assert_eq!((&sums["turns"], &sums["steps"]), (&turns.into(), &steps.into()), "{model}: {sums}");
        assert_eq!(sums["reasons"].to_string(), reasons, "{model}");
        assert_eq!(sums["background"]["usage"]["output"], background, "{model}");
    };
    check("anthropic/claude-opus-5-5", 1, 2, r#"{"done":1}"#, 2 + 4);
    check("anthropic/unheard-of", 1, 3, r#"{"max_steps":1}"#, 0);
    check("anthropic/claude-haiku-4-5", 0, 0, "{}", 1);
    let total = &stats[0]["total"];
    assert_eq!(total["stopped_by"], serde_json::json!({"step_count(3)": 1}));
    let outputs = |key: &str| {
        let models = stats[0]["models"].as_object().unwrap().values();
        models.map(|sums| sums[key]["output"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(total["usage"]["output"], outputs("usage"), "nothing is counted twice or left out");
    assert_eq!(total["background"]["usage"]["input"], 1_070);
    let shown = home.agent(&["stats", "s"]).await.stdout;
    assert!(shown.contains("done 1, max_steps 1 (stopped by step_count(3) 1)"), "{shown}");
    assert!(shown.contains("  background tokens: input 1070 "), "{shown}");
    assert!(shown.contains("s, of that anthropic/unheard-of\n  turns 1, steps 3;"), "{shown}");
}

#[tokio::test]
async fn a_spent_budget_ends_the_run_with_words() {
    let home = Home::new();
    let sim = SimProvider::start(vec![look(0), look(1), Reply::text("So far.")]).unwrap();
    let run = home.run(&sim.base_url(), &["look", "--session", "s", "--max-tokens-total", "1"]).await;
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let shown = home.agent(&["sessions", "show", "s"]).await.stdout;
    assert!(shown.contains("[This is your last step: the limit token_budget(1)"), "{shown}");
    assert!(shown.contains("(the last turn ended as budget_exhausted)"), "{shown}");

    let args = ["look", "--model", "anthropic/unheard-of", "--max-cost", "1"];
    let refused = home.run(&sim.base_url(), &args).await;
    assert!(
        refused.stderr.contains("the prices of anthropic/unheard-of are not known"),
        "{}",
        refused.stderr
    );
    let refused = home.run(&sim.base_url(), &["look", "--max-cost", "0"]).await;
    assert!(refused.stderr.contains("give more than 0 US dollars"), "{}", refused.stderr);
}
