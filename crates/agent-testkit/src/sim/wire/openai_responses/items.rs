//! A scripted reply as output items: thinking, words, calls.

use crate::quote::quote;
use crate::sim::wire::Message;

/// One item of the output.
pub(super) struct Item<'a> {
    pub(super) id: String,
    pub(super) kind: Kind<'a>,
}

pub(super) enum Kind<'a> {
    Reasoning {
        text: &'a str,
        /// The sealed thinking, for those who asked for it.
        sealed: Option<String>,
    },
    Words(&'a str),
    Call {
        id: String,
        name: &'a str,
        input: &'a str,
    },
}

/// The items of a reply, with ids made of its position in the script.
pub(super) fn items<'a>(message: &'a Message<'a>) -> Vec<Item<'a>> {
    let Message { reply, position, .. } = message;
    let mut items = Vec::new();
    if let Some(text) = &reply.reasoning {
        let sealed = wants_sealed(message).then(|| format!("sim-sealed-{position:04}"));
        items.push(Item { id: format!("rs_sim_{position:04}"), kind: Kind::Reasoning { text, sealed } });
    }
    if let Some(text) = &reply.text {
        items.push(Item { id: format!("msg_sim_{position:04}"), kind: Kind::Words(text) });
    }
    for (number, call) in reply.calls.iter().enumerate() {
        let (name, input) = (call.name.as_str(), call.input.as_str());
        let kind = Kind::Call { id: call.id_at("call", *position, number), name, input };
        items.push(Item { id: format!("fc_sim_{position:04}_{number}"), kind });
    }
    items
}

fn wants_sealed(message: &Message<'_>) -> bool {
    let include = message.request["include"].as_array();
    include.is_some_and(|list| list.iter().any(|field| field == "reasoning.encrypted_content"))
}

impl Item<'_> {
    /// The item when nothing was said in it yet.
    pub(super) fn begun(&self) -> String {
        self.json("in_progress", false)
    }

    /// The whole item.
    pub(super) fn whole(&self) -> String {
        self.json("completed", true)
    }

    fn json(&self, status: &str, full: bool) -> String {
        let id = quote(&self.id);
        match &self.kind {
            Kind::Reasoning { text, sealed } => {
                let summary = if full { summary_part(text) } else { String::new() };
                let sealed =
                    sealed.as_ref().map(|sealed| format!(r#","encrypted_content":{}"#, quote(sealed)));
                let sealed = sealed.unwrap_or_default();
                format!(r#"{{"id":{id},"type":"reasoning","summary":[{summary}]{sealed}}}"#)
            }
            Kind::Words(text) => {
                let content = if full { text_part(text) } else { String::new() };
                format!(
                    r#"{{"id":{id},"type":"message","status":"{status}","role":"assistant","content":[{content}]}}"#
                )
            }
            Kind::Call { id: call, name, input } => {
                let (call, name, input) = (quote(call), quote(name), quote(if full { input } else { "" }));
                format!(
                    r#"{{"id":{id},"type":"function_call","status":"{status}","call_id":{call},"name":{name},"arguments":{input}}}"#
                )
            }
        }
    }
}

pub(super) fn summary_part(text: &str) -> String {
    format!(r#"{{"type":"summary_text","text":{}}}"#, quote(text))
}

pub(super) fn text_part(text: &str) -> String {
    format!(r#"{{"type":"output_text","text":{},"annotations":[],"logprobs":[]}}"#, quote(text))
}
