//! Fuzzes the decoder of OpenAI Responses.
#![cfg_attr(fuzzing, no_main)]

agent_providers_fuzz::entry!(decode_openai_responses);
