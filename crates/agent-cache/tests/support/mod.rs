//! Bodies of Anthropic Messages made of parts, whose tokens are counted by tildes.

pub(crate) mod session;

use agent_cache::{Block, CacheRules, Request, RuleBook, Simulator, TokenCounter};

/// One tilde is one token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tildes;

impl TokenCounter for Tildes {
    fn block(&self, block: &Block) -> u64 {
        block.bytes.bytes().filter(|byte| *byte == b'~').count() as u64
    }

    fn hidden(&self, _: &Request, _: &CacheRules) -> u64 {
        0
    }
}

pub(crate) fn simulator(provider: &str) -> Simulator {
    Simulator::new(RuleBook::builtin(), provider).with_counter(Tildes)
}

/// What a request is made of; every part is JSON.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    pub(crate) model: &'static str,
    /// Further members, each with a comma behind it.
    pub(crate) extra: String,
    pub(crate) tools: Vec<String>,
    pub(crate) system: Vec<String>,
    pub(crate) messages: Vec<(&'static str, Vec<String>)>,
}

impl Parts {
    pub(crate) fn of(model: &'static str) -> Self {
        Self { model, extra: String::new(), tools: vec![], system: vec![], messages: vec![] }
    }

    pub(crate) fn body(&self) -> String {
        let list = |parts: &[String]| format!("[{}]", parts.join(","));
        let messages = self
            .messages
            .iter()
            .map(|(role, blocks)| format!(r#"{{"role":"{role}","content":{}}}"#, list(blocks)));
        let messages = list(&messages.collect::<Vec<_>>());
        let (model, extra) = (self.model, &self.extra);
        let (tools, system) = (list(&self.tools), list(&self.system));
        format!(r#"{{{extra}"model":"{model}","tools":{tools},"system":{system},"messages":{messages}}}"#)
    }

    pub(crate) fn request(&self) -> Request {
        let body = self.body();
        Request::read(body.as_bytes(), None).unwrap_or_else(|error| panic!("{error}\n{body}"))
    }

    /// Marks the last block of the conversation.
    pub(crate) fn mark_tail(&mut self) {
        let last = self.messages.last_mut().unwrap().1.last_mut().unwrap();
        *last = marked(last, "5m");
    }
}

pub(crate) fn text(name: &str, tokens: usize) -> String {
    format!(r#"{{"type":"text","text":"{name} {}"}}"#, "~".repeat(tokens))
}

pub(crate) fn tool(name: &str, tokens: usize) -> String {
    let words = "~".repeat(tokens);
    let schema = r#"{"type":"object","properties":{"path":{"type":"string"},"depth":{"type":"integer"}}}"#;
    format!(r#"{{"name":"{name}","description":"{words}","input_schema":{schema}}}"#)
}

pub(crate) fn call(id: &str, tokens: usize) -> String {
    let path = "~".repeat(tokens);
    format!(r#"{{"type":"tool_use","id":"{id}","name":"read","input":{{"path":"{path}","depth":1.0}}}}"#)
}

pub(crate) fn result(id: &str, tokens: usize) -> String {
    format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"{}"}}"#, "~".repeat(tokens))
}

pub(crate) fn thinking(tokens: usize) -> String {
    format!(r#"{{"type":"thinking","thinking":"{}","signature":"sig"}}"#, "~".repeat(tokens))
}

pub(crate) fn marked(block: &str, ttl: &str) -> String {
    let open = block.strip_suffix('}').unwrap();
    format!(r#"{open},"cache_control":{{"type":"ephemeral","ttl":"{ttl}"}}}}"#)
}

/// A loop of an agent after so many steps: ten tools and system text of 20,000 tokens together, then a question and
/// 2,000 tokens a step. Nothing is marked.
pub(crate) fn agent_loop(steps: usize) -> Parts {
    let mut parts = Parts::of("claude-sonnet-4-6");
    parts.tools = (0..10).map(|at| tool(&format!("tool_{at}"), 1_000)).collect();
    parts.system = vec![text("You are a careful engineer.", 9_900)];
    parts.messages.push(("user", vec![text("Repair the build.", 100)]));
    for step in 0..steps {
        let id = format!("call_{step}");
        parts.messages.push(("assistant", vec![text(&format!("Step {step}."), 200), call(&id, 300)]));
        parts.messages.push(("user", vec![result(&id, 1_500)]));
    }
    parts
}

/// The same with the marks a good client sets: behind the system text, and at the end.
pub(crate) fn good_loop(steps: usize) -> Parts {
    let mut parts = agent_loop(steps);
    parts.system[0] = marked(&parts.system[0], "5m");
    parts.mark_tail();
    parts
}
