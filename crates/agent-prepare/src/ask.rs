//! Words that a stage needs from a model: asked for as data, answered by the driver.

use agent_core::{ModelErrorKind, Text};

/// A question to a model. Whoever returns it is called again with the [`Answer`].
///
/// The driver sends it without tools to run, within a deadline, under the run's cancellation, with a retry budget of its
/// own; what it costs counts for the session.
///
/// A stage or a tier is pure: nothing of it remembers that it asked. It finds the answer where it is called again, in
/// [`crate::StageCx::answer`] or [`crate::TierCx::answer`], and says there what becomes of a failure:
///
/// ```
/// use agent_core::{ModelProfile, Text};
/// use agent_prepare::{Ask, Need, Overrides, Pipeline, Scene, StageCx, Verdict, Way, stage_fn};
///
/// fn tone(cx: &StageCx<'_>) -> Verdict {
///     match cx.answer {
///         None => {
///             let system = Text::or("Answer with one word.", "-");
///             let words = Text::or("Is the user in a hurry?", "-");
///             Verdict::Ask(Ask { way: Way::Apart { system, words }, max_output: 16 })
///         }
///         Some(Ok(word)) if word.as_str() == "Yes" => Overrides::default().remind("Be brief.").into(),
///         // The step does without.
///         Some(Ok(_) | Err(_)) => Verdict::unchanged(),
///     }
/// }
///
/// let scene = Scene::new(ModelProfile::conservative("harbour", "pilot"));
/// let pipeline = Pipeline::standard().then(stage_fn("tone", tone));
/// let mut preparing = pipeline.begin();
/// let Need::Ask { stage: "tone", .. } = preparing.advance(&pipeline, &scene.cx())? else { panic!("it asks") };
/// preparing.answer(Ok(Text::or("Yes", "-")));
/// let prepared = preparing.advance(&pipeline, &scene.cx())?.ready().unwrap();
/// assert!(prepared.ephemeral[0].as_str().contains("Be brief."));
/// # Ok::<(), agent_prepare::PrepareError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "written as a literal by stages, read by drivers")]
pub struct Ask {
    /// Whom.
    pub way: Way,
    /// Most output tokens of the answer.
    pub max_output: u32,
}

/// How a model is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must be able to ask in every way")]
pub enum Way {
    /// The session's own model, with these words behind the conversation as it stands: the provider's cached prefix is
    /// read instead of paid again.
    OnPrefix {
        /// What is asked, in the user role.
        words: Text,
    },
    /// The model for such work (the session's own when none is configured), at temperature 0, with nothing but this.
    Apart {
        /// The system prompt.
        system: Text,
        /// All that is asked about.
        words: Text,
    },
}

/// What came of an [`Ask`].
pub type Answer = Result<Text, AskFailure>;

/// An [`Ask`] that gave no words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskFailure {
    /// The model said nothing.
    #[error("the model answered without a word")]
    Blank,
    /// The model called a tool instead of answering.
    #[error("the model called {tool} instead of answering")]
    CalledTool {
        /// The tool.
        tool: String,
    },
    /// The answer did not come in time.
    #[error("no answer came within {millis} ms")]
    TimedOut {
        /// How long was waited.
        millis: u64,
    },
    /// The answer was cut at its limit.
    #[error("the answer was longer than its limit")]
    TooLong,
    /// The call failed.
    #[error("{kind}: {message}", kind = kind.as_str())]
    Model {
        /// The class of the failure.
        kind: ModelErrorKind,
        /// What happened.
        message: String,
    },
}
