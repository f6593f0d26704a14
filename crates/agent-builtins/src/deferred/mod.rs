//! Tools that a model is told of when it searches for them, with the tools to find and to call them.

mod call_tool;
mod rank;
mod search;

use std::sync::Arc;

use agent_core::ToolCard;
use agent_tools::{Tool, Wrapped};

/// Tools that are no part of the prompt: `tool_search` finds them, `call_tool` calls what it found, and then they stand
/// themselves, sorted by name (requirement T8). Nothing for no tools. Give all of them at once: a set has one search.
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
    let mut found: Vec<Arc<dyn Tool>> = tools.into_iter().map(late).collect();
    if found.is_empty() {
        return found;
    }
    found.sort_by(|one, other| one.card().name().cmp(other.card().name()));
    let cards: Vec<ToolCard> = found.iter().map(|tool| tool.card().clone()).collect();
    let mut all = vec![search::tool_search(cards), call_tool::call_tool()];
    all.append(&mut found);
    all
}

/// The tool with a card which says that it is deferred.
fn late(tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
    if tool.card().is_deferred() { tool } else { Arc::new(Wrapped::new(tool).deferred()) }
}

#[cfg(test)]
mod tests {
    use agent_core::{CallId, RawJson};
    use agent_tools::{
        Access, Permissions, Preflight, Proposal, ToolConfig, ToolCx, ToolSet, Verdict, preflight,
    };

    use super::*;
    use crate::built;

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing {}

    fn many(number: usize) -> Vec<Arc<dyn Tool>> {
        let tool = |at: usize| {
            let about = format!("Does the {at}th thing with care.");
            let name = format!("server{}__do_{at:05}", at % 40);
            built(ToolConfig::new(name, about, Access::Read, |_, _: Nothing| async { Ok(String::new()) }))
        };
        (0..number).rev().map(tool).collect()
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
        let found = search
            .run(&ToolCx::for_test("s", "c").unwrap(), permit, &query)
            .await
            .unwrap()
            .output()
            .unwrap()
            .plain();
        assert!(found.starts_with("server31__do_04711\n"), "{found}");
        let input = agent_core::ToolInput::finished(r#"{"name":"server31__do_04711","input":{}}"#);
        let called = agent_core::ToolCall { id: call, name: "call_tool".into(), input, data: None };
        let Preflight::Run(tool, _) = preflight(&tools, &called) else { panic!("it runs") };
        assert_eq!(tool.card().name(), "server31__do_04711");
    }
}
