//! What a running call may reach: its cancellation, the session's slots and offloaded outputs.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use agent_core::{BlobHash, CallId, Cancel, Context, SessionId, Slots};
use async_trait::async_trait;

use crate::ToolState;

/// The surroundings of one call.
///
/// ```
/// use agent_core::Context;
/// use agent_tools::{Access, ToolConfig, ToolCx};
///
/// struct Tenant(&'static str);
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Greet { /** Whom to greet. */ name: String }
///
/// // What sources of context and stages found reaches tools by its type.
/// let greet = ToolConfig::new("greet", "Greets a person by name.", Access::Read, |call, input: Greet| {
///     let tenant = call.cx.context.get::<Tenant>().map_or("nowhere", |tenant| tenant.0);
///     let words = format!("Greetings from {tenant}, {}!", input.name);
///     async move { Ok(words) }
/// });
/// # let _ = greet;
/// let cx = ToolCx { context: Context::default().with(Tenant("the harbour")), ..ToolCx::for_test("s", "c1")? };
/// assert!(cx.context.get::<Tenant>().is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "built by drivers and by tests of tools")]
pub struct ToolCx {
    /// The session.
    pub session: SessionId,
    /// The call.
    pub call: CallId,
    /// Stops the call.
    pub cancel: Cancel,
    /// State that tools share.
    pub slots: SlotsHandle,
    /// What this tool keeps for itself in the session.
    pub state: ToolState,
    /// Outputs that were too large for the history.
    pub blobs: Arc<dyn Blobs>,
    /// What the program shares, as the stages of the step left it: look-ups that are not worth a second one, settings of
    /// the program, handles.
    pub context: Context,
}

/// Reads outputs that were offloaded.
#[async_trait]
pub trait Blobs: Debug + Send + Sync {
    /// The bytes, or `None` when the session has no such blob; an error in words for the model.
    async fn get(&self, hash: &BlobHash) -> Result<Option<Vec<u8>>, String>;
}

/// No blobs at all.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "a value to write down, with nothing in it")]
pub struct NoBlobs;

/// Shared access to the session's slots. Changes are noticed, so that they are journaled with the result.
#[derive(Debug, Clone, Default)]
pub struct SlotsHandle(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    slots: Slots,
    version: u64,
}

impl ToolCx {
    /// Surroundings for a test of a tool: empty slots, no blobs, nothing cancelled.
    ///
    /// # Errors
    /// When one of the names is not usable.
    pub fn for_test(session: &str, call: &str) -> Result<Self, agent_core::IdError> {
        let slots = SlotsHandle::default();
        Ok(Self {
            session: SessionId::new(session)?,
            call: CallId::new(call)?,
            cancel: Cancel::new(),
            state: ToolState::new("tool:test", slots.clone()),
            slots,
            blobs: Arc::new(NoBlobs),
            context: Context::default(),
        })
    }
}

impl SlotsHandle {
    /// Takes over slots.
    pub fn new(slots: Slots) -> Self {
        Self(Arc::new(Mutex::new(State { slots, version: 0 })))
    }

    /// Looks.
    pub fn read<T>(&self, look: impl FnOnce(&Slots) -> T) -> T {
        look(&self.lock().slots)
    }

    /// Changes. The version moves only when something is different afterwards.
    pub fn update<T>(&self, change: impl FnOnce(&mut Slots) -> T) -> T {
        let mut state = self.lock();
        let (result, is_changed) = state.slots.change(change);
        if is_changed {
            state.version += 1;
        }
        result
    }

    /// Moves with every change.
    pub fn version(&self) -> u64 {
        self.lock().version
    }

    /// A copy.
    pub fn snapshot(&self) -> Slots {
        self.lock().slots.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Blobs for NoBlobs {
    async fn get(&self, _hash: &BlobHash) -> Result<Option<Vec<u8>>, String> {
        Ok(None)
    }
}
