//! `agent demo memory`: three sessions, offline. What is learnt in the first one is used in the third.

use std::io::{Write, stdout};
use std::process::ExitCode;
use std::time::Duration;

use agent::memory::{AutoFile, Extracted, MemoryConfig, MemoryDir, MemoryPlace};
use agent::{History, SessionId, Store, Usage};
use agent_core::{Entry, ToolCall, ToolResult};
use agent_testkit::{RecordedRequest, Script};

use super::{Claim, PROJECT, Place, Stage, extends, report, run, script};
use crate::args::DemoArgs;
use crate::assemble;
use crate::error::CliError;
use crate::show::{JsonScreen, TextScreen};

const SCRIPT: &str = include_str!("../../../demo/memory.json");
/// The sessions, what the user says in each, and how many answers of the script are for it.
const SAID: [(&str, &str, usize); 3] = [
    (
        "first",
        "What is in this project? And from now on answer in one sentence: I read on a small screen at the quay.",
        4,
    ),
    ("second", "Which files are there?", 3),
    ("third", "What does price.sh do?", 3),
];
/// The line of the index, which a session that begins is told.
const LINE: &str = "(feedback_one_sentence.md): Wants answers in one sentence";
/// How long a session waits for what is behind it.
const PATIENCE: Duration = Duration::from_secs(30);

/// A session that is over.
struct Played {
    /// What came of the run that extracts memories.
    extracted: Option<Extracted>,
    /// What its provider was sent, by the run that extracts memories too.
    requests: Vec<RecordedRequest>,
    /// Whether that was all of the script, and well formed.
    is_whole: bool,
}

pub(super) async fn demo(args: DemoArgs) -> Result<ExitCode, CliError> {
    let mut place = Place::make(args.keep)?;
    let script = script("demo/memory.json", SCRIPT)?;
    let mut answers = script.replies().iter().cloned();
    let mut played = Vec::new();
    for (id, prompt, count) in SAID {
        let stage = Stage::set(place, Script::new(answers.by_ref().take(count).collect()))?;
        let Some(session) = play(&stage, id, prompt, args.json).await? else { return Ok(run::stopped()) };
        place = stage.place;
        if !args.json {
            tell_written(&place, &session)?;
        }
        played.push(session);
    }
    let claims = claims(&place, &played).await?;
    report(&claims, args.json)?;
    if !args.json && place.temporary.is_none() {
        writeln!(stdout(), "Kept: {} and {}", place.workspace.display(), place.data.display())?;
    }
    Ok(if claims.iter().all(|claim| claim.holds) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One session, as a process of its own would run it; `None` when the user stopped it.
async fn play(stage: &Stage, id: &str, prompt: &str, json: bool) -> Result<Option<Played>, CliError> {
    let memory = MemoryConfig::open(&kept_in(&stage.place)?, &stage.place.data)?.extracting();
    let extractor = memory.extractor.clone();
    let agent = stage.agent()?.memory(memory).build()?;
    let id = SessionId::new(id)?;
    let end = if json {
        run::watch(&agent, &id, prompt, &mut JsonScreen(stdout())).await?
    } else {
        let mut text = TextScreen::new(stdout());
        text.line(&format!("\n> {prompt}\n"))?;
        run::watch(&agent, &id, prompt, &mut text).await?
    };
    if end.is_none() {
        return Ok(None);
    }
    agent.drain(PATIENCE).await;
    let extracted = extractor.and_then(|extractor| extractor.status().get().last);
    let requests = stage.sim.requests();
    let is_whole = requests.len() == stage.replies && stage.sim.refusals().is_empty();
    Ok(Some(Played { extracted, requests, is_whole }))
}

fn kept_in(place: &Place) -> Result<MemoryPlace, CliError> {
    Ok(MemoryPlace::resolve(&[], &place.data, &place.workspace)?)
}

fn memories(place: &Place) -> Result<MemoryDir, CliError> {
    Ok(MemoryDir::open(&kept_in(place)?.path)?)
}

/// What was kept behind a session, and the index with it.
fn tell_written(place: &Place, session: &Played) -> Result<(), CliError> {
    let mut out = stdout();
    let written = session.extracted.iter().flat_map(|extracted| &extracted.written);
    if written.count() == 0 {
        writeln!(out, "Looked at behind the turn: nothing to keep.")?;
        return Ok(());
    }
    let memories = memories(place)?;
    for kept in memories.list()?.memories {
        writeln!(out, "Kept behind the turn, in {}:\n", kept.memory.name().file())?;
        for line in kept.memory.render().lines() {
            writeln!(out, "    {line}")?;
        }
    }
    writeln!(out, "\nand in MEMORY.md:\n\n    {}", memories.index_text()?.trim_end())?;
    Ok(())
}

/// What the report states, each checked on what is really there.
async fn claims(place: &Place, played: &[Played]) -> Result<Vec<Claim>, CliError> {
    let claim = |holds, text: String| Claim { holds, text };
    let body = |session: usize| {
        let first = played.get(session).and_then(|played| played.requests.first());
        first.map(|request| String::from_utf8_lossy(&request.body).into_owned()).unwrap_or_default()
    };
    let pairs = played.iter().flat_map(|session| session.requests.windows(2));
    let pairs: Vec<bool> = pairs.map(|pair| extends(&pair[0].body, &pair[1].body)).collect();
    let written: Vec<usize> =
        played.iter().map(|session| session.extracted.as_ref().map_or(0, |it| it.written.len())).collect();
    let share =
        played.first().and_then(|first| first.extracted.as_ref()?.cache_read_share()).unwrap_or_default();
    let known = memories(place)?.list()?.memories.len();
    let (wrote_itself, viewed) = (memory_calls(place, "first").await?, memory_calls(place, "third").await?);
    let viewed = viewed.iter().any(|(_, result)| result.output.plain().contains("Answer in one sentence."));
    let (session, extraction) = spent(place).await?;
    Ok(vec![
        claim(
            written == [1, 0, 0] && known == 1 && wrote_itself.is_empty(),
            format!("runs behind the turns wrote {written:?} memories; the agent itself wrote none"),
        ),
        claim(
            !body(0).contains(LINE) && body(2).contains(LINE),
            "the first request of the third session holds the line of the index, that of the first does not"
                .to_owned(),
        ),
        claim(viewed, "the third session looked at what was learnt in the first".to_owned()),
        claim(
            pairs.iter().all(|extends| *extends) && played.iter().all(|session| session.is_whole),
            format!(
                "{} of {} later requests begin with the very bytes of the one before",
                pairs.iter().filter(|it| **it).count(),
                pairs.len()
            ),
        ),
        claim(
            share >= 0.9,
            format!("the run that wrote it read {:.0}% of its input from the session's cache", share * 100.0),
        ),
        claim(unchanged(place)?, "no file of the project was changed".to_owned()),
        claim(
            extraction.total_input() > 0,
            format!("it cost {} tokens beside the {} of the session", total(&extraction), total(&session)),
        ),
    ])
}

/// The calls of `memory` that are in the history of a session.
async fn memory_calls(place: &Place, id: &str) -> Result<Vec<(ToolCall, ToolResult)>, CliError> {
    let id = SessionId::new(id)?;
    let data = &place.data;
    let missing = || CliError::NoSession { session: id.clone(), data: data.clone() };
    let store = assemble::stored(data)?.ok_or_else(missing)?;
    let record = store.load(&id).await?.ok_or_else(missing)?;
    let (history, _) = History::load(&record.entries)?;
    let pairs = history.entries().iter().filter_map(Entry::as_step).flat_map(|step| step.pairs());
    let of_memory = pairs.filter(|(call, _)| call.name == agent_memory::MEMORY_TOOL);
    Ok(of_memory.map(|(call, result)| (call.clone(), result.clone())).collect())
}

/// The tokens of the first session, and of the run that looked at it.
async fn spent(place: &Place) -> Result<(Usage, Usage), CliError> {
    let id = SessionId::new(SAID[0].0)?;
    let data = &place.data;
    let missing = || CliError::NoSession { session: id.clone(), data: data.clone() };
    let store = assemble::stored(data)?.ok_or_else(missing)?;
    let state = store.state(&id).await?.ok_or_else(missing)?;
    let mut extraction = Usage::default();
    AutoFile::new(data, &id).read()?.usage.values().for_each(|usage| extraction += usage);
    Ok((state.checkpoint.usage, extraction))
}

fn total(usage: &Usage) -> u64 {
    usage.total_input() + usage.output
}

/// Whether the project is as it was made.
#[expect(clippy::disallowed_methods, reason = "looks at the workspace that the demo made")]
fn unchanged(place: &Place) -> Result<bool, CliError> {
    let workspace = &place.workspace;
    let file = |cause| CliError::File { path: workspace.clone(), cause };
    let count = workspace.read_dir().map_err(file)?.count();
    let is_same = |(name, text): &(&str, &str)| {
        std::fs::read_to_string(workspace.join(name)).is_ok_and(|now| now == *text)
    };
    Ok(count == PROJECT.len() && PROJECT.iter().all(is_same))
}
