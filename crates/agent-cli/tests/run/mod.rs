//! `agent run` against simulated and recorded providers.

use agent_testkit::{Fault, RawReply, Reply, SimProvider, corpus_dir, read_exchanges};

use crate::support::{Home, fixtures, json_lines, types};

/// The output without counts of input tokens, read from the cache or not: they depend on where the test's directory lies.
fn uncounted(output: &str) -> String {
    let uncounted = |counts: &str| {
        let digits = |word: &str| word.parse::<u64>().is_ok_and(|count| count > 0);
        let words = counts.split(' ').map(|word| {
            let number = word.trim_start_matches('(').trim_end_matches([',', ')']);
            if digits(number) { word.replace(number, "N") } else { word.to_owned() }
        });
        words.collect::<Vec<_>>().join(" ")
    };
    let lines = output.lines().map(|line| match line.split_once(" · output") {
        Some((input, rest)) if input.starts_with("tokens: input ") => {
            format!("{} · output{rest}\n", uncounted(input))
        }
        // What it costs follows from them.
        _ => match line.split_once(" $").filter(|_| line.starts_with("cost: ")) {
            Some((model, rest)) => {
                let requests = rest.split_once(' ').map_or("", |(_, requests)| requests);
                format!("{model} $N {requests}\n")
            }
            None => format!("{line}\n"),
        },
    });
    lines.collect()
}

#[tokio::test]
async fn text_calls_results_and_a_report() {
    let home = Home::new();
    std::fs::write(home.work().join("notes.txt"), "tea\nrice\n").unwrap();
    let sim = SimProvider::start(vec![
        Reply::text("I look.")
            .call("read_file", r#"{"path":"notes.txt"}"#)
            .call("bash", r#"{"command":"rm notes.txt"}"#),
        Reply::text("Tea and rice.\u{1b}[2J"),
    ])
    .unwrap();
    let output = home.run(&sim.base_url(), &["What is in notes.txt?", "--session", "s"]).await;
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!(uncounted(&output.stdout), @r#"
    I look.
    • read_file({"path":"notes.txt"})
    • bash({"command":"rm notes.txt"})
      ✓ read_file: 1 tea 2 rice [all 2 lines, 9 bytes] (45 bytes)
      ⊘ bash: `bash` was not run: it needs a person's permission and nobody can be asked in this session. Do not r… (195 bytes)
    Tea and rice.␛[2J

    done · 2 steps · session s
    tokens: input N · cache read N · cache write N (5m N, 1h 0) · output 22 (reasoning 0)
    cost: anthropic/claude-opus-5-5 $N in 2 requests
    "#);
    assert!(home.work().join("notes.txt").exists(), "nobody could be asked, so nothing was removed");
}

#[tokio::test]
async fn events_as_json_lines() {
    let home = Home::new();
    let sim = SimProvider::start(vec![
        Reply::tool("write_file", r#"{"path":"a.txt","content":"hi"}"#),
        Reply::text("Written."),
    ])
    .unwrap();
    let args = ["go", "--json", "--permission-mode", "accept-edits"];
    let output = home.run(&sim.base_url(), &args).await;
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let events = json_lines(&output.stdout);
    let durable: Vec<_> = events.iter().filter(|event| event["seq"].is_u64()).cloned().collect();
    insta::assert_snapshot!(types(&durable).join(" "), @"session.started turn.started message.received step.started cache.system_hash actions.requested action.result step.completed step.started cache.system_hash step.completed turn.completed session.waiting");
    assert!(durable.iter().zip(1..).all(|(event, seq)| event["seq"] == seq));
    assert_eq!(std::fs::read_to_string(home.work().join("a.txt")).unwrap(), "hi");
}

#[tokio::test]
async fn ends_that_are_no_success() {
    let check = async |replies: Vec<Reply>, args: &[&str]| {
        let home = Home::new();
        let sim = SimProvider::start(replies).unwrap();
        let output = home.run(&sim.base_url(), &[&["go", "--session", "s"], args].concat()).await;
        format!("{:?} {}{}", output.code, uncounted(output.stdout.trim_start()), output.stderr)
    };
    let look = || Reply::tool("glob", r#"{"pattern":"*"}"#);
    insta::assert_snapshot!(check(vec![look(), look(), look()], &["--max-steps", "2"]).await, @r#"
    Some(1) • glob({"pattern":"*"})
      ✓ glob: No file fits `*`, hidden and ignored files included. Try a wider pattern such as `**/*name*`. (93 bytes)
    • glob({"pattern":"*"})
      ✓ glob: No file fits `*`, hidden and ignored files included. Try a wider pattern such as `**/*name*`. (93 bytes)

    max_steps · 2 steps · session s
    tokens: input N · cache read N · cache write N (5m N, 1h 0) · output 10 (reasoning 0)
    cost: anthropic/claude-opus-5-5 $N in 2 requests
    "#);
    insta::assert_snapshot!(check(vec![Reply::text("x").fault(Fault::status(529))], &["--max-attempts", "1"]).await, @"
    Some(1) model call failed, overloaded: the provider answered 529 (overloaded_error): Overloaded [request req_sim_0000] (given up after 1 attempt: `max_attempts` of the retry policy allows no more)

    error(overloaded) · 0 steps · session s
    tokens: input 0 · cache read 0 · cache write 0 (5m 0, 1h 0) · output 0 (reasoning 0)
    cost: anthropic/claude-opus-5-5 $N in 1 request
    ");
    insta::assert_snapshot!(check(vec![Reply::text("half an answer").fault(Fault::Cut { after: 4 })], &["--max-attempts", "1"]).await, @"
    Some(1) half an answer
    note: the answer so far is void (interrupted)
    model call failed, interrupted: the answer ended after 697 bytes (the connection failed: error decoding response body: error reading a body from connection: unexpected EOF during chunk size line), before the event that completes it; send the request again (given up after 1 attempt: `max_attempts` of the retry policy allows no more)

    interrupted · 0 steps · session s
    tokens: input N · cache read 0 · cache write N (5m N, 1h 0) · output 1 (reasoning 0)
    cost: anthropic/claude-opus-5-5 $N in 1 request
    ");
    insta::assert_snapshot!(check(vec![Reply::text("No.").stopping("refusal")], &[]).await, @"
    Some(1) No.

    refused · 1 steps · session s
    tokens: input N · cache read 0 · cache write N (5m N, 1h 0) · output 1 (reasoning 0)
    cost: anthropic/claude-opus-5-5 $N in 1 request
    ");
}

#[tokio::test]
async fn a_failed_attempt_is_told_beside_the_answer() {
    let home = Home::new();
    let sim =
        SimProvider::start(vec![Reply::text("A whole answer.").fault(Fault::Cut { after: 4 })]).unwrap();
    let output = home.run(&sim.base_url(), &["go", "--session", "s"]).await;
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stdout.contains("note: the answer so far is void (interrupted)"), "{}", output.stdout);
    let lines: Vec<_> = output.stderr.lines().collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("model call failed, interrupted: ") && lines[0].contains("; attempt 2 in "));
    assert_eq!(sim.requests().len(), 2);
}

#[tokio::test]
async fn commands_that_cannot_be_carried_out() {
    let check = async |args: &[&str]| {
        let home = Home::new();
        let output = home.agent(args).await;
        assert_eq!(output.stdout, "");
        format!("{:?} {}", output.code, home.placeless(&output.stderr))
    };
    insta::assert_snapshot!(check(&["run", "go"]).await, @r#"Some(2) agent: no API key: looked for ANTHROPIC_API_KEY in the environment. Set it, or run `agent demo`, which needs no key and no network, or use a local server: `agent run --model ollama/NAME "…"`, with llamacpp, vllm or lmstudio in place of ollama for those"#);
    insta::assert_snapshot!(check(&["run", " "]).await, @"Some(2) agent: the message is blank; say what the agent is to do");
    insta::assert_snapshot!(check(&["run", "go", "--base-url", "127.0.0.1:9"]).await, @r#"Some(2) agent: "127.0.0.1:9" is not a web address; write it like https://api.anthropic.com"#);
    insta::assert_snapshot!(check(&["run", "go", "--model", "gpt"]).await, @r#"Some(2) agent: "gpt" names no model of a provider that is known: write it as PROVIDER/NAME, for example anthropic/claude-opus-5-5; providers: anthropic, openai, openai-chat, gemini, deepseek, groq, mistral, openrouter, xai, ollama, ollama-chat, llamacpp, vllm, lmstudio"#);
    insta::assert_snapshot!(check(&["run", "go", "--session", "../x", "--base-url", "http://127.0.0.1:9"]).await, @r#"Some(2) agent: "../x" is not a session id: use 1 to 128 letters, digits, '.', '_' or '-', not beginning with a dot"#);
    insta::assert_snapshot!(check(&["run", "go", "--base-url", "http://127.0.0.1:9", "--ask", "prompt"]).await, @"Some(2) agent: --ask prompt needs a terminal on standard input; use --ask later, --ask deny or --ask allow");
    insta::assert_snapshot!(check(&["sessions", "show", "nowhere"]).await, @"Some(2) agent: there is no session nowhere in DATA; `agent sessions list` shows those there are, --data-dir looks elsewhere");
}

#[tokio::test]
async fn interrupting_keeps_what_was_said() {
    let home = Home::new();
    let sim = SimProvider::start(vec![
        Reply::text("first"),
        Reply::tool("bash", r#"{"command":"sleep 60"}"#),
        Reply::text("ok"),
    ])
    .unwrap();
    home.run(&sim.base_url(), &["one", "--session", "s"]).await;
    let url = sim.base_url();
    let args = ["run", "two", "--session", "s", "--base-url", &url, "--permission-mode", "bypass"];
    let child = home.command(&args).spawn().unwrap();
    sim.request(1).await;
    // The command runs once it is in the journal.
    let data = home.data();
    let pid = child.id().unwrap().to_string();
    wait_until(|| async {
        events(&home, &data).await.iter().any(|event| event["type"] == "actions.requested")
    })
    .await;
    std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(String::from_utf8(output.stdout).unwrap().contains("aborted · 1 steps"));
    let after = home.run(&url, &["three", "--session", "s"]).await;
    assert_eq!(after.code, Some(0), "the session goes on: {}{}", after.stdout, after.stderr);
    assert!(sim.refusals().is_empty(), "and its history is one the service takes: {:?}", sim.refusals());
}

async fn events(home: &Home, data: &std::path::Path) -> Vec<serde_json::Value> {
    let output =
        home.agent(&["sessions", "show", "s", "--json", "--data-dir", &data.display().to_string()]).await;
    json_lines(&output.stdout)
}

pub(crate) async fn wait_until<F: Future<Output = bool>>(holds: impl Fn() -> F) {
    for _ in 0..600 {
        if holds().await {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("it did not happen within 30 s");
}

/// Plays a recorded conversation to the program and compares what it made of it.
async fn plays(file: &std::path::Path) {
    let exchanges = read_exchanges(file).unwrap();
    let replies: Vec<RawReply> = exchanges.iter().map(|exchange| exchange.response.clone()).collect();
    let sim = SimProvider::replaying(replies.clone()).unwrap();
    let home = Home::new();
    let output = home.run(&sim.base_url(), &["go on", "--json", "--permission-mode", "bypass"]).await;
    let events = json_lines(&output.stdout);
    let of = |kind: &str| {
        events
            .iter()
            .filter(|event| event["type"] == kind)
            .map(|event| event["data"].clone())
            .collect::<Vec<_>>()
    };
    let head =
        agent_providers::ResponseHead { status: Some(200), ..agent_providers::ResponseHead::unknown() };
    let (mut text, mut calls, mut usage) = (String::new(), Vec::new(), Vec::new());
    for reply in &replies {
        let body = agent_providers::decode_response(
            &agent_providers::WireFormat::Anthropic.into(),
            &[&reply.body],
            &head,
        );
        text.push_str(&body.text);
        calls.extend(body.calls.iter().map(|call| (call.name.clone(), call.input.as_str().to_owned())));
        usage.push((body.usage.input, body.usage.cache_read, body.usage.output));
    }
    let said: String =
        of("text.delta").iter().map(|data| data["text"].as_str().unwrap().to_owned()).collect();
    assert_eq!(said, text, "{}", file.display());
    let asked: Vec<_> =
        of("actions.requested").iter().flat_map(|data| data["calls"].as_array().unwrap().clone()).collect();
    let asked: Vec<_> = asked
        .iter()
        .map(|call| (call["tool"].as_str().unwrap().to_owned(), call["input"].as_str().unwrap().to_owned()))
        .collect();
    assert_eq!(asked, calls, "{}", file.display());
    let spent: Vec<_> = of("step.completed")
        .iter()
        .map(|data| {
            let count = |name: &str| data["usage"][name].as_u64().unwrap();
            (count("input"), count("cache_read"), count("output"))
        })
        .collect();
    assert_eq!(spent, usage, "{}", file.display());
    assert_eq!(sim.requests().len(), replies.len());
}

#[tokio::test]
async fn a_recorded_conversation_is_played_through() {
    plays(&fixtures().join("exchanges/anthropic/tea-merchant.jsonl")).await;
}

#[tokio::test]
async fn recorded_conversations_of_the_corpus_are_played_through() {
    let Some(corpus) = corpus_dir() else { return };
    let mut played = 0;
    for file in agent_testkit::corpus_files(&corpus.join("recorded/exchanges/anthropic"), "jsonl").unwrap() {
        let exchanges = read_exchanges(&file).unwrap();
        // A conversation of several turns with tools: every answer but the last asks for tools.
        let asks =
            |reply: &RawReply| String::from_utf8_lossy(&reply.body).contains(r#"stop_reason":"tool_use"#);
        let (last, before) = exchanges.split_last().unwrap();
        let whole = exchanges.iter().all(|exchange| exchange.response.status == 200);
        if whole
            && !before.is_empty()
            && before.iter().all(|one| asks(&one.response))
            && !asks(&last.response)
        {
            plays(&file).await;
            played += 1;
        }
    }
    assert!(played >= 3, "only {played} conversations were found");
}

#[tokio::test]
async fn commands_cannot_read_the_key() {
    let home = Home::new();
    let look = r#"{"command":"env; for pid in $PPID /proc/[0-9]*; do tr '\\0' '\\n' < ${pid}/environ 2>/dev/null; tr '\\0' '\\n' < /proc/$PPID/environ; break; done; echo looked"}"#;
    let sim = SimProvider::start(vec![Reply::tool("bash", look), Reply::text("ok")]).unwrap();
    let url = sim.base_url();
    let args = ["run", "go", "--base-url", &url, "--session", "s", "--permission-mode", "bypass"];
    let output = home.command(&args).env("ANTHROPIC_API_KEY", "sk-very-secret").output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told = String::from_utf8(sim.request(1).await.body.to_vec()).unwrap();
    assert!(
        told.contains("looked") && told.contains("AGENT_KEY_FD"),
        "the parent's environment was read: {told}"
    );
    assert!(!told.contains("sk-very-secret"), "{told}");
    assert_eq!(sim.requests()[0].header("x-api-key"), Some("[redacted]"), "the key was sent");
}

#[tokio::test]
async fn being_told_to_end_leaves_nothing_running() {
    let check = async |signals: &[&str]| {
        let home = Home::new();
        let stubborn =
            r#"{"command":"trap '' TERM; for i in $(seq 1 100); do echo x >> alive; sleep 0.1; done"}"#;
        let sim = SimProvider::start(vec![Reply::tool("bash", stubborn)]).unwrap();
        let url = sim.base_url();
        let args = ["run", "go", "--base-url", &url, "--session", "s", "--permission-mode", "bypass"];
        let child = home.command(&args).spawn().unwrap();
        let alive = home.work().join("alive");
        wait_until(|| async { alive.exists() }).await;
        let pid = child.id().unwrap().to_string();
        for signal in signals {
            std::process::Command::new("kill").args([signal, pid.as_str()]).status().unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        let output = child.wait_with_output().await.unwrap();
        // The group is killed after a short grace; from then on the file stays as it is.
        let size = || std::fs::metadata(&alive).unwrap().len();
        wait_until(|| async {
            let before = size();
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
            before == size()
        })
        .await;
        assert!(size() < 200, "{signals:?}: it was ended, it did not just end");
        output.status.code()
    };
    assert_eq!(check(&["-TERM"]).await, Some(130));
    assert_eq!(check(&["-HUP"]).await, Some(130));
    assert_eq!(check(&["-INT", "-INT"]).await, Some(130));
    assert_eq!(check(&["-KILL"]).await, None);
}

#[tokio::test]
async fn rules_and_the_repository_enter_the_prompt_of_a_new_session() {
    let home = Home::new();
    std::fs::create_dir(home.config()).unwrap();
    std::fs::write(home.config().join("AGENTS.md"), "Answer briefly.").unwrap();
    std::fs::write(home.work().join("AGENTS.md"), "Run the tests.").unwrap();
    let git = std::process::Command::new("git").args(["init", "--quiet"]).current_dir(home.work()).status();
    assert!(git.expect("this test makes a repository: install git").success());
    let replies = ["one", "two", "three", "four"].map(Reply::text);
    let sim = SimProvider::start(replies.to_vec()).unwrap();
    let runs: [&[&str]; 4] =
        [&["go", "--session", "s"], &["more", "--session", "s", "--bare"], &["go", "--bare"], &["go"]];
    for args in runs {
        let output = home.run(&sim.base_url(), args).await;
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    }
    let systems = sim.requests().into_iter().map(|request| {
        let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
        body["system"]
            .as_array()
            .unwrap()
            .iter()
            .map(|block| block["text"].as_str().unwrap().to_owned())
            .collect()
    });
    let systems: Vec<Vec<String>> = systems.collect();
    let firsts = |system: &[String]| {
        system.iter().map(|text| text.lines().next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let [_, rest @ ..] = &firsts(&systems[0])[..] else { panic!("a system prompt") };
    insta::assert_snapshot!(rest.join("\n").replace(&home.work().canonicalize().unwrap().display().to_string(), "WORK"), @"
    The environment when it was looked at; it is not kept up to date:
    The workspace is WORK. Paths are relative to it.
    Instructions from user:AGENTS.md (user):
    Instructions from AGENTS.md (project):
    ");
    assert_eq!(systems[1], systems[0], "a session keeps the prompt it began with");
    assert_eq!(systems[2].len(), 2, "{:?}", systems[2]);
    assert_eq!(systems[3], systems[0], "another process builds the same bytes");
}

#[tokio::test]
async fn a_session_stays_in_its_workspace() {
    let home = Home::new();
    let sim = SimProvider::start(vec![Reply::text("one"), Reply::text("two")]).unwrap();
    home.run(&sim.base_url(), &["go", "--session", "s"]).await;
    let elsewhere = home.work().join("other");
    std::fs::create_dir(&elsewhere).unwrap();
    let output = home.run(&sim.base_url(), &["go", "--session", "s", "--cwd", "other"]).await;
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("go on there with --cwd"), "{}", output.stderr);
    let output = home.run(&sim.base_url(), &["-go", "--session", "s"]).await;
    assert_eq!(output.code, Some(0), "{}", output.stderr);
}

#[tokio::test]
async fn the_day_is_that_of_the_users_zone() {
    let home = Home::new();
    let sim = SimProvider::start(vec![Reply::text("one"), Reply::text("two")]).unwrap();
    for (zone, session) in [("<+14>-14", "ahead"), ("<-12>12", "behind")] {
        let url = sim.base_url();
        let mut run = home.command(&["run", "--base-url", &url, "go", "--session", session]);
        assert!(run.env("TZ", zone).output().await.unwrap().status.success());
    }
    let dates = sim.requests().into_iter().map(|request| {
        let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
        assert!(!body["system"].to_string().contains("Today"), "{body}");
        assert_eq!(body["messages"][0]["content"][1]["text"], "go", "{body}");
        let date = body["messages"][0]["content"][0]["text"].as_str().unwrap();
        date.strip_prefix("Today's date is ").unwrap().to_owned()
    });
    let dates: Vec<String> = dates.collect();
    // More than a day apart, whatever the time is.
    assert!(dates[0] > dates[1], "{dates:?}");
}

#[tokio::test]
async fn a_tool_name_cannot_steer_the_terminal() {
    let home = Home::new();
    let sim = SimProvider::start(vec![Reply::tool("\u{1b}[2Jls", "{}"), Reply::text("ok")]).unwrap();
    let live = home.run(&sim.base_url(), &["go", "--session", "s"]).await.stdout;
    let shown = home.agent(&["sessions", "show", "s"]).await.stdout;
    assert!(live.contains("␛[2Jls") && !live.contains('\u{1b}'), "{live:?}");
    assert!(shown.contains("␛[2Jls") && !shown.contains('\u{1b}'), "{shown:?}");
}
