//! The end of the pipeline: the changes of all stages, held against the step's model and tools.

use std::collections::BTreeSet;
use std::sync::Arc;

use agent_core::{
    Diagnostic, LanguageModel, ModelProfile, Note, RequestSettings, SystemBlock, Text, ToolCard, ToolChoice,
};

use crate::words::{Said, say};
use crate::{Context, Overrides, PrepareError, StepCx};

/// What one step's request is made of, beside the conversation.
#[derive(Debug, Clone, Default)]
#[expect(clippy::exhaustive_structs, reason = "a record read by drivers")]
pub struct Prepared {
    /// Another model than the call's.
    pub model: Option<Arc<dyn LanguageModel>>,
    /// Another system prompt than the session's.
    pub system: Option<Vec<SystemBlock>>,
    /// Whether and which tool must be called, in a form that the model takes; it carries the narrowing where the model
    /// can be told so.
    pub tool_choice: ToolChoice,
    /// The tools that may be called; all without it. A call of another one is answered with an error.
    pub active: Option<BTreeSet<String>>,
    /// Whether inactive tools are left out of the request.
    pub narrow_on_wire: bool,
    /// Settings to lay over those of the call; see [`Overrides::settings`].
    pub settings: RequestSettings,
    /// The shared context as the stages left it.
    pub context: Context,
    /// Words for this step only, all in one message.
    pub ephemeral: Vec<Text>,
    /// Notes to append to the history before the request.
    pub append: Vec<Note>,
    /// What the model cannot be asked for, and what is done instead.
    pub diagnostics: Vec<Diagnostic>,
}

/// Holds what one stage said against the session's tools.
pub(crate) fn check(
    stage: &'static str,
    changes: &Overrides,
    tools: &[ToolCard],
) -> Result<(), PrepareError> {
    let active = changes.active_tools.as_deref();
    let chosen = changes.tool_choice.as_ref().map(named);
    let is_allowed = matches!(changes.tool_choice, Some(ToolChoice::Allowed { .. }));
    if active.is_some_and(<[String]>::is_empty) || (is_allowed && chosen.is_some_and(<[String]>::is_empty)) {
        return Err(PrepareError::NoTools { stage });
    }
    let mut names = active.into_iter().chain(chosen).flatten();
    match names.find(|name| !tools.iter().any(|card| card.name() == *name)) {
        Some(tool) => {
            let known = tools.iter().map(ToolCard::name).collect::<Vec<_>>().join(", ");
            let known = if known.is_empty() { "none".to_owned() } else { known };
            Err(PrepareError::UnknownTool { stage, tool: tool.clone(), known })
        }
        None => Ok(()),
    }
}

/// The changes of all stages as one step. `stage` is the last one that spoke of tools or of the model.
pub(crate) fn prepared(
    changes: Overrides,
    cx: &StepCx<'_>,
    context: Context,
    stage: &'static str,
) -> Result<Prepared, PrepareError> {
    let model = changes.model.as_ref().map_or(cx.model, |model| model.profile());
    let (narrow_on_wire, mut diagnostics) = bound(&changes, model);
    let wanted = changes.tool_choice.unwrap_or_default();
    let active = active(changes.active_tools, &wanted, Target { stage, model, tools: cx.tools })?;
    let settings = cx.settings.clone().overlaid(&changes.settings);
    let wire = Wire { model, tools: cx.tools, can_force: model.can_force(&settings), narrow_on_wire };
    let (tool_choice, asked) = told(wanted, active.as_ref(), wire);
    let mut words = changes.ephemeral;
    for Asked { in_words, instead_of } in asked {
        words.extend(Text::new(in_words));
        diagnostics.extend(instead_of.map(|why| diagnostic("tool_choice", why)));
    }
    let mut append = changes.append;
    let ephemeral = match say(&words, model, cx.history) {
        Said::Nothing => Vec::new(),
        Said::Once(text) => vec![text],
        Said::Stays(note) => {
            append.push(note);
            Vec::new()
        }
    };
    Ok(Prepared {
        model: changes.model,
        system: changes.system,
        tool_choice,
        active,
        narrow_on_wire,
        settings: changes.settings,
        context,
        ephemeral,
        append,
        diagnostics,
    })
}

/// Whether inactive tools are left out of the request, and what to say of changes to the prefix that thinking is bound to.
fn bound(changes: &Overrides, model: &ModelProfile) -> (bool, Vec<Diagnostic>) {
    let narrows = changes.narrow_on_wire.unwrap_or(false);
    if !model.binds_thinking_to_prefix {
        return (narrows, Vec::new());
    }
    let binds = format!("{} binds its thinking to the system prompt and the list of tools", model.model);
    let narrowed = narrows.then(|| diagnostic("narrow_on_wire", format!("{binds}; the list was left whole")));
    let why = format!("{binds}; another prompt was sent, and what it thought before may be refused");
    let system = changes.system.is_some().then(|| diagnostic("system", why));
    (false, narrowed.into_iter().chain(system).collect())
}

fn diagnostic(what: &str, why: String) -> Diagnostic {
    Diagnostic { what: what.to_owned(), why }
}

/// What a choice must fit.
#[derive(Clone, Copy)]
struct Target<'a> {
    stage: &'static str,
    model: &'a ModelProfile,
    tools: &'a [ToolCard],
}

/// What a model cannot be told in the request and is asked for in words.
struct Asked {
    in_words: String,
    instead_of: Option<String>,
}

/// The tools that may be called; `None` when all may.
fn active(
    wanted: Option<Vec<String>>,
    choice: &ToolChoice,
    target: Target<'_>,
) -> Result<Option<BTreeSet<String>>, PrepareError> {
    let named = named(choice);
    let inactive = wanted.as_ref().and_then(|names| named.iter().find(|tool| !names.contains(tool)));
    if let Some(tool) = inactive {
        return Err(PrepareError::ForcedInactive { stage: target.stage, tool: tool.clone() });
    }
    target.has_one_of(named)?;
    target.has_one_of(wanted.as_deref().unwrap_or_default())?;
    // Only a list of what is allowed narrows: one forced tool says what to do now, and not what may be done.
    let allowed = matches!(choice, ToolChoice::Allowed { .. }).then(|| named.to_vec());
    let Some(names) = allowed.or(wanted) else { return Ok(None) };
    let names: BTreeSet<String> = names.into_iter().filter(|name| target.owner(name).is_none()).collect();
    let is_all = target.tools.iter().all(|card| names.contains(card.name()));
    Ok((!is_all).then_some(names))
}

impl Target<'_> {
    /// Refuses a list of tools that the model has none of. An empty list asks for nothing.
    fn has_one_of(&self, names: &[String]) -> Result<(), PrepareError> {
        let mut tool = None;
        for name in names {
            let Some(provider) = self.owner(name) else { return Ok(()) };
            tool = tool.or(Some((name, provider)));
        }
        let Some((tool, provider)) = tool else { return Ok(()) };
        Err(PrepareError::ForeignTool {
            stage: self.stage,
            tool: tool.clone(),
            provider: provider.to_owned(),
            model: self.model.model.clone(),
        })
    }

    /// The provider that runs a tool, when it is not the model's.
    fn owner(&self, name: &str) -> Option<&str> {
        let card = self.tools.iter().find(|card| card.name() == name && card.is_hosted())?;
        let provider = card.data().map(|data| data.provider.as_str())?;
        (provider != self.model.provider).then_some(provider)
    }
}

/// What of a choice can be told in the request.
#[derive(Clone, Copy)]
struct Wire<'a> {
    model: &'a ModelProfile,
    tools: &'a [ToolCard],
    can_force: bool,
    narrow_on_wire: bool,
}

/// A choice as this model takes it, and what is asked in words because it cannot be told.
fn told(wanted: ToolChoice, active: Option<&BTreeSet<String>>, wire: Wire<'_>) -> (ToolChoice, Vec<Asked>) {
    let Wire { model, tools, can_force, narrow_on_wire } = wire;
    // In the order of the list of tools, so that the same narrowing gives the same bytes.
    let listed = active.map(|names| {
        let listed = tools.iter().map(ToolCard::name).filter(|name| names.contains(*name));
        listed.map(str::to_owned).collect::<Vec<_>>()
    });
    let mut asked = Vec::new();
    let (one, is_required) = match wanted {
        ToolChoice::Auto => (None, false),
        ToolChoice::Required => (None, true),
        ToolChoice::Tool(name) => (Some(name), true),
        ToolChoice::Allowed { required, .. } => (None, required),
        other @ (ToolChoice::None | _) => return (other, asked),
    };
    let is_forced = is_required && can_force;
    if is_required && !is_forced {
        let when = if model.forced_tool_choice { " while it thinks" } else { "" };
        let why = format!("{} cannot be forced to call a tool{when}; it is asked to in words", model.model);
        asked.push(Asked { in_words: nudge(one.as_deref()), instead_of: Some(why) });
    }
    let choice = match (one, listed.filter(|_| !narrow_on_wire)) {
        (Some(name), _) if is_forced => ToolChoice::Tool(name),
        (Some(name), _) if model.allowed_tools => ToolChoice::Allowed { tools: vec![name], required: false },
        (None, Some(tools)) if model.allowed_tools => ToolChoice::Allowed { tools, required: is_forced },
        (None, Some(tools)) => {
            let in_words = format!(
                "For now, call only these tools: {}. A call of another tool is refused.",
                tools.join(", ")
            );
            asked.push(Asked { in_words, instead_of: None });
            if is_forced { ToolChoice::Required } else { ToolChoice::Auto }
        }
        (None, None) if is_forced => ToolChoice::Required,
        (Some(_) | None, None | Some(_)) => ToolChoice::Auto,
    };
    (choice, asked)
}

fn nudge(tool: Option<&str>) -> String {
    match tool {
        Some(tool) => format!("Call the tool {tool} now."),
        None => "Call a tool now; do not answer with words alone.".to_owned(),
    }
}

/// The tools that a choice names.
fn named(choice: &ToolChoice) -> &[String] {
    match choice {
        ToolChoice::Tool(tool) => std::slice::from_ref(tool),
        ToolChoice::Allowed { tools, .. } => tools,
        ToolChoice::Auto | ToolChoice::Required | ToolChoice::None | _ => &[],
    }
}
