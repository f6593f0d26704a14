//! Four thresholds on the context window, and where a session stands between them (requirement P6).

use agent_core::ModelProfile;

/// Tokens at which something happens. In this order always: 0 < warning ≤ error ≤ autocompact < blocking < window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Thresholds {
    /// The effective window: what the model can read when room for its answer is kept.
    pub window: u64,
    /// People are warned.
    pub warning: u64,
    /// People are warned loudly.
    pub error: u64,
    /// Compaction begins.
    pub autocompact: u64,
    /// No request is sent.
    pub blocking: u64,
}

/// How full a context is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a record of numbers, written as a literal by drivers and tests"
)]
pub struct ContextState {
    /// Tokens of the next request.
    pub used: u64,
    /// Tokens of it that no compaction makes smaller: system text and tools.
    pub fixed: u64,
    /// Where things happen.
    pub thresholds: Thresholds,
}

/// How serious it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "the four thresholds part five levels")]
pub enum Level {
    /// Below every threshold.
    Calm,
    /// From the warning threshold on.
    Warning,
    /// From the error threshold on.
    Error,
    /// From where compaction begins.
    Compact,
    /// No request is sent any more.
    Blocked,
}

impl Thresholds {
    /// The thresholds of a model, with compaction at this share of the effective window at the latest, 1 to 99 percent.
    ///
    /// The formulas are the usual ones for large windows, each distance capped at a share of the window, so that small
    /// windows work as well.
    pub fn of(model: &ModelProfile, percent: u8) -> Self {
        // No provider sells a window of a few tokens; the order below needs some.
        let context = u64::from(model.context_window).max(LEAST_WINDOW);
        let reserve = MOST_RESERVE.min(u64::from(model.max_output)).min(context / 4);
        let window = context - reserve;
        let below = |most: u64, per_mille: u64| window - most.min(window * per_mille / 1_000);
        let share = window * u64::from(percent.clamp(1, 99)) / 100;
        let autocompact = below(13_000, 65).min(share).max(1);
        let warning = below(20_000, 100).min(autocompact);
        Self { window, warning, error: warning, autocompact, blocking: below(3_000, 15) }
    }
}

/// Tokens kept free for an answer, at most.
const MOST_RESERVE: u64 = 20_000;
/// The smallest window that is reckoned with.
const LEAST_WINDOW: u64 = 1_024;

impl ContextState {
    /// How serious it is.
    pub fn level(&self) -> Level {
        let Thresholds { warning, error, autocompact, blocking, .. } = self.thresholds;
        match self.used {
            used if used >= blocking => Level::Blocked,
            used if used >= autocompact => Level::Compact,
            used if used >= error => Level::Error,
            used if used >= warning => Level::Warning,
            _ => Level::Calm,
        }
    }

    /// The share of the effective window that is used, in percent; more than 100 when it does not fit.
    pub fn percent(&self) -> u64 {
        self.used.saturating_mul(100) / self.thresholds.window.max(1)
    }
}

impl Level {
    /// Its word in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Calm => "calm",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Compact => "compact",
            Self::Blocked => "blocked",
        }
    }
}
