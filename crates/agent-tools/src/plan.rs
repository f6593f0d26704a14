//! Which calls of a step run, and which run beside each other.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use agent_core::{RawJson, ToolCall, ToolCard, ToolInput, ToolOutput};

use crate::{Concurrency, StandsFor, Tool, ToolSet};

/// Whether a call can run at all.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_enums, reason = "a driver must handle both")]
pub enum Preflight {
    /// It can: this tool with this input, after the permission check.
    Run(Arc<dyn Tool>, RawJson),
    /// It cannot, and this answers it.
    Answer(ToolOutput),
}

/// The call that runs: this one, or the one that it stands for ([`Tool::stands_for`]); an output where it stands for none.
pub fn resolve<'c>(tools: &ToolSet, call: &'c ToolCall) -> Result<Cow<'c, ToolCall>, ToolOutput> {
    let (Some(outer), Some(input)) = (tools.get(&call.name), call.input.json()) else {
        return Ok(Cow::Borrowed(call));
    };
    let StandsFor { tool, input } = match outer.stands_for(input) {
        Ok(Some(inner)) => inner,
        Ok(None) => return Ok(Cow::Borrowed(call)),
        Err(error) => return Err(ToolOutput::error(error.to_string())),
    };
    match tools.get(&tool) {
        Some(inner) if inner.card().is_dispatcher() || inner.card().name() == call.name => {
            Err(ToolOutput::error(format!(
                "`{}` was told to call `{tool}`, through which tools are called and nothing else. Nothing was done. Give the name of the tool that does the work.",
                call.name
            )))
        }
        Some(_) => Ok(Cow::Owned(ToolCall {
            id: call.id.clone(),
            name: tool,
            input: ToolInput::Json(input),
            data: None,
        })),
        None => Err(ToolOutput::error(unknown(tools, &tool))),
    }
}

/// Finds the tool of a call, or of the one that it stands for, and judges its input; never runs anything.
pub fn preflight(tools: &ToolSet, call: &ToolCall) -> Preflight {
    let call = match resolve(tools, call) {
        Ok(call) => call,
        Err(output) => return Preflight::Answer(output),
    };
    let Some(tool) = tools.get(&call.name) else {
        return Preflight::Answer(ToolOutput::error(unknown(tools, &call.name)));
    };
    match &call.input {
        ToolInput::Json(input) => Preflight::Run(tool.clone(), input.clone()),
        ToolInput::Invalid(text) => {
            let cause =
                RawJson::parse(text.as_str()).err().map_or_else(String::new, |error| error.to_string());
            Preflight::Answer(ToolOutput::error(format!(
                "The input of `{}` is not JSON ({cause}). Nothing was done. Call it again with one JSON object.",
                call.name
            )))
        }
        ToolInput::Truncated(text) => Preflight::Answer(ToolOutput::error(format!(
            "The call of `{}` was cut off by the output limit after {} bytes of input. Nothing was done. Call it again with less input: split the work into several calls.",
            call.name,
            text.len()
        ))),
    }
}

/// The calls of a step in the order they run: batches one after the other, the calls of a batch together.
///
/// Neighbouring parallel calls form one batch; a serial call is a batch of its own (requirement T7).
pub fn batches<'c>(tools: &ToolSet, calls: &'c [ToolCall]) -> impl Iterator<Item = &'c [ToolCall]> {
    calls.chunk_by(|one, next| parallel(tools, one) && parallel(tools, next))
}

/// A call that cannot run has no effect and may stand in any batch.
fn parallel(tools: &ToolSet, call: &ToolCall) -> bool {
    resolve(tools, call).ok().and_then(|call| tools.get(&call.name)).is_none_or(is_parallel)
}

fn is_parallel(tool: &Arc<dyn Tool>) -> bool {
    tool.traits().concurrency == Concurrency::Parallel
}

/// What is said to a call of a name that no tool has. Deferred tools may be very many, and are found by searching.
fn unknown(tools: &ToolSet, name: &str) -> String {
    let all = || tools.iter().map(|tool| tool.card());
    let listed: Vec<&str> = all().filter(|card| !card.is_deferred()).map(ToolCard::name).collect();
    let begins = format!("There is no tool called `{name}`. Nothing was done.");
    if !all().any(ToolCard::is_deferred) {
        return format!("{begins} Call one of: {}.", listed.join(", "));
    }
    let near = near(name, all().map(ToolCard::name));
    let meant = if near.is_empty() { String::new() } else { format!(" Did you mean {}?", near.join(" or ")) };
    format!(
        "{begins}{meant} Names are exact: search for the tool first, and call it by the name that the search gives. Always there: {}.",
        listed.join(", ")
    )
}

/// At most three names that look most like one, in backticks.
fn near<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let wanted = pairs(wanted);
    let mut alike: Vec<(usize, &str)> = names
        .filter_map(|name| {
            let other = pairs(name);
            let shared = wanted.intersection(&other).count();
            // In thousandths of what two equal names share.
            let alike = 2_000 * shared / (wanted.len() + other.len()).max(1);
            (alike >= ALIKE).then_some((alike, name))
        })
        .collect();
    alike.sort_by(|(one, first), (other, second)| other.cmp(one).then_with(|| first.cmp(second)));
    alike.into_iter().take(MOST_NEAR).map(|(_, name)| format!("`{name}`")).collect()
}

/// Neighbouring characters, whatever their case.
fn pairs(name: &str) -> BTreeSet<(char, char)> {
    let letters: Vec<char> = name.chars().flat_map(char::to_lowercase).collect();
    letters.iter().copied().zip(letters.iter().copied().skip(1)).collect()
}

const MOST_NEAR: usize = 3;
/// How much two names must share to be worth a hint, in thousandths.
const ALIKE: usize = 500;

#[cfg(test)]
mod tests {
    use agent_core::CallId;

    use super::*;
    use crate::{Access, Permit, ToolConfig, ToolCx, ToolError, ToolTraits};

    fn tools() -> ToolSet {
        let tool = |name, access| {
            ToolConfig::new(name, "Test.", access, |_, _: serde_json::Value| async { Ok(String::new()) })
                .build()
                .unwrap()
        };
        ToolSet::builder().with(tool("r", Access::Read)).with(tool("w", Access::Edit)).freeze().unwrap()
    }

    fn call(name: &str, input: ToolInput) -> ToolCall {
        ToolCall { id: CallId::new("c").unwrap(), name: name.into(), input, data: None }
    }

    #[test]
    fn readers_run_together_and_writers_alone() {
        let check = |names: &str, expect: &[usize]| {
            let calls: Vec<_> =
                names.chars().map(|name| call(&name.to_string(), ToolInput::finished(""))).collect();
            let sizes: Vec<_> = batches(&tools(), &calls).map(<[ToolCall]>::len).collect();
            assert_eq!(sizes, expect, "{names}");
        };
        check("", &[]);
        check("rrr", &[3]);
        check("rrwwr", &[2, 1, 1, 1]);
        check("r?r", &[3]);
    }

    #[test]
    fn calls_that_cannot_run_are_answered() {
        let check = |name: &str, input: ToolInput| match preflight(&tools(), &call(name, input)) {
            Preflight::Run(tool, input) => format!("run {} {input}", tool.card().name()),
            Preflight::Answer(output) => output.plain(),
        };
        insta::assert_snapshot!(check("r", ToolInput::finished("")), @"run r {}");
        insta::assert_snapshot!(check("grip", ToolInput::finished("")), @"There is no tool called `grip`. Nothing was done. Call one of: r, w.");
        insta::assert_snapshot!(check("r", ToolInput::finished("{a")), @"The input of `r` is not JSON (key must be a string at line 1 column 2). Nothing was done. Call it again with one JSON object.");
        insta::assert_snapshot!(check("r", ToolInput::cut("{\"a")), @"The call of `r` was cut off by the output limit after 3 bytes of input. Nothing was done. Call it again with less input: split the work into several calls.");
    }

    /// Calls others.
    #[derive(Debug)]
    struct Through(ToolCard, ToolTraits);

    #[async_trait::async_trait]
    impl Tool for Through {
        fn card(&self) -> &ToolCard {
            &self.0
        }

        fn traits(&self) -> &ToolTraits {
            &self.1
        }

        fn stands_for(&self, input: &RawJson) -> Result<Option<StandsFor>, ToolError> {
            #[derive(serde::Deserialize)]
            struct Inner {
                name: String,
                input: RawJson,
            }
            let Inner { name, input } = input.to().map_err(|error| ToolError::failed(error.to_string()))?;
            Ok(Some(StandsFor { tool: name, input }))
        }

        async fn run(&self, _: &ToolCx, _: Permit, _: &RawJson) -> Result<crate::ToolEnd, ToolError> {
            Err(ToolError::failed("it stands for others"))
        }
    }

    fn with_dispatcher() -> ToolSet {
        let card = |name: &str| ToolCard::new(name, "Test.", &RawJson::empty_object()).unwrap();
        let through = Through(card("do").dispatcher(), ToolTraits::of(Access::Execute));
        let rare = Through(card("mail__send").deferred(), ToolTraits::of(Access::Network));
        let tools = tools().iter().cloned().collect::<Vec<_>>();
        let all = ToolSet::builder().extend(tools).with(Arc::new(through) as Arc<dyn Tool>);
        all.with(Arc::new(rare) as Arc<dyn Tool>).freeze().unwrap()
    }

    #[test]
    fn a_call_stands_for_the_one_inside_it() {
        let tools = with_dispatcher();
        let through = |input: &str| call("do", ToolInput::finished(input));
        let check = |input: &str| match preflight(&tools, &through(input)) {
            Preflight::Run(tool, input) => format!("run {} {input}", tool.card().name()),
            Preflight::Answer(output) => output.plain(),
        };
        insta::assert_snapshot!(check(r#"{"input": {"b":1.0, "a":12345678901234567890}, "name":"w"}"#), @r#"run w {"b":1.0, "a":12345678901234567890}"#);
        insta::assert_snapshot!(check(r#"{"name":"do","input":{}}"#), @"`do` was told to call `do`, through which tools are called and nothing else. Nothing was done. Give the name of the tool that does the work.");
        insta::assert_snapshot!(check(r#"{"name":"mail_send","input":{}}"#), @"There is no tool called `mail_send`. Nothing was done. Did you mean `mail__send`? Names are exact: search for the tool first, and call it by the name that the search gives. Always there: r, w, do.");
        insta::assert_snapshot!(check(r#"{"name":"zzz","input":{}}"#), @"There is no tool called `zzz`. Nothing was done. Names are exact: search for the tool first, and call it by the name that the search gives. Always there: r, w, do.");
        insta::assert_snapshot!(check(r#"{"name":"w"}"#), @"missing field `input` at line 1 column 12");
        insta::assert_snapshot!(check(r#"{"name"#), @"The input of `do` is not JSON (EOF while parsing a string at line 1 column 6). Nothing was done. Call it again with one JSON object.");
        let sizes = |inner: [&str; 4]| {
            let calls = inner.map(|name| through(&format!(r#"{{"name":"{name}","input":{{}}}}"#)));
            batches(&tools, &calls).map(<[ToolCall]>::len).collect::<Vec<_>>()
        };
        assert_eq!(sizes(["r", "r", "w", "w"]), [2, 1, 1], "each is run as the tool that it calls");
        assert_eq!(resolve(&tools, &through(r#"{"name":"r","input":{}}"#)).unwrap().name, "r");
        assert_eq!(resolve(&tools, &call("r", ToolInput::finished(""))).unwrap().name, "r");
    }
}
