//! Any history there can be, made out of random bytes: odd words, odd names, parts of every provider, boundaries.

use agent_core::{
    AssistantPart, AssistantText, CallId, ContentPart, Entry, EntryId, FilePart, FileSource, Finish,
    FinishKind, History, Message, Note, NoteKind, ProviderData, ProviderPart, RawJson, Reasoning, Response,
    Rewrite, Seal, StepRecord, Text, ToolCall, ToolInput, ToolOutput, ToolResult, UserMessage, UserPart,
};

/// Choices made by random bytes; when they are used up, the first of everything is chosen.
pub(crate) struct Dice(std::vec::IntoIter<u8>);

impl Dice {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self(bytes.into_iter())
    }

    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        usize::from(self.0.next().unwrap_or(0)) % sides
    }

    pub(crate) fn one<'t, T: ?Sized>(&mut self, of: &[&'t T]) -> &'t T {
        of[self.roll(of.len())]
    }

    pub(crate) fn coin(&mut self) -> bool {
        self.roll(2) == 1
    }
}

/// A history of 1 to 12 entries for a provider whose own parts are valid; with `boundaries`, also of both kinds.
pub(crate) fn history(dice: &mut Dice, provider: &str, boundaries: bool) -> History {
    let mut maker = Maker { dice, provider, calls: 0 };
    let mut log = History::new();
    for _ in 0..=maker.dice.roll(12) {
        let entry = match maker.dice.roll(if boundaries { 9 } else { 7 }) {
            0 => Entry::User(maker.user()),
            1 => maker.note(),
            2..=6 => maker.step(),
            7 => maker.summary(log.len()),
            _ => maker.clearing(log.len()),
        };
        // A boundary that reaches back before the last one is refused, and is left out.
        let _refused = log.push(entry);
    }
    // No request is made of a conversation in which nobody asked for anything.
    if !log
        .view()
        .messages()
        .any(|said| matches!(said, Message::User(_) | Message::Note(_) | Message::TurnNote(_)))
    {
        log.push(Entry::User(maker.user())).unwrap();
    }
    log
}

struct Maker<'d> {
    dice: &'d mut Dice,
    provider: &'d str,
    calls: usize,
}

impl Maker<'_> {
    fn text(&mut self) -> Text {
        Text::new(self.dice.one(WORDS)).unwrap()
    }

    fn user(&mut self) -> UserMessage {
        let parts = (0..=self.dice.roll(3)).map(|_| match self.dice.roll(4) {
            3 => UserPart::File(self.file()),
            _ => UserPart::Text(self.text()),
        });
        UserMessage::new(parts.collect()).unwrap()
    }

    fn note(&mut self) -> Entry {
        let kind = if self.dice.coin() { NoteKind::TurnScoped } else { NoteKind::Reminder };
        Entry::Note(Note { kind, text: self.text() })
    }

    fn summary(&mut self, end: usize) -> Entry {
        let kept_from = EntryId::at(end.saturating_sub(self.dice.roll(4)));
        let (text, strip_reasoning) = (self.text(), self.dice.coin());
        Entry::Boundary(Rewrite::Summary { text, kept_from, strip_reasoning })
    }

    fn clearing(&mut self, end: usize) -> Entry {
        let results_to = EntryId::at(end.saturating_sub(self.dice.roll(3)));
        Entry::Boundary(Rewrite::Cleared {
            results_to,
            keep_bytes: self.dice.roll(12),
            strip_reasoning: false,
            offloaded: false,
        })
    }

    /// What a model said, from nothing at all to five parts, with a result for each of its calls.
    fn step(&mut self) -> Entry {
        let mut parts = Vec::new();
        for _ in 0..self.dice.roll(6) {
            match self.dice.roll(8) {
                0 | 1 => parts.push(self.said()),
                2 | 3 => parts.push(AssistantPart::Reasoning(self.reasoning())),
                4 => self.provider_parts(&mut parts),
                _ => parts.push(AssistantPart::ToolCall(self.call())),
            }
        }
        let mut said = Response::of(parts);
        if self.dice.roll(8) == 7 {
            said.finish = Finish { kind: FinishKind::Length, raw: "length".into() };
        }
        let calls: Vec<CallId> = said.calls().map(|call| call.id.clone()).collect();
        let results = calls.into_iter().map(|call| ToolResult { call, output: self.output() }).collect();
        Entry::Step(StepRecord::new(said, results).unwrap())
    }

    fn said(&mut self) -> AssistantPart {
        let json = RawJson::parse(r#"[{"type":"odd","cited_text":"x"}]"#).unwrap();
        let data = (self.dice.roll(4) == 3).then(|| ProviderData { provider: ELSEWHERE.into(), json });
        AssistantPart::Text(AssistantText { text: self.text(), data })
    }

    fn reasoning(&mut self) -> Reasoning {
        let text = self.dice.one(&["", "hm", " \n", "step by step \u{1F914}"]).to_owned();
        let provider = if self.dice.coin() { self.provider } else { ELSEWHERE }.to_owned();
        let item = r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"ZW5j"}"#;
        let seal = match self.dice.roll(4) {
            0 => None,
            1 => Some(Seal::Signature { provider, value: "c2lnbmVk".into() }),
            2 => Some(Seal::Redacted { provider, data: "c2VhbGVk".into() }),
            _ => Some(Seal::Item { provider: ITEMS.into(), raw: RawJson::parse(item).unwrap() }),
        };
        Reasoning { text, seal }
    }

    /// Blocks of a provider. Those of our own are such as it gives, so that it takes them back.
    fn provider_parts(&mut self, parts: &mut Vec<AssistantPart>) {
        let of = |provider: &str, kind: &str, raw: &str| {
            let raw = RawJson::parse(raw).unwrap();
            AssistantPart::Provider(ProviderPart { provider: provider.into(), kind: kind.into(), raw })
        };
        match self.dice.roll(5) {
            0 => parts.push(of(ELSEWHERE, "odd", r#"{"type":"odd","n":1.0}"#)),
            1 => parts.push(of(ELSEWHERE, "list", "[1]")),
            2 => {
                let (number, provider) = (self.calls, "anthropic");
                self.calls += 1;
                let call =
                    r#"{"type":"server_tool_use","id":"srvtoolu_N","name":"web_search","input":{"q":1.0}}"#;
                let result = r#"{"type":"web_search_tool_result","tool_use_id":"srvtoolu_N","content":[]}"#;
                let numbered = |text: &str| text.replace('N', &number.to_string());
                parts.push(of(provider, "server_tool_use", &numbered(call)));
                parts.push(of(provider, "web_search_tool_result", &numbered(result)));
            }
            3 => {
                let item = r#"{"type":"web_search_call","id":"ws_1","status":"completed"}"#;
                parts.push(of(ITEMS, "web_search_call", item));
            }
            _ => {
                let part = r#"{"executableCode":{"language":"PYTHON","code":"print(1.0)"}}"#;
                parts.push(of("gemini", "executableCode", part));
            }
        }
    }

    fn call(&mut self) -> ToolCall {
        self.calls += 1;
        let id = CallId::new(format!("{}{}", self.dice.one(IDS), self.calls)).unwrap();
        let text = self.dice.one(INPUTS);
        let input = if self.dice.roll(6) == 5 { ToolInput::cut(text) } else { ToolInput::finished(text) };
        let json = RawJson::parse(r#"{"odd":true}"#).unwrap();
        let data = (self.dice.roll(6) == 5).then(|| ProviderData { provider: ELSEWHERE.into(), json });
        ToolCall { id, name: self.dice.one(NAMES).to_owned(), input, data }
    }

    fn output(&mut self) -> ToolOutput {
        match self.dice.roll(7) {
            0 | 1 => {
                ToolOutput::text(self.dice.one(&["", "seen", " padded ", "a long result of many words"]))
            }
            2 => ToolOutput::Json(
                RawJson::parse(self.dice.one(&["null", r#"{"b":1.0,"a":[]}"#, "\"\""])).unwrap(),
            ),
            3 => ToolOutput::error(self.dice.one(&["", "no"])),
            4 => ToolOutput::denied(""),
            _ => {
                let parts = (0..self.dice.roll(4)).map(|_| match self.dice.roll(2) {
                    0 => ContentPart::Text(self.text()),
                    _ => ContentPart::File(self.file()),
                });
                ToolOutput::Content(parts.collect())
            }
        }
    }

    fn file(&mut self) -> FilePart {
        let media_type =
            self.dice.one(&["image/png", "application/pdf", "text/csv", "audio/wav", "odd"]).to_owned();
        let provider = if self.dice.coin() { self.provider } else { ELSEWHERE }.to_owned();
        let source = match self.dice.roll(3) {
            0 => FileSource::Base64("aGVsbG8gd29ybGQ=".into()),
            1 => FileSource::Url("https://tea.example/a.png?x=\"1\"".into()),
            _ => FileSource::Reference { provider, id: "file_1".into() },
        };
        let name = self.dice.one(&["", "", "leaf.png", "日本 \"x\".pdf"]);
        let name = self.dice.coin().then(|| name.to_owned());
        FilePart { media_type, source, name }
    }
}

/// A provider that no format is of.
const ELSEWHERE: &str = "elsewhere";
/// The provider whose thinking and blocks are items.
const ITEMS: &str = "openai-responses";

/// Words that are no blank, but some of which look like it.
const WORDS: &[&str] = &[
    "go",
    " padded \n",
    "\u{200b}",
    "\u{feff}",
    ".",
    "\u{0}\u{1f}",
    "\"quoted\\\" \u{2028}",
    "\u{1F600} 日本",
    "{\"a\":1}",
    "data: [DONE]\n\n",
];

/// Beginnings of ids; a number follows.
const IDS: &[&str] = &[
    "toolu_",
    "a:b",
    "x~",
    " ",
    "日本",
    "call_\"",
    "functions.eval:",
    "an_id_that_is_much_longer_than_any_provider_gives_and_than_some_of_them_take_",
];

const NAMES: &[&str] = &[
    "look",
    "notes.add",
    "mcp/server:tool",
    "日历",
    "2fa",
    "-dash",
    "with space",
    "",
    "a_name_that_is_much_longer_than_the_sixty_four_characters_that_providers_take_",
];

const INPUTS: &[&str] = &[
    "{}",
    "",
    r#"{ "z":1.0,"a":12345678901234567890 }"#,
    r#"{"u":"\u00e9\n","nested":{"list":[1,{"x":null}]}}"#,
    r#"{"half":"\ud83d"}"#,
    "[1]",
    "\"text\"",
    "null",
    r#"{"cut"#,
    "not json",
];
