//! Ollama.
