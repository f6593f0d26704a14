//! What a scenario must show: words that come with a request, and failures of those that are broken on purpose.

use agent_cache::Cause;
use serde::{Deserialize, Serialize};

/// Words that are in the body of a request, and in that of no earlier one.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expect {
    /// From 1.
    pub(crate) request: usize,
    /// As they stand in the JSON.
    pub(crate) words: String,
}

/// What a sabotaged scenario must be found to be: each field that is given fits one and the same finding.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Red {
    /// The kind of finding, for example `lost`, `bytes`, `hit_rate` or `cost`.
    #[serde(default)]
    pub(crate) kind: Option<Kind>,
    #[serde(default)]
    pub(crate) cause: Option<Cause>,
    /// Where, for example `system[0]`.
    #[serde(default)]
    pub(crate) path: Option<String>,
}

/// Kinds of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Something of the prefix was lost that nobody declared.
    Lost,
    /// A prefix shrank.
    Shrunk,
    /// The hash of tools or system text changed.
    Hash,
    /// Too little was read.
    HitRate,
    /// It cost too much.
    Cost,
    /// A declared rewrite did not happen.
    Stale,
    /// Two lives differ in a byte.
    Bytes,
    /// A life did not come to its end.
    Failed,
    /// Another number of requests than the scenario has answers, or none.
    Requests,
    /// Provider and audit count differently.
    Counted,
    /// Words came with another request than they were to come with.
    Words,
}
