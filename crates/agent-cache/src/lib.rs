//! Prompt caches of model providers: their rules as data, breakpoint planning, an accounting simulator and a prefix audit.
//!
//! Depend on this crate when you plan where a request is marked, simulate a provider, or want to know why your own
//! agent pays for the same tokens again. It reads request bodies of any agent, in the formats of Anthropic Messages,
//! OpenAI Chat Completions and OpenAI Responses.
//!
//! **This crate knows** what each provider keeps of a prompt, for how long and at what price ([`RuleBook`], every rule
//! with its source and day, corrected by the user's own); what a request is made of ([`Request`]); what a sequence of
//! requests will cost ([`Simulator`]); where it broke and what to do ([`Audit`], and [`loss()`] for two requests of a
//! running session); what it may cost and lose ([`Budget`]); and where to put markers so that it does not ([`Planner`]).
//!
//! **It never knows** HTTP, a runtime, a clock or a file: bodies, times and prices arrive as values.
//!
//! Two requests of an agent that lists its tools in another order each time:
//!
//! ```
//! use agent_cache::{Audit, Cause, Request, RuleBook, Simulator};
//! use agent_core::Prices;
//!
//! let body = |tools: &str| {
//!     let rules = "Read before you write. ".repeat(200);
//!     let system = format!(r#"[{{"type":"text","text":"{rules}","cache_control":{{"type":"ephemeral"}}}}]"#);
//!     format!(
//!         r#"{{"model":"claude-opus-5-5","max_tokens":99,"tools":[{tools}],"system":{system},
//!             "messages":[{{"role":"user","content":"Repair the build."}}]}}"#
//!     )
//! };
//! let (read, edit) = (r#"{"name":"read","input_schema":{}}"#, r#"{"name":"edit","input_schema":{}}"#);
//! let first = Request::read(body(&format!("{read},{edit}")).as_bytes(), None)?;
//! let second = Request::read(body(&format!("{edit},{read}")).as_bytes(), None)?;
//!
//! let simulator = Simulator::new(RuleBook::builtin(), "anthropic");
//! let prices: Prices = simulator.rules(&first).prices(4.0, 20.0, "2026-11-30");
//! let mut audit = Audit::new(simulator, Some(prices));
//! assert_eq!(audit.step(&first, None, None).divergence, None);
//!
//! let row = audit.step(&second, None, None);
//! let found = row.divergence.ok_or("the order is missed")?;
//! assert_eq!((found.path.as_str(), found.cause), ("tools[0]", Cause::ToolsReordered));
//! assert!(found.advice.starts_with("Sort the tools by name once"));
//! assert_eq!(row.lost, row.usage.cache_write());
//! assert!(row.lost_cost.is_some_and(|dollars| dollars > 0.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Tokens are estimated from bytes unless a [`TokenCounter`] knows better: ratios and causes hold, totals are near.

mod audit;
mod budget;
mod ends;
mod miss;
mod plan;
mod planner;
mod prefix;
mod request;
mod rules;
mod simulator;
mod tokens;

pub use audit::{
    Audit, Cause, Divergence, Loss, MarkedBlock, Part, Row, Sent, Summary, Suspect, Volatile, loss, suspects,
};
pub use budget::{Breach, Budget, BudgetError, Judged, Rewrite};
pub use miss::{Miss, MissReason, miss};
pub use planner::{Lifetimes, Opening, Planner};
pub use prefix::PrefixHash;
pub use request::{Aspect, Block, BlockKind, Format, Level, Request, RequestError, Role};
pub use rules::{CacheRules, RuleBook, RulesError, Scheme, Source};
pub use simulator::{Missed, Outcome, Pending, Refusal, Simulator};
pub use tokens::{Estimate, TokenCounter};
