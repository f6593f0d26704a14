//! Google Gemini: `generateContent` and `streamGenerateContent`.
//!
//! The address names the model and says whether the answer is streamed; the body is the same for both.

mod args;
mod block;
pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod import;
mod part;
mod segment;
mod settings;
mod tools;
mod usage;

/// Whether a model of this name checks that calls of old steps carry their signatures: Gemini 3 and later.
pub(crate) fn checks_signatures(model: &str) -> bool {
    let Some((_, rest)) = model.rsplit_once("gemini-") else { return false };
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    match rest.get(..digits).unwrap_or_default().parse::<u32>() {
        Ok(generation) => generation >= 3,
        // Names without a number stand for the newest model.
        Err(_) => rest.ends_with("-latest"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generation_is_in_the_name() {
        for old in ["gemini-2.5-pro", "gemini-1.5-flash-002", "gemini-pro-vision", "gemma-4", ""] {
            assert!(!checks_signatures(old), "{old}");
        }
        for new in
            ["gemini-3-pro-preview", "models/gemini-3.1-flash", "google/gemini-12-x", "gemini-flash-latest"]
        {
            assert!(checks_signatures(new), "{new}");
        }
    }
}
