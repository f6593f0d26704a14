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
    /// People are warned loudly. By the usual formulas it is where the warning is; it is a line of its own for those who
    /// show it.
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
    ///
    /// ```
    /// use agent_core::ModelProfile;
    /// use agent_prepare::Thresholds;
    ///
    /// let small = ModelProfile { context_window: 12_000, max_output: 2_000, ..ModelProfile::conservative("acme", "m") };
    /// let at = Thresholds::of(&small, 90);
    /// assert_eq!((at.window, at.warning, at.error, at.autocompact, at.blocking), (10_000, 9_000, 9_000, 9_000, 9_850));
    /// ```
    pub fn of(model: &ModelProfile, percent: u8) -> Self {
        // No provider sells a window of a few tokens; the order below needs some.
        let context = u64::from(model.context_window).max(LEAST_WINDOW);
        let window = context - Self::reserve(model);
        let below = |most: u64, per_mille: u64| window - most.min(window * per_mille / 1_000);
        let share = window * u64::from(percent.clamp(1, 99)) / 100;
        let autocompact = below(13_000, 65).min(share).max(1);
        let warning = below(20_000, 100).min(autocompact);
        Self { window, warning, error: warning, autocompact, blocking: below(3_000, 15) }
    }

    /// Tokens of a model's window that are kept free for an answer.
    pub(crate) fn reserve(model: &ModelProfile) -> u64 {
        let context = u64::from(model.context_window).max(LEAST_WINDOW);
        MOST_RESERVE.min(u64::from(model.max_output)).min(context / 4)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn thresholds(context_window: u32, max_output: u32, percent: u8) -> Thresholds {
        let unknown = ModelProfile::conservative("acme", "m");
        Thresholds::of(&ModelProfile { context_window, max_output, ..unknown }, percent)
    }

    #[test]
    fn usual_windows() {
        let check = |(window, output, percent): (u32, u32, u8), expect: [u64; 5]| {
            let Thresholds { window, warning, error, autocompact, blocking } =
                thresholds(window, output, percent);
            assert_eq!([window, warning, error, autocompact, blocking], expect);
        };
        // 200,000 tokens, 20,000 of them for the answer: each distance is at its share of the window.
        check((200_000, 64_000, 90), [180_000, 162_000, 162_000, 162_000, 177_300]);
        check((200_000, 64_000, 99), [180_000, 162_000, 162_000, 168_300, 177_300]);
        // From an effective window of 200,000 on, the distances are 20,000, 20,000, 13,000 and 3,000.
        check((220_000, 64_000, 99), [200_000, 180_000, 180_000, 187_000, 197_000]);
        check((1_020_000, 64_000, 99), [1_000_000, 980_000, 980_000, 987_000, 997_000]);
        // The lower trigger wins, and nobody is warned after it.
        check((1_020_000, 64_000, 90), [1_000_000, 900_000, 900_000, 900_000, 997_000]);
        check((1_020_000, 64_000, 75), [1_000_000, 750_000, 750_000, 750_000, 997_000]);
        // What the model cannot write is not kept free, and never more than a quarter is.
        check((128_000, 4_000, 90), [124_000, 111_600, 111_600, 111_600, 122_140]);
        check((12_000, 8_000, 90), [9_000, 8_100, 8_100, 8_100, 8_865]);
        check((4_000, 0, 90), [4_000, 3_600, 3_600, 3_600, 3_940]);
        // Nonsense is made sense of.
        check((0, 0, 0), [1_024, 10, 10, 10, 1_009]);
    }

    #[test]
    fn levels_begin_at_their_thresholds() {
        let thresholds = thresholds(200_000, 64_000, 99);
        let check = |used: u64, level: &str, percent: u64| {
            let state = ContextState { used, fixed: 0, thresholds };
            assert_eq!((state.level().as_str(), state.percent()), (level, percent));
        };
        check(0, "calm", 0);
        check(161_999, "calm", 89);
        check(162_000, "error", 90);
        check(168_300, "compact", 93);
        check(177_300, "blocked", 98);
        check(360_000, "blocked", 200);
        check(u64::MAX, "blocked", u64::MAX / 180_000);
    }

    proptest! {
        #[test]
        fn the_order_holds(window in 4_000u32..=2_000_000, output: u32, percent: u8) {
            let at = thresholds(window, output, percent);
            prop_assert!(0 < at.warning && at.warning <= at.error && at.error <= at.autocompact);
            prop_assert!(at.autocompact < at.blocking && at.blocking < at.window);
            prop_assert!(at.window <= u64::from(window) && at.window >= u64::from(window) * 3 / 4);
        }
    }
}
