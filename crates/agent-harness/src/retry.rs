//! How often and when a failed model call is tried again.

use std::fmt::Debug;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// When a failed model call is tried again (requirement M10).
///
/// These are all the retries there are: the transports of `agent-providers` send each request once, so one call of the
/// model is never more than `max_attempts` requests. What is tried again is decided by the failure:
/// [`agent_core::ModelError::retryable`], and an answer that broke off or could not be read in the middle of its stream.
///
/// ```
/// use std::time::Duration;
/// use agent_harness::RetryPolicy;
///
/// let patient = RetryPolicy { max_attempts: 10, max_delay: Duration::from_secs(60), ..RetryPolicy::default() };
/// assert_eq!(patient.wait(0, None, 0.5), Duration::from_millis(500));
/// assert_eq!(patient.wait(9, None, 0.5), Duration::from_secs(30));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..Default")]
pub struct RetryPolicy {
    /// Most requests of one model call, the first one included; 0 counts as 1. By default 5.
    pub max_attempts: u32,
    /// The longest wait before the first retry; it doubles with each one. By default 1 s.
    pub base_delay: Duration,
    /// The longest wait that grows out of doubling. By default 30 s.
    pub max_delay: Duration,
    /// The longest wait a provider may ask for. When it asks for more, the call fails at once and the error says when to
    /// come back. By default 120 s.
    pub max_retry_after: Duration,
    /// Most retries of a whole run, shared by all its model calls. By default 20.
    pub run_retries: u32,
    /// After how many broken streams of one call an attempt is made without streaming; once a call, and 0 for never. By
    /// default 2.
    pub stream_failures: u32,
}

/// Where the spread of waiting times comes from. Tests give numbers of their own.
pub trait Jitter: Debug + Send + Sync {
    /// A number from 0 to 1; what is outside counts as the nearer one.
    fn fraction(&self) -> f64;
}

/// Chance, as the standard library seeds its hashers.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "a value to write down, with nothing in it")]
pub struct RandomJitter;

/// The retries a run has left; clones share them.
#[derive(Debug, Clone)]
pub(crate) struct RetryBudget(Arc<AtomicU32>);

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 5,
            base_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(30),
            max_retry_after: Duration::from_secs(120),
            run_retries: 20,
            stream_failures: 2,
        }
    }
}

impl RetryPolicy {
    /// One request a call and no retry.
    pub fn never() -> Self {
        Self { max_attempts: 1, run_retries: 0, ..Self::default() }
    }

    /// How long to wait before a retry, counted from 0: exponential with full jitter, that is a `fraction` of
    /// `base_delay` doubled so many times, at most of `max_delay`.
    ///
    /// What the provider asks for is waited in full, and up to `base_delay` longer, so that clients who were told the
    /// same moment do not come back together.
    pub fn wait(&self, retry: u32, retry_after: Option<Duration>, fraction: f64) -> Duration {
        let fraction = if fraction.is_nan() { 0.0 } else { fraction.clamp(0.0, 1.0) };
        let doubled =
            2_u32.checked_pow(retry).map_or(Duration::MAX, |times| self.base_delay.saturating_mul(times));
        match retry_after {
            Some(asked) => asked.saturating_add(part(self.base_delay, fraction)),
            None => part(doubled.min(self.max_delay), fraction),
        }
    }
}

/// A part of a time; of the longest ones a float cannot tell the end.
fn part(whole: Duration, fraction: f64) -> Duration {
    Duration::try_from_secs_f64(whole.as_secs_f64() * fraction).unwrap_or(whole)
}

impl Jitter for RandomJitter {
    fn fraction(&self) -> f64 {
        // Each state has keys of its own, so that its hash of nothing is a new number each time.
        let drawn = RandomState::new().build_hasher().finish();
        drawn as f64 / u64::MAX as f64
    }
}

impl RetryBudget {
    pub(crate) fn new(policy: &RetryPolicy) -> Self {
        Self(Arc::new(AtomicU32::new(policy.run_retries)))
    }

    /// What is left when so many were taken before.
    pub(crate) fn without(policy: &RetryPolicy, taken: u32) -> Self {
        Self(Arc::new(AtomicU32::new(policy.run_retries.saturating_sub(taken))))
    }

    /// Takes one retry, if there is one left.
    pub(crate) fn take(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_cap_and_are_spread() {
        let policy = RetryPolicy::default();
        let check = |retry: u32, fraction: f64, expect: f64| {
            assert_eq!(
                policy.wait(retry, None, fraction),
                Duration::from_secs_f64(expect),
                "{retry} {fraction}"
            );
        };
        for (retry, most) in [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0].into_iter().enumerate() {
            let retry = u32::try_from(retry).unwrap();
            check(retry, 0.0, 0.0);
            check(retry, 0.5, most / 2.0);
            check(retry, 1.0, most);
        }
        check(u32::MAX, 1.0, 30.0);
        check(0, f64::NAN, 0.0);
        check(0, 7.0, 1.0);
        check(0, -7.0, 0.0);
        let most = RetryPolicy { base_delay: Duration::MAX, max_delay: Duration::MAX, ..policy };
        assert_eq!(most.wait(3, None, 0.0), Duration::ZERO);
        assert_eq!(most.wait(3, None, 1.0), Duration::MAX);
    }

    #[test]
    fn what_the_provider_asks_for_is_waited_in_full() {
        let policy = RetryPolicy::default();
        let asked = Some(Duration::from_millis(34_400));
        assert_eq!(policy.wait(0, asked, 0.0), Duration::from_millis(34_400));
        assert_eq!(policy.wait(4, asked, 1.0), Duration::from_millis(35_400));
    }

    #[test]
    fn chance_is_between_its_bounds_and_not_always_the_same() {
        let drawn: Vec<f64> = (0..200).map(|_| RandomJitter.fraction()).collect();
        assert!(drawn.iter().all(|n| (0.0..=1.0).contains(n)), "{drawn:?}");
        assert!(drawn.iter().any(|n| *n < 0.5) && drawn.iter().any(|n| *n > 0.5), "{drawn:?}");
    }

    #[test]
    fn a_budget_is_shared_and_ends() {
        let budget = RetryBudget::new(&RetryPolicy { run_retries: 2, ..RetryPolicy::default() });
        let other = budget.clone();
        assert_eq!([budget.take(), other.take(), budget.take(), other.take()], [true, true, false, false]);
    }
}
