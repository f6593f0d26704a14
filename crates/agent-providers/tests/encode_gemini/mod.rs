//! Gemini.
