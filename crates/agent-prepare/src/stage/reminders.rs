//! Words that hold for the step at hand, and are not the user's.

use agent_core::Text;

use super::{Rule, Stage, StageCx, Verdict};
use crate::Overrides;

/// Reminds the model, in the user role, of what holds now (requirement P3).
///
/// All reminders of a step are one message: a line that says whose words they are, then a `<system-reminder>` block each.
/// They come behind the conversation and are gone with the next step, so the history holds none and the cached prefix does
/// not change. Where the model's thinking is bound to the words before it, that cannot be, and they stay as a note; see
/// [`Overrides::ephemeral`].
///
/// ```
/// use agent_core::ModelProfile;
/// use agent_prepare::{ActiveReminders, Context, Pipeline, Reminders, Scene};
///
/// let pipeline = Pipeline::standard()
///     .then(Reminders::these(["Use no emoji."]))
///     .then(Reminders::shared())
///     .then(Reminders::by(|cx| (cx.of.step.number() > 20).then_some("Come to an end.")));
///
/// let mut scene = Scene::new(ModelProfile::conservative("harbour", "pilot"));
/// scene.context = Context::default().with(ActiveReminders(vec!["The build is red.".into()]));
/// let prepared = scene.prepare(&pipeline)?.ready().unwrap();
/// assert_eq!(
///     prepared.ephemeral[0].as_str(),
///     "[system directive — not user input]\n\
///      <system-reminder>\nUse no emoji.\n</system-reminder>\n\
///      <system-reminder>\nThe build is red.\n</system-reminder>"
/// );
/// # Ok::<(), agent_prepare::PrepareError>(())
/// ```
#[derive(Debug)]
pub struct Reminders(Rule<Vec<Text>>);

/// The reminders that hold now, as a value of the shared [`crate::Context`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a list with a type of its own")]
pub struct ActiveReminders(pub Vec<String>);

impl Reminders {
    /// Always these.
    pub fn these(words: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let texts = texts(words);
        Self(Rule::new(move |_| texts.clone()))
    }

    /// Those of [`ActiveReminders`] in the context; none without it.
    pub fn shared() -> Self {
        Self::by(|cx| cx.context.get::<ActiveReminders>().map_or_else(Vec::new, |active| active.0.clone()))
    }

    /// What this function says: a list, or an option. Blank words are none.
    pub fn by<W: IntoIterator<Item = S>, S: Into<String>>(
        rule: impl Fn(&StageCx<'_>) -> W + Send + Sync + 'static,
    ) -> Self {
        Self(Rule::new(move |cx| texts(rule(cx))))
    }
}

fn texts(words: impl IntoIterator<Item = impl Into<String>>) -> Vec<Text> {
    words.into_iter().filter_map(|words| Text::new(words)).collect()
}

impl Stage for Reminders {
    fn name(&self) -> &'static str {
        "reminders"
    }

    fn run(&self, cx: &StageCx<'_>) -> Verdict {
        Overrides { ephemeral: self.0.of(cx), ..Overrides::default() }.into()
    }
}
