//! Hooks that are external commands, with real ones.

use std::path::Path;
use std::time::Duration;

use agent_builtins::CommandHook;
use agent_core::{CallId, RawJson, SessionId, ToolOutput};
use agent_tools::{HookCx, HookEvent, HookSpec, Pattern, Subject, ToolHook as _};

use tokio::time::Instant;

use crate::support::{Bench, create_dir_all};

fn hook(bench: &Bench, on: HookEvent, command: &str, timeout_ms: u64) -> CommandHook {
    let spec = HookSpec { on, tools: Pattern::tool("bash"), command: command.to_owned(), timeout_ms };
    CommandHook::new(spec, &bench.root())
}

/// The three ids of a call.
struct Ids(SessionId, CallId);

impl Ids {
    fn new() -> Self {
        Self(SessionId::new("session").unwrap(), CallId::new("call").unwrap())
    }

    fn cx(&self) -> HookCx<'_> {
        HookCx { session: &self.0, call: &self.1, tool: "bash", subject: None }
    }
}

const INPUT: &str = r#"{"command": "ls",  "n": 12345678901234567890.10, "u": "\u00e9"}"#;

/// What a hook says before a call, in one line.
async fn before(hook: &CommandHook) -> String {
    match hook.before(&Ids::new().cx(), &RawJson::parse(INPUT).unwrap()).await {
        Ok(said) => {
            let input = said.updated_input.as_ref().map(RawJson::get);
            format!("{:?} {input:?} {:?}", said.decision, said.context.map(|text| text.as_str().to_owned()))
        }
        Err(error) => format!("! {error}"),
    }
}

async fn check(command: &str, expect: &str) {
    let bench = Bench::new();
    let said = before(&hook(&bench, HookEvent::PreTool, command, 10_000)).await;
    assert_eq!(said, expect, "{command}");
}

#[tokio::test]
async fn what_a_hook_says_before_a_call() {
    check("true", "None None None").await;
    check("cat >/dev/null; echo chatter >&2", "None None None").await;
    check(r#"echo '{"decision": "allow"}'"#, "Some(Allow) None None").await;
    check(
        r#"echo '{"decision": "ask", "context": "Mind the gap."}'"#,
        r#"Some(Ask) None Some("Mind the gap.")"#,
    )
    .await;
    check("echo 'Not on Fridays.' >&2; exit 2", r#"Some(Block("Not on Fridays.")) None None"#).await;
    check("exit 2", r#"Some(Block("A hook of the user blocks this call.")) None None"#).await;
    // It gets the bytes, and gives them back: no number goes through a float, no escape is read.
    let echo = r#"read -r told; input=${told#*\"input\":}; printf '{"updated_input":%s' "$input""#;
    check(echo, &format!("None Some({INPUT:?}) None")).await;
}

#[tokio::test]
async fn how_a_hook_fails() {
    let failed = async |command: &str, expect: &str| {
        check(command, &format!("! the hook `{command}` failed: {expect}")).await;
    };
    let codes = "0 means that it looked, 2 that the call is blocked";
    failed("exit 1", &format!("it ended with exit code 1; {codes}")).await;
    failed("echo no >&2; exit 1", &format!("it ended with exit code 1; {codes}. It said: no")).await;
    failed(
        "printf '\\033[1mred\\n' >&2; exit 7",
        &format!("it ended with exit code 7; {codes}. It said: ␛[1mred"),
    )
    .await;
    failed("kill -9 $$", "it was ended by signal 9").await;
    failed("echo oops >&2; kill -15 $$", "it was ended by signal 15. It said: oops").await;
    failed("printf 'a\\377'", "its answer is not UTF-8: invalid utf-8 sequence of 1 bytes from index 1")
        .await;
    failed(
        "echo allowed; echo why >&2",
        "its answer cannot be read (expected value at line 1 column 1); it must be one JSON object of decision, reason, updated_input, output and context, or nothing. It said: why",
    )
    .await;
    let bench = Bench::new();
    let nowhere = CommandHook::new(
        HookSpec {
            on: HookEvent::PreTool,
            tools: Pattern::tool("*"),
            command: "x".repeat(100),
            timeout_ms: 1_000,
        },
        &bench.root().join("nowhere"),
    );
    let said = before(&nowhere).await;
    let name = "x".repeat(80);
    assert!(
        said.starts_with(&format!("! the hook `{name}…` failed: its command could not be started: ")),
        "{said}"
    );
}

#[tokio::test]
async fn a_hook_with_an_argument_runs_for_the_calls_it_names() {
    let bench = Bench::new();
    let tools = Pattern::with_argument("bash", "git*");
    let command = "echo No. >&2; exit 2".to_owned();
    let spec = HookSpec { on: HookEvent::PreTool, tools, command, timeout_ms: 10_000 };
    let hook = CommandHook::new(spec, &bench.root());
    let ids = Ids::new();
    let blocks = async |subject: Option<&Subject>| {
        let cx = HookCx { subject, ..ids.cx() };
        hook.before(&cx, &RawJson::empty_object()).await.unwrap().decision.is_some()
    };
    assert!(blocks(Some(&Subject::Text("git push".to_owned()))).await);
    assert!(!blocks(Some(&Subject::Text("ls".to_owned()))).await);
    assert!(blocks(None).await, "what is not known could be it");
}

#[tokio::test]
async fn when_a_hook_runs_and_what_it_is_told() {
    let bench = Bench::new();
    let ids = Ids::new();
    let input = RawJson::parse(INPUT).unwrap();
    let output = ToolOutput::text("line\n\"two\"");
    let note = "cat >> told; echo '{\"output\": \"Short.\", \"context\": \"Seen.\"}'";
    let mut said = Vec::new();
    for on in [HookEvent::PreTool, HookEvent::PostTool, HookEvent::ToolError] {
        let hook = hook(&bench, on, note, 10_000);
        assert!(hook.looks_at("bash") && !hook.looks_at("grep"));
        let before = hook.before(&ids.cx(), &input).await.unwrap();
        said.push(before.context.is_some());
        for after in [
            hook.after(&ids.cx(), &input, &output).await.unwrap(),
            hook.failed(&ids.cx(), &input, &output).await.unwrap(),
        ] {
            assert_eq!(after.output.is_some(), after.context.is_some());
            said.push(after.output.is_some_and(|output| output.plain() == "Short."));
        }
    }
    assert_eq!(said, [true, false, false, false, true, false, false, false, true]);
    let told = |event: &str, rest: &str| {
        format!(
            "{{\"event\":\"{event}\",\"session\":\"session\",\"call\":\"call\",\"tool\":\"bash\",\"input\":{INPUT}{rest}}}\n"
        )
    };
    let rest = r#","output":"line\n\"two\"""#;
    let all = [told("pre_tool", ""), told("post_tool", rest), told("tool_error", rest)];
    assert_eq!(bench.text("told"), all.concat());
    let blocks = hook(&bench, HookEvent::ToolError, "echo 'Ask the user.' >&2; exit 2", 10_000);
    let after = blocks.failed(&ids.cx(), &input, &output).await.unwrap();
    assert_eq!(after.context.unwrap().as_str(), "Ask the user.");
}

#[tokio::test]
async fn its_environment_is_an_allow_list() {
    let bench = Bench::new();
    create_dir_all(&bench.root().join("home"));
    let vars =
        [("API_KEY", "sk-secret"), ("HOME", "/nowhere")].map(|(name, value)| (name.into(), value.into()));
    let look = r#"printf '{"context": "%s in %s"}' "$HOME$API_KEY" "${PWD##*/}""#;
    let said = before(&hook(&bench, HookEvent::PreTool, look, 10_000).env(vars)).await;
    assert_eq!(said, r#"None None Some("/nowhere in ws")"#);
}

/// Each would touch `S` four seconds after it began, unless every process of it is ended.
const STUBBORN: [&str; 3] = [
    "(sleep 4; touch S) & sleep 60",
    "trap '' TERM; (trap '' TERM; sleep 4; touch S); sleep 60",
    "setsid env -i bash -c 'sleep 4; touch S' & sleep 60",
];

async fn at_its_timeout(command: &str) {
    let bench = Bench::new();
    let began = Instant::now();
    let said = before(&hook(&bench, HookEvent::PreTool, &format!("echo slow >&2; {command}"), 500)).await;
    assert!(began.elapsed() < Duration::from_secs(4), "it is not waited for");
    let expect = "failed: it gave no answer within 500 ms and was stopped with everything it started; make it faster, or raise its timeout_ms in the settings. It said: slow";
    assert!(said.ends_with(expect), "{said}");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!bench.exists("S"), "ran on: {command}");
}

async fn when_nobody_waits(command: &str) {
    let bench = Bench::new();
    let hook = hook(&bench, HookEvent::PreTool, command, 60_000);
    assert!(tokio::time::timeout(Duration::from_millis(500), before(&hook)).await.is_err());
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!bench.exists("S"), "ran on: {command}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_hook_runs_on() {
    let mut hooks = tokio::task::JoinSet::new();
    for command in STUBBORN {
        hooks.spawn(at_its_timeout(command));
        hooks.spawn(when_nobody_waits(command));
    }
    hooks.spawn(async {
        // A hook that has answered is not kept waiting by what it left behind, and that ends too.
        let bench = Bench::new();
        let began = Instant::now();
        let left = "(sleep 4; touch S) & setsid sleep 61 & echo '{\"decision\": \"allow\"}'";
        let said = before(&hook(&bench, HookEvent::PreTool, left, 60_000)).await;
        assert_eq!(said, "Some(Allow) None None");
        assert!(began.elapsed() < Duration::from_secs(4));
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(!bench.exists("S"));
    });
    while let Some(done) = hooks.join_next().await {
        done.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_are_drained_and_input_is_left_unread() {
    // Neither pipe is held up while the other is full.
    let floods = "yes | head -c 20M >&2; echo '{\"decision\": \"allow\"}'; yes | head -c 20M >&2";
    check(floods, "Some(Allow) None None").await;
    let flood = "yes | head -c 20M";
    check(
        flood,
        &format!("! the hook `{flood}` failed: its answer has 20971520 bytes, more than the 1 MiB that is kept; print the answer alone, and everything else to standard error"),
    )
    .await;
    let bench = Bench::new();
    let said = before(&hook(&bench, HookEvent::PreTool, "yes no | head -c 20M >&2; exit 2", 10_000)).await;
    assert!(said.starts_with("Some(Block(\"no\\nno") && said.len() < 8_000, "{}", said.len());

    let large = RawJson::parse(format!(r#"{{"content": "{}"}}"#, "x".repeat(3_000_000))).unwrap();
    let ids = Ids::new();
    let take = async |command: &str| {
        let hook = hook(&bench, HookEvent::PreTool, command, 10_000);
        hook.before(&ids.cx(), &large).await.unwrap().context.map(|text| text.as_str().to_owned())
    };
    assert_eq!(take("exec <&-; sleep 0.3").await, None);
    assert_eq!(take("head -c 5 >/dev/null").await, None);
    assert_eq!(take("true").await, None);
    let count = r#"printf '{"context": "%s"}' $(wc -c)"#;
    let rest =
        "{\"event\":\"pre_tool\",\"session\":\"session\",\"call\":\"call\",\"tool\":\"bash\",\"input\":}\n";
    assert_eq!(take(count).await, Some((large.get().len() + rest.len()).to_string()));
    assert!(Path::new(&bench.root()).exists());
}
