//! Fuzzes the classes of failed responses.
#![cfg_attr(fuzzing, no_main)]

agent_providers_fuzz::entry!(classify);
