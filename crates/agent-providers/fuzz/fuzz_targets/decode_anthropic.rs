//! Fuzzes the decoder of Anthropic Messages.
#![cfg_attr(fuzzing, no_main)]

agent_providers_fuzz::entry!(decode_anthropic);
