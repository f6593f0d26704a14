//! Fuzzes the decoder of Ollama's own chat.
#![cfg_attr(fuzzing, no_main)]

agent_providers_fuzz::entry!(decode_ollama);
