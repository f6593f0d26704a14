//! The tools whose calls wait: what is asked, as data.

use agent_builtins::{AGENT_ACTION, AgentKind, AgentTask, agent, ask_question};
use agent_core::{Choice, RawJson, Wait};
use agent_tools::{PermissionMode, Permissions, Tool, ToolCx, ToolEnd, Verdict};
use serde_json::{Value, json};

use crate::support::permit;

async fn end(tool: &dyn Tool, input: &Value) -> Result<Wait, String> {
    let (cx, input) = (ToolCx::for_test("s", "c").unwrap(), RawJson::of(input).unwrap());
    match tool.run(&cx, permit(tool, &input).await, &input).await {
        Ok(ToolEnd::Waits(wait)) => Ok(wait),
        Ok(ToolEnd::Output(output)) => panic!("it gave {output:?}"),
        Err(error) => Err(error.to_string()),
    }
}

#[tokio::test]
async fn a_question_is_asked_as_it_was_put() {
    let tool = ask_question();
    let input = json!({"question": "Which bed?", "options": [{"label": " tulips ", "description": "the red ones"}, {"label": "roses", "description": " "}], "multiple": true});
    let Ok(Wait::Question(question)) = end(&*tool, &input).await else { panic!("it waits") };
    assert_eq!((question.question.as_str(), question.multiple), ("Which bed?", true));
    let choice = |label: &str, description: Option<&str>| Choice {
        label: label.to_owned(),
        description: description.map(str::to_owned),
    };
    assert_eq!(question.options, [choice("tulips", Some("the red ones")), choice("roses", None)]);
}

#[tokio::test]
async fn a_question_that_nobody_could_answer_is_not_asked() {
    let tool = ask_question();
    let check = async |input: Value| end(&*tool, &input).await.unwrap_err();
    let option = json!({"label": "a"});
    insta::assert_snapshot!(check(json!({"question": " "})).await, @"The question is blank. Nothing was asked; call it again.");
    insta::assert_snapshot!(check(json!({"question": "Q", "options": [{"label": ""}]})).await, @"An option has a blank label. Nothing was asked; call it again.");
    insta::assert_snapshot!(check(json!({"question": "Q", "options": [option, {"label": "a "}]})).await, @"Two options have the same label. Nothing was asked; call it again.");
    insta::assert_snapshot!(check(json!({"question": "Q", "options": vec![json!({"label": "a"}); 13]})).await, @"There are more options than a person can choose from; give at most 12. Nothing was asked; call it again.");
    insta::assert_snapshot!(check(json!({"question": "Q", "multiple": true})).await, @"Several answers can only be chosen from options. Nothing was asked; call it again.");
}

#[tokio::test]
async fn a_task_is_handed_to_the_runtime() {
    let kinds = [AgentKind { name: "reader".into(), description: "Only looks.".into() }];
    let tool = agent(&kinds);
    assert!(tool.card().description().ends_with("\n- `reader`: Only looks."));
    let input = json!({"task": "Count the beds.", "kind": "reader"});
    let Ok(Wait::Action(action)) = end(&*tool, &input).await else { panic!("it waits") };
    let task = AgentTask { task: "Count the beds.".into(), kind: Some("reader".into()) };
    assert_eq!((action.kind.as_str(), action.input.to::<AgentTask>().unwrap()), (AGENT_ACTION, task));
    let check = async |input: Value| end(&*tool, &input).await.unwrap_err();
    insta::assert_snapshot!(check(json!({"task": ""})).await, @"The task is blank, so nobody was asked. Say what is to be done and what to return.");
    insta::assert_snapshot!(check(json!({"task": "t", "kind": "writer"})).await, @"There is no kind of agent called `writer`; nobody was asked. Leave `kind` out, or use one of: reader.");
}

/// They change nothing by themselves, so no mode asks before a person is asked.
#[tokio::test]
async fn no_permission_is_needed_to_ask() {
    for mode in [PermissionMode::Default, PermissionMode::Plan] {
        let permissions = Permissions { mode, ..Permissions::default() };
        for (tool, input) in [(ask_question(), r#"{"question":"Q"}"#), (agent(&[]), r#"{"task":"t"}"#)] {
            let (call, input) = (agent_core::CallId::new("c").unwrap(), RawJson::parse(input).unwrap());
            let verdict = permissions.check(agent_tools::Proposal::new(&*tool, &call, &input)).await;
            assert!(matches!(verdict, Verdict::Allow(_)), "{verdict:?}");
        }
    }
}
