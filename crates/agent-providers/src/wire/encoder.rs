//! The encoder of one session: what was encoded stays the same buffers for ever (requirement M5, cases C01 and C03).

use agent_core::{
    Body, Diagnostic, Encoded, Encoder, Entry, FinishKind, HistoryView, MarkPoint, ModelProfile,
    ModelRequest, Outgoing, Rendered, SystemBlock, ToolCard,
};
use bytes::Bytes;

use super::form::{Cx, Form, Head, Run, UNSCOPED};
use super::joined::{Joined, Pushed};
use super::json::quoted;
use super::marks::{Marks, Spot, Unmarkable};
use super::schema::is_sent;
use crate::names::ToolNames;

/// Encodes the requests of one session in one format.
#[derive(Debug)]
pub(crate) struct SessionEncoder<F: Form> {
    form: F,
    profile: ModelProfile,
    names: ToolNames,
    /// What to tell of a model that little is known of.
    unknown: Option<Diagnostic>,
    start: Bytes,
    system: Frozen<SystemBlock>,
    tools: Frozen<ToolCard>,
    /// The tools that are sent; the others were named when the list was encoded. The rest of a request knows of
    /// these only.
    sent: Vec<ToolCard>,
    messages: Joined<F>,
}

/// A list at the head of the request, encoded again only when it changed.
#[derive(Debug)]
struct Frozen<T> {
    of: Vec<T>,
    bytes: Bytes,
    /// As in [`Head`].
    splices: Vec<usize>,
}

impl<F: Form> SessionEncoder<F> {
    /// An encoder that shares the names it gives out with a decoder.
    pub(crate) fn new(form: F, profile: ModelProfile, names: ToolNames) -> Self {
        let start = Bytes::from(form.start(&profile));
        let unknown = (!profile.known).then(|| unknown_model(&profile));
        Self {
            unknown,
            form,
            profile,
            names,
            start,
            system: Frozen::empty(),
            tools: Frozen::empty(),
            sent: Vec::new(),
            messages: Joined::default(),
        }
    }

    /// Encodes what is new; everything else is remembered.
    fn refresh(&mut self, request: &ModelRequest<'_>, diagnostics: &mut Vec<Diagnostic>) {
        let Self { form, profile, names, system, tools, sent, messages, .. } = self;
        if tools.of != request.tools {
            let now = request.tools.iter().filter(|tool| is_sent(tool, F::RULES, &profile.provider));
            let before = std::mem::replace(sent, now.cloned().collect());
            if profile.deferred_tools && !deferred(&before).eq(deferred(sent)) {
                // What was found is a reference only while the tool is there.
                *messages = Joined::default();
            }
        }
        let mut cx = Cx { names, profile, diagnostics, tools: sent };
        system.refresh(request.system, |blocks| form.system(blocks, &mut cx));
        tools.refresh(request.tools, |tools| form.tools(tools, &mut cx));
        messages.follow(request.draft.view(), form, &mut cx);
    }

    fn spot(&self, at: MarkPoint) -> Result<Spot, Unmarkable> {
        match at {
            MarkPoint::Tools => self.tools.last_splice().map(Spot::Tools),
            MarkPoint::System(block) => self.system.splice(block).map(Spot::System),
            MarkPoint::Entry(entry) => self.messages.splice(entry).map(Spot::Messages),
            _ => Err(Unmarkable::Nothing),
        }
    }

    /// Words for this call only, which stand after everything that stays.
    fn ephemeral(&self, request: &ModelRequest<'_>, diagnostics: &mut Vec<Diagnostic>) -> Vec<Run<F::Role>> {
        let mut cx = Cx { names: &self.names, profile: &self.profile, diagnostics, tools: &self.sent };
        let waiting = self.messages.waiting();
        if waiting > 0 {
            cx.note("messages", format!("the last {waiting} wait: {AWAITED}"));
        }
        let mut runs = Vec::new();
        if request.draft.view().goes_on() && !self.messages.is_awaiting() {
            runs.extend(self.form.runs(Rendered::Continue, &mut cx));
        }
        let notes = request.draft.ephemeral();
        if notes.is_empty() {
            return runs;
        }
        if self.messages.is_awaiting() || is_paused(request.draft.view()) {
            cx.note("reminders", format!("left out: {AWAITED}"));
        } else {
            runs.extend(self.form.reminders(notes, &mut cx));
        }
        runs
    }

    /// The list of messages, with the system prompt in front where it belongs there; whether one is limited to its turn.
    fn list(
        &self,
        request: &ModelRequest<'_>,
        marks: &Marks,
        body: &mut Body,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> bool {
        let marker = |ttl| self.form.marker(ttl);
        let has_system = F::SYSTEM_IN_LIST && !self.system.bytes.is_empty();
        if has_system {
            self.system.push(body, &marks.of_part(Spot::in_system, marker));
            let is_alone = self.messages.is_empty() && request.draft.ephemeral().is_empty();
            body.push(Bytes::from_static(if is_alone { b"" } else { b"," }));
        }
        let after = self.ephemeral(request, diagnostics);
        let is_paused = self.messages.is_awaiting() || is_paused(request.draft.view());
        let in_messages = marks.of_part(Spot::in_messages, marker);
        let Pushed { last, scopes } = self.messages.push(body, &in_messages, after, is_paused);
        if scopes.lost {
            diagnostics.push(Diagnostic { what: "note".into(), why: UNSCOPED.into() });
        }
        let model_ends = last.is_some_and(F::is_model) && F::MODEL_MAY_NOT_END;
        if model_ends && !is_paused {
            diagnostics.push(Diagnostic { what: "messages".into(), why: ENDS_WITH_MODEL.into() });
        }
        body.push(Bytes::from_static(F::glue(last, None)));
        scopes.kept
    }
}

/// The names of tools that are found later, in order.
fn deferred(tools: &[ToolCard]) -> impl Iterator<Item = &str> {
    tools.iter().filter(|card| card.is_deferred()).map(ToolCard::name)
}

impl<F: Form> Encoder for SessionEncoder<F> {
    fn encode(&mut self, request: &ModelRequest<'_>) -> Encoded {
        let mut diagnostics: Vec<Diagnostic> = self.unknown.iter().cloned().collect();
        self.refresh(request, &mut diagnostics);
        let marks = Marks::of(request.marks, &self.profile.cache, |at| self.spot(at), &mut diagnostics);
        let mut body = Body::default();
        body.push(self.start.clone());
        let marker = |ttl| self.form.marker(ttl);
        if !F::SYSTEM_IN_LIST {
            self.system.push(&mut body, &marks.of_part(Spot::in_system, marker));
        }
        self.tools.push(&mut body, &marks.of_part(Spot::in_tools, marker));
        body.push(Bytes::from_static(F::LIST));
        let scoped = self.list(request, &marks, &mut body, &mut diagnostics);
        let mut cx = Cx {
            names: &self.names,
            profile: &self.profile,
            diagnostics: &mut diagnostics,
            tools: &self.sent,
        };
        let ModelRequest { system, draft, settings, tool_choice, marks, stream, .. } = *request;
        let request =
            &ModelRequest { tools: &self.sent, system, draft, settings, tool_choice, marks, stream };
        let mut tail = self.form.tail(request, &mut cx);
        tail.lay_over(request.settings, &mut cx);
        body.push(Bytes::from(tail.into_bytes()));
        body.push(Bytes::from_static(self.form.end(request.stream)));
        let headers = self.form.headers(request, &self.profile, scoped);
        Encoded { request: Outgoing { body, stream: request.stream, headers }, diagnostics }
    }
}

impl<T: Clone + PartialEq> Frozen<T> {
    fn empty() -> Self {
        Self { of: Vec::new(), bytes: Bytes::new(), splices: Vec::new() }
    }

    /// Where the marker behind the item at this position goes.
    fn splice(&self, item: usize) -> Result<usize, Unmarkable> {
        if item >= self.of.len() {
            return Err(Unmarkable::Nothing);
        }
        self.splices.get(item).copied().ok_or(Unmarkable::NoBlock)
    }

    /// Where the marker behind all that can carry one goes.
    fn last_splice(&self) -> Result<usize, Unmarkable> {
        let none = if self.bytes.is_empty() { Unmarkable::Nothing } else { Unmarkable::NoBlock };
        self.splices.last().copied().ok_or(none)
    }

    /// Appends the list whole, or as slices of its buffer around markers, which are in the order of the bytes.
    fn push(&self, body: &mut Body, markers: &[(usize, &'static [u8])]) {
        let mut from = 0;
        for (at, marker) in markers {
            body.push(self.bytes.slice(from..*at));
            body.push(Bytes::from_static(marker));
            from = *at;
        }
        body.push(self.bytes.slice(from..));
    }

    fn refresh(&mut self, given: &[T], render: impl FnOnce(&[T]) -> Head) {
        if self.of == given {
            return;
        }
        let Head { bytes, splices } = if given.is_empty() { Head::default() } else { render(given) };
        *self = Self { of: given.to_vec(), bytes: Bytes::from(bytes), splices };
    }
}

/// Whether the model's words end a conversation that its provider paused: they are sent again as they are.
fn is_paused(view: HistoryView<'_>) -> bool {
    match view.entries().last() {
        Some(Entry::Step(step)) => step.finish().kind == FinishKind::Pause,
        Some(Entry::User(_) | Entry::Note(_) | Entry::Boundary(_)) | None => false,
    }
}

fn unknown_model(profile: &ModelProfile) -> Diagnostic {
    let ModelProfile { provider, model, context_window, max_output, .. } = profile;
    let setting = SERVERS.iter().find(|(name, _)| name == provider).map(|(_, setting)| setting);
    let whose =
        setting.map(|setting| format!("; its window is what the server was started with ({setting})"));
    let entry = format!(
        r#"{{"models":[{{"model":{},"context_window":{context_window},"max_output":{max_output}}}]}}"#,
        quoted(model)
    );
    Diagnostic {
        what: "model".into(),
        why: format!(
            "too little is known of the model {model:?}: a window of {context_window} tokens and {max_output} of output are assumed{}; say what it can do in a table of models, {entry}, that `agent run --models FILE` or `Catalog::with_overrides` reads",
            whose.unwrap_or_default()
        ),
    }
}

/// Servers of one's own, and the setting that decides how long a prompt may be.
const SERVERS: &[(&str, &str)] = &[
    ("ollama", "num_ctx"),
    ("ollama-chat", "num_ctx"),
    ("llamacpp", "--ctx-size"),
    ("vllm", "--max-model-len"),
    ("lmstudio", "the context length of the loaded model"),
];
const AWAITED: &str = "the provider is not done, and takes nothing but results before it goes on";
const ENDS_WITH_MODEL: &str =
    "the conversation ends with the model's own words; many models refuse that, end it with a user message";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalog;

    #[test]
    fn who_is_told_of_an_unknown_model_is_told_what_to_write() {
        #[track_caller]
        fn check(provider: &str, model: &str, setting: &str) {
            let why = unknown_model(&ModelProfile::conservative(provider, model)).why;
            assert_eq!(why.contains("what the server was started with"), !setting.is_empty(), "{why}");
            assert!(why.contains(setting), "{why}");
            let entry = &why[why.find('{').unwrap()..=why.rfind('}').unwrap()];
            let catalog = Catalog::builtin().with_overrides(entry).unwrap();
            assert!(catalog.profile(provider, model).known, "{entry}");
        }
        check("anthropic", "my \"own\"", "");
        check("ollama", "qwen3:4b", "(num_ctx)");
        check("ollama-chat", "qwen3:4b", "(num_ctx)");
        check("llamacpp", "model.gguf", "(--ctx-size)");
        check("vllm", "Qwen/Qwen3-0.6B", "(--max-model-len)");
        check("lmstudio", "qwen3-4b", "(the context length of the loaded model)");
    }
}
