//! What both services of OpenAI share: keys, errors, and the rules of tools and ids.

use agent_cache::{CacheRules, Scheme};
use hyper::header::HeaderMap;
use serde_json::Value;

use super::{Check, Message, items, text};
use crate::quote::quote;
use crate::sim::api_error::{ApiError, Usual};

/// The key travels as a bearer token.
pub(super) fn check_key(headers: &HeaderMap) -> Check {
    let key = text(headers, "authorization").strip_prefix("Bearer ").unwrap_or_default();
    if key.trim().is_empty() {
        let message = "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).";
        return Err(ApiError { code: None, ..ApiError::of_status(&USUAL, 401, Some(message)) });
    }
    Ok(())
}

/// `{"error":…}` as both services write it.
pub(super) fn error_body(error: &ApiError) -> String {
    let (message, kind) = (quote(&error.message), quote(&error.kind));
    let (param, code) = (or_null(error.param.as_deref()), or_null(error.code));
    format!(r#"{{"error":{{"message":{message},"type":{kind},"param":{param},"code":{code}}}}}"#)
}

/// What was read from the cache, and what was written where the model's provider tells it. `split` is the way of
/// Responses, which always tells how much was written, and where it was, for how long.
pub(super) fn cached(message: &Message<'_>, split: bool) -> String {
    let usage = message.usage;
    let (read, write) = (usage.cache_read, usage.cache_write());
    let told = message.tells_writes || write > 0;
    if !told && !split {
        return format!(r#""cached_tokens":{read}"#);
    }
    let (short, long) = (usage.cache_write_5m, usage.cache_write_1h);
    let split = if told && split {
        format!(r#","cache_write_tokens_details":{{"ttl_30m_tokens":{short},"ttl_12h_tokens":{long}}}"#)
    } else {
        String::new()
    };
    format!(r#""cached_tokens":{read},"cache_write_tokens":{write}{split}"#)
}

/// Options of the prompt cache came with GPT-5.6; models before it refuse them.
pub(super) fn check_cache_options(request: &Value, rules: &CacheRules) -> Check {
    if rules.scheme != Scheme::Prefix {
        return Ok(());
    }
    let mut parts = items(&request["messages"])
        .chain(items(&request["input"]))
        .flat_map(|message| items(&message["content"]));
    let field = if !request["prompt_cache_options"].is_null() {
        "prompt_cache_options"
    } else if parts.any(|part| !part["prompt_cache_breakpoint"].is_null()) {
        "prompt_cache_breakpoint"
    } else {
        return Ok(());
    };
    let message = format!("Unsupported parameter: '{field}' is not supported with this model.");
    Err(ApiError::invalid(message).at(field).coded("unsupported_parameter"))
}

/// Headers of a limit that is used up for this long.
pub(super) fn used_up(wait: &str) -> [(&'static str, String); 2] {
    [("x-ratelimit-remaining-tokens", "0".into()), ("x-ratelimit-reset-tokens", wait.to_owned())]
}

/// A string of JSON, or `null`.
pub(super) fn or_null(text: Option<&str>) -> String {
    text.map_or_else(|| "null".to_owned(), quote)
}

/// A request that names no model.
pub(super) fn check_model(request: &Value) -> Check {
    match request["model"].as_str() {
        Some(name) if !name.is_empty() => Ok(()),
        Some(_) | None => refuse("you must provide a model parameter", "model"),
    }
}

/// The tools; `inside` is the field that holds a function's description, or empty when the entry does.
pub(super) fn check_tools(request: &Value, inside: &str) -> Check {
    let tools = &request["tools"];
    if !tools.is_null() && !tools.is_array() {
        return refuse("Invalid type for 'tools': expected an array of objects.", "tools");
    }
    let mut names = Vec::new();
    for (number, tool) in items(tools).enumerate() {
        let place = format!("tools[{number}]");
        let Some(kind) = tool["type"].as_str() else {
            return missing(&format!("{place}.type"));
        };
        if kind != "function" {
            continue;
        }
        let (place, function) = match inside {
            "" => (place, tool),
            field => (format!("{place}.{field}"), &tool[field]),
        };
        let name = check_name(&format!("{place}.name"), &function["name"])?;
        if names.contains(&name) {
            // Stricter than the service: nobody could tell whose call it is.
            return refuse(format!("Duplicate function name '{name}' in 'tools'."), place);
        }
        check_schema(name, &function["parameters"], &format!("{place}.parameters"))?;
        names.push(name);
    }
    check_choice(request, inside, &names)
}

fn check_choice(request: &Value, inside: &str, names: &[&str]) -> Check {
    let choice = &request["tool_choice"];
    let has_tools = items(&request["tools"]).next().is_some();
    for field in ["tool_choice", "parallel_tool_calls"] {
        if !has_tools && !request[field].is_null() {
            return refuse(format!("'{field}' is only allowed when 'tools' are specified."), field);
        }
    }
    let function = if inside.is_empty() { choice } else { &choice[inside] };
    match (choice.as_str(), choice["type"].as_str()) {
        (Some("auto" | "none" | "required"), _) => Ok(()),
        (Some(other), _) => refuse(
            format!("Invalid value: '{other}'. Supported values are: 'none', 'auto', and 'required'."),
            "tool_choice",
        ),
        (None, Some("function")) => match function["name"].as_str() {
            Some(name) if names.contains(&name) => Ok(()),
            Some(name) => {
                refuse(format!("Tool choice '{name}' not found in 'tools' parameter."), "tool_choice")
            }
            None => missing("tool_choice.name"),
        },
        // Sets of allowed tools and tools of the provider have no rule that a script needs.
        (None, _) => Ok(()),
    }
}

/// A function's name in the grammar of the service.
pub(super) fn check_name<'n>(place: &str, name: &'n Value) -> Result<&'n str, ApiError> {
    let Some(name) = name.as_str() else {
        return missing(place).map(|()| "");
    };
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || name.len() > 64 || !name.chars().all(good) {
        let message = format!(
            "Invalid '{place}': string does not match pattern. Expected a string of at most 64 characters that matches the pattern '^[a-zA-Z0-9_-]+$'."
        );
        refuse(message, place)?;
    }
    Ok(name)
}

/// The id of a call: a string that is not empty and not too long.
pub(super) fn check_id<'i>(place: &str, id: &'i Value, longest: usize) -> Result<&'i str, ApiError> {
    match id.as_str() {
        None => missing(place).map(|()| ""),
        Some("") => refuse(format!("Invalid '{place}': empty string. Expected a string with minimum length 1, but got an empty string instead."), place).map(|()| ""),
        Some(id) if id.len() > longest => {
            let message = format!(
                "Invalid '{place}': string too long. Expected a string with maximum length {longest}, but got a string with length {} instead.",
                id.len()
            );
            refuse(message, place).map(|()| "")
        }
        Some(id) => Ok(id),
    }
}

fn check_schema(name: &str, schema: &Value, place: &str) -> Check {
    if schema.is_null() || schema["type"] == "object" {
        return Ok(());
    }
    let kind = schema["type"].as_str().unwrap_or("None");
    let message = format!(
        "Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
    );
    Err(ApiError::invalid(message).at(place).coded("invalid_function_parameters"))
}

/// Refuses a request for what it says at a place.
pub(super) fn refuse(message: impl Into<String>, place: impl Into<String>) -> Check {
    Err(ApiError::invalid(message).at(place))
}

pub(super) fn missing(place: &str) -> Check {
    let message = format!("Missing required parameter: '{place}'.");
    Err(ApiError::invalid(message).at(place).coded("missing_required_parameter"))
}

/// Status, type, usual words, and the code beside them.
pub(super) const USUAL: [Usual; 9] = [
    Usual::new(400, "invalid_request_error", "Invalid request."),
    Usual::new(401, "invalid_request_error", "Incorrect API key provided.").coded("invalid_api_key"),
    Usual::new(403, "request_forbidden", "You are not allowed to make this request."),
    Usual::new(404, "invalid_request_error", "Invalid URL."),
    Usual::new(413, "invalid_request_error", "The request is too large."),
    Usual::new(429, "requests", "Rate limit reached for requests. Please try again later.")
        .coded("rate_limit_exceeded"),
    Usual::new(
        500,
        "server_error",
        "The server had an error while processing your request. Sorry about that!",
    )
    .coded("server_error"),
    Usual::new(503, "server_error", "The engine is currently overloaded, please try again later."),
    Usual::new(529, "server_error", "The engine is currently overloaded, please try again later."),
];
