//! `agent sim`: the simulated provider as a program, for agents in any language.

use std::io::{Write, stderr, stdout};
use std::path::Path;
use std::process::ExitCode;

use agent_cache::RuleBook;
use agent_testkit::{Pick, Script, Served, SimCache, SimOptions, SimProvider, Source};

use super::cache::check_provider;
use super::run::Signals;
use crate::args::SimArgs;
use crate::error::CliError;
use crate::show::plain;

pub(crate) async fn sim(args: SimArgs) -> Result<ExitCode, CliError> {
    // Before anything is said, so that a signal that answers it is not missed.
    let mut signals = Signals::listen().map_err(CliError::Runtime)?;
    let sim = SimProvider::start_with(source(args.script.as_deref())?, options(&args)?)?;
    greet(&sim.base_url(), args.json)?;
    let mut told = 0;
    loop {
        tokio::select! {
            served = sim.served(told) => {
                tell(&served, args.json)?;
                told += 1;
            }
            () = signals.next() => break,
        }
    }
    let rest = sim.all_served().split_off(told);
    rest.iter().try_for_each(|served| tell(served, args.json))?;
    sim.shutdown().await;
    Ok(ExitCode::SUCCESS)
}

fn source(script: Option<&Path>) -> Result<Source, CliError> {
    let Some(path) = script else { return Ok(Source::Echo) };
    let text = read(path)?;
    let script = Script::parse(&text).map_err(|cause| CliError::Script { path: path.into(), cause })?;
    Ok(Source::Script(script))
}

fn options(args: &SimArgs) -> Result<SimOptions, CliError> {
    let mut rules = RuleBook::builtin();
    if let Some(path) = &args.rules {
        let table = rules.with_overrides(&read(path)?);
        rules = table.map_err(|cause| CliError::Rules { path: path.clone(), cause })?;
    }
    check_provider(args.provider.as_deref(), &rules)?;
    Ok(SimOptions {
        pick: if args.in_order { Pick::InOrder } else { Pick::ByHistory },
        cache: SimCache { rules, provider: args.provider.clone(), ..SimCache::default() },
        context_window: args.context_window,
        port: args.port,
        ..SimOptions::default()
    })
}

#[expect(clippy::disallowed_methods, reason = "the files the user names, outside any workspace")]
fn read(path: &Path) -> Result<String, CliError> {
    std::fs::read_to_string(path).map_err(|cause| CliError::File { path: path.into(), cause })
}

/// Where it listens, and how each SDK is pointed at it.
fn greet(base_url: &str, json: bool) -> Result<(), CliError> {
    let mut out = stdout();
    if json {
        let line = serde_json::json!({ "type": "sim.listening", "base_url": base_url });
        writeln!(out, "{line}")?;
    } else {
        writeln!(
            out,
            "Simulated provider at {base_url} (any key will do; Ctrl-C ends it)\n\
             \x20 Anthropic Messages       ANTHROPIC_BASE_URL={base_url} ANTHROPIC_API_KEY=any\n\
             \x20 OpenAI Chat Completions  OPENAI_BASE_URL={base_url}/v1 OPENAI_API_KEY=any   client.chat.completions\n\
             \x20 OpenAI Responses         OPENAI_BASE_URL={base_url}/v1 OPENAI_API_KEY=any   client.responses\n\
             \x20 this program             ANTHROPIC_API_KEY=any agent run --base-url {base_url} \"…\""
        )?;
    }
    Ok(out.flush()?)
}

fn tell(served: &Served, json: bool) -> Result<(), CliError> {
    if json {
        #[derive(serde::Serialize)]
        struct Line<'s> {
            r#type: &'static str,
            #[serde(flatten)]
            served: &'s Served,
        }
        let line = serde_json::to_string(&Line { r#type: "sim.served", served })?;
        writeln!(stdout(), "{line}")?;
        return Ok(stdout().flush()?);
    }
    // Nobody may be reading: that is no reason to stop serving.
    drop(writeln!(stderr(), "{}", line(served)));
    Ok(())
}

/// Method, path, model, and tokens or the words of the error.
fn line(served: &Served) -> String {
    let Served { method, path, model, status, usage, error, refused, .. } = served;
    let model = if model.is_empty() { "-" } else { model };
    let head = one_line(&format!("{method} {path} {model}"));
    let Some(status) = status else { return format!("{head}  closed") };
    match (usage, error) {
        (Some(usage), _) => {
            let written = match (usage.cache_write_5m, usage.cache_write_1h) {
                (short, 0) => short.to_string(),
                (short, long) => format!("{short} short + {long} long"),
            };
            let (read, input, output) = (usage.cache_read, usage.input, usage.output);
            format!("{head}  {status}  read {read} written {written} new {input} out {output}")
        }
        (None, Some(words)) => {
            let who = if *refused { "refused" } else { "as the script says" };
            format!("{head}  {status} {who}: {}", one_line(words))
        }
        (None, None) => format!("{head}  {status}"),
    }
}

fn one_line(text: &str) -> String {
    plain(text).split_whitespace().collect::<Vec<_>>().join(" ")
}
