//! Fewer tools for a step, without touching the list that a provider keeps in its cache.

use super::{Rule, Stage, StageCx, Verdict};
use crate::Overrides;

/// Narrows the tools that may be called (requirement P3).
///
/// The list of tools in the request stays the same bytes, and with it what is cached: the model is told in the choice of a
/// tool where its provider takes such a choice, and in words where not. A call of another tool is answered with an error.
/// [`Self::on_wire`] leaves the others out of the list instead.
///
/// ```
/// use agent_core::{ModelProfile, RawJson, ToolCard, ToolChoice};
/// use agent_prepare::{Narrow, Pipeline, Scene};
///
/// let card = |name: &str| ToolCard::new(name, "", &RawJson::empty_object()).unwrap();
/// let model = ModelProfile { allowed_tools: true, ..ModelProfile::conservative("harbour", "pilot") };
/// let mut scene = Scene::new(model);
/// scene.tools = vec![card("grep"), card("read_file"), card("bash")];
///
/// let reading = Pipeline::standard().then(Narrow::to(["read_file", "grep"]));
/// let prepared = scene.prepare(&reading)?.ready().unwrap();
/// let tools = vec!["grep".to_owned(), "read_file".to_owned()];
/// assert_eq!(prepared.tool_choice, ToolChoice::Allowed { tools, required: false });
///
/// // A model that cannot be told so is told in words.
/// scene.model.allowed_tools = false;
/// let prepared = scene.prepare(&reading)?.ready().unwrap();
/// assert_eq!(prepared.tool_choice, ToolChoice::Auto);
/// assert!(prepared.ephemeral[0].as_str().contains("For now, call only these tools: grep, read_file."));
///
/// // What is new in the second step is that the others may be called as well.
/// let first = Pipeline::standard().then(Narrow::by(|cx| (cx.of.step.number() == 0).then_some(["grep"])).on_wire());
/// assert!(scene.prepare(&first)?.ready().unwrap().narrow_on_wire);
/// scene.step = scene.step.next();
/// assert_eq!(scene.prepare(&first)?.ready().unwrap().active, None);
/// # Ok::<(), agent_prepare::PrepareError>(())
/// ```
#[derive(Debug)]
pub struct Narrow {
    rule: Rule<Option<Vec<String>>>,
    on_wire: bool,
}

/// The tools that may be called now, as a value of the shared [`crate::Context`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a list with a type of its own")]
pub struct ActiveTools(pub Vec<String>);

impl Narrow {
    /// Always to these.
    pub fn to(tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let tools: Vec<String> = tools.into_iter().map(Into::into).collect();
        Self { rule: Rule::new(move |_| Some(tools.clone())), on_wire: false }
    }

    /// To [`ActiveTools`] of the context; all may be called without it.
    pub fn shared() -> Self {
        Self::by(|cx| cx.context.get::<ActiveTools>().map(|active| active.0.clone()))
    }

    /// To what this function says; `None` narrows nothing.
    pub fn by<T: IntoIterator<Item = S>, S: Into<String>>(
        rule: impl Fn(&StageCx<'_>) -> Option<T> + Send + Sync + 'static,
    ) -> Self {
        let rule = move |cx: &StageCx<'_>| Some(rule(cx)?.into_iter().map(Into::into).collect());
        Self { rule: Rule::new(rule), on_wire: false }
    }

    /// Leaves the other tools out of the request. The provider reads everything anew whenever the list changes; where
    /// thinking is bound to it, it is left whole all the same.
    #[must_use]
    pub fn on_wire(self) -> Self {
        Self { on_wire: true, ..self }
    }
}

impl Stage for Narrow {
    fn name(&self) -> &'static str {
        "narrow"
    }

    fn run(&self, cx: &StageCx<'_>) -> Verdict {
        let Some(tools) = self.rule.of(cx) else { return Verdict::unchanged() };
        let narrow_on_wire = self.on_wire.then_some(true);
        Overrides { active_tools: Some(tools), narrow_on_wire, ..Overrides::default() }.into()
    }
}
