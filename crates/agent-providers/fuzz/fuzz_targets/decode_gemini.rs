//! Fuzzes the decoder of Google Gemini.
#![cfg_attr(fuzzing, no_main)]

agent_providers_fuzz::entry!(decode_gemini);
