//! Whether a request is the one the step should send: all calls, all results, in their order.

use serde_json::Value;

use super::answer;

/// Names the first thing that is wrong.
pub(super) fn check(body: &[u8], step: usize) -> Result<(), String> {
    let body: Value =
        serde_json::from_slice(body).map_err(|error| format!("the body is no JSON: {error}"))?;
    if body.get("stream") != Some(&Value::Bool(true)) {
        return Err("the answer is not to be streamed".to_owned());
    }
    let tools = body.get("tools").and_then(Value::as_array).map_or(0, Vec::len);
    if tools != 1 {
        return Err(format!("{tools} tools in place of one"));
    }
    let (calls, results) = (blocks(&body, "tool_use"), blocks(&body, "tool_result"));
    let wanted = step - 1;
    if calls.len() != wanted || results.len() != wanted {
        return Err(format!("{} calls and {} results at step {step}", calls.len(), results.len()));
    }
    for (index, (call, result)) in calls.iter().zip(&results).enumerate() {
        let input: Value =
            serde_json::from_str(&answer::input(index + 1)).map_err(|error| error.to_string())?;
        if call.get("input") != Some(&input) {
            return Err(format!("the input of call {index} came back changed"));
        }
        if call.get("id") != result.get("tool_use_id") {
            return Err(format!("result {index} answers another call"));
        }
        let length = result.get("content").map_or(0, text_bytes);
        if length != RESULT_BYTES {
            return Err(format!("result {index} has {length} bytes, not {RESULT_BYTES}"));
        }
    }
    Ok(())
}

fn blocks<'b>(body: &'b Value, kind: &str) -> Vec<&'b Value> {
    let messages = body.get("messages").and_then(Value::as_array).into_iter().flatten();
    let blocks = messages.filter_map(|message| message.get("content")?.as_array()).flatten();
    blocks.filter(|block| block.get("type").and_then(Value::as_str) == Some(kind)).collect()
}

/// A result is words, or blocks of words.
fn text_bytes(content: &Value) -> usize {
    let blocks = content.as_array().into_iter().flatten();
    let in_blocks: usize = blocks.filter_map(|block| block.get("text")?.as_str()).map(str::len).sum();
    content.as_str().map_or(in_blocks, str::len)
}

const RESULT_BYTES: usize = 2_048;

#[cfg(test)]
mod tests {
    use super::*;

    fn body(tools: usize, call: &str, result: &str) -> String {
        let tools = vec!["{}"; tools].join(",");
        let call = format!(r#"{{"role":"assistant","content":[{{"type":"tool_use",{call}}}]}}"#);
        let result = format!(r#"{{"role":"user","content":[{{"type":"tool_result",{result}}}]}}"#);
        format!(r#"{{"stream":true,"tools":[{tools}],"messages":[{call},{result}]}}"#)
    }

    #[track_caller]
    fn refuses(body: &str, step: usize, expect: &str) {
        let told = check(body.as_bytes(), step).err().unwrap_or_else(|| "nothing".to_owned());
        assert!(told.contains(expect), "{told}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let call = format!(r#""id":"t1","input":{}"#, answer::input(1));
        let long =
            |id: &str, size: usize| format!(r#""tool_use_id":"{id}","content":"{}""#, "x".repeat(size));
        let good = body(1, &call, &long("t1", RESULT_BYTES));
        refuses(&good, 2, "nothing");
        refuses(&good, 3, "1 calls and 1 results at step 3");
        refuses(&body(2, &call, &long("t1", RESULT_BYTES)), 2, "2 tools");
        refuses(&body(1, &call, &long("t2", RESULT_BYTES)), 2, "answers another call");
        refuses(&body(1, &call, &long("t1", 9)), 2, "has 9 bytes");
        refuses(&body(1, r#""id":"t1","input":{}"#, &long("t1", RESULT_BYTES)), 2, "came back changed");
        refuses("{", 2, "no JSON");
        refuses("{}", 1, "not to be streamed");
    }
}
