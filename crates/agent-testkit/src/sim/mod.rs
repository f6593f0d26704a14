//! A provider on this machine: an HTTP server that speaks the wires of real providers from a script.

mod account;
mod answer;
mod api_error;
mod body;
mod clock;
mod desk;
mod echo;
mod limited;
mod log;
mod server;
mod thinking;
mod usage;
mod wire;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use agent_core::Cancel;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::fault::RawReply;
use crate::pick::Pick;
use crate::script::{Script, ScriptError};
use account::Accounts;
pub use account::SimCache;
pub use clock::SimClock;
use desk::Desk;
use log::Log;
pub use log::{RecordedRequest, Refusal, Served};
pub use wire::check_request;

/// A running server on the loopback interface (requirement V2). Dropping it stops it at once.
///
/// The end of a request's path chooses the wire: `POST /v1/messages` is Anthropic's, `/v1/chat/completions` and
/// `/v1/responses` are OpenAI's, with or without the version. One script serves all of them, streamed or
/// not, and what the real service refuses is refused in its words. It needs a tokio runtime with I/O and time.
///
/// Tokens are accounted for by the rules of [`agent_cache`], see [`SimCache`]: what a request reads from the prompt
/// cache was written by an earlier one whose answer had begun. Diagnostics of misses are told where a request asks for
/// them (`diagnostics`, `prompt_cache_options`). Thinking comes signed, and a signature holds for the words it was
/// given for and, on models that bind thinking to its place, behind the same prompt only.
#[derive(Debug)]
pub struct SimProvider {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

/// What a simulated provider answers with.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// A script, told on the wire that is asked for.
    Script(Script),
    /// Recorded answers of any provider, byte for byte.
    Recorded(Vec<RawReply>),
    /// No script: each answer says what was asked, for as long as there are questions.
    Echo,
}

/// How a simulated provider behaves.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..Default")]
pub struct SimOptions {
    /// How the reply to a request is chosen; by default by the assistant messages in it.
    pub pick: Pick,
    /// Size of a delta in bytes, at least one character; by default 24.
    pub delta_bytes: usize,
    /// Cuts streamed and recorded bodies into chunks of this many bytes, wherever that falls; by default each
    /// event is a chunk.
    pub chunk_bytes: Option<usize>,
    /// Whether path, headers and body are checked as the real service checks them; on by default.
    pub validate: bool,
    /// The prompt cache; by default the built-in rules of the wire's inventor under the machine's clock.
    pub cache: SimCache,
    /// Tokens a prompt may have; by default what is known of the model, and as many as you like for an unknown one.
    pub context_window: Option<u64>,
    /// The port; by default 0, which takes a free one.
    pub port: u16,
}

/// Why a simulated provider does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// There is no runtime to run in.
    #[error(
        "the simulated provider runs in the caller's tokio runtime: start it inside #[tokio::test] or Runtime::block_on"
    )]
    NoRuntime(#[from] tokio::runtime::TryCurrentError),
    /// The port cannot be had.
    #[error("cannot listen on 127.0.0.1:{port}: {cause}; take port 0 for a free one")]
    Listen {
        /// The port asked for.
        port: u16,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
}

#[derive(Debug)]
struct Shared {
    options: SimOptions,
    desk: Desk,
    accounts: Accounts,
    log: Log,
    /// One permit for each reply that may stop waiting.
    holds: Semaphore,
    stop: Cancel,
}

impl SimProvider {
    /// Starts a server that tells a script.
    pub fn start(script: impl Into<Script>) -> Result<Self, SimError> {
        Self::start_with(Source::Script(script.into()), SimOptions::default())
    }

    /// Starts a server that plays recorded answers one after the other and checks nothing.
    pub fn replaying(replies: Vec<RawReply>) -> Result<Self, SimError> {
        let options = SimOptions { pick: Pick::InOrder, validate: false, ..SimOptions::default() };
        Self::start_with(Source::Recorded(replies), options)
    }

    /// Starts a server with everything said.
    pub fn start_with(source: Source, options: SimOptions) -> Result<Self, SimError> {
        let runtime = Handle::try_current()?;
        let port = options.port;
        let listener = listen(port).map_err(|cause| SimError::Listen { port, cause })?;
        let address = listener.local_addr().map_err(|cause| SimError::Listen { port, cause })?;
        let accounts = Accounts::new(options.cache.clone(), options.context_window);
        let shared = Arc::new(Shared {
            options,
            accounts,
            desk: Desk::new(source),
            log: Log::default(),
            holds: Semaphore::new(0),
            stop: Cancel::new(),
        });
        let server = runtime.spawn(server::serve(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, server })
    }

    /// The address to give to a client, for example `http://127.0.0.1:41234`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address as the system knows it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Every request so far, refused ones included.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.log.requests()
    }

    /// Waits until the request of this number, counted from 0, has arrived.
    pub async fn request(&self, number: usize) -> RecordedRequest {
        self.shared.log.request(number).await
    }

    /// How each request was answered so far, in the order of the answers' beginnings.
    pub fn all_served(&self) -> Vec<Served> {
        self.shared.log.all_served()
    }

    /// Waits until an answer of this number, counted from 0, began.
    pub async fn served(&self, number: usize) -> Served {
        self.shared.log.served(number).await
    }

    /// Requests that were refused by the rules of the service or because the script was at its end.
    pub fn refusals(&self) -> Vec<Refusal> {
        self.shared.log.refusals()
    }

    /// Lets one held reply go on, the next one to come if none waits.
    pub fn release(&self) {
        self.shared.holds.add_permits(1);
    }

    /// Whether every reply was given; the error says how many were not.
    pub fn check_complete(&self) -> Result<(), ScriptError> {
        self.shared.desk.check_complete()
    }

    /// Stops listening, ends idle connections, held and stalled replies, and waits for answers under way.
    pub async fn shutdown(mut self) {
        self.shared.stop.cancel();
        // A join error means that the task was stopped before: there is nothing left to wait for.
        let _stopped = (&mut self.server).await;
    }
}

impl Drop for SimProvider {
    fn drop(&mut self) {
        self.shared.stop.cancel();
        self.server.abort();
    }
}

impl Default for SimOptions {
    fn default() -> Self {
        Self {
            pick: Pick::default(),
            delta_bytes: 24,
            chunk_bytes: None,
            validate: true,
            cache: SimCache::default(),
            context_window: None,
            port: 0,
        }
    }
}

/// Listens at once, so that the address is known before the first client comes.
fn listen(port: u16) -> io::Result<tokio::net::TcpListener> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", port))?;
    listener.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(listener)
}
