//! Tools that a model is told of when it searches for them, with the tools to find and to call them.

mod call_tool;
mod rank;
mod search;

use std::sync::Arc;

use agent_core::{RawJson, ToolCard, ToolOutput};
use agent_tools::{Permit, StandsFor, Subject, Tool, ToolCx, ToolError, ToolTraits};
use async_trait::async_trait;

/// Tools that are no part of the prompt: `tool_search` finds them, `call_tool` calls what it found, and then they stand
/// themselves, sorted by name (requirement T8). Nothing for no tools.
///
/// The list of tools that a provider caches never changes, however many there are and whichever are found (requirement
/// A4): where the model's provider loads tools later, they are sent with that mark, and a tool that was found is called by
/// its own name; elsewhere they are not sent, and are called through `call_tool`. Whatever the way, it is the tool itself
/// that rules, hooks, deadlines and caps see.
///
/// ```
/// use agent_builtins::deferred;
/// use agent_tools::{Access, ToolConfig, ToolSet};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Mail { /** To whom. */ to: String }
///
/// let send = ToolConfig::new("mail__send", "Sends a mail.", Access::Network, |_, mail: Mail| async move {
///     Ok(format!("sent to {}", mail.to))
/// });
/// let tools = ToolSet::builder().extend(deferred([send.build()?])).freeze()?;
/// assert_eq!(tools.names(), "tool_search, call_tool, mail__send");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn deferred(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Vec<Arc<dyn Tool>> {
    let mut found: Vec<Arc<dyn Tool>> = tools.into_iter().map(Deferred::of).collect();
    if found.is_empty() {
        return found;
    }
    found.sort_by(|one, other| one.card().name().cmp(other.card().name()));
    let cards: Vec<ToolCard> = found.iter().map(|tool| tool.card().clone()).collect();
    let mut all = vec![search::tool_search(cards), call_tool::call_tool()];
    all.append(&mut found);
    all
}

/// A tool with another card, which says that it is deferred.
#[derive(Debug)]
struct Deferred {
    card: ToolCard,
    tool: Arc<dyn Tool>,
}

impl Deferred {
    fn of(tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
        if tool.card().is_deferred() {
            return tool;
        }
        Arc::new(Self { card: tool.card().clone().deferred(), tool })
    }
}

#[async_trait]
impl Tool for Deferred {
    fn card(&self) -> &ToolCard {
        &self.card
    }

    fn traits(&self) -> &ToolTraits {
        self.tool.traits()
    }

    async fn subject(&self, input: &RawJson) -> Option<Subject> {
        self.tool.subject(input).await
    }

    fn validate(&self, input: &RawJson) -> Result<(), ToolError> {
        self.tool.validate(input)
    }

    fn stands_for(&self, input: &RawJson) -> Result<Option<StandsFor>, ToolError> {
        self.tool.stands_for(input)
    }

    fn compact(&self, input: &RawJson, output: &ToolOutput) -> Option<String> {
        self.tool.compact(input, output)
    }

    async fn run(&self, cx: &ToolCx, permit: Permit, input: &RawJson) -> Result<ToolOutput, ToolError> {
        self.tool.run(cx, permit, input).await
    }
}

#[cfg(test)]
mod tests {
    use agent_core::CallId;
    use agent_tools::{Permissions, Preflight, Proposal, ToolSet, Verdict, preflight};

    use super::*;
    use crate::todo;

    fn many(number: usize) -> Vec<Arc<dyn Tool>> {
        let card = |at: usize| {
            let about = format!("Does the {at}th thing with care.");
            ToolCard::new(format!("server{}__do_{at:05}", at % 40), about, &RawJson::empty_object()).unwrap()
        };
        (0..number)
            .rev()
            .map(|at| Arc::new(Deferred { card: card(at), tool: todo() }) as Arc<dyn Tool>)
            .collect()
    }

    #[test]
    fn nothing_for_no_tools_and_order_for_any() {
        assert!(deferred([]).is_empty());
        let names = |tools: Vec<Arc<dyn Tool>>| {
            deferred(tools).iter().map(|tool| tool.card().name().to_owned()).collect::<Vec<_>>()
        };
        let mut turned = many(30);
        turned.rotate_left(7);
        assert_eq!(names(turned), names(many(30)));
        assert_eq!(names(many(30))[..2], ["tool_search", "call_tool"]);
        let all = deferred(many(30));
        let late: Vec<bool> = all.iter().map(|tool| tool.card().is_deferred()).collect();
        assert_eq!((late[0], late[1], late[2..].iter().all(|late| *late)), (false, false, true));
        assert!(all[1].card().is_dispatcher());
    }

    #[tokio::test]
    async fn thousands_are_found_and_called() {
        let tools = ToolSet::builder().extend(deferred(many(10_000))).freeze().unwrap();
        let description = tools.cards()[0].description();
        assert!(description.contains("There are 10000 tools") && description.len() < 2_000, "{description}");
        let search = tools.get("tool_search").unwrap();
        let (call, query) = (CallId::new("c").unwrap(), RawJson::parse(r#"{"query":"do 04711"}"#).unwrap());
        let verdict = Permissions::default().check(Proposal::new(&**search, &call, &query)).await;
        let Verdict::Allow(permit) = verdict else { panic!("a search only looks") };
        let found = search.run(&ToolCx::for_test("s", "c").unwrap(), permit, &query).await.unwrap().plain();
        assert!(found.starts_with("server31__do_04711\n"), "{found}");
        let input = agent_core::ToolInput::finished(r#"{"name":"server31__do_04711","input":{}}"#);
        let called = agent_core::ToolCall { id: call, name: "call_tool".into(), input, data: None };
        let Preflight::Run(tool, _) = preflight(&tools, &called) else { panic!("it runs") };
        assert_eq!(tool.card().name(), "server31__do_04711");
    }
}
