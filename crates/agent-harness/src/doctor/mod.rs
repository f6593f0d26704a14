//! The ten-point self-check of an assembled agent, each item with what was looked at (requirement V5).

mod also;
mod breakpoints;
mod cancellation;
mod checkup;
mod descriptions;
mod first_step;
mod flaky;
mod outputs;
mod permissions;
mod persistence;
mod rehearsal;
mod stops;
mod system;

use agent_core::Diagnostic;
use agent_prompt::Assembled;

use crate::changes::model_name;
use crate::config::HarnessConfig;
use rehearsal::{Rehearsal, id};

pub use checkup::{CheckStatus, Checkup, Finding};

/// Examines an agent as it would run. No model is asked and no session of the user's is touched.
///
/// Its parts are put to work in rehearsals: the real driver, the agent's own prompt, sources, encoder, cards and
/// policies, with a model that answers from a list, tools that do nothing, and sessions in memory. What else happens:
/// tools that only read are called once with `{}` and a cancelled token, and the agent's store gets one session
/// `agent-doctor-…`, which is deleted again.
pub async fn examine(config: &HarnessConfig) -> Checkup {
    let items = vec![
        system::examine(config).await,
        breakpoints::examine(config).await,
        first_step::examine(config).await,
        permissions::examine(config).await,
        descriptions::examine(&config.tools),
        cancellation::examine(config).await,
        outputs::examine(config).await,
        stops::examine(config),
        persistence::examine(config).await,
        Finding::absent(
            "background",
            "background work after the turn",
            "nothing works after a turn yet: there is no memory that could learn from it",
        ),
    ];
    Checkup { model: model_name(config.model.profile()), items, also: also::examine(config).await }
}

/// The prompt of a session that begins, and what is to be told of it.
async fn assembled(config: &HarnessConfig) -> Result<Assembled, String> {
    let id = id().map_err(|error| error.to_string())?;
    let prompt = config.whole_prompt(&id).await.map_err(|error| error.to_string())?;
    Ok(prompt.assemble())
}

fn told(diagnostic: &Diagnostic) -> String {
    format!("{}: {}", diagnostic.what, diagnostic.why)
}

/// Under which name the cache rules of a provider stand: one that speaks two formats has a tag for each.
fn rules_of(provider: &str) -> &str {
    if provider.starts_with("openai-") { "openai" } else { provider }
}
