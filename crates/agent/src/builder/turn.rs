//! How a turn of an agent runs and ends, and what comes behind it.

use std::sync::Arc;
use std::time::Duration;

use agent_core::{Heard, RequestSettings};
use agent_harness::{AfterStep, AfterTurn, Clock, NotesSource, Process, RetryPolicy};
use agent_turn::StopCondition;

use super::AgentBuilder;

impl<M> AgentBuilder<M> {
    /// Output limit, sampling, thinking.
    pub fn settings(mut self, settings: RequestSettings) -> Self {
        self.parts.settings = Some(settings);
        self
    }

    /// When a turn ends although the model would go on; 40 steps or the tool `complete` when not given.
    ///
    /// It replaces both. To keep them beside your own: `step_count(DEFAULT_STEPS).or(tool_called(COMPLETE_TOOL)).or(mine)`.
    pub fn stop(mut self, stop: impl StopCondition + 'static) -> Self {
        self.parts.stop = Some(Arc::new(stop));
        self
    }

    /// What is done behind each turn that was brought to its end; nobody waits for it. Drain it before the program ends, with
    /// [`crate::Agent::drain`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use agent::{Agent, RoundSummaries};
    /// # use agent_testkit::{Reply, ScriptedModel};
    /// # let model = ScriptedModel::new(vec![Reply::text("Hello!")]);
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let agent = Agent::builder().model(model).after_turn(RoundSummaries::new()).build()?;
    /// let left = agent.drain(Duration::from_secs(10)).await;
    /// assert_eq!(left.stopped, 0);
    /// # Ok::<(), agent::BuildError>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn after_turn(mut self, work: impl AfterTurn + 'static) -> Self {
        self.parts.after_turn.push(Arc::new(work));
        self
    }

    /// Has something done behind each step that was committed, beside the turn (requirement L11); may be called several times.
    pub fn after_step(mut self, work: impl AfterStep + 'static) -> Self {
        self.parts.after_step.push(Arc::new(work));
        self
    }

    /// Where the rolling notes on a session are read when its context is about to be compacted (requirement C2).
    pub fn notes(mut self, source: impl NotesSource + 'static) -> Self {
        self.parts.notes = Some(Arc::new(source));
        self
    }

    /// The process that the agent runs in, where several agents share one (requirement K2); it has one of its own otherwise.
    pub fn process(mut self, process: Process) -> Self {
        self.parts.process = process;
        self
    }

    /// When a message is heard that is sent while the turn waits for a reply: after it, when not given.
    pub fn while_waiting(mut self, heard: Heard) -> Self {
        self.parts.while_waiting = Some(heard);
        self
    }

    /// How long a parked turn waits for a reply; for ever when not given.
    pub fn request_lifetime(mut self, lifetime: Duration) -> Self {
        self.parts.request_lifetime = Some(lifetime);
        self
    }

    /// When a failed model call is tried again; [`RetryPolicy::default`] when not given.
    ///
    /// ```
    /// use std::time::Duration;
    /// use agent::{Agent, RetryPolicy};
    /// # use agent_testkit::{Reply, ScriptedModel};
    /// # let model = ScriptedModel::new(vec![Reply::text("Hello!")]);
    ///
    /// let agent = Agent::builder()
    ///     .model(model)
    ///     .retry(RetryPolicy {
    ///         max_attempts: 8,
    ///         max_retry_after: Duration::from_secs(600),
    ///         ..RetryPolicy::default()
    ///     })
    ///     .build()?;
    /// # Ok::<(), agent::BuildError>(())
    /// ```
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.parts.retry = Some(retry);
        self
    }

    /// How often an open turn is taken up after the worker that had it was lost; 5 times when not given, and
    /// [`u32::MAX`] is as often as it takes. Then a person has to say that it goes on
    /// ([`Session::resume_again`](crate::Session::resume_again)) or ends ([`Session::abandon`](crate::Session::abandon)).
    pub fn max_recoveries(mut self, most: u32) -> Self {
        self.parts.max_recoveries = Some(most);
        self
    }

    /// The clock; the machine's when not given.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.parts.clock = Some(Arc::new(clock));
        self
    }
}
