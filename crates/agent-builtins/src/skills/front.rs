//! The text of a `SKILL.md`: YAML front matter, then instructions in Markdown.

use agent_memory::{NoFrontMatter, front_matter, one_line};
use serde::Deserialize;

use super::SkillError;

/// What a `SKILL.md` says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) name: String,
    /// On one line.
    pub(super) description: String,
    /// Markdown with `\n` line endings, without blank lines around it.
    pub(super) body: String,
}

/// The fields that are read; others are for other programs.
#[derive(Deserialize)]
struct Front {
    name: Option<String>,
    description: Option<String>,
}

/// Most characters of a name.
pub(super) const NAME_CHARS: usize = 64;
/// Most characters of a description: it is part of every request.
pub(super) const DESCRIPTION_CHARS: usize = 1_024;

impl Written {
    pub(super) fn read(text: &str) -> Result<Self, SkillError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
        let split = front_matter(&text).map_err(|missing| match missing {
            NoFrontMatter::Missing => SkillError::NoFront,
            NoFrontMatter::Open => SkillError::OpenFront,
        })?;
        let front = parsed(split.front)?;
        let name = front.name.map(|name| name.trim().to_owned()).unwrap_or_default();
        if name.is_empty() {
            return Err(SkillError::NoName);
        }
        if !is_name(&name) {
            return Err(SkillError::BadName { name });
        }
        let description = one_line(&front.description.unwrap_or_default());
        if description.is_empty() {
            return Err(SkillError::NoDescription);
        }
        let chars = description.chars().count();
        if chars > DESCRIPTION_CHARS {
            return Err(SkillError::LongDescription { chars });
        }
        let body = split.body.trim_matches('\n').trim_end();
        if body.trim().is_empty() {
            return Err(SkillError::NoInstructions);
        }
        Ok(Self { name, description, body: body.to_owned() })
    }
}

fn parsed(front: &str) -> Result<Front, SkillError> {
    // An empty document is the value null, and a mapping without fields is what it means.
    let front: Option<Front> = serde_yaml_ng::from_str(front).map_err(SkillError::Yaml)?;
    Ok(front.unwrap_or(Front { name: None, description: None }))
}

/// Lower-case letters and digits, in groups with one hyphen between them: no path, no quotes, the same on every disk.
pub(crate) fn is_name(name: &str) -> bool {
    let is_group = |group: &str| {
        !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    name.len() <= NAME_CHARS && name.split('-').all(is_group)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, name: &str, description: &str, body: &str) {
        let written = Written { name: name.into(), description: description.into(), body: body.into() };
        assert_eq!(Written::read(text).unwrap(), written, "{text:?}");
    }

    #[test]
    fn what_is_written_is_read() {
        check(
            "---\nname: knots\ndescription: Ties them.\n---\n\n# Knots\nTie.\n",
            "knots",
            "Ties them.",
            "# Knots\nTie.",
        );
        check("\u{feff}---\r\nname: a\r\ndescription: b\r\n---\r\nc\r\n\r\nd\r\n", "a", "b", "c\n\nd");
        check("--- \nname: a\ndescription: b\n---\t\nc", "a", "b", "c");
        // Values that are quoted, folded or kept, and fields for others.
        check(
            "---\nname: \"a-1\"\ndescription: 'it''s: b'\nlicense: MIT\nmetadata: {x: [1, 2]}\n---\nc",
            "a-1",
            "it's: b",
            "c",
        );
        check("---\nname: a\ndescription: >-\n  one\n  two\n\n  three\n---\nc", "a", "one two three", "c");
        check("---\nname: a\ndescription: |\n  one\n    --- two\n---\nc", "a", "one --- two", "c");
        check("---\ndescription: \"b\\e[1m \\u202Ec\"\nname: a\n---\nc", "a", "b[1m c", "c");
        // Only the first two borders are borders, and an indented first line stays so.
        check("---\nname: a\ndescription: b\n---\n    code\n---\nmore\n", "a", "b", "    code\n---\nmore");
    }

    #[track_caller]
    fn refused(text: &str, expect: &str) {
        let error = Written::read(text).unwrap_err().to_string();
        assert!(error.contains(expect), "{text:?}: {error}");
    }

    #[test]
    fn what_is_wrong_is_said() {
        refused("", "line `---`");
        refused("# Knots\n", "line `---`");
        refused("---\nname: a\ndescription: b\n\nText.\n", "does not end");
        refused("---\nname: a\ndescription: b\n ---\nText.\n", "does not end");
        refused("---\n---\nText.\n", "has no `name`");
        refused("---\nname: ''\ndescription: b\n---\nText.\n", "has no `name`");
        refused("---\nname: a\n---\nText.\n", "has no `description`");
        refused("---\nname: a\ndescription: \" \"\n---\nText.\n", "has no `description`");
        refused("---\nname: a\ndescription: b\n---\n \n", "no instructions");
        refused("---\nname: a\ndescription: use: it\n---\nText.\n", "in quotes");
        refused("---\nname: [a]\ndescription: b\n---\nText.\n", "in quotes");
        refused("---\nname: a\nname: b\ndescription: b\n---\nText.\n", "duplicate");
        refused("---\n- a\n---\nText.\n", "front matter cannot be read");
        refused(&format!("---\nname: a\ndescription: {}\n---\nText.\n", "x".repeat(1_025)), "1025");
        let far = "a".repeat(65);
        for name in ["../a", "A", "a_b", "a--b", "-a", "a/b", "é", "a b", far.as_str()] {
            refused(&format!("---\nname: {name}\ndescription: b\n---\nText.\n"), "is no name of a skill");
        }
        refused("---\nname: a\ndescription: &d [*d]\n---\nText.\n", "front matter cannot be read");
    }

    /// References that would grow without end, in a field that nobody reads and in one that is read.
    #[test]
    fn a_bomb_does_not_go_off() {
        let level =
            |(name, of): (char, char)| format!("{name}: &{name} [{}]\n", vec![format!("*{of}"); 9].join(","));
        let levels: String = ('f'..='z').zip('e'..'z').map(level).collect();
        let bomb = format!("e: &e [x]\n{levels}");
        check(&format!("---\nname: a\ndescription: b\n{bomb}---\nc"), "a", "b", "c");
        refused(&format!("---\nname: a\n{bomb}description: *z\n---\nc"), "front matter cannot be read");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(---\r?\n)?(name: [a-z-]{0,4}\r?\n|description: \\PC{0,9}\r?\n|\\PC{0,9}\r?\n|---\n){0,6}") {
            if let Ok(written) = Written::read(&text) {
                prop_assert!(is_name(&written.name));
                prop_assert!(!written.description.contains(['\n', '\r']) && !written.body.contains("\r\n"));
            }
        }

        #[test]
        fn line_endings_change_nothing(body in "[a-z \n-]{1,40}") {
            let text = format!("---\nname: a\ndescription: b\n---\nx{body}");
            let windows = text.replace('\n', "\r\n");
            prop_assert_eq!(Written::read(&text).unwrap(), Written::read(&windows).unwrap());
        }
    }
}
