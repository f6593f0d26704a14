//! Sessions whose requests are planned by the planner and written by the real encoders.

use std::time::Duration;

use agent_cache::{
    CacheRules, Estimate, Format, Lifetimes, Opening, Outcome, Planner, Request, RuleBook, Simulator,
};
use agent_core::{
    AssistantPart, CallId, Encoder, Entry, History, Mark, MarkPoint, ModelRequest, RawJson, Reasoning,
    RequestSettings, Response, Seal, StepRecord, SystemBlock, Text, ToolCall, ToolCard, ToolChoice,
    ToolInput, ToolOutput, ToolResult, Ttl, UserMessage, UserPart,
};
use agent_providers::{Catalog, Dialect, ToolNames, WireFormat};

/// A service, by who keeps the prompts and how they are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Service {
    /// In the words of the rule book.
    pub(crate) rules: &'static str,
    pub(crate) format: WireFormat,
    pub(crate) model: &'static str,
}

pub(crate) const CLAUDE: Service =
    Service { rules: "anthropic", format: WireFormat::Anthropic, model: "claude-sonnet-4-6" };
/// Runs of calls are counted one by one.
pub(crate) const BEDROCK: Service = Service { rules: "bedrock", ..CLAUDE };
pub(crate) const RESPONSES: Service =
    Service { rules: "openai", format: WireFormat::OpenAiResponses, model: "gpt-6-sol" };
pub(crate) const CHAT: Service = Service { format: WireFormat::OpenAiChat, ..RESPONSES };
pub(crate) const SERVICES: [Service; 4] = [CLAUDE, BEDROCK, RESPONSES, CHAT];

impl Service {
    pub(crate) fn simulator(self) -> Simulator {
        let book = RuleBook::builtin().with_overrides(SMALL).unwrap();
        Simulator::new(book, self.rules).with_counter(Estimate::default())
    }

    /// The rules in force for its model.
    pub(crate) fn cache_rules(self) -> CacheRules {
        RuleBook::builtin().with_overrides(SMALL).unwrap().rules(self.rules, self.model)
    }

    fn read_as(self) -> Format {
        match self.format {
            WireFormat::OpenAiChat => Format::OpenaiChat,
            WireFormat::OpenAiResponses => Format::OpenaiResponses,
            WireFormat::Anthropic | WireFormat::Gemini | WireFormat::Ollama | _ => Format::Anthropic,
        }
    }
}

pub(crate) struct Session {
    service: Service,
    pub(crate) history: History,
    pub(crate) planner: Planner,
    encoder: Box<dyn Encoder>,
    pub(crate) opening: Opening,
    pub(crate) system: Vec<SystemBlock>,
    pub(crate) tools: Vec<ToolCard>,
}

impl Session {
    /// A session with one block of system text and tools of so many tokens each.
    pub(crate) fn new(service: Service, system: usize, tools: &[usize]) -> Self {
        let dialect = Dialect::from(service.format);
        let profile = Catalog::builtin().profile(&dialect.provider, service.model);
        let schema = RawJson::parse(r#"{"type":"object"}"#).unwrap();
        let tool = |(at, tokens): (usize, &usize)| {
            ToolCard::new(format!("tool_{at}"), words("It looks.", *tokens), &schema).unwrap()
        };
        Self {
            service,
            history: History::new(),
            planner: Planner::new(Lifetimes { stable: Ttl::OneHour, tail: Ttl::FiveMinutes }),
            encoder: agent_providers::encoder(&dialect, profile, ToolNames::default()),
            opening: Opening { tools: !tools.is_empty(), system: Some(0) },
            system: vec![SystemBlock::new(words("Read before you write.", system)).unwrap()],
            tools: tools.iter().enumerate().map(tool).collect(),
        }
    }

    /// The user says so many texts of so many tokens.
    pub(crate) fn user(&mut self, texts: usize, tokens: usize) {
        let at = self.history.len();
        let text = |it| UserPart::Text(Text::new(words(&format!("Question {at}.{it}."), tokens)).unwrap());
        self.push(Entry::User(UserMessage::new((0..texts).map(text).collect()).unwrap()));
    }

    /// The model thinks, speaks and calls so many tools at once, whose results have so many tokens each.
    pub(crate) fn step(&mut self, thinks: bool, speaks: bool, calls: usize, tokens: usize) {
        let at = self.history.len();
        let provider = Dialect::from(self.service.format).provider;
        let seal = Seal::Signature { provider, value: format!("sig{at}") };
        let thought = Reasoning { text: "Hm.".into(), seal: Some(seal) };
        let id = |it: usize| CallId::new(format!("toolu_{at}_{it}")).unwrap();
        let call = |it| ToolCall {
            id: id(it),
            name: "tool_0".into(),
            input: ToolInput::finished(&format!(r#"{{"at":{it}}}"#)),
            data: None,
        };
        let mut parts: Vec<AssistantPart> = Vec::new();
        parts.extend(thinks.then_some(AssistantPart::Reasoning(thought)));
        parts.extend(speaks.then(|| AssistantPart::text(format!("Answer {at}.")).unwrap()));
        parts.extend((0..calls).map(|it| AssistantPart::ToolCall(call(it))));
        let result = |it| ToolResult {
            call: id(it),
            output: ToolOutput::text(words(&format!("Seen {at}.{it}."), tokens)),
        };
        let results = (0..calls).map(result).collect();
        self.push(Entry::Step(StepRecord::new(Response::of(parts), results).unwrap()));
    }

    pub(crate) fn push(&mut self, entry: Entry) {
        self.history.push(entry).unwrap();
    }

    /// What the planner says of the next request; one that never saw the session says the same.
    pub(crate) fn plan(&mut self) -> Vec<Mark> {
        let profile = self.service.cache_rules().profile();
        let marks = self.planner.plan(&profile, self.opening, self.history.view());
        let mut fresh = Planner::new(Lifetimes { stable: Ttl::OneHour, tail: Ttl::FiveMinutes });
        assert_eq!(marks, fresh.plan(&profile, self.opening, self.history.view()));
        marks
    }

    /// The next request with these marks, all of which can be sent.
    pub(crate) fn request(&mut self, marks: &[Mark]) -> Request {
        let draft = self.history.draft();
        let encoded = self.encoder.encode(&ModelRequest {
            system: &self.system,
            tools: &self.tools,
            draft: &draft,
            settings: &RequestSettings { max_output: Some(100), ..RequestSettings::default() },
            tool_choice: &ToolChoice::Auto,
            marks,
            stream: false,
        });
        let told: Vec<_> = encoded.diagnostics.iter().filter(|it| it.what == "marks").collect();
        let request = Request::read(&encoded.request.body.to_vec(), Some(self.service.read_as())).unwrap();
        let sent = request.blocks.iter().filter(|block| block.mark.is_some()).count();
        let of_tools = usize::from(self.service.format != WireFormat::Anthropic && is_tools(marks));
        assert_eq!(sent + of_tools + told.len(), marks.len(), "{marks:?}: {told:?}");
        // Items of the model take no breakpoint, so that one behind what a clearing shortened may find no place.
        let may_miss = self.service.format == WireFormat::OpenAiResponses;
        let missed = |why: &str| why.starts_with("no block of Entry(") && may_miss;
        assert!(told.iter().all(|it| missed(&it.why)), "{told:?}");
        request
    }

    /// The next request as planned.
    pub(crate) fn planned(&mut self) -> Request {
        let marks = self.plan();
        self.request(&marks)
    }
}

fn is_tools(marks: &[Mark]) -> bool {
    marks.first().is_some_and(|mark| mark.at == MarkPoint::Tools)
}

/// What a request that is the first ever leaves with a marker at this place only.
pub(crate) fn kept_to(session: &mut Session, at: MarkPoint) -> u64 {
    let request = session.request(&[Mark { at, ttl: Ttl::OneHour }]);
    let outcome = session.service.simulator().ask(&request, Duration::ZERO).unwrap();
    // The service writes at the end by itself, where it does; then the marked place is the shorter one.
    match outcome.written.first() {
        Some((block, _)) => tokens_to(&request, *block),
        None => 0,
    }
}

/// Tokens up to a block, its own included.
pub(crate) fn tokens_to(request: &Request, block: usize) -> u64 {
    let counter = Estimate::default();
    request.blocks[..=block].iter().map(|block| agent_cache::TokenCounter::block(&counter, block)).sum()
}

pub(crate) fn ask(cache: &mut Simulator, request: &Request, seconds: u64) -> Outcome {
    cache.ask(request, Duration::from_secs(seconds)).unwrap()
}

/// A text of about so many tokens.
fn words(start: &str, tokens: usize) -> String {
    format!("{start} {}", "More. ".repeat(tokens * 4 / 6)).trim().to_owned()
}

/// Bedrock's minimum, lowered so that short sessions are kept.
const SMALL: &str =
    r#"{"as_of":"2026-11-30","rules":[{"provider":"bedrock","min_tokens":1024,"source":"for this test"}]}"#;
