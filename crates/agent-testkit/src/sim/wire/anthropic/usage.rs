//! Tokens in the words of Anthropic: components that do not overlap.

use agent_core::Usage;

/// The usage object of a message. The provider's own object of a scripted usage goes out as it is.
pub(super) fn wire(usage: &Usage) -> String {
    match &usage.raw {
        Some(raw) => raw.get().to_owned(),
        None => full(usage, usage.output),
    }
}

/// The usage object at the start of a stream, when hardly anything was written yet.
pub(super) fn wire_at_start(usage: &Usage) -> String {
    full(usage, usage.output.min(1))
}

/// The usage object at the end of a stream, where the service tells the counts alone.
pub(super) fn wire_at_end(usage: &Usage) -> String {
    match &usage.raw {
        Some(raw) => raw.get().to_owned(),
        None => format!("{{{}}}", counts(usage, usage.output)),
    }
}

fn full(usage: &Usage, output: u64) -> String {
    let Usage { cache_write_5m, cache_write_1h, .. } = usage;
    let counts = counts(usage, output);
    format!(
        r#"{{{counts},"cache_creation":{{"ephemeral_5m_input_tokens":{cache_write_5m},"ephemeral_1h_input_tokens":{cache_write_1h}}},"service_tier":"standard"}}"#
    )
}

fn counts(usage: &Usage, output: u64) -> String {
    let (Usage { input, cache_read, .. }, write) = (usage, usage.cache_write());
    format!(
        r#""input_tokens":{input},"cache_creation_input_tokens":{write},"cache_read_input_tokens":{cache_read},"output_tokens":{output}"#
    )
}
