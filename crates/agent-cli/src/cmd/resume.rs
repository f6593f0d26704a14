//! `agent resume`: take up a session's open turn, with a reply to what it waits for.

use std::io::stdout;
use std::process::ExitCode;

use agent::{Handed, Reply, RequestId, Session, SessionId, TerminalReason};
use agent_core::{Layer, RawJson, ToolOutput};

use super::run;
use crate::args::{AskMode, ReplyArgs, ResumeArgs};
use crate::assemble;
use crate::env;
use crate::error::CliError;
use crate::show::{JsonScreen, Screen, TextScreen};
use crate::tell;

pub(crate) async fn resume(mut args: ResumeArgs, key: Option<String>) -> Result<ExitCode, CliError> {
    let id = SessionId::new(args.id.clone())?;
    let reply = args.reply.said()?;
    let data = env::data_dir(args.agent.data.data_dir.clone())?;
    let missing = || CliError::NoSession { session: id.clone(), data: data.clone() };
    let store = assemble::stored(&data)?.ok_or_else(missing)?;
    agent::Store::state(&store, &id).await?.ok_or_else(missing)?;
    drop(store);
    let usual = if assemble::is_on_terminal() { AskMode::Prompt } else { AskMode::Later };
    args.agent.ask.get_or_insert(usual);
    assemble::check_workspace(&args.agent, &id).await?;
    let (agent, extractor) = assemble::agent(&args.agent, key)?;
    let session = agent.session(id);
    if args.json {
        let screen = &mut JsonScreen(stdout());
        let code = go_on(&session, reply, &args, screen).await;
        run::leave(&agent, extractor.as_ref(), code, screen).await
    } else {
        let screen = &mut TextScreen::new(stdout());
        let code = go_on(&session, reply, &args, screen).await;
        run::leave(&agent, extractor.as_ref(), code, screen).await
    }
}

async fn go_on(
    session: &Session,
    reply: Option<(RequestId, Reply)>,
    args: &ResumeArgs,
    screen: &mut impl Screen,
) -> Result<ExitCode, CliError> {
    let refused = |error| CliError::of_run(error, &args.agent);
    if args.reply.abandon {
        return abandon(session, screen).await;
    }
    let run = match reply {
        None if args.reply.again => session.resume_again().await.map_err(refused)?,
        None => session.resume().await.map_err(refused)?,
        Some((request, reply)) => match session.respond(&request, reply).await.map_err(refused)? {
            Handed::Run(run) => run,
            Handed::Elsewhere => {
                tell::note("the reply is stored; another process has the session and goes on with it")?;
                return Ok(ExitCode::SUCCESS);
            }
        },
    };
    run::to_the_end(session, run, &args.agent, screen).await
}

/// Ends the turn, which is what was asked for.
async fn abandon(session: &Session, screen: &mut impl Screen) -> Result<ExitCode, CliError> {
    let run = session.abandon().await?;
    let Some(end) = run::show(run, screen).await? else { return Ok(run::stopped()) };
    screen.end(&end, session.id().as_str())?;
    Ok(if end.reason == TerminalReason::Aborted { ExitCode::SUCCESS } else { run::code(&end.reason) })
}

impl ReplyArgs {
    /// What is replied, and to which request.
    fn said(&self) -> Result<Option<(RequestId, Reply)>, CliError> {
        let to = |id: &str, reply| Ok(Some((RequestId::given(id), reply)));
        if let Some(id) = &self.approve {
            return to(id, Reply::Allow);
        }
        if let Some(id) = &self.always {
            return to(id, Reply::Always(Layer::Session));
        }
        if let Some(id) = &self.signed_in {
            return to(id, Reply::SignedIn);
        }
        match (&self.decline, &self.answer, &self.edit, &self.result) {
            (Some(said), ..) => to(&said[0], Reply::Decline(said.get(1).cloned())),
            (_, Some(said), ..) => to(&said[0], Reply::Answer(said[1..].to_vec())),
            (_, _, Some(said), _) => to(&said[0], Reply::Edit(json(&said[1])?)),
            (_, _, _, Some(said)) => to(&said[0], Reply::Output(ToolOutput::Json(json(&said[1])?))),
            (None, None, None, None) => Ok(None),
        }
    }
}

fn json(text: &str) -> Result<RawJson, CliError> {
    RawJson::parse(text).map_err(|cause| CliError::ToolInput { cause })
}
