//! The agent of a scenario, put together as any program would put it together.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use agent::prompt::{Date, Fragment, Layer, Session, Static, Value};
use agent::{
    Agent, AgentBuilder, ApiKey, COMPLETE_TOOL, Catalog, Clock, HttpConfig, HttpModel, ModelProfile,
    PermissionMode, Permissions, SqliteStore, StopConditionExt, ToolSet, Vendor, WithModel, builtins,
    step_count, tool_called,
};

use super::Job;
use super::clock::StepClock;
use super::paced::Paced;
use super::prepare::pipeline;
use super::tool::tools;
use crate::cmd::cache::sabotage::Sabotage;
use crate::cmd::cache::scenario::{Ability, FragmentSpec, Holds, Scenario, WindowSpec};
use crate::cmd::cache::world;
use crate::error::CliError;

pub(super) fn assemble(job: &Job, clock: &StepClock) -> Result<Agent, CliError> {
    let Job { scenario, .. } = job;
    let steps = u32::try_from(scenario.pauses().len()).unwrap_or(u32::MAX);
    let models = Models { job, clock, asked: Arc::new(AtomicUsize::new(job.answered)) };
    let mut builder = Agent::builder()
        .model(models.named(&scenario.model)?)
        .prepare(pipeline(scenario, &models)?)
        .store(SqliteStore::open(Path::new(&job.data))?)
        .tools(tool_set(job)?)
        .settings(scenario.settings.clone())
        .permissions(Permissions { mode: PermissionMode::Bypass, ..Permissions::default() })
        .stop(step_count(steps.saturating_add(1)).or(tool_called(COMPLETE_TOOL)))
        .clock(clock.clone());
    if let Some(model) = &scenario.summary_model {
        builder = builder.summary_model(models.named(model)?);
    }
    for fragment in &scenario.system {
        builder = add(builder, fragment)?;
    }
    for it in &scenario.sabotage {
        if let Some(text) = volatile(it, clock) {
            let value = Value::declared(text, "a scenario that must fail");
            builder = builder.fragment(Fragment::<Static>::new(Layer::Auto, "now", value)?);
        }
    }
    if scenario.tell_date {
        builder = builder.tell_date();
    }
    Ok(builder.build()?)
}

fn add(builder: AgentBuilder<WithModel>, spec: &FragmentSpec) -> Result<AgentBuilder<WithModel>, CliError> {
    let (layer, key, words) = (spec.layer, spec.key.as_str(), spec.words());
    Ok(match spec.stability {
        Holds::Static => {
            let value = Value::declared(words, "a scenario's text is the same in every process");
            builder.fragment(Fragment::<Static>::new(layer, key, value)?)
        }
        Holds::Session => builder.fragment(Fragment::<Session>::new(layer, key, Value::session(words))?),
    })
}

/// What does not belong into a static block.
fn volatile(sabotage: &Sabotage, clock: &StepClock) -> Option<String> {
    let seconds = clock.now_ms().div_euclid(1_000).rem_euclid(24 * 3_600);
    if *sabotage == Sabotage::ClockInSystem {
        return Some(format!("It is {:02}:{:02}:{:02}.", seconds / 3_600, seconds / 60 % 60, seconds % 60));
    }
    let date = Date::at(clock.now_ms(), clock.utc_offset_minutes());
    date.filter(|_| *sabotage == Sabotage::DateInSystem).map(|date| format!("Today is {date}."))
}

fn tool_set(job: &Job) -> Result<ToolSet, CliError> {
    let mut set = ToolSet::builder();
    let mut deferred = Vec::new();
    for spec in &job.scenario.tools {
        let mut tools = tools(spec).map_err(agent::ToolSetError::from)?;
        if spec.deferred {
            // In which order they come is no matter: they are sorted.
            let turn = job.turned % tools.len().max(1);
            tools.rotate_left(turn);
            deferred.append(&mut tools);
            continue;
        }
        if !spec.dynamic {
            set = set.extend(tools);
            continue;
        }
        // They come as they do from a server that keeps no order.
        let turn = job.turned % tools.len().max(1);
        tools.rotate_left(turn);
        let as_they_come = job.scenario.sabotage.contains(&Sabotage::ToolsAsTheyCome);
        set = if as_they_come { set.extend(tools) } else { set.extend_sorted(tools) };
    }
    Ok(set.extend(builtins::deferred(deferred)).freeze()?)
}

/// The models of a scenario: they share one clock and one count of requests.
pub(super) struct Models<'a> {
    job: &'a Job,
    clock: &'a StepClock,
    asked: Arc<AtomicUsize>,
}

impl Models<'_> {
    /// A model by `PROVIDER/NAME`.
    pub(super) fn named(&self, given: &str) -> Result<Paced, CliError> {
        let Scenario { sabotage, window, rules, lacks, .. } = &self.job.scenario;
        let unknown = || CliError::Model { given: given.to_owned() };
        let (vendor, model) = given.split_once('/').ok_or_else(unknown)?;
        let vendor = Vendor::named(vendor).ok_or_else(unknown)?;
        let mut profile = Catalog::builtin().profile(&vendor.dialect.provider, model);
        if rules.is_some() {
            profile.cache = world::rules(&self.job.scenario)?.profile();
        }
        if let Some(WindowSpec { context, output }) = *window {
            profile = ModelProfile { context_window: context, max_output: output, ..profile };
        }
        profile.turn_scoped_system &= !lacks.contains(&Ability::TurnScopedSystem);
        profile.forced_tool_choice &= !lacks.contains(&Ability::ForcedToolChoice);
        let config = HttpConfig {
            vendor,
            base_url: Some(self.job.base_url.clone()),
            api_key: ApiKey::new("scenario"),
            model: model.to_owned(),
            profile: Some(profile),
            ..HttpConfig::default()
        };
        Ok(Paced {
            model: HttpModel::new(config)?,
            clock: self.clock.clone(),
            pauses: self.job.scenario.pauses(),
            asked: self.asked.clone(),
            stop_before: self.job.stop_before,
            sabotage: sabotage.clone(),
        })
    }
}
