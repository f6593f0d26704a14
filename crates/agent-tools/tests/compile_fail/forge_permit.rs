//! A permit comes from the permission check and from nowhere else.
use agent_core::CallId;
use agent_tools::Permit;

fn main() {
    let _ = Permit { call: CallId::new("c").unwrap(), fingerprint: [0; 32], access: agent_tools::Access::Execute };
}
