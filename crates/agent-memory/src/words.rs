//! What models are told about memories and notes.

use crate::{IndexView, MEMORIES, NOTES_PATH};

/// What the main agent is told of memories, with the index of those there are: the text for the prompt's layer `Auto`.
///
/// Its bytes follow from the view alone. Take the view once per session, and keep the text: a prompt must not move.
pub fn instructions(index: &IndexView) -> String {
    let lines = index.prompt();
    let lines = if lines.is_empty() { "There are no memories yet.\n" } else { &lines };
    format!("{INSTRUCTIONS}\n## Index of memories\n\n{lines}")
}

/// What the run behind a turn is told that extracts memories, with the index as it is now. It names the five things that
/// are not kept (requirement C1).
pub fn extraction_prompt(index: &IndexView) -> String {
    let lines = index.prompt();
    let lines = if lines.is_empty() { "There are no memories yet.\n" } else { &lines };
    format!("{EXTRACT}\nThe memories there are:\n\n{lines}")
}

/// What the run is told that writes the session notes, with what they say so far.
pub fn notes_prompt(notes: Option<&str>) -> String {
    match notes {
        Some(notes) => format!("{NOTES}\nThe notes so far, between the lines:\n\n---\n{notes}\n---\n"),
        None => format!(
            "{NOTES}\nThere are no notes yet. The outline, in which each line in italics says what belongs there:\n\n{OUTLINE}"
        ),
    }
}

/// The outline of session notes: headings, each with a line that says what belongs there.
pub fn notes_outline() -> &'static str {
    OUTLINE
}

/// Whether notes say anything beyond their outline.
pub fn are_notes_empty(notes: &str) -> bool {
    let is_filled = |line: &str| {
        let line = line.trim();
        !line.is_empty() && line != "None." && !OUTLINE.lines().any(|known| known == line)
    };
    !notes.lines().any(is_filled)
}

/// What answers a call of the run that writes notes, when it is for anything else (requirement C2).
pub fn notes_denial() -> String {
    format!(
        "This run writes the notes of the session and nothing else: only `memory` on `{NOTES_PATH}` is allowed. Write what belongs there, then end."
    )
}

/// What answers a call of the run that extracts memories, when it would do more than it may (requirement C3).
pub fn extraction_denial() -> String {
    format!(
        "This run keeps memories and changes nothing else: allowed are tools and commands that only read, and `memory` on `{MEMORIES}/<name>.md`. Keep what is worth it, then end."
    )
}

const INSTRUCTIONS: &str = include_str!("../prompt/instructions.md");
const EXTRACT: &str = include_str!("../prompt/extract.md");
const NOTES: &str = include_str!("../prompt/notes.md");
const OUTLINE: &str = include_str!("../prompt/outline.md");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{INDEX_BYTES, LeftOut, MemoryName, MemoryType, StrangeFile};

    #[test]
    fn the_prompts_say_what_is_kept_and_what_is_not() {
        let index = IndexView::default();
        for text in [instructions(&index), extraction_prompt(&index)] {
            for kind in MemoryType::ALL {
                assert!(text.contains(&format!("`{kind}`")), "{kind}");
            }
            assert!(text.contains("**Why:**") && text.contains("**How to apply:**"));
            assert!(text.ends_with("There are no memories yet.\n"));
        }
        let text = extraction_prompt(&index);
        for (number, exclusion) in (1..).zip([
            "Code patterns",
            "Git history",
            "Debugging recipes",
            "What rule files",
            "Transient state",
        ]) {
            assert!(text.contains(&format!("\n{number}. {exclusion}")), "{exclusion}");
        }
    }

    /// The prompt cuts a fragment at 32 KiB; it must never have to.
    #[test]
    fn the_fullest_index_fits_into_a_fragment() {
        let strange = |at: usize| StrangeFile { file: format!("{at:0>250}"), why: String::new() };
        let name = |at: usize| MemoryName::new(format!("{at:0>64}")).unwrap();
        let view = IndexView {
            text: "x".repeat(INDEX_BYTES),
            left_out: (0..300)
                .map(|at| LeftOut { line: None, name: Some(name(at)), begins: String::new() })
                .collect(),
            dangling: (0..300).map(name).collect(),
            strange: (0..300).map(strange).collect(),
            fault: Some("`MEMORY.md` cannot be read".repeat(9)),
            ..IndexView::default()
        };
        let (main, extracting) = (instructions(&view).len(), extraction_prompt(&view).len());
        assert!(main <= 32 * 1024 && extracting <= 32 * 1024, "{main} {extracting}");
    }

    #[test]
    fn notes_are_empty_until_something_is_said() {
        assert!(notes_prompt(None).ends_with(notes_outline()));
        assert!(notes_prompt(Some("# Task\nMend it.")).contains("---\n# Task\nMend it.\n---"));
        assert!(are_notes_empty("") && are_notes_empty(notes_outline()));
        assert!(are_notes_empty(
            &notes_outline().replace("_A few words that tell this session from others._", "None.")
        ));
        assert!(!are_notes_empty(
            &notes_outline().replace("_What was decided, and why._", "Rust, for its types.")
        ));
    }
}
