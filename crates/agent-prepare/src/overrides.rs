//! What a stage changes of a step: everything it does not name stays as it is.

use std::sync::Arc;

use agent_core::{LanguageModel, Note, RequestSettings, SystemBlock, Text, ToolChoice};

use crate::Context;

/// A partial change of one step (requirement P1). An absent field is unchanged; `settings.extra` merges by key, words and
/// notes are added to those of other stages, every other field replaces.
///
/// There are three ways to change messages, and three types: [`Self::ephemeral`] words are gone with the step,
/// [`Self::append`]ed notes stay in the history, and what was said before can only be rewritten by a
/// [`crate::Tier`] of compaction. A message that exists cannot be changed at all.
///
/// What a stage names is checked when it is named: a tool that the session does not have
/// ([`crate::PrepareError::UnknownTool`]) and a list that leaves none ([`crate::PrepareError::NoTools`]). What must fit
/// together is checked when all stages have run, because a later one may mend it: a chosen tool that is not active
/// ([`crate::PrepareError::ForcedInactive`]), and one that the model does not have ([`crate::PrepareError::ForeignTool`]).
///
/// ```
/// use agent_core::{ModelProfile, RawJson, ToolCard, ToolChoice};
/// use agent_prepare::{Overrides, Pipeline, PrepareError, Scene, stage_fn};
///
/// let card = |name: &str| ToolCard::new(name, "", &RawJson::empty_object()).unwrap();
/// let mut scene = Scene::new(ModelProfile::conservative("harbour", "pilot"));
/// scene.tools = vec![card("grep"), card("bash")];
/// let refusal = |active: &[&str], forced: &str| {
///     let active_tools = Some(active.iter().map(|name| name.to_string()).collect());
///     let tool_choice = Some(ToolChoice::Tool(forced.to_string()));
///     let changes = Overrides { active_tools, tool_choice, ..Overrides::default() };
///     let pipeline = Pipeline::standard().then(stage_fn("mine", move |_| changes.clone().into()));
///     scene.prepare(&pipeline).unwrap_err()
/// };
/// assert!(matches!(refusal(&[], "grep"), PrepareError::NoTools { .. }));
/// assert!(matches!(refusal(&["grep", "sail"], "grep"), PrepareError::UnknownTool { tool, .. } if tool == "sail"));
/// assert!(matches!(refusal(&["grep"], "bash"), PrepareError::ForcedInactive { tool, .. } if tool == "bash"));
/// ```
#[derive(Debug, Clone, Default)]
#[expect(clippy::exhaustive_structs, reason = "a partial record, written as a literal with ..Default")]
pub struct Overrides {
    /// Another model for this step. Stages behind see its profile.
    ///
    /// ```
    /// # use agent_core::ModelProfile;
    /// # use agent_prepare::{Overrides, Pipeline, Scene, Verdict, stage_fn};
    /// # use agent_testkit::ScriptedModel;
    /// use std::sync::Arc;
    ///
    /// let small = ScriptedModel::new(vec![]).with_profile(ModelProfile::conservative("harbour", "small"));
    /// let small = Overrides { model: Some(Arc::new(small)), ..Overrides::default() };
    /// let pipeline = Pipeline::standard().then(stage_fn("small", move |_| small.clone().into())).then(stage_fn(
    ///     "behind",
    ///     |cx| {
    ///         assert_eq!(cx.model.model, "small");
    ///         Verdict::unchanged()
    ///     },
    /// ));
    /// let scene = Scene::new(ModelProfile::conservative("harbour", "large"));
    /// let prepared = scene.prepare(&pipeline)?.ready().unwrap();
    /// assert_eq!(prepared.model.unwrap().profile().model, "small");
    /// # Ok::<(), agent_prepare::PrepareError>(())
    /// ```
    pub model: Option<Arc<dyn LanguageModel>>,
    /// Another system prompt for this step. The provider reads everything anew, and where thinking is bound to its prefix
    /// it may refuse what it thought before, of which a diagnostic warns; [`Self::ephemeral`] words cost neither.
    ///
    /// ```
    /// # use agent_core::{ModelProfile, SystemBlock};
    /// # use agent_prepare::{Overrides, Pipeline, Scene, Verdict, stage_fn};
    /// let terse = Overrides { system: Some(SystemBlock::new("Be terse.").into_iter().collect()), ..Overrides::default() };
    /// let pipeline = Pipeline::standard().then(stage_fn("terse", move |_| terse.clone().into())).then(stage_fn(
    ///     "behind",
    ///     |cx| {
    ///         assert_eq!(cx.so_far.system.as_ref().unwrap()[0].text(), "Be terse.");
    ///         Verdict::unchanged()
    ///     },
    /// ));
    /// let scene = Scene::new(ModelProfile::conservative("harbour", "pilot"));
    /// let prepared = scene.prepare(&pipeline)?.ready().unwrap();
    /// assert_eq!(prepared.system.unwrap()[0].text(), "Be terse.");
    /// # Ok::<(), agent_prepare::PrepareError>(())
    /// ```
    pub system: Option<Vec<SystemBlock>>,
    /// Whether and which tool must be called (requirement P17). With a model that cannot be forced, words ask for it
    /// instead, and [`crate::Prepared::diagnostics`] says so.
    ///
    /// ```
    /// # use agent_core::{ModelProfile, RawJson, ToolCard, ToolChoice};
    /// # use agent_prepare::{Overrides, Pipeline, Scene, Verdict, stage_fn};
    /// let sums_up = Overrides { tool_choice: Some(ToolChoice::None), ..Overrides::default() };
    /// let pipeline = Pipeline::standard().then(stage_fn("sums_up", move |_| sums_up.clone().into())).then(stage_fn(
    ///     "behind",
    ///     |cx| {
    ///         assert_eq!(cx.so_far.tool_choice, Some(ToolChoice::None));
    ///         Verdict::unchanged()
    ///     },
    /// ));
    /// let scene = Scene::new(ModelProfile::conservative("harbour", "pilot"));
    /// assert_eq!(scene.prepare(&pipeline)?.ready().unwrap().tool_choice, ToolChoice::None);
    /// # Ok::<(), agent_prepare::PrepareError>(())
    /// ```
    pub tool_choice: Option<ToolChoice>,
    /// The tools that may be called, by name. The list of tools in the request stays as it is; the model is told by the
    /// choice of a tool or, where it takes no such choice, in words. A call of another tool is answered with an error.
    ///
    /// ```
    /// # use agent_core::{ModelProfile, RawJson, ToolCard, ToolChoice};
    /// # use agent_prepare::{Overrides, Pipeline, Scene, Verdict, stage_fn};
    /// let card = |name: &str| ToolCard::new(name, "", &RawJson::empty_object()).unwrap();
    /// let reads = Overrides { active_tools: Some(vec!["read_file".into()]), ..Overrides::default() };
    /// let pipeline = Pipeline::standard().then(stage_fn("reads", move |_| reads.clone().into())).then(stage_fn(
    ///     "behind",
    ///     |cx| {
    ///         assert!(cx.has_tool("read_file") && !cx.has_tool("bash"));
    ///         assert_eq!(cx.of.tools.len(), 2);
    ///         Verdict::unchanged()
    ///     },
    /// ));
    /// let model = ModelProfile { allowed_tools: true, ..ModelProfile::conservative("harbour", "pilot") };
    /// let mut scene = Scene::new(model);
    /// scene.tools = vec![card("bash"), card("read_file")];
    /// let prepared = scene.prepare(&pipeline)?.ready().unwrap();
    /// assert_eq!(prepared.active, Some(["read_file".to_owned()].into()));
    /// assert_eq!(prepared.tool_choice, ToolChoice::Allowed { tools: vec!["read_file".into()], required: false });
    /// # Ok::<(), agent_prepare::PrepareError>(())
    /// ```
    pub active_tools: Option<Vec<String>>,
    /// Whether inactive tools are left out of the request. That makes the provider read everything anew each time the
    /// list changes. Where thinking is bound to the list, it is left whole.
    ///
    /// ```
    /// # use agent_core::{ModelProfile, RawJson, ToolCard, ToolChoice};
    /// # use agent_prepare::{Overrides, Pipeline, Scene, Verdict, stage_fn};
    /// let card = |name: &str| ToolCard::new(name, "", &RawJson::empty_object()).unwrap();
    /// let reads = Overrides {
    ///     active_tools: Some(vec!["read_file".into()]),
    ///     narrow_on_wire: Some(true),
    ///     ..Overrides::default()
    /// };
    /// let pipeline = Pipeline::standard().then(stage_fn("reads", move |_| reads.clone().into())).then(stage_fn(
    ///     "behind",
    ///     |cx| {
    ///         assert_eq!(cx.so_far.narrow_on_wire, Some(true));
    ///         Verdict::unchanged()
    ///     },
    /// ));
    /// let model = ModelProfile { allowed_tools: true, ..ModelProfile::conservative("harbour", "pilot") };
    /// let mut scene = Scene::new(model);
    /// scene.tools = vec![card("bash"), card("read_file")];
    /// let prepared = scene.prepare(&pipeline)?.ready().unwrap();
    /// assert!(prepared.narrow_on_wire);
    /// assert_eq!(prepared.tool_choice, ToolChoice::Auto);
    /// # Ok::<(), agent_prepare::PrepareError>(())
    /// ```
    pub narrow_on_wire: Option<bool>,
    /// Settings that replace those of the call, each one that is given; the provider options in `extra` are merged into
    /// those of the call key by key, object into object, where the request is written.
    ///
    /// ```
    /// # use agent_core::{ModelProfile, ProviderData, RawJson, RequestSettings};
    /// # use agent_prepare::{Overrides, Pipeline, Scene, Verdict, stage_fn};
    /// let option = |json: &str| ProviderData { provider: "harbour".into(), json: RawJson::parse(json).unwrap() };
    /// let first = RequestSettings { max_output: Some(9), extra: vec![option(r#"{"tide":"low"}"#)], ..Default::default() };
    /// let second = RequestSettings { seed: Some(7), extra: vec![option(r#"{"wind":5}"#)], ..Default::default() };
    /// let with = |settings| Overrides { settings, ..Overrides::default() };
    /// let (first, second) = (with(first), with(second));
    /// let pipeline = Pipeline::standard().then(stage_fn("first", move |_| first.clone().into())).then(stage_fn(
    ///     "second",
    ///     move |cx| {
    ///         assert_eq!(cx.so_far.settings.max_output, Some(9));
    ///         second.clone().into()
    ///     },
    /// ));
    /// let scene = Scene::new(ModelProfile::conservative("harbour", "pilot"));
    /// let settings = scene.prepare(&pipeline)?.ready().unwrap().settings;
    /// assert_eq!((settings.max_output, settings.seed), (Some(9), Some(7)));
    /// assert_eq!(settings.extra, [option(r#"{"tide":"low"}"#), option(r#"{"wind":5}"#)]);
    /// # Ok::<(), agent_prepare::PrepareError>(())
    /// ```
    pub settings: RequestSettings,
    /// What later stages and tools of the step find as shared context, laid over what there is.
    ///
    /// ```
    /// # use agent_core::ModelProfile;
    /// # use agent_prepare::{Context, Overrides, Pipeline, Scene, Verdict, stage_fn};
    /// #[derive(Debug, PartialEq)]
    /// struct Tide(&'static str);
    ///
    /// let pipeline = Pipeline::standard()
    ///     .then(stage_fn("tide", |_| Overrides { context: Context::default().with(Tide("low")), ..Overrides::default() }.into()))
    ///     .then(stage_fn("behind", |cx| {
    ///         assert_eq!((cx.context.get::<Tide>(), cx.context.get::<u8>()), (Some(&Tide("low")), Some(&5)));
    ///         Verdict::unchanged()
    ///     }));
    /// let mut scene = Scene::new(ModelProfile::conservative("harbour", "pilot"));
    /// scene.context = Context::default().with(Tide("high")).with(5_u8);
    /// let context = scene.prepare(&pipeline)?.ready().unwrap().context;
    /// assert_eq!((context.get::<Tide>(), context.get::<u8>()), (Some(&Tide("low")), Some(&5)));
    /// # Ok::<(), agent_prepare::PrepareError>(())
    /// ```
    pub context: Context,
    /// Words for this step only, gone with the next: the history holds none of them. They come behind the conversation, so
    /// the prefix that a provider cached is read all the same; they are no part of the next one.
    ///
    /// Where a model's thinking is bound to the words before it, taking words away again would make its provider refuse the
    /// conversation. There the words of a step are appended as a note, unless the same words are the last ones that stand;
    /// a step that is prepared twice says them once. Other words say that they take the place of all before them, and the
    /// first step without words appends that none holds any longer.
    ///
    /// ```
    /// # use agent_core::{ModelProfile, NoteKind};
    /// # use agent_prepare::{Overrides, Pipeline, Scene, Verdict, stage_fn};
    /// let pipeline = Pipeline::standard()
    ///     .then(stage_fn("first", |_| Overrides::default().remind("Mind the tide.").into()))
    ///     .then(stage_fn("second", |cx| {
    ///         assert_eq!(cx.so_far.ephemeral[0].as_str(), "Mind the tide.");
    ///         Overrides::default().remind("Mind the wind.").into()
    ///     }));
    /// let mut scene = Scene::new(ModelProfile::conservative("harbour", "pilot"));
    /// let prepared = scene.prepare(&pipeline)?.ready().unwrap();
    /// let words = "[system directive — not user input]\n\
    ///     <system-reminder>\nMind the tide.\n</system-reminder>\n\
    ///     <system-reminder>\nMind the wind.\n</system-reminder>";
    /// assert_eq!((prepared.ephemeral[0].as_str(), prepared.append.len()), (words, 0));
    ///
    /// scene.model.binds_thinking_to_prefix = true;
    /// let prepared = scene.prepare(&pipeline)?.ready().unwrap();
    /// assert_eq!((prepared.ephemeral.len(), prepared.append[0].text.as_str()), (0, words));
    /// # Ok::<(), agent_prepare::PrepareError>(())
    /// ```
    pub ephemeral: Vec<Text>,
    /// Notes that stay in the history, appended before the request. A step whose process died is prepared again: ask
    /// [`crate::StageCx::stands`] first.
    ///
    /// ```
    /// # use agent_core::{Entry, ModelProfile, Note, NoteKind, Text};
    /// # use agent_prepare::{Overrides, Pipeline, Scene, Verdict, stage_fn};
    /// let note = Note { kind: NoteKind::State, text: Text::new("The tests pass.").unwrap() };
    /// let noted = note.clone();
    /// let pipeline = Pipeline::standard().then(stage_fn("notes", move |cx| {
    ///     if cx.stands(noted.text.as_str()) {
    ///         return Verdict::unchanged();
    ///     }
    ///     Overrides::default().note(noted.clone()).into()
    /// })).then(stage_fn("behind", |cx| {
    ///     assert!(cx.so_far.append.len() + cx.of.history.entries().len() == 1);
    ///     Verdict::unchanged()
    /// }));
    /// let mut scene = Scene::new(ModelProfile::conservative("harbour", "pilot"));
    /// assert_eq!(scene.prepare(&pipeline)?.ready().unwrap().append, [note.clone()]);
    /// scene.history.push(Entry::Note(note)).unwrap();
    /// assert!(scene.prepare(&pipeline)?.ready().unwrap().append.is_empty());
    /// # Ok::<(), agent_prepare::PrepareError>(())
    /// ```
    pub append: Vec<Note>,
}

impl Overrides {
    /// These changes with words for this step only; blank ones are none.
    #[must_use]
    pub fn remind(mut self, words: impl Into<String>) -> Self {
        self.ephemeral.extend(Text::new(words));
        self
    }

    /// These changes with a note that stays in the history.
    #[must_use]
    pub fn note(mut self, note: Note) -> Self {
        self.append.push(note);
        self
    }

    /// Lays later changes over these.
    pub(crate) fn lay(&mut self, later: Self) {
        let Self {
            model,
            system,
            tool_choice,
            active_tools,
            narrow_on_wire,
            settings,
            context,
            ephemeral,
            append,
        } = later;
        replace(&mut self.model, model);
        replace(&mut self.system, system);
        replace(&mut self.tool_choice, tool_choice);
        replace(&mut self.active_tools, active_tools);
        replace(&mut self.narrow_on_wire, narrow_on_wire);
        self.settings = std::mem::take(&mut self.settings).overlaid(&settings);
        self.context = std::mem::take(&mut self.context).merged(&context);
        self.ephemeral.extend(ephemeral);
        self.append.extend(append);
    }
}

fn replace<T>(value: &mut Option<T>, later: Option<T>) {
    if later.is_some() {
        *value = later;
    }
}

#[cfg(test)]
mod tests {
    use agent_core::{NoteKind, ProviderData, RawJson};

    use super::*;

    /// An absent field leaves what stands, and a given one replaces it.
    #[test]
    fn what_is_absent_is_unchanged_and_what_is_later_replaces() {
        let option = |json: &str| ProviderData { provider: "p".into(), json: RawJson::parse(json).unwrap() };
        let note = |words: &str| Note { kind: NoteKind::State, text: Text::new(words).unwrap() };
        let full = |n: u8| {
            let settings = RequestSettings {
                max_output: Some(n.into()),
                extra: vec![option(&format!("{{\"n\":{n}}}"))],
                ..RequestSettings::default()
            };
            Overrides {
                model: None,
                system: Some(SystemBlock::new(n.to_string()).into_iter().collect()),
                tool_choice: Some(ToolChoice::Tool(n.to_string())),
                active_tools: Some(vec![n.to_string()]),
                narrow_on_wire: Some(n == 1),
                settings,
                context: Context::default().with(n),
                ..Overrides::default()
            }
            .remind(n.to_string())
            .note(note(&n.to_string()))
        };
        let mut laid = full(1);
        laid.lay(Overrides::default());
        assert_eq!(format!("{laid:?}"), format!("{:?}", full(1)));
        laid.lay(full(2));
        let mut expect = full(2);
        expect.settings.extra = vec![option(r#"{"n":1}"#), option(r#"{"n":2}"#)];
        expect.ephemeral = ["1", "2"].into_iter().filter_map(Text::new).collect();
        expect.append = vec![note("1"), note("2")];
        assert_eq!(format!("{laid:?}"), format!("{expect:?}"));
        assert_eq!(laid.context.get::<u8>(), Some(&2));
    }

    #[test]
    fn blank_words_are_none() {
        assert!(Overrides::default().remind(" \n").ephemeral.is_empty());
    }
}
