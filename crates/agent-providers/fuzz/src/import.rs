//! Recorded requests: what can be read can be sent again, and reads the same after that.

use agent_core::{ModelProfile, ModelRequest};
use agent_providers::{Dialect, Imported, ToolNames, WireFormat, encoder, import_request};

/// Checks the bytes as a request of every format.
pub fn check(data: &[u8]) {
    for format in WireFormat::ALL {
        let dialect = Dialect::from(format);
        let Ok(read) = import_request(&dialect, data) else { continue };
        let first = encode(&dialect, &read);
        let again = import_request(&dialect, &first)
            .unwrap_or_else(|error| panic!("{format:?}: our own request is not read ({error}): {first:?}"));
        assert_eq!(again.repairs, [], "{format:?}: our own request has to be mended");
        let second = encode(&dialect, &again);
        assert_eq!(
            String::from_utf8_lossy(&second),
            String::from_utf8_lossy(&first),
            "{format:?}: a request changes each time it is read and sent"
        );
    }
}

/// The body of a request that says what was read.
fn encode(dialect: &Dialect, read: &Imported) -> Vec<u8> {
    let profile = ModelProfile::conservative(dialect.provider.clone(), read.model.clone());
    // A profile that allows everything, so that nothing is left out for the model's sake.
    let profile = ModelProfile {
        allowed_tools: true,
        forced_tool_choice: true,
        mid_conversation_system: true,
        vision: true,
        max_output: u32::MAX,
        ..profile
    };
    let request = ModelRequest {
        system: &read.system,
        tools: &read.tools,
        draft: &read.history.draft(),
        settings: &read.settings,
        tool_choice: &read.tool_choice,
        marks: &[],
        stream: read.stream,
    };
    let body = encoder(dialect, profile, ToolNames::default()).encode(&request).request.body.to_vec();
    let json = serde_json::from_slice::<serde_json::Value>(&body);
    assert!(json.is_ok(), "not JSON: {}", String::from_utf8_lossy(&body));
    body
}
