//! stub doc.
mod audit;
mod miss;
mod plan;
mod prefix;
mod request;
mod rules;
mod simulator;
mod tokens;

pub use audit::{Audit, Cause, Divergence, Row, Summary, Suspect, Volatile, suspects};
pub use miss::{Miss, MissReason, miss};
pub use plan::{Lifetimes, Piece, Shape, last_mark, pieces, plan};
pub use prefix::PrefixHash;
pub use request::{Aspect, Block, BlockKind, Format, Level, Request, RequestError, Role};
pub use rules::{CacheRules, RuleBook, RulesError, Scheme, Source};
pub use simulator::{Missed, Outcome, Refusal, Simulator};
pub use tokens::{Estimate, TokenCounter};
