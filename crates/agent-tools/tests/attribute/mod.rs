//! Tools made of functions: what they are, how they run, and what a mistake is told.

use std::time::Duration;

use agent_core::{CallId, RawJson};
use agent_tools::{
    Access, Call, Concurrency, IntoTool, Json, PermissionDecision, PermissionMode, Permissions, Proposal,
    Subject, ToolCx, ToolError, Verdict, tool,
};
use futures_util::FutureExt;

/// Greets a person by name.
/// Use it when somebody joins.
///
/// - Next, ask what they came for.
#[tool(access = edit, idempotent, deadline = "1500ms", cap_bytes = 20_000, cap_lines = 7, concurrency = parallel, permission = ask, summarise, subject = path(r#type), name = "hello")]
pub(crate) async fn greet(
    call: Call,
    /** Whom to greet. */
    mut name: String,
    #[serde(default = "once")] times: usize,
    r#type: String,
    a: Option<u8>,
    b: Option<u8>,
) -> Result<String, ToolError> {
    name.push('!');
    Ok(format!("{} {} {type} {a:?} {b:?}", call.cx.call, name.repeat(times)))
}

fn once() -> usize {
    1
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {
    /// The order's number.
    number: u32,
}

/// Looks up an order.
#[tool(access = network, subject = text(number))]
async fn order(#[input] Order { number }: Order) -> Result<Json<u32>, ToolError> {
    Ok(Json(number))
}

/// Tells nothing.
#[tool(access = read)]
async fn ping() -> Result<String, ToolError> {
    Ok("pong".to_owned())
}

#[expect(clippy::unwrap_used, clippy::panic, reason = "a helper of tests")]
fn run(tool: impl IntoTool, input: &str) -> String {
    let (tool, input, call) =
        (tool.into_tool().unwrap(), RawJson::parse(input).unwrap(), CallId::new("c").unwrap());
    let bypass = Permissions { mode: PermissionMode::Bypass, ..Permissions::default() };
    let checked = bypass.check(Proposal::new(&*tool, &call, &input)).now_or_never();
    let Some(Verdict::Allow(permit)) = checked else { panic!("allowed") };
    let cx = ToolCx::for_test("s", "c").unwrap();
    match tool.run(&cx, permit, &input).now_or_never().unwrap() {
        Ok(end) => end.output().unwrap().plain(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_function_is_a_tool() {
    assert_eq!(run(greet(), r#"{"name":"Ada","type":"x","a":3}"#), "c Ada! x Some(3) None");
    assert_eq!(run(greet(), r#"{"name":"Ada","type":"x","times":2}"#), "c Ada!Ada! x None None");
    assert_eq!(run(order(), r#"{"number":7}"#), "7");
    assert_eq!(run(ping(), "{}"), "pong");
    insta::assert_snapshot!(run(greet(), r#"{"name":1}"#), @"The input of `hello` does not fit: at `name`: invalid type: integer `1`, expected a string at line 1 column 9. Call it again with: a, b, name (required), times, type (required)");
}

#[test]
fn its_card_and_traits_are_those_that_were_written() {
    let hello = greet().into_tool().unwrap();
    let (card, traits) = (hello.card(), hello.traits());
    assert_eq!(card.name(), "hello");
    insta::assert_snapshot!(card.description(), @"
    Greets a person by name.
    Use it when somebody joins.

    - Next, ask what they came for.
    ");
    insta::assert_snapshot!(card.input_schema(), @r#"{"properties":{"a":{"format":"uint8","maximum":255,"minimum":0,"type":["integer","null"]},"b":{"format":"uint8","maximum":255,"minimum":0,"type":["integer","null"]},"name":{"description":"Whom to greet.","type":"string"},"times":{"default":1,"format":"uint","minimum":0,"type":"integer"},"type":{"type":"string"}},"required":["name","type"],"type":"object"}"#);
    assert_eq!((traits.access, traits.idempotent, traits.summarise), (Access::Edit, true, true));
    assert_eq!(
        (traits.deadline, traits.concurrency),
        (Some(Duration::from_millis(1500)), Concurrency::Parallel)
    );
    assert_eq!((traits.cap.bytes, traits.cap.lines, traits.cap.line_chars), (20_000, 7, 2_000));
    assert_eq!(traits.permission, Some(PermissionDecision::Ask));
    let subject = |tool: &dyn agent_tools::Tool, input| {
        tool.subject(&RawJson::parse(input).unwrap()).now_or_never().unwrap()
    };
    let path = Subject::Path { given: "x".to_owned(), real: None };
    assert_eq!(subject(&*hello, r#"{"name":"Ada","type":"x"}"#), Some(path));
    let order = order().into_tool().unwrap();
    assert_eq!(subject(&*order, r#"{"number":7}"#), Some(Subject::Text("7".to_owned())));
    let plain = ping().into_tool().unwrap();
    assert_eq!(*plain.traits(), agent_tools::ToolTraits::of(Access::Read));
}

#[test]
fn mistakes_are_told_where_they_are() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/attribute/*.rs");
}
