//! A tool around another one.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use agent_core::{CardError, RawJson, SessionId, ToolCard, ToolOutput};
use async_trait::async_trait;

use crate::{IntoTool, Permit, StandsFor, Subject, Tool, ToolCx, ToolEnd, ToolError, ToolTraits};

type BeforeRun = dyn Fn(&ToolCx, &RawJson) -> Result<(), ToolError> + Send + Sync;
type AfterRun = dyn Fn(&ToolCx, ToolOutput) -> Result<ToolOutput, ToolError> + Send + Sync;

/// A tool around another one, with the parts that are given in place of its own (requirement T11). Name, schema, subject and
/// state stay those of the inner one.
///
/// ```
/// use agent_core::ToolOutput;
/// use agent_tools::{Access, ToolConfig, ToolError, ToolSet, Wrapped};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Look { what: String }
///
/// let look = ToolConfig::new("look", "Looks.", Access::Read, |_, input: Look| async move { Ok(input.what) });
/// let tools = ToolSet::builder()
///     .with(look)
///     .wrap("look", |inner| {
///         Wrapped::new(inner)
///             .description("Looks at one thing. Use it before you change the thing.")
///             .before(|_, input| match input.get().contains("secret") {
///                 true => Err(ToolError::failed("That is not to be looked at. Go on without it.")),
///                 false => Ok(()),
///             })
///             .after(|_, output| Ok(ToolOutput::text(output.plain().to_uppercase())))
///     })
///     .freeze()?;
/// assert!(tools.cards()[0].description().ends_with("change the thing."));
/// # Ok::<(), agent_tools::ToolSetError>(())
/// ```
pub struct Wrapped {
    inner: Arc<dyn Tool>,
    card: ToolCard,
    traits: ToolTraits,
    before: Option<Box<BeforeRun>>,
    after: Option<Box<AfterRun>>,
}

impl Wrapped {
    /// The tool as it is.
    pub fn new(inner: Arc<dyn Tool>) -> Self {
        let (card, traits) = (inner.card().clone(), inner.traits().clone());
        Self { inner, card, traits, before: None, after: None }
    }

    /// Other words for the model.
    #[must_use]
    pub fn description(self, description: impl Into<String>) -> Self {
        let description: String = description.into();
        Self { card: self.card.with_description(description.as_str()), ..self }
    }

    /// The tool is no part of the prompt: the model is told of it when it searches.
    #[must_use]
    pub fn deferred(self) -> Self {
        Self { card: self.card.deferred(), ..self }
    }

    /// Other operational facts. An access that is milder than what the tool does makes its effects fail: they are held
    /// against what was declared.
    #[must_use]
    pub fn traits(mut self, change: impl FnOnce(&mut ToolTraits)) -> Self {
        change(&mut self.traits);
        self
    }

    /// Looks at a call that may run, just before it does; an error is its answer. The input is what was permitted, so it
    /// cannot be changed here: a [`ToolHook`](crate::ToolHook) can.
    #[must_use]
    pub fn before(
        self,
        look: impl Fn(&ToolCx, &RawJson) -> Result<(), ToolError> + Send + Sync + 'static,
    ) -> Self {
        Self { before: Some(Box::new(look)), ..self }
    }

    /// Makes another output of one that succeeded, before it is shortened and hooks see it.
    #[must_use]
    pub fn after(
        self,
        change: impl Fn(&ToolCx, ToolOutput) -> Result<ToolOutput, ToolError> + Send + Sync + 'static,
    ) -> Self {
        Self { after: Some(Box::new(change)), ..self }
    }
}

impl IntoTool for Wrapped {
    fn into_tool(self) -> Result<Arc<dyn Tool>, CardError> {
        Ok(Arc::new(self))
    }
}

impl fmt::Debug for Wrapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wrapped")
            .field("inner", &self.inner)
            .field("traits", &self.traits)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Tool for Wrapped {
    fn card(&self) -> &ToolCard {
        &self.card
    }

    fn traits(&self) -> &ToolTraits {
        &self.traits
    }

    fn state_key(&self) -> Cow<'_, str> {
        self.inner.state_key()
    }

    fn session_closed(&self, session: &SessionId) {
        self.inner.session_closed(session);
    }

    async fn subject(&self, input: &RawJson) -> Option<Subject> {
        self.inner.subject(input).await
    }

    fn validate(&self, input: &RawJson) -> Result<(), ToolError> {
        self.inner.validate(input)
    }

    fn stands_for(&self, input: &RawJson) -> Result<Option<StandsFor>, ToolError> {
        self.inner.stands_for(input)
    }

    fn compact(&self, input: &RawJson, output: &ToolOutput) -> Option<String> {
        self.inner.compact(input, output)
    }

    async fn run(&self, cx: &ToolCx, permit: Permit, input: &RawJson) -> Result<ToolEnd, ToolError> {
        if let Some(before) = &self.before {
            before(cx, input)?;
        }
        match (self.inner.run(cx, permit, input).await?, &self.after) {
            (ToolEnd::Output(output), Some(after)) if !output.is_error() => {
                after(cx, output).map(ToolEnd::Output)
            }
            (end, _) => Ok(end),
        }
    }
}

#[cfg(test)]
mod tests {
    use agent_core::CallId;
    use futures_util::FutureExt;

    use super::*;
    use crate::{Access, Call, PermissionMode, Permissions, Proposal, ToolConfig, ToolSet, Verdict};

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct What {
        what: String,
    }

    async fn look(call: Call, input: What) -> Result<String, ToolError> {
        call.cx.state.set(&input.what)?;
        Ok(input.what)
    }

    fn wrapped() -> Arc<dyn Tool> {
        let tools = ToolSet::builder().with(ToolConfig::new("look", "Looks.", Access::Edit, look)).wrap(
            "look",
            |inner| {
                Wrapped::new(inner)
                    .description("Looks well.")
                    .traits(|traits| traits.idempotent = true)
                    .before(|_, input| match input.get().contains("no") {
                        true => Err(ToolError::failed("Not that.")),
                        false => Ok(()),
                    })
                    .after(|_, output| Ok(ToolOutput::text(format!("<{}>", output.plain()))))
            },
        );
        tools.freeze().unwrap().get("look").unwrap().clone()
    }

    #[test]
    fn parts_take_the_place_of_those_of_the_inner_tool() {
        let tool = wrapped();
        let (call, cx) = (CallId::new("c").unwrap(), ToolCx::for_test("s", "c").unwrap());
        let check = |input: &str, expect: &str| {
            let input = RawJson::parse(input).unwrap();
            let bypass = Permissions { mode: PermissionMode::Bypass, ..Permissions::default() };
            let checked = bypass.check(Proposal::new(&*tool, &call, &input)).now_or_never();
            let Some(Verdict::Allow(permit)) = checked else { panic!("allowed") };
            let ran = tool.run(&cx, permit, &input).now_or_never().unwrap();
            assert_eq!(
                ran.map_or_else(|error| error.to_string(), |output| output.output().unwrap().plain()),
                expect
            );
        };
        check(r#"{"what":"a"}"#, "<a>");
        check(r#"{"what":"no"}"#, "Not that.");
        assert_eq!(cx.state.get::<String>().unwrap().as_deref(), Some("a"), "the second one did not run");
        assert_eq!((tool.card().name(), tool.card().description()), ("look", "Looks well."));
        assert_eq!((tool.traits().access, tool.traits().idempotent), (Access::Edit, true));
        assert_eq!(tool.state_key(), "tool:look");
        let misfit = tool.validate(&RawJson::empty_object()).unwrap_err();
        assert!(misfit.to_string().contains("missing field `what`"), "{misfit}");
    }
}
