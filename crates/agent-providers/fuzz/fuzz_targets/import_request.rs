//! Fuzzes the reading of recorded requests.
#![cfg_attr(fuzzing, no_main)]

agent_providers_fuzz::entry!(import_request);
