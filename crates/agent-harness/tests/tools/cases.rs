//! Open cases of tools that need the driver, on real files and processes: A02 (an input that is rewritten behind the model),
//! rows of T09 (change under an open question, a batch of reads and writes), and of T02 (a session that is closed). Their
//! other rows are in `cases` of agent-builtins, and A02's order of hooks in `hooks` and `approval`. A02's request that stays
//! open across processes, and A05, belong to durable requests.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_builtins::{LocalSandbox, all};
use agent_core::RawJson;
use agent_harness::{Answer, Asker, AskerError};
use agent_testkit::Reply;
use agent_tools::{
    AskRequest, Before, HookDecision, Pattern, PermissionMode, PermissionRule, ToolHook, ToolSet, before_tool,
};
use async_trait::async_trait;

use super::{agent, results};
use crate::support::{Agent, talk};

/// Programs need a runtime that waits for real.
fn block<F: Future>(future: F) -> F::Output {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(future)
}

/// Gives these answers in turn, and the last for ever; before each the disk changes where that is wanted.
#[derive(Debug)]
struct Person {
    answers: Vec<&'static str>,
    asked: std::sync::Mutex<Vec<String>>,
    meddles: Option<PathBuf>,
}

#[async_trait]
impl Asker for Person {
    async fn ask(&self, request: &AskRequest) -> Result<Answer, AskerError> {
        if let Some(file) = &self.meddles {
            put(file, "theirs\n");
        }
        let mut asked = self.asked.lock().unwrap();
        let answer = self.answers[asked.len().min(self.answers.len() - 1)];
        asked.push(format!("{}{}", request.tool(), request.input()));
        Ok(if answer == "yes" { Answer::Allow } else { Answer::Edit(RawJson::parse(answer).unwrap()) })
    }
}

fn person(answers: &[&'static str], meddles: Option<PathBuf>) -> Arc<Person> {
    Arc::new(Person { answers: answers.to_vec(), asked: std::sync::Mutex::default(), meddles })
}

#[expect(clippy::disallowed_methods, reason = "a real folder")]
fn put(file: &Path, text: &str) {
    std::fs::write(file, text).unwrap();
}

#[expect(clippy::disallowed_methods, reason = "a real folder")]
fn text(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_else(|_| "(absent)".to_owned())
}

fn tools(folder: &Path) -> ToolSet {
    let sandbox = Arc::new(LocalSandbox::open(folder).unwrap());
    ToolSet::builder().extend(all(sandbox)).freeze().unwrap()
}

/// A hook that puts another input in place.
fn rewrites(name: &'static str, input: &'static str, allows: bool) -> Arc<dyn ToolHook> {
    Arc::new(before_tool(name, Pattern::tool("bash"), move |_, _| Before {
        decision: allows.then_some(HookDecision::Allow),
        ..Before::with_input(RawJson::parse(input).unwrap())
    }))
}

/// What stands around a call.
#[derive(Default)]
struct Around<'a> {
    deny: &'a [&'a str],
    hooks: Vec<Arc<dyn ToolHook>>,
    answers: &'a [&'static str],
}

/// A call of `bash` that appends a word to `ran`: what ran, what a person was asked, and what the model reads.
fn check(command: &str, around: Around<'_>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let person = person(around.answers, None);
    let said = block(async {
        let agent = agent(vec![Reply::tool("bash", command), Reply::text("ok")], |config, _| {
            config.tools = tools(folder.path());
            config.permissions.mode = PermissionMode::Default;
            let deny = |pattern: &&str| PermissionRule::deny(pattern.parse().unwrap());
            config.permissions.rules = around.deny.iter().map(deny).collect();
            config.tool_hooks = around.hooks;
            config.asker = person.clone();
        });
        agent.say("go").await;
        let history = agent.history().await;
        assert!(talk(&history).contains("step: bash -> "), "the model's own call stays");
        results(&history)[0].plain()
    });
    let took = |line: &str| line.split_once(", ").map_or(line.to_owned(), |(head, _)| head.to_owned());
    let said: Vec<String> = said
        .lines()
        .map(|line| if line.starts_with("[exit") { took(line) } else { line.to_owned() })
        .collect();
    let asked = person.asked.lock().unwrap().join("\n");
    format!("ran: {}\nasked: {asked}\n{}", text(&folder.path().join("ran")).trim_end(), said.join("\n"))
}

const ONE: &str = r#"{"command":"echo one >> ran"}"#;
const TWO: &str = r#"{"command":"echo two >> ran"}"#;
const FORCED: &str = r#"{"command":"echo forced >> ran; git push --force"}"#;

#[test]
fn a02_what_is_refused_of_either_input_is_refused() {
    let deny = &["bash(git push --force:*)"][..];
    let hidden = || vec![rewrites("wraps", r#"{"command":"echo wrapped >> ran"}"#, true)];
    let told = check(FORCED, Around { deny, hooks: hidden(), ..Around::default() });
    assert!(told.starts_with("ran: (absent)\nasked: \n`bash` was not run: a permission rule"), "{told}");
    let told =
        check(ONE, Around { deny, hooks: vec![rewrites("forces", FORCED, true)], ..Around::default() });
    assert!(told.starts_with("ran: (absent)\nasked: \n`bash` was not run: a permission rule"), "{told}");
    let told = check(ONE, Around { deny, answers: &[FORCED], ..Around::default() });
    assert!(told.starts_with("ran: (absent)\nasked: bash{") && told.contains("a permission rule"), "{told}");
}

#[test]
fn a02_what_a_hook_gives_is_held_against_tool_and_person() {
    let broken = vec![rewrites("breaks", r#"{"cmd":"echo one >> ran"}"#, true)];
    let told = check(ONE, Around { hooks: broken, ..Around::default() });
    assert!(told.starts_with("ran: (absent)\nasked: \n`bash` was not run: the hook `breaks`"), "{told}");
    let both = vec![rewrites("first", ONE, false), rewrites("second", TWO, false)];
    let told = check(
        r#"{"command":"echo none >> ran"}"#,
        Around { hooks: both, answers: &["yes"], ..Around::default() },
    );
    let asked = format!("ran: two\nasked: bash{TWO}\n[exit code 0\n");
    assert!(told.starts_with(&asked), "a person sees what would run: {told}");
    assert!(told.contains("the hook `first`, then the hook `second` put this input in its place"), "{told}");
}

#[test]
fn a02_what_a_person_writes_is_what_runs() {
    let told = check(ONE, Around { answers: &[TWO], ..Around::default() });
    assert!(told.starts_with(&format!("ran: two\nasked: bash{ONE}\n[exit code 0\n")), "{told}");
    assert!(told.contains("What ran is not what you wrote: the user put this input in its place"), "{told}");
    let null = r#"{"command":"echo two >> ran","cwd":null,"timeout_ms":null}"#;
    let told = check(ONE, Around { answers: &[null], ..Around::default() });
    assert!(told.starts_with(&format!("ran: two\nasked: bash{ONE}\n[exit code 0\n")), "{told}");
    // Nothing runs of an input that does not fit, and the question stays open.
    let told = check(ONE, Around { answers: &[r#"{"command":7}"#, "yes"], ..Around::default() });
    assert!(told.starts_with(&format!("ran: one\nasked: bash{ONE}\nbash{ONE}\n[exit code 0")), "{told}");
}

/// The file after these calls of one step, which is read first; and whether each call failed.
fn batch(calls: &[(&str, &str)], meddles: bool) -> (String, Vec<bool>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f");
    put(&file, "old\n");
    let failed = block(async {
        let step = calls.iter().fold(Reply::default(), |reply, (tool, input)| reply.call(*tool, *input));
        let replies = vec![Reply::tool("read_file", r#"{"path":"f"}"#), step, Reply::text("ok")];
        let agent = agent(replies, |config, _| {
            config.tools = tools(folder.path());
            config.permissions.mode = PermissionMode::Default;
            config.asker = person(&["yes"], meddles.then(|| file.clone()));
        });
        agent.say("go").await;
        results(&agent.history().await).iter().skip(1).map(|output| output.is_error()).collect()
    });
    (text(&file), failed)
}

#[test]
fn t09_a_change_under_an_open_question_is_not_lost() {
    let write = ("write_file", r#"{"path":"f","content":"mine\n"}"#);
    let edit = ("edit_file", r#"{"path":"f","edits":[{"old":"old","new":"mine"}]}"#);
    for call in [write, edit] {
        assert_eq!(batch(&[call], true), ("theirs\n".to_owned(), vec![true]), "{}", call.0);
        assert_eq!(batch(&[call], false), ("mine\n".to_owned(), vec![false]), "{}", call.0);
    }
}

#[test]
fn t09_a_batch_of_reads_and_writes() {
    let read = ("read_file", r#"{"path":"./f"}"#);
    let write = ("write_file", r#"{"path":"f","content":"mine\n"}"#);
    assert_eq!(batch(&[read, write, read], false), ("mine\n".to_owned(), vec![false; 3]));
    assert_eq!(batch(&[write, read, write], false), ("mine\n".to_owned(), vec![false; 3]));
}

/// The processes of this machine that bear this word in their environment.
fn bearing(word: &str) -> usize {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let bears = |folder: PathBuf| {
        bytes(&folder.join("environ")).windows(word.len()).any(|part| part == word.as_bytes())
    };
    all.filter(|entry| bears(entry.path())).count()
}

#[expect(clippy::disallowed_methods, reason = "a test looks at the table of processes")]
fn bytes(file: &Path) -> Vec<u8> {
    std::fs::read(file).unwrap_or_default()
}

/// Waits for so many processes with this word; how many there were at last.
async fn until(word: &str, holds: impl Fn(usize) -> bool) -> usize {
    for _ in 0..200 {
        let count = bearing(word);
        if holds(count) {
            return count;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    bearing(word)
}

#[test]
#[cfg(target_os = "linux")]
fn t02_what_runs_in_the_background_ends_with_its_session() {
    let mark = format!("AGENT_CALL_test_of_closing_{}", std::process::id());
    let folder = tempfile::tempdir().unwrap();
    block(async {
        let start = |command: &str| format!(r#"{{"command":"{command}","background":true}}"#);
        let replies = vec![
            Reply::tool("bash", start("setsid sleep 300 & sleep 300"))
                .call("bash", start("trap '' TERM; sleep 300")),
            Reply::text("Both run."),
        ];
        let agent: Agent = agent(replies, |config, _| {
            let sandbox = LocalSandbox::open(folder.path()).unwrap().env([(mark.clone(), "1".to_owned())]);
            config.tools = ToolSet::builder().extend(all(Arc::new(sandbox))).freeze().unwrap();
        });
        let session = agent.session();
        let end = session.send("go").await.unwrap().finish().await.unwrap();
        assert_eq!(end.text, "Both run.");
        assert!(until(&mark, |count| count >= 4).await >= 4, "they run on between two messages");
        let other = session.clone();
        drop(session);
        assert!(bearing(&mark) >= 4, "another handle keeps the session open");
        drop(agent.session());
        assert!(bearing(&mark) >= 4, "one that opened nothing closes nothing");
        drop(other);
        assert_eq!(until(&mark, |count| count == 0).await, 0, "the sandbox is still there");
        drop(agent);
    });
}
