//! One part of a content, as answers and recorded requests hold it.

use std::borrow::Cow;

use agent_core::{AssistantPart, AssistantText, ProviderData, ProviderPart, RawJson, Reasoning, Seal, Text};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::json::{Fields, Loose, object, quoted, received, text_or_raw};

/// What a part says.
#[derive(Debug)]
pub(crate) enum Part<'a> {
    /// Nothing at all.
    Empty,
    Text(Said<'a>),
    Thought(Said<'a>),
    Call {
        call: WireCall<'a>,
        /// Fields of the part beside the call.
        beside: Beside<'a>,
    },
    /// A result of a tool of ours; answers hold none.
    Result(WireResult<'a>),
    /// Anything else, named after its first field.
    Other {
        kind: Cow<'a, str>,
    },
}

/// Words, and what stands beside them.
#[derive(Debug)]
pub(crate) struct Said<'a> {
    pub(crate) text: Cow<'a, str>,
    pub(crate) beside: Beside<'a>,
}

/// Fields of a part that must go back with it: its signature, and what is not known yet.
pub(crate) type Beside<'a> = Vec<(Cow<'a, str>, &'a RawValue)>;

/// A call, whole or one of its pieces.
#[derive(Debug, Deserialize)]
pub(crate) struct WireCall<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Loose<'a>,
    #[serde(borrow, default)]
    pub(crate) name: Loose<'a>,
    #[serde(borrow, default)]
    pub(crate) args: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "partialArgs", alias = "partial_args")]
    pub(crate) partial_args: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "willContinue", alias = "will_continue")]
    will_continue: Option<&'a RawValue>,
}

/// The result of a call.
#[derive(Debug, Deserialize)]
pub(crate) struct WireResult<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Loose<'a>,
    #[serde(borrow, default)]
    pub(crate) name: Loose<'a>,
    #[serde(borrow, default)]
    pub(crate) response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) parts: Option<Vec<&'a RawValue>>,
}

impl<'a> Part<'a> {
    /// Reads a part. Nulls and `"thought":false`, which some clients write everywhere, say nothing.
    pub(crate) fn read(raw: &'a RawValue) -> Result<Self, serde_json::Error> {
        let mut fields: Fields<'a> = object(raw.get())?;
        let is_thought = fields.get("thought").is_some_and(|raw| raw.get() == "true");
        fields.0.retain(|(key, raw)| key != "thought" && raw.get() != "null");
        if let Some((call, beside)) = split(&fields, &["functionCall", "function_call"]) {
            return Ok(Self::Call { call: object(call.get())?, beside });
        }
        if let Some((result, _)) = split(&fields, &["functionResponse", "function_response"]) {
            return Ok(Self::Result(object(result.get())?));
        }
        if let Some((text, beside)) = split(&fields, &["text"]) {
            let said = Said { text: text_or_raw(text), beside };
            return Ok(if is_thought { Self::Thought(said) } else { Self::Text(said) });
        }
        if let Some((kind, _)) = fields.0.iter().find(|(key, _)| !is_signature(key)) {
            return Ok(Self::Other { kind: kind.clone() });
        }
        // A signature alone belongs to words that were said before.
        let said = Said { text: "".into(), beside: fields.0 };
        Ok(match said.beside.is_empty() {
            true => Self::Empty,
            false if is_thought => Self::Thought(said),
            false => Self::Text(said),
        })
    }
}

impl WireCall<'_> {
    /// Whether more of the call is announced.
    pub(crate) fn continues(&self) -> bool {
        self.will_continue.is_some_and(|raw| raw.get() == "true")
    }

    /// Whether it only ends a call, or keeps it alive.
    pub(crate) fn is_blank(&self) -> bool {
        self.name.as_str().is_empty()
            && self.id.as_str().is_empty()
            && self.args.is_none()
            && self.partial_args.is_none()
    }
}

/// The field of one of these names, and all others.
fn split<'a>(fields: &Fields<'a>, names: &[&str]) -> Option<(&'a RawValue, Beside<'a>)> {
    let is_it = |key: &str| names.contains(&key);
    let (_, found) = fields.0.iter().find(|(key, _)| is_it(key))?;
    let beside = fields.0.iter().filter(|(key, _)| !is_it(key)).map(|(key, raw)| (key.clone(), *raw));
    Some((found, beside.collect()))
}

/// Whether a field is the provider's proof of thinking.
pub(crate) fn is_signature(key: &str) -> bool {
    matches!(key, "thoughtSignature" | "thought_signature")
}

/// Fields as an object for the provider they came from; `None` without any.
pub(crate) fn data(
    provider: &str,
    fields: &[(String, String)],
) -> Result<Option<ProviderData>, serde_json::Error> {
    if fields.is_empty() {
        return Ok(None);
    }
    let fields: Vec<String> = fields.iter().map(|(key, raw)| format!("{}:{raw}", quoted(key))).collect();
    let json = RawJson::parse(format!("{{{}}}", fields.join(",")))?;
    Ok(Some(ProviderData { provider: provider.to_owned(), json }))
}

/// Fields that own what they hold.
pub(crate) fn owned(beside: &Beside<'_>, lone: bool) -> Vec<(String, String)> {
    beside.iter().map(|(key, raw)| (key.as_ref().to_owned(), received(raw.get(), lone))).collect()
}

/// Words as a part of an answer. Blank ones that carry something go back as they came; others say nothing.
pub(crate) fn text_part(
    provider: &str,
    text: String,
    beside: &[(String, String)],
) -> Result<Option<AssistantPart>, serde_json::Error> {
    if let Some(words) = Text::new(text.as_str()) {
        let data = data(provider, beside)?;
        return Ok(Some(AssistantPart::Text(AssistantText { text: words, data })));
    }
    if beside.is_empty() {
        return Ok(None);
    }
    let fields = [vec![("text".to_owned(), quoted(&text))], beside.to_vec()].concat();
    let Some(ProviderData { provider, json }) = data(provider, &fields)? else { return Ok(None) };
    Ok(Some(AssistantPart::Provider(ProviderPart { provider, kind: "text".into(), raw: json })))
}

/// Thinking as a part of an answer: sealed by its signature, or as a whole where more stands beside it.
pub(crate) fn thought_part(
    provider: &str,
    text: String,
    beside: &[(String, String)],
) -> Result<Option<AssistantPart>, serde_json::Error> {
    let signature = match beside {
        [(key, raw)] if is_signature(key) => serde_json::from_str::<String>(raw).ok(),
        _ => None,
    };
    let seal = match signature {
        Some(value) => Some(Seal::Signature { provider: provider.to_owned(), value }),
        None if beside.is_empty() => None,
        None => item_seal(provider, &text, beside)?,
    };
    if seal.is_none() && text.trim().is_empty() {
        return Ok(None);
    }
    Ok(Some(AssistantPart::Reasoning(Reasoning { text, seal })))
}

/// The seal of thinking that goes back as the part it came in.
pub(crate) fn item_seal(
    provider: &str,
    text: &str,
    beside: &[(String, String)],
) -> Result<Option<Seal>, serde_json::Error> {
    let own = [("text".to_owned(), quoted(text)), ("thought".to_owned(), "true".to_owned())];
    let item = data(provider, &[own.as_slice(), beside].concat())?;
    Ok(item.map(|ProviderData { provider, json }| Seal::Item { provider, raw: json }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a part is read as.
    #[track_caller]
    fn check(json: &str, expect: &str) {
        let raw = RawValue::from_string(json.to_owned()).unwrap();
        let names =
            |beside: &Beside<'_>| beside.iter().map(|(key, _)| key.to_string()).collect::<Vec<_>>().join(",");
        let given = match Part::read(&raw) {
            Ok(Part::Empty) => "empty".to_owned(),
            Ok(Part::Text(said)) => format!("text {:?} {}", said.text, names(&said.beside)),
            Ok(Part::Thought(said)) => format!("thought {:?} {}", said.text, names(&said.beside)),
            Ok(Part::Call { call, beside }) => format!("call {:?} {}", call.name.as_str(), names(&beside)),
            Ok(Part::Result(result)) => format!("result {:?}", result.name.as_str()),
            Ok(Part::Other { kind }) => format!("other {kind}"),
            Err(_) => "error".to_owned(),
        };
        assert_eq!(given.trim_end(), expect, "{json}");
    }

    #[test]
    fn parts_are_told_apart_by_their_fields() {
        check(r#"{"text":"hi"}"#, r#"text "hi""#);
        check(r#"{"text":"hi","thought":false,"thoughtSignature":null}"#, r#"text "hi""#);
        check(r#"{"thoughtSignature":"s","text":""}"#, r#"text "" thoughtSignature"#);
        check(r#"{"thought":true,"text":"hm","thought_signature":"s"}"#, r#"thought "hm" thought_signature"#);
        check(r#"{"functionCall":{"name":"f"},"thoughtSignature":"s"}"#, r#"call "f" thoughtSignature"#);
        check(r#"{"function_response":{"name":"f"}}"#, r#"result "f""#);
        check(r#"{"thoughtSignature":"s","executableCode":{}}"#, "other executableCode");
        check(r#"{"thoughtSignature":"s"}"#, r#"text "" thoughtSignature"#);
        check("{}", "empty");
        check("[]", "error");
        check(r#"{"functionCall":7}"#, "error");
    }
}
