//! The self-check: a sound agent passes, and an agent that is broken in one way is told so.

mod store;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agent_core::{
    CacheProfile, Diagnostic, Encoded, Encoder, LanguageModel, ModelError, ModelProfile, ModelRequest,
    ModelStream, Outgoing,
};
use agent_harness::{CheckStatus, Checkup, HarnessConfig, PromptSource, RetryPolicy, SourceError, examine};
use agent_prepare::{Cascade, Pipeline};
use agent_prompt::{Fragment, Layer, Prompt, Session, Static, Value};
use agent_providers::{HttpConfig, HttpModel};
use agent_store::{MemoryStore, Store};
use agent_tools::{
    Access, OutputCap, Pattern, PermissionMode, PermissionRule, ToolConfig, ToolError, ToolSet,
    ToolSetBuilder,
};
use agent_turn::{StopCondition, StopConditionExt, cost_budget, step_count, tool_called, wall_clock};
use async_trait::async_trait;

use crate::support::{block, system_of};
use store::Durable;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Path {
    /// The file, relative to the workspace.
    path: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Bare {
    what: String,
}

const READ: &str = "Reads a file and shows its lines. Use it before you change a file, and when you look for how something works. It does not read directories.";
const WRITE: &str = "Writes a whole file. Use it for new files only, when nothing of that name is there; never for a part of a file.";
const COMPLETE: &str = "Says that the work is done. Use it once, when everything is done and checked; do not call other tools after it.";

fn base_tools() -> ToolSetBuilder {
    let read =
        ToolConfig::new("read_file", READ, Access::Read, |_, input: Path| async move { Ok(input.path) });
    let write = ToolConfig::new("write_file", WRITE, Access::Edit, |_, input: Path| async move {
        Err::<String, _>(ToolError::failed(input.path))
    });
    let complete =
        ToolConfig::new(
            "complete",
            COMPLETE,
            Access::Session,
            |_, input: Path| async move { Ok(input.path) },
        );
    ToolSet::builder().with(read).with(write).with(complete)
}

fn claude() -> Arc<dyn LanguageModel> {
    let config = HttpConfig { model: "claude-opus-5-5".into(), ..HttpConfig::default() };
    Arc::new(HttpModel::new(config).unwrap())
}

/// An agent without a fault.
fn sound() -> HarnessConfig {
    let mut config = HarnessConfig::new(claude(), Arc::new(Durable::default()));
    let rules: &'static str =
        Box::leak("Read before you write. Say what you did.\n".repeat(200).into_boxed_str());
    config.prompt = system_of(&["You fix bugs.", rules]);
    config.tools = base_tools().freeze().unwrap();
    config
}

/// Changes the sound agent and looks at one item: its status, a word of its evidence, and that there is advice.
fn check(name: &str, status: CheckStatus, evidence: &str, change: impl FnOnce(&mut HarnessConfig)) {
    let mut config = sound();
    change(&mut config);
    let checkup = block(examine(&config));
    let finding = checkup.item(name).unwrap();
    assert_eq!(finding.status, status, "{checkup}");
    assert!(finding.evidence.iter().any(|seen| seen.contains(evidence)), "{evidence:?} in {checkup}");
    assert_eq!(finding.advice.is_empty(), status == CheckStatus::Pass, "{checkup}");
    assert_eq!(checkup.has_failed(), status == CheckStatus::Fail, "{checkup}");
}

fn statuses(checkup: &Checkup) -> String {
    let all = checkup.items.iter().chain(&checkup.also);
    all.map(|finding| format!("{} {}", finding.status.name(), finding.name)).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_sound_agent_passes() {
    let store = Arc::new(Durable::default());
    let config = HarnessConfig { store: store.clone(), ..sound() };
    let checkup = block(examine(&config));
    assert!(!checkup.has_failed(), "{checkup}");
    insta::assert_snapshot!(statuses(&checkup), @"
    pass static-system
    pass breakpoints
    pass first-step
    pass permissions
    pass descriptions
    pass cancellation
    pass outputs
    pass stops
    pass persistence
    absent background
    pass minimum
    pass sources
    pass profile
    pass retries
    ");
    assert!(block(store.sessions()).unwrap().is_empty(), "the session of the check is deleted");
}

#[test]
fn what_was_found_is_told_with_numbers() {
    let checkup = block(examine(&sound()));
    insta::assert_snapshot!(checkup.to_string(), @"
    self-check of an agent with anthropic/claude-opus-5-5
     1 pass   static system prompt, no clock or user data
              assembled and encoded twice: 2 blocks (system 88cc6e8e0400973f), the
              same 9658 bytes
     2 pass   cache breakpoints placed
              each of 8 requests of a conversation had 3 breakpoints, of at most 4;
              the last one at tools[2], system[1], messages[14].content[0]
              simulated by the published rules: 78.3% of the input read from the
              cache, at best 78.3%
     3 pass   first step and continuation differ
              warning at 882000, error at 882000, compaction at 882000, blocking at
              977000 of 980000 tokens
              compaction begins by itself: clear_results, session_notes, summary,
              shrink_results
              system prompt and tools take about 2252 tokens, 0 % of the window
     4 pass   every tool checks permission at execution
              3 of 3 tools were called under a rule that refuses them, and none ran
              mode Default; without asking run: read_file, complete; asked is
              NobodyToAsk
     5 pass   tool descriptions teach
              3 descriptions of 111 to 139 bytes, read for when to use a tool and
              when not
     6 pass   cancellation reaches the leaves
              a run that was stopped while a tool worked told the tool and ended as
              aborted
              a run that was stopped while the model answered gave the call up
              1 readers, called after a stop, ended within 5 s
              without a deadline, so that they run until they end or are stopped:
              read_file, write_file, complete
     7 pass   outputs capped, truncated, offloaded
              3 of 3 tools said twice what they may: each output was cut to its cap
              (51200 to 51200 bytes), and the whole of it was kept under the name
              the cut gives
     8 pass   stop conditions combined
              a turn ends after 40 steps
              it ends when a call of one of these succeeds: complete
     9 pass   messages persisted atomically
              a turn of 3 steps was broken at each of its 7 writes: what was stored
              was whole every time, and the same message took the turn to its end
              the agent's own store gave back the same bytes of 4 entries, refused a
              commit on a stale revision and deleted the session
    10 absent background work after the turn
              nothing works after a turn yet: there is no memory that could learn
              from it
     * pass   the prompt is complete and long enough to be cached
              tools and system prompt have about 2248 tokens, and 512 are needed
     * pass   what was written for the prompt is in it
              nothing was cut, left out or not heard
     * pass   the model is known
              anthropic/claude-opus-5-5: 1000000 tokens of context, 128000 of output
     * pass   failed model calls are tried again
              5 attempts a call, 20 retries a run
    9 pass, 0 warn, 0 fail, 1 absent of 10
    ");
    let json = serde_json::to_value(&checkup).unwrap();
    assert_eq!(
        (json["items"].as_array().unwrap().len(), json["items"][0]["status"].as_str()),
        (10, Some("pass"))
    );
    assert!(checkup.to_string().lines().all(|line| line.chars().count() <= 80), "{checkup}");
}

#[test]
fn room_for_a_conversation() {
    let name = "first-step";
    check(name, CheckStatus::Pass, "compaction begins by itself: clear_results", |_| {});
    check(name, CheckStatus::Warn, "compaction does not begin by itself", |config| {
        config.pipeline = Pipeline::new(Cascade::standard().manual());
    });
    check(name, CheckStatus::Warn, "compaction has no tiers", |config| {
        config.pipeline = Pipeline::new(Cascade::new());
    });
    check(name, CheckStatus::Fail, "system prompt and tools take about", |config| {
        config.counter = Arc::new(Dear);
    });
}

/// Counts two hundred tokens for each byte.
#[derive(Debug)]
struct Dear;

impl agent_core::TokenCounter for Dear {
    fn text(&self, text: &str) -> u64 {
        text.len() as u64 * 200
    }
}

#[test]
fn a_prompt_that_changes_by_itself() {
    let name = "static-system";
    check(name, CheckStatus::Fail, "holds what looks like a clock: Started at 12:04:05", |config| {
        let clock = Value::declared("Started at 12:04:05, be quick.", "a mistake");
        config.prompt.add(Fragment::<Static>::new(Layer::Session, "clock", clock).unwrap());
    });
    check(name, CheckStatus::Pass, "it is read once", |config| {
        let begun = Value::session("The session began at 12:04:05.");
        config.prompt.add(Fragment::<Session>::new(Layer::Session, "begun", begun).unwrap());
    });
    check(name, CheckStatus::Pass, "a literal, which cannot change", |config| {
        config
            .prompt
            .add(Fragment::<Static>::new(Layer::Auto, "sample", "Write times as 12:04:05.").unwrap());
    });
    check(name, CheckStatus::Fail, "put together twice, the system prompt differs", |config| {
        config.sources = vec![Arc::new(Counter::default())];
    });
    check(name, CheckStatus::Fail, "put together twice, the encoding differs", |config| {
        config.model = Arc::new(Shuffling(config.model.clone(), AtomicUsize::new(0)));
    });
    check(name, CheckStatus::Warn, "the card of stamped holds what looks like a date", |config| {
        let words = format!("Made 2026-11-30. {READ}");
        let stamped =
            ToolConfig::new("stamped", words, Access::Read, |_, input: Path| async move { Ok(input.path) });
        config.tools = base_tools().with(stamped).freeze().unwrap();
    });
}

#[test]
fn a_source_that_fails_is_told_and_fails_what_needs_it() {
    let config = HarnessConfig { sources: vec![Arc::new(Gone)], ..sound() };
    let checkup = block(examine(&config));
    let finding = checkup.item("static-system").unwrap();
    assert_eq!(finding.status, CheckStatus::Fail);
    assert!(finding.evidence[0].contains("the policy cannot be read: gone"), "{checkup}");
    assert!(checkup.item("stops").unwrap().status == CheckStatus::Pass, "{checkup}");
}

#[test]
fn breakpoints_that_are_missing_or_useless() {
    let name = "breakpoints";
    check(name, CheckStatus::Fail, "a request had no mark", |config| {
        let marked =
            CacheProfile::Marked { max_marks: 0, min_tokens: 512, lookback: 20, collapse_runs: true };
        config.model = Arc::new(Other::new(config.model.clone(), |profile| profile.cache = marked));
    });
    check(name, CheckStatus::Warn, "is not known to cache prompts", |config| {
        config.model =
            Arc::new(Other::new(config.model.clone(), |profile| profile.cache = CacheProfile::None));
    });
    check(name, CheckStatus::Fail, "system_changed at system[0]", |config| {
        config.model = Arc::new(Shuffling(config.model.clone(), AtomicUsize::new(10)));
    });
}

#[test]
fn permissions_that_let_everything_run() {
    let name = "permissions";
    let run =
        || ToolConfig::new("run", READ, Access::Execute, |_, input: Path| async move { Ok(input.path) });
    check(name, CheckStatus::Warn, "reached without asking by: run", |config| {
        config.tools = base_tools().with(run()).freeze().unwrap();
        config.permissions.mode = PermissionMode::Bypass;
    });
    check(name, CheckStatus::Warn, "rule: allow run (user)", |config| {
        config.tools = base_tools().with(run()).freeze().unwrap();
        config.permissions.rules = vec![PermissionRule::allow(Pattern::tool("run"))];
    });
    check(name, CheckStatus::Warn, "the rule deny bsh (user) fits no tool", |config| {
        config.permissions.rules = vec![PermissionRule::deny(Pattern::tool("bsh"))];
    });
    check(name, CheckStatus::Pass, "4 of 4 tools were called under a rule that refuses them", |config| {
        config.tools = base_tools().with(run()).freeze().unwrap();
    });
}

#[test]
fn descriptions_that_do_not_teach() {
    let name = "descriptions";
    let with = |words: &'static str| {
        move |config: &mut HarnessConfig| {
            let tool =
                ToolConfig::new("vague", words, Access::Read, |_, input: Bare| async move { Ok(input.what) });
            config.tools = base_tools().with(tool).freeze().unwrap();
        }
    };
    check(name, CheckStatus::Fail, "vague has no description", with(""));
    check(name, CheckStatus::Warn, "it has 12 bytes; it does not say when to use", with("Does things."));
    check(name, CheckStatus::Warn, "these fields have no description: what", with(READ));
}

#[test]
fn a_reader_that_cannot_be_stopped() {
    check("cancellation", CheckStatus::Fail, "stuck was called after a stop and still ran", |config| {
        let stuck = ToolConfig::new("stuck", READ, Access::Read, |_, _: serde_json::Value| async {
            std::future::pending::<Result<String, ToolError>>().await
        });
        config.tools = base_tools().with(stuck).freeze().unwrap();
    });
}

#[test]
fn outputs_without_a_cap_or_a_reader() {
    check("outputs", CheckStatus::Fail, "flood may put 18446744073709551615 bytes", |config| {
        let flood =
            ToolConfig::new("flood", READ, Access::Read, |_, input: Path| async move { Ok(input.path) });
        let none = OutputCap { lines: usize::MAX, bytes: usize::MAX, line_chars: usize::MAX };
        config.tools = base_tools().with(flood.cap(none)).freeze().unwrap();
    });
    check("outputs", CheckStatus::Warn, "there is no such tool", |config| {
        config.tools = base_tools().without("read_file").freeze().unwrap();
    });
}

#[test]
fn turns_that_end_too_late_or_never() {
    let name = "stops";
    check(name, CheckStatus::Fail, "no step limit", |config| config.stop = Arc::new(tool_called("complete")));
    check(name, CheckStatus::Warn, "after 5 steps, which is little", |config| {
        config.stop = Arc::new(step_count(5).or(tool_called("complete")));
    });
    check(name, CheckStatus::Warn, "after 500 steps only", |config| {
        config.stop = Arc::new(step_count(500).or(tool_called("complete")));
    });
    check(name, CheckStatus::Warn, "nothing else ends it", |config| config.stop = Arc::new(step_count(40)));
    for stop in [
        Arc::new(step_count(40).or(cost_budget(2.0))) as Arc<dyn StopCondition>,
        Arc::new(step_count(40).or(wall_clock(Duration::from_secs(600)))),
    ] {
        check(name, CheckStatus::Pass, "looks at what is spent", |config| config.stop = stop);
    }
    check(name, CheckStatus::Warn, "the agent has no such tool", |config| {
        config.tools = base_tools().without("complete").freeze().unwrap();
    });
}

#[test]
fn stores_that_forget_or_lie() {
    let name = "persistence";
    check(name, CheckStatus::Warn, "are lost when it ends", |config| {
        config.store = Arc::new(MemoryStore::new())
    });
    check(name, CheckStatus::Fail, "it gave back 0, or other bytes", |config| {
        config.store = Arc::new(Durable { forgets: true, ..Durable::default() });
    });
    check(name, CheckStatus::Fail, "cannot be written to: the store has stopped", |config| {
        config.store = Arc::new(Durable { is_full: true, ..Durable::default() });
    });
}

#[test]
fn what_is_warned_of_beside_the_ten() {
    check("minimum", CheckStatus::Warn, "keeps no less than 512", |config| {
        config.prompt = system_of(&["Be brief."])
    });
    check("sources", CheckStatus::Warn, "rules.AGENTS.md: it is not read", |config| {
        config.sources = vec![Arc::new(Unread)];
    });
    check("profile", CheckStatus::Warn, "nothing is known of anthropic/claude-unheard-of", |config| {
        let model = HttpConfig { model: "claude-unheard-of".into(), ..HttpConfig::default() };
        config.model = Arc::new(HttpModel::new(model).unwrap());
    });
    check("retries", CheckStatus::Warn, "retries are off", |config| config.retry = RetryPolicy::never());
}

/// Says another number each time.
#[derive(Debug, Default)]
struct Counter(AtomicUsize);

#[async_trait]
impl PromptSource for Counter {
    async fn add_to(&self, prompt: &mut Prompt) -> Result<(), SourceError> {
        let count = self.0.fetch_add(1, Ordering::SeqCst);
        let text = Value::session(format!("You were asked {count} times."));
        prompt.add(Fragment::<Session>::new(Layer::Session, "count", text).unwrap());
        Ok(())
    }
}

/// Could not read what it was to add.
#[derive(Debug)]
struct Unread;

#[async_trait]
impl PromptSource for Unread {
    async fn add_to(&self, prompt: &mut Prompt) -> Result<(), SourceError> {
        prompt.report(Diagnostic { what: "rules.AGENTS.md".into(), why: "it is not read".into() });
        Ok(())
    }
}

#[derive(Debug)]
struct Gone;

#[async_trait]
impl PromptSource for Gone {
    async fn add_to(&self, _prompt: &mut Prompt) -> Result<(), SourceError> {
        Err(SourceError::new("the policy", "gone"))
    }
}

/// A model whose profile says something else.
#[derive(Debug)]
struct Other(Arc<dyn LanguageModel>, ModelProfile);

impl Other {
    fn new(model: Arc<dyn LanguageModel>, change: impl FnOnce(&mut ModelProfile)) -> Self {
        let mut profile = model.profile().clone();
        change(&mut profile);
        Self(model, profile)
    }
}

#[async_trait]
impl LanguageModel for Other {
    fn profile(&self) -> &ModelProfile {
        &self.1
    }
    fn encoder(&self) -> Box<dyn Encoder> {
        self.0.encoder()
    }
    async fn stream(
        &self,
        request: Outgoing,
        cancel: &agent_core::Cancel,
    ) -> Result<ModelStream, ModelError> {
        self.0.stream(request, cancel).await
    }
}

/// A model whose encoder writes a number into the system prompt: of the encoder when it begins at 0, else of the request.
#[derive(Debug)]
struct Shuffling(Arc<dyn LanguageModel>, AtomicUsize);

#[derive(Debug)]
struct Shuffled(Box<dyn Encoder>, usize, bool);

#[async_trait]
impl LanguageModel for Shuffling {
    fn profile(&self) -> &ModelProfile {
        self.0.profile()
    }
    fn encoder(&self) -> Box<dyn Encoder> {
        let each = self.1.load(Ordering::SeqCst) >= 10;
        let number = if each { 10 } else { self.1.fetch_add(1, Ordering::SeqCst) };
        Box::new(Shuffled(self.0.encoder(), number, each))
    }
    async fn stream(
        &self,
        request: Outgoing,
        cancel: &agent_core::Cancel,
    ) -> Result<ModelStream, ModelError> {
        self.0.stream(request, cancel).await
    }
}

impl Encoder for Shuffled {
    fn encode(&mut self, request: &ModelRequest<'_>) -> Encoded {
        let encoded = self.0.encode(request);
        let text = String::from_utf8(encoded.request.body.to_vec()).unwrap();
        let changed = text.replacen("You fix bugs.", &format!("You fix bugs, {}.", self.1), 1);
        if self.2 {
            self.1 += 1;
        }
        let mut body = agent_core::Body::default();
        body.push(changed.into_bytes().into());
        Encoded { request: Outgoing { body, ..encoded.request }, ..encoded }
    }
}
