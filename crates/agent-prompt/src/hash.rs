//! Fingerprints of what is sent: the system prompt, the tools, a block.

use agent_core::{SystemBlock, ToolCard, hex};
use sha2::{Digest, Sha256};

/// Hexadecimal digits of a fingerprint.
pub const HASH_DIGITS: usize = 16;

/// Ends a field. It occurs in no UTF-8 text, so that moving a border between two texts changes the hash.
const FIELD: &[u8] = &[0xFF];
/// Ends a tool, for the same reason.
const RECORD: &[u8] = &[0xFE];

/// `cache.system_hash` (requirement A7): the first 16 hex digits of SHA-256 of the full system prompt.
///
/// The blocks' texts are hashed in order with a byte `FF` between two of them; of one block it is the hash of its text.
pub fn system_hash(system: &[SystemBlock]) -> String {
    texts_hash(system.iter().map(SystemBlock::text))
}

/// The tools hash of requirement A7: the first 16 hex digits of SHA-256 over all that a provider may be told of the
/// tools, in their order. It changes with the order, as the bytes sent do.
///
/// Written rule: for each tool its name, description, schema, `hosted` or nothing, and provider and JSON of its data,
/// each followed by a byte `FF`, and for a tool that is deferred or through which such are called also `deferred` or
/// `dispatcher` and a byte `FF`; after each tool a byte `FE`.
pub fn tools_hash(tools: &[ToolCard]) -> String {
    let mut hasher = Sha256::new();
    for tool in tools {
        feed_tool(&mut hasher, tool);
    }
    digits(hasher)
}

pub(crate) fn tool_hash(tool: &ToolCard) -> String {
    tools_hash(std::slice::from_ref(tool))
}

pub(crate) fn text_hash(text: &str) -> String {
    texts_hash(std::iter::once(text))
}

fn texts_hash<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut hasher = Sha256::new();
    for (position, text) in texts.enumerate() {
        if position > 0 {
            hasher.update(FIELD);
        }
        hasher.update(text);
    }
    digits(hasher)
}

fn feed_tool(hasher: &mut Sha256, tool: &ToolCard) {
    let hosted = if tool.is_hosted() { "hosted" } else { "" };
    let (provider, json) = tool.data().map_or(("", ""), |data| (data.provider.as_str(), data.json.get()));
    for field in [tool.name(), tool.description(), tool.input_schema().get(), hosted, provider, json] {
        hasher.update(field);
        hasher.update(FIELD);
    }
    if let Some(word) = loading(tool) {
        hasher.update(word);
        hasher.update(FIELD);
    }
    hasher.update(RECORD);
}

fn loading(tool: &ToolCard) -> Option<&'static str> {
    match (tool.is_deferred(), tool.is_dispatcher()) {
        (true, _) => Some("deferred"),
        (false, true) => Some("dispatcher"),
        (false, false) => None,
    }
}

fn digits(hasher: Sha256) -> String {
    let mut text = hex(&hasher.finalize());
    text.truncate(HASH_DIGITS);
    text
}

#[cfg(test)]
mod tests {
    use agent_core::RawJson;

    use super::*;

    fn blocks(texts: &[&str]) -> Vec<SystemBlock> {
        texts.iter().filter_map(|text| SystemBlock::new(*text)).collect()
    }

    #[test]
    fn one_block_hashes_as_its_text() {
        // `printf abc | sha256sum`, first 16 digits.
        assert_eq!(system_hash(&blocks(&["abc"])), "ba7816bf8f01cfea");
        // The hash of nothing.
        assert_eq!(system_hash(&[]), "e3b0c44298fc1c14");
    }

    #[test]
    fn borders_count() {
        assert_ne!(system_hash(&blocks(&["ab", "c"])), system_hash(&blocks(&["a", "bc"])));
        assert_ne!(system_hash(&blocks(&["ab"])), system_hash(&blocks(&["a", "b"])));
    }

    #[test]
    fn the_tools_hash_sees_every_field_and_the_order() {
        let schema = |text: &str| RawJson::parse(text).unwrap();
        let card = |name: &str, about: &str, json: &str| ToolCard::new(name, about, &schema(json)).unwrap();
        let read = card("read", "Reads.", "{}");
        let others = [
            vec![card("ready", "Reads.", "{}")],
            vec![card("read", "Reads!", "{}")],
            vec![card("read", "Reads.", r#"{"type":"object"}"#)],
            vec![read.clone(), card("grep", "", "{}")],
            vec![card("grep", "", "{}"), read.clone()],
            vec![read.clone().deferred()],
            vec![read.clone().dispatcher()],
            vec![],
        ];
        let mut hashes: Vec<_> = others.iter().map(|tools| tools_hash(tools)).collect();
        hashes.push(tools_hash(std::slice::from_ref(&read)));
        hashes.sort();
        hashes.dedup();
        assert_eq!(hashes.len(), others.len() + 1);
        assert!(hashes.iter().all(|hash| hash.len() == HASH_DIGITS));
    }
}
