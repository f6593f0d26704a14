//! Where providers that call themselves compatible differ.

use serde::{Deserialize, Serialize};

/// What one provider does otherwise than OpenAI.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::exhaustive_structs, reason = "plain data, written as a literal with ..Default")]
pub struct Quirks {}
