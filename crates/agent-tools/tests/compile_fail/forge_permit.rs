//! A permit comes from the permission check and from nowhere else.
use agent_core::{CallId, RawJson};
use agent_tools::{Access, Permit};

fn main() {
    let (call, input) = (CallId::new("c").unwrap(), RawJson::empty_object());
    let _ = Permit { call, tool: "bash".into(), input, access: Access::Execute, real_path: None };
}
