//! A typed tool, declared once: input type, function and operational facts.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use agent_core::{CardError, RawJson, SessionId, ToolCard, ToolOutput, Wait};
use async_trait::async_trait;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{
    Access, Concurrency, IntoTool, OutputCap, PermissionDecision, Permit, Render, Subject, Tool, ToolCx,
    ToolEnd, ToolError, ToolTraits,
};

type Running<O> = Pin<Box<dyn Future<Output = Result<O, ToolError>> + Send>>;
type Execute<I, O> = dyn Fn(Call, I) -> Running<O> + Send + Sync;
type Looking = Pin<Box<dyn Future<Output = Option<Subject>> + Send>>;
type Compact = dyn Fn(&RawJson, &ToolOutput) -> Option<String> + Send + Sync;
type Closed = dyn Fn(&SessionId) + Send + Sync;
type Look = dyn Fn(&RawJson) -> Looking + Send + Sync;

/// A tool with input type `I` and output type `O` (requirement T1).
///
/// The schema the model sees is derived from `I`; its doc comments are the fields' descriptions. Input is checked
/// by deserialising it, and a misfit becomes an error result that says where and what is wanted.
pub struct ToolConfig<I, O> {
    name: String,
    description: String,
    traits: ToolTraits,
    execute: Box<Execute<I, O>>,
    subject: Option<Box<Look>>,
    compact: Option<Box<Compact>>,
    state_key: Option<String>,
    closed: Option<Box<Closed>>,
}

/// What a running function is given besides its input.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "handed to every tool function")]
pub struct Call {
    /// The surroundings.
    pub cx: ToolCx,
    /// Permission to act; effects of a sandbox ask to see it.
    pub permit: Permit,
}

/// What a tool function may return; implement it for a type of your own to say what the model sees of it (requirement
/// T1).
///
/// ```
/// use agent_core::ToolOutput;
/// use agent_tools::{IntoEnd, ToolEnd, ToolError};
///
/// struct Weather { celsius: f64, station: &'static str }
///
/// impl IntoEnd for Weather {
///     fn into_end(self) -> Result<ToolEnd, ToolError> {
///         Ok(ToolOutput::text(format!("{:.0} °C at {}", self.celsius, self.station)).into())
///     }
/// }
/// # assert!(Weather { celsius: 4.2, station: "the pier" }.into_end().is_ok());
/// ```
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    note = "return a `String`, a `ToolOutput`, `Json(value)` or a `Wait`, or implement `IntoEnd` for the type"
)]
pub trait IntoEnd {
    /// How the run ended: the output as the model sees it, or what it waits for.
    fn into_end(self) -> Result<ToolEnd, ToolError>;
}

impl IntoEnd for String {
    fn into_end(self) -> Result<ToolEnd, ToolError> {
        Ok(ToolOutput::text(self).into())
    }
}

impl IntoEnd for ToolOutput {
    fn into_end(self) -> Result<ToolEnd, ToolError> {
        Ok(self.into())
    }
}

impl IntoEnd for Wait {
    fn into_end(self) -> Result<ToolEnd, ToolError> {
        Ok(self.into())
    }
}

impl IntoEnd for ToolEnd {
    fn into_end(self) -> Result<ToolEnd, ToolError> {
        Ok(self)
    }
}

/// A serialisable value, shown to the model as JSON.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "a wrapper to return")]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoEnd for Json<T> {
    fn into_end(self) -> Result<ToolEnd, ToolError> {
        RawJson::of(&self.0).map(|json| ToolOutput::Json(json).into()).map_err(ToolError::Output)
    }
}

impl<I, O> ToolConfig<I, O>
where
    I: DeserializeOwned + JsonSchema + Send + 'static,
    O: IntoEnd + Send + 'static,
{
    /// A tool with the usual traits of its kind. The description tells the model what it does, when to use it and
    /// what to do next.
    pub fn new<F, R>(
        name: impl Into<String>,
        description: impl Into<String>,
        access: Access,
        execute: F,
    ) -> Self
    where
        F: Fn(Call, I) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
    {
        Self {
            name: name.into(),
            description: description.into(),
            traits: ToolTraits::of(access),
            execute: Box::new(move |call, input| Box::pin(execute(call, input))),
            subject: None,
            compact: None,
            state_key: None,
            closed: None,
        }
    }

    /// The name that was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Keeps its state under this key; see [`Tool::state_key`].
    #[must_use]
    pub fn state_key(mut self, key: impl Into<String>) -> Self {
        self.state_key = Some(key.into());
        self
    }

    /// Says that running it again with the same input does no further harm.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.traits.idempotent = true;
        self
    }

    /// Runs it alone or beside others.
    #[must_use]
    pub fn concurrency(mut self, concurrency: Concurrency) -> Self {
        self.traits.concurrency = concurrency;
        self
    }

    /// Stops it after this long.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.traits.deadline = Some(deadline);
        self
    }

    /// Caps its output.
    #[must_use]
    pub fn cap(mut self, cap: OutputCap) -> Self {
        self.traits.cap = cap;
        self
    }

    /// Names the part of the input that rules look at and a person must see to decide.
    #[must_use]
    pub fn subject(self, subject: impl Fn(I) -> Subject + Send + Sync + 'static) -> Self {
        self.subject_later(move |input| std::future::ready(subject(input)))
    }

    /// The same, where it must be looked up: what a path leads to.
    #[must_use]
    pub fn subject_later<F, R>(mut self, subject: F) -> Self
    where
        F: Fn(I) -> R + Send + Sync + 'static,
        R: Future<Output = Subject> + Send + 'static,
    {
        self.subject = Some(Box::new(move |input| match input.to::<I>() {
            Ok(input) => {
                let looked = subject(input);
                Box::pin(async move { Some(looked.await) })
            }
            // What does not fit is answered when it is read to run.
            Err(_) => Box::pin(std::future::ready(None)),
        }));
        self
    }

    /// Says what of an output is worth keeping; see [`Tool::compact`].
    #[must_use]
    pub fn compact(
        mut self,
        compact: impl Fn(&RawJson, &ToolOutput) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.compact = Some(Box::new(compact));
        self
    }

    /// Ends what it left running for a session; see [`Tool::session_closed`].
    #[must_use]
    pub fn session_closed(mut self, closed: impl Fn(&SessionId) + Send + Sync + 'static) -> Self {
        self.closed = Some(Box::new(closed));
        self
    }

    /// Lets the agent's cheap model shorten long outputs; see [`ToolTraits::summarise`].
    #[must_use]
    pub fn summarise(mut self) -> Self {
        self.traits.summarise = true;
        self
    }

    /// Says what happens to a call on which no rule speaks; see [`ToolTraits::permission`].
    #[must_use]
    pub fn permission(mut self, decision: PermissionDecision) -> Self {
        self.traits.permission = Some(decision);
        self
    }

    /// Says how a program shows its outputs to people; see [`ToolTraits::render`].
    #[must_use]
    pub fn render(mut self, render: Render) -> Self {
        self.traits.render = render;
        self
    }

    /// The erased tool.
    pub fn build(self) -> Result<Arc<dyn Tool>, CardError> {
        let schema = input_schema::<I>(&self.name)?;
        let Self { name, description, traits, execute, subject, compact, state_key, closed } = self;
        let takes = takes(&schema).map_err(|cause| CardError::Json { tool: name.clone(), cause })?;
        let card = ToolCard::new(name, description, &schema)?;
        let types = PhantomData;
        Ok(Arc::new(Typed { card, takes, traits, execute, subject, compact, state_key, closed, types }))
    }
}

struct Typed<I, O> {
    card: ToolCard,
    takes: String,
    traits: ToolTraits,
    execute: Box<Execute<I, O>>,
    subject: Option<Box<Look>>,
    compact: Option<Box<Compact>>,
    state_key: Option<String>,
    closed: Option<Box<Closed>>,
    types: PhantomData<fn(I) -> O>,
}

#[async_trait]
impl<I, O> Tool for Typed<I, O>
where
    I: DeserializeOwned + Send + 'static,
    O: IntoEnd + Send + 'static,
{
    fn card(&self) -> &ToolCard {
        &self.card
    }

    fn traits(&self) -> &ToolTraits {
        &self.traits
    }

    fn state_key(&self) -> Cow<'_, str> {
        match &self.state_key {
            Some(key) => Cow::Borrowed(key),
            None => Cow::Owned(format!("tool:{}", self.card.name())),
        }
    }

    async fn subject(&self, input: &RawJson) -> Option<Subject> {
        match &self.subject {
            Some(subject) => subject(input).await,
            None => None,
        }
    }

    fn validate(&self, input: &RawJson) -> Result<(), ToolError> {
        self.parse(input).map(drop)
    }

    fn compact(&self, input: &RawJson, output: &ToolOutput) -> Option<String> {
        self.compact.as_ref().and_then(|compact| compact(input, output))
    }

    async fn run(&self, cx: &ToolCx, permit: Permit, input: &RawJson) -> Result<ToolEnd, ToolError> {
        permit.covers(self.card.name(), input)?;
        let typed = self.parse(input)?;
        (self.execute)(Call { cx: cx.clone(), permit }, typed).await?.into_end()
    }

    fn session_closed(&self, session: &SessionId) {
        if let Some(closed) = &self.closed {
            closed(session);
        }
    }
}

impl<I, O> IntoTool for ToolConfig<I, O>
where
    I: DeserializeOwned + JsonSchema + Send + 'static,
    O: IntoEnd + Send + 'static,
{
    fn into_tool(self) -> Result<Arc<dyn Tool>, CardError> {
        self.build()
    }
}

impl<I: DeserializeOwned, O> Typed<I, O> {
    fn parse(&self, input: &RawJson) -> Result<I, ToolError> {
        // A list would fill the fields of a struct by position; a model that sends one means something else.
        if !input.is_object() {
            return Err(
                self.misfit(".".to_owned(), serde::de::Error::custom("the input must be a JSON object"))
            );
        }
        // Where it does not fit is looked for only then: keeping track of it costs more than reading.
        input.to().or_else(|_| {
            let mut reader = serde_json::Deserializer::from_str(input.get());
            serde_path_to_error::deserialize(&mut reader)
                .map_err(|error| self.misfit(error.path().to_string(), error.into_inner()))
        })
    }

    fn misfit(&self, path: String, cause: serde_json::Error) -> ToolError {
        ToolError::Input { tool: self.card.name().to_owned(), path, cause, takes: self.takes.clone() }
    }
}

impl<I, O> fmt::Debug for Typed<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool")
            .field("name", &self.card.name())
            .field("traits", &self.traits)
            .finish_non_exhaustive()
    }
}

impl<I, O> fmt::Debug for ToolConfig<I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolConfig").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The JSON Schema of a type, inlined and without titles: the shortest form every provider takes.
fn input_schema<I: JsonSchema>(tool: &str) -> Result<RawJson, CardError> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<I>();
    schema.remove("title");
    schema.remove("description");
    RawJson::of(&schema).map_err(|cause| CardError::Json { tool: tool.to_owned(), cause })
}

/// The fields of a schema in one line: `path (required), limit`.
fn takes(schema: &RawJson) -> Result<String, serde_json::Error> {
    #[derive(serde::Deserialize)]
    struct Fields {
        #[serde(default)]
        properties: std::collections::BTreeMap<String, serde::de::IgnoredAny>,
        #[serde(default)]
        required: Vec<String>,
    }
    let Fields { properties, required } = schema.to()?;
    if properties.is_empty() {
        return Ok("{} (no fields)".to_owned());
    }
    let named = properties.keys().map(|name| match required.contains(name) {
        true => format!("{name} (required)"),
        false => name.clone(),
    });
    Ok(named.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use agent_core::CallId;
    use futures_util::FutureExt;

    use super::*;
    use crate::{PermissionMode, Permissions, Proposal, Verdict};

    #[derive(serde::Deserialize, JsonSchema)]
    struct Input {
        /// Where to look.
        path: String,
        /// At most this many.
        limit: Option<u32>,
    }

    fn tool() -> Arc<dyn Tool> {
        let config = ToolConfig::new("look", "Looks.", Access::Read, |_, input: Input| async move {
            Ok(format!("{}:{:?}", input.path, input.limit))
        });
        config.build().unwrap()
    }

    fn run(input: &str) -> Result<ToolEnd, ToolError> {
        let input = RawJson::parse(input).unwrap();
        let call = CallId::new("c").unwrap();
        let tool = tool();
        let bypass = Permissions { mode: PermissionMode::Bypass, ..Permissions::default() };
        let checked = bypass.check(Proposal::new(&*tool, &call, &input)).now_or_never();
        let Some(Verdict::Allow(permit)) = checked else { panic!("allowed") };
        let cx = ToolCx::for_test("s", "c").unwrap();
        tool.run(&cx, permit, &input).now_or_never().unwrap()
    }

    #[test]
    fn the_schema_comes_from_the_type() {
        insta::assert_snapshot!(tool().card().input_schema(), @r#"{"properties":{"limit":{"description":"At most this many.","format":"uint32","minimum":0,"type":["integer","null"]},"path":{"description":"Where to look.","type":"string"}},"required":["path"],"type":"object"}"#);
    }

    #[test]
    fn input_that_does_not_fit_is_taught() {
        assert_eq!(run(r#"{"path":"a","limit":3}"#).unwrap(), ToolOutput::text("a:Some(3)").into());
        let check = |input: &str| run(input).unwrap_err().to_string();
        insta::assert_snapshot!(check(r#"{"path":1}"#), @"The input of `look` does not fit: at `path`: invalid type: integer `1`, expected a string at line 1 column 9. Call it again with: limit, path (required)");
        insta::assert_snapshot!(check(r#"{"limit":1}"#), @"The input of `look` does not fit: at `.`: missing field `path` at line 1 column 11. Call it again with: limit, path (required)");
        insta::assert_snapshot!(check(r#"["a", 3]"#), @"The input of `look` does not fit: at `.`: the input must be a JSON object. Call it again with: limit, path (required)");
    }
}
