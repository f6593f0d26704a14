//! Fuzzes the frame layer.
#![cfg_attr(fuzzing, no_main)]

agent_providers_fuzz::entry!(sse);
