//! Tokens in the words of Anthropic: components that do not overlap.

use agent_core::Usage;

/// The usage object of a message. The provider's own object of a scripted usage goes out as it is.
pub(super) fn wire(usage: &Usage) -> String {
    match &usage.raw {
        Some(raw) => raw.get().to_owned(),
        None => wire_with_output(usage, usage.output),
    }
}

/// The usage object at the start of a stream, when hardly anything was written yet.
pub(super) fn wire_at_start(usage: &Usage) -> String {
    wire_with_output(usage, usage.output.min(1))
}

fn wire_with_output(usage: &Usage, output: u64) -> String {
    let Usage { input, cache_read, cache_write_5m, cache_write_1h, .. } = usage;
    let write = usage.cache_write();
    format!(
        r#"{{"input_tokens":{input},"cache_creation_input_tokens":{write},"cache_read_input_tokens":{cache_read},"cache_creation":{{"ephemeral_5m_input_tokens":{cache_write_5m},"ephemeral_1h_input_tokens":{cache_write_1h}}},"output_tokens":{output},"service_tier":"standard"}}"#
    )
}
