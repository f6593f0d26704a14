//! The want for a model's answer: attempts until one is whole, or until trying again makes no sense.

use std::time::Duration;

use agent_core::{EventBody, ModelError, ModelErrorKind, Retried, Usage};
use agent_prepare::Cause;
use agent_turn::Report;
use tracing::Instrument;

use super::Drive;
use super::compact::Looked;
use super::model::{Failure, Tried};
use crate::HarnessError;
use crate::cache::Answered;
use crate::retry::{RetryBudget, RetryPolicy};

/// The attempts of one model call. Every failure, whatever it is, goes through [`Tries::next`].
struct Tries {
    /// The attempt at work, from 0.
    number: u32,
    /// How many streams of the call broke.
    broken: u32,
    /// Whether the conversation was made smaller for it.
    shortened: bool,
    mode: Mode,
}

/// How the attempts of a call are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// As a stream, as most calls always are.
    Streamed,
    /// As one whole body, this once.
    Whole,
    /// As a stream again.
    StreamedAgain,
}

/// What follows a failed attempt.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Again { wait: Duration, mode: Mode },
    Stop(Why),
}

/// Why a call is not tried again.
#[derive(Debug, PartialEq, Eq)]
enum Why {
    /// The same request would fail again.
    Final,
    /// The call had all its attempts.
    Attempts,
    /// The run had all its retries.
    Budget(u32),
    /// The provider asks for a longer wait than this.
    Wait { asked: Duration, most: Duration },
}

impl Drive {
    pub(super) async fn call_model(&mut self) -> Result<(), HarnessError> {
        self.voided = Usage::default();
        // Attempts of a process that was lost count.
        let mut tries =
            Tries { number: self.live.retried.step, broken: 0, shortened: false, mode: Mode::Streamed };
        let mut asked = self.encode(true);
        let report = loop {
            let asked_ms = self.config.clock.now_ms();
            let call = self.attempt(tries.number, asked.request.clone());
            let Tried { answer, usage, cleared } = call.instrument(span()).await;
            self.pay(&usage);
            self.config.process.pay(self.model().profile(), 1, &usage);
            self.show_answered(&answer);
            let before = tries.mode;
            match answer {
                Ok(report) => {
                    let model = self.model().clone();
                    let (body, front, profile) = (&asked.request.body, &asked.front, model.profile());
                    let is_edited = self.is_edited(&report, cleared);
                    let call = Answered { usage: &usage, body, front, profile, asked_ms, is_edited };
                    self.note_answer(&report, &call);
                    if matches!(report, Report::Response(_)) {
                        // An answer that broke off does not get to say it.
                        self.tell_cleared(cleared, &usage);
                    }
                    break report;
                }
                Err(failure) if tries.may_shorten(&failure) => {
                    if let Some(report) = self.shorten(&mut tries, failure, usage).await? {
                        break report;
                    }
                    asked = self.encode(tries.mode != Mode::Whole);
                }
                Err(failure) => {
                    if let Some(report) = self.failed(&mut tries, failure, usage).await? {
                        break report;
                    }
                }
            }
            if tries.mode != before {
                asked = self.encode(tries.mode != Mode::Whole);
            }
        };
        self.live.retried.step = 0;
        self.recovered.has_response = false;
        self.report(report).await
    }

    /// Makes the conversation smaller, once a call, because the provider finds it too long (requirement P10); or gives
    /// what the turn is told. The retry is none of the policy's: the next request is another one.
    async fn shorten(
        &mut self,
        tries: &mut Tries,
        failure: Failure,
        usage: Usage,
    ) -> Result<Option<Report>, HarnessError> {
        self.voided += &usage;
        self.seen.beside += &usage;
        tries.shortened = true;
        let attempt = tries.number;
        self.tell_void(attempt, &failure, failure.error.kind.as_str());
        let error = failure.error;
        let refused = match Box::pin(self.compact(Cause::Overflow)).await? {
            Looked::Stopped => return Ok(Some(Report::Aborted(None))),
            // It only fits when something was made smaller.
            Looked::Fits => {
                let ModelError { kind, message, .. } = error;
                self.out.stage(EventBody::StepRetrying { attempt, kind, message, wait_ms: 0, usage });
                tries.number += 1;
                self.live.retried.step = tries.number;
                self.write().await?;
                return Ok(None);
            }
            Looked::Blocked(words) => instead(words.text.as_str(), error),
            Looked::Refused(cause) => instead(&cause.to_string(), error),
        };
        Ok(Some(self.give_up(refused)))
    }

    /// Tells what came of a failed attempt and waits for the next one; or gives what the turn is told.
    async fn failed(
        &mut self,
        tries: &mut Tries,
        failure: Failure,
        usage: Usage,
    ) -> Result<Option<Report>, HarnessError> {
        self.voided += &usage;
        self.seen.beside += &usage;
        let (policy, attempt) = (self.config.retry, tries.number);
        let next = tries.next(&policy, &failure, &self.retries, self.config.jitter.fraction());
        let falls_back = matches!(next, Next::Again { mode: Mode::Whole, .. });
        let reason = if falls_back { STREAMING_FALLBACK } else { failure.error.kind.as_str() };
        self.tell_void(attempt, &failure, reason);
        let error = failure.error;
        match next {
            Next::Stop(why) => Ok(Some(self.give_up(why.said_of(error, attempt + 1)))),
            Next::Again { wait, mode } => {
                let ModelError { kind, message, .. } = error;
                let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                tracing::warn!(attempt, kind = kind.as_str(), wait_ms, "the model call is tried again");
                self.out.stage(EventBody::StepRetrying { attempt, kind, message, wait_ms, usage });
                tries.number += 1;
                tries.mode = mode;
                self.live.retried =
                    Retried { step: tries.number, turn: self.live.retried.turn.saturating_add(1) };
                // Its tokens are paid for, and it counts: a commit keeps both should the process die while it waits.
                self.write().await?;
                Ok(self.wait(wait).await)
            }
        }
    }

    /// Tells that what an attempt streamed is void, where it streamed anything.
    fn tell_void(&mut self, attempt: u32, failure: &Failure, reason: &str) {
        if failure.told {
            let (message, reason) = (failure.message.clone(), reason.to_owned());
            self.out.stage(EventBody::Tombstone { attempt, message, reason });
        }
    }

    fn give_up(&mut self, error: ModelError) -> Report {
        self.error = Some(error.clone());
        let (kind, message) = (error.kind, error.message.clone());
        let usage = std::mem::take(&mut self.voided);
        self.out.stage(EventBody::StepFailed { kind, message, usage });
        Report::Failed(error)
    }

    /// Waits, or learns that the run is stopped. What was streamed is void, so there is nothing to keep then.
    async fn wait(&self, wait: Duration) -> Option<Report> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Some(Report::Aborted(None)),
            () = tokio::time::sleep(wait) => None,
        }
    }
}

impl Tries {
    /// Whether the failure says that the conversation is too long, and nothing was done about it yet.
    fn may_shorten(&self, failure: &Failure) -> bool {
        failure.error.kind == ModelErrorKind::ContextOverflow && !self.shortened
    }

    /// Decides what follows a failure. A retry is taken out of the run's budget.
    fn next(&mut self, policy: &RetryPolicy, failure: &Failure, budget: &RetryBudget, fraction: f64) -> Next {
        let error = &failure.error;
        let is_broken = self.mode != Mode::Whole && broke(failure);
        self.broken += u32::from(is_broken);
        let may_fall_back = self.mode == Mode::Streamed && policy.stream_failures > 0;
        // A stream that cannot be read may be readable as a whole, so it is on the way there.
        let unreadable = error.kind == ModelErrorKind::Protocol && is_broken && may_fall_back;
        if !error.retryable && !unreadable {
            return Next::Stop(Why::Final);
        }
        let asked = error.retry_after_ms.map(Duration::from_millis);
        if let Some(asked) = asked.filter(|asked| *asked > policy.max_retry_after) {
            return Next::Stop(Why::Wait { asked, most: policy.max_retry_after });
        }
        if self.number.saturating_add(1) >= policy.max_attempts {
            return Next::Stop(Why::Attempts);
        }
        if !budget.take() {
            return Next::Stop(Why::Budget(policy.run_retries));
        }
        let mode = match self.mode {
            Mode::Streamed if may_fall_back && self.broken >= policy.stream_failures => Mode::Whole,
            Mode::Streamed => Mode::Streamed,
            Mode::Whole | Mode::StreamedAgain => Mode::StreamedAgain,
        };
        Next::Again { wait: policy.wait(self.number, asked, fraction), mode }
    }
}

/// Whether a stream broke, rather than that none came about.
fn broke(failure: &Failure) -> bool {
    match failure.error.kind {
        ModelErrorKind::Interrupted => true,
        ModelErrorKind::Transport | ModelErrorKind::Protocol => failure.began,
        ModelErrorKind::ContextOverflow
        | ModelErrorKind::RateLimited
        | ModelErrorKind::Overloaded
        | ModelErrorKind::Authentication
        | ModelErrorKind::Permission
        | ModelErrorKind::InvalidRequest
        | ModelErrorKind::QuotaExhausted
        | ModelErrorKind::Cancelled => false,
    }
}

impl Why {
    /// The failure with how often it was tried and why no more.
    fn said_of(&self, error: ModelError, attempts: u32) -> ModelError {
        let s = if attempts == 1 { "" } else { "s" };
        let why = match self {
            Self::Final => "the same request would fail again".to_owned(),
            Self::Attempts => "`max_attempts` of the retry policy allows no more".to_owned(),
            Self::Budget(most) => {
                format!("the run has used its {most} retries (`run_retries` of the retry policy)")
            }
            Self::Wait { asked, most } => format!(
                "the provider asks to come back in {}, later than the {} that are waited for (`max_retry_after` of the retry policy)",
                spoken(*asked),
                spoken(*most)
            ),
        };
        let message = format!("{} (given up after {attempts} attempt{s}: {why})", error.message);
        ModelError { message, ..error }
    }
}

/// A failure with why nothing could be done about it, and the provider's own words behind that.
fn instead(words: &str, error: ModelError) -> ModelError {
    let message = format!("{words}\n\nThe provider had said: {}", error.message);
    ModelError { message, ..error }
}

/// A time as people say it.
fn spoken(time: Duration) -> String {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds} s"),
        (0, _) => format!("{minutes} min {seconds} s"),
        (_, _) => format!("{hours} h {minutes} min"),
    }
}

fn span() -> tracing::Span {
    tracing::info_span!(
        "model_call",
        attempt = tracing::field::Empty,
        finish = tracing::field::Empty,
        error = tracing::field::Empty,
        input = tracing::field::Empty,
        output = tracing::field::Empty,
        cache_read = tracing::field::Empty,
        cache_write = tracing::field::Empty,
    )
}

const STREAMING_FALLBACK: &str = "streaming_fallback";
