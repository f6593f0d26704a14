//! Prompts whose bytes do not move: fragments typed by stability, layers with authority, assembly and explain.
//!
//! **This crate knows** how long a text keeps its bytes ([`Stability`], as types), on whose authority it speaks
//! ([`Layer`]), how fragments become the blocks of a system prompt ([`Prompt`], [`Assembled`]) and the notes of a turn or
//! a step ([`Notes`]), and how to say all that without asking a model ([`Explanation`]).
//!
//! **It never knows** a file, git, a clock, a runtime or a provider's JSON. Rule files ([`RuleFiles`]), the environment
//! ([`EnvironmentFacts`]) and the day ([`Date`]) arrive as data; everything here is a pure function of them, so that
//! two processes build the same bytes.
//!
//! ```
//! use agent_prompt::{Beside, EnvironmentFacts, Fragment, Layer, Memo, Notes, Prompt, RepositoryFacts, Session, Source, Static, Step, Value};
//!
//! let mut prompt = Prompt::default();
//! prompt.add(Fragment::<Static>::new(Layer::Session, "role", "You fix bugs.")?);
//! prompt.add(Fragment::<Static>::new(Layer::Session, "tone", "Be friendly.")?);
//!
//! // What is fixed when the session begins, worked out once.
//! let mut environment = Memo::new();
//! let facts = EnvironmentFacts {
//!     platform: "linux".into(),
//!     cwd: "/app".into(),
//!     repository: Some(RepositoryFacts { branch: Some("main".into()), ..RepositoryFacts::default() }),
//! };
//! if let Some(snapshot) = environment.fill(facts.snapshot()) {
//!     prompt.add(Fragment::<Session>::new(Layer::Session, "environment", snapshot)?);
//! }
//!
//! // Policy replaces the tone, and is the last to speak.
//! let policy = Fragment::<Session>::new(Layer::Managed, "tone", Value::session("Be formal."))?;
//! prompt.add(policy.with_source(Source::Config("policy.toml".into())));
//!
//! let assembled = prompt.assemble();
//! let keys: Vec<_> = assembled.blocks().iter().map(|block| block.key.as_str()).collect();
//! assert_eq!(keys, ["role", "environment", "tone"]);
//! assert_eq!(assembled.static_blocks(), 1);
//! println!("{}", assembled.explain(Beside::default()));
//!
//! // What changes later never reaches the system prompt.
//! let budget = Fragment::<Step>::new(Layer::Session, "budget", format!("{} steps left.", 7))?;
//! assert_eq!(assembled.step_notes(&Notes::default(), &[budget]).notes().len(), 1);
//! # Ok::<(), agent_prompt::FragmentError>(())
//! ```
//!
//! Mistakes that do not compile (`tests/compile_fail/`): a clock, a date, a todo list, a git status, a user's name or any
//! other text made at run time in a static fragment; a todo list in a session fragment; a turn fragment in the system
//! prompt; a [`Dynamic`] value that claims to be static:
//!
//! ```compile_fail
//! use agent_prompt::{Date, Fragment, Layer, Static};
//! Fragment::<Static>::new(Layer::Session, "date", &Date::new(2026, 11, 30)?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod assemble;
mod caps;
mod date;
mod environment;
mod explain;
mod fragment;
mod hash;
mod memo;
mod merge;
mod rules;
mod source;
mod stability;
mod value;

pub use agent_core::Layer;
pub use assemble::{Assembled, Block, Notes, Prompt};
pub use caps::{Caps, Cut, FRAGMENT_BYTES, LAYER_BYTES, LimitOf};
pub use date::{Date, NoSuchDay};
pub use environment::{ENVIRONMENT_CHARS, ENVIRONMENT_COMMITS, EnvironmentFacts, RepositoryFacts, Snapshot};
pub use explain::{BYTES_PER_TOKEN, Beside, ExplainedBlock, ExplainedTool, Explanation, estimate_tokens};
pub use fragment::{Fragment, FragmentError};
pub use hash::{HASH_DIGITS, system_hash, tools_hash};
pub use memo::Memo;
pub use merge::{Absent, Loser};
pub use rules::{
    IMPORT_DEPTH, IMPORTS, ImportRefusal, PathRefusal, RefusedImport, ResolvedRules, Rule, RuleCandidate,
    RuleConfig, RuleFiles, RulePath, RuleRoot,
};
pub use source::Source;
pub use stability::{Changes, InSystem, Level, Outlasts, Session, Stability, Static, Step, Turn};
pub use value::{Dynamic, Enters, Value};
