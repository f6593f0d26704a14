//! Depend on this crate, as a dev-dependency, to test your own agent: scripted models, a simulated provider
//! over HTTP and shared suites.
//!
//! **This crate knows** how a model is told what to say ([`Script`]), how to say it in process
//! ([`ScriptedModel`]) or on a provider's real wire ([`SimProvider`]), how providers fail ([`Fault`]), how a real
//! provider is recorded and replayed ([`Tape`]), and how to show what was asked, as snapshots: in words
//! ([`render_requests`]), byte for byte ([`render_request`]), as an assembled prompt ([`render_prompt`]) and step by step as
//! a cache sees it ([`render_prefixes`]), each with [`Redactions`].
//!
//! **It never knows** an agent's loop: everything in it can be used with any loop that speaks [`agent_core`]
//! or HTTP.
//!
//! ```
//! use agent_core::{Cancel, Entry, History, LanguageModel, ModelRequest, RequestSettings, ResponseBuilder,
//!     ToolChoice, UserMessage};
//! use agent_testkit::{Reply, ScriptedModel, render_requests};
//! use futures_util::StreamExt;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = ScriptedModel::new(vec![Reply::text("I will look.").call("grep", r#"{"pattern":"todo"}"#)]);
//! let mut history = History::new();
//! history.push(Entry::User(UserMessage::text("Anything left to do?")?))?;
//! let encoded = model.encoder().encode(&ModelRequest {
//!     system: &[],
//!     tools: &[],
//!     draft: &history.draft(),
//!     settings: &RequestSettings::default(),
//!     tool_choice: &ToolChoice::Auto,
//!     marks: &[],
//!     stream: true,
//! });
//!
//! let mut answer = ResponseBuilder::default();
//! let mut events = model.stream(encoded.request, &Cancel::new()).await?;
//! while let Some(event) = events.next().await {
//!     answer.take(event?);
//! }
//! let answer = answer.finish().ok_or("cut off")?;
//! assert_eq!(answer.calls().next().map(|call| call.name.as_str()), Some("grep"));
//! assert!(render_requests(&model.requests()).contains("Anything left to do?"));
//! model.check_complete()?;
//! # Ok(())
//! # }
//! ```

mod corpus;
mod fault;
mod overflow;
mod pick;
mod pieces;
mod quote;
mod script;
mod scripted;
mod sim;
mod snapshot;
pub mod store_suite;
mod tape;
mod test_model;

pub use corpus::{CorpusError, Exchange, ExchangeRequest, corpus_dir, corpus_files, read_exchanges};
pub use fault::{Fault, RawReply, RetryHint};
pub use overflow::Wording;
pub use pick::Pick;
pub use script::{Reply, Script, ScriptCall, ScriptError, ScriptInput};
pub use scripted::{Failure, ScriptedModel};
pub use sim::{
    RecordedRequest, Refusal, Served, SimCache, SimClock, SimError, SimOptions, SimProvider, Source,
    check_request,
};
pub use snapshot::{
    Redactions, SnapshotError, redact, render_prefixes, render_prompt, render_request, render_requests,
    render_rows,
};
pub use tape::{RecordMode, Recorder, Replay, Tape, TapeError, TapedModel};
pub use test_model::{TestModel, TestModelError};
