//! The tool that shows the instructions of a skill.

use std::fmt::Write as _;
use std::sync::Arc;

use agent_tools::{Access, Call, OutputCap, Tool, ToolConfig, ToolError};

use super::{SKILL_BYTES, Skill, Skills};
use crate::built;

/// Shows a skill's instructions and keeps its name as active (requirements T8, P14); `None` when there are no skills.
///
/// The model learns names and descriptions from [`Skills::listing`], which the program puts into the prompt.
pub fn load_skill(skills: &Skills) -> Option<Arc<dyn Tool>> {
    if skills.is_empty() {
        return None;
    }
    let skills = skills.clone();
    let load = move |call: Call, input: Input| {
        let loaded = load(&call, &skills, &input.name);
        async move { loaded }
    };
    let config = ToolConfig::new("load_skill", DESCRIPTION.trim_end(), Access::Session, load).idempotent();
    Some(built(config.cap(WHOLE)))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Input {
    /// The skill, by its name in the list of skills.
    name: String,
}

/// Instructions are never cut: their size is limited where they are read. Beside them stand a few lines and paths.
const WHOLE: OutputCap = OutputCap {
    lines: SKILL_BYTES as usize,
    bytes: 2 * SKILL_BYTES as usize,
    line_chars: SKILL_BYTES as usize,
};

fn load(call: &Call, skills: &Skills, name: &str) -> Result<String, ToolError> {
    let Some(skill) = skills.get(name.trim()) else { return Err(unknown(skills, name)) };
    let was_active = call.cx.slots.update(|slots| {
        let was_active = slots.skills.contains(&skill.name);
        if !was_active {
            slots.skills.push(skill.name.clone());
        }
        was_active
    });
    Ok(show(skill, was_active))
}

fn show(skill: &Skill, was_active: bool) -> String {
    let Skill { name, folder, body, files, more_files, in_workspace, .. } = skill;
    let active = if was_active { " It was active already; these are its instructions again." } else { "" };
    let mut text = format!("Skill {name}, in the folder {folder}.{active}\n\n{body}\n");
    if files.is_empty() {
        return text;
    }
    let how = if *in_workspace {
        "read those that you need with read_file"
    } else {
        "they lie outside the workspace, where read_file does not reach; look at those that you need with bash"
    };
    // Writing to a text does not fail.
    let _ = writeln!(text, "\nOther files of the skill; {how}:");
    for file in files {
        let _ = writeln!(text, "- {folder}/{file}");
    }
    if *more_files {
        text.push_str("There are more than are listed here.\n");
    }
    text
}

fn unknown(skills: &Skills, name: &str) -> ToolError {
    let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
    let near = similar::get_close_matches(name, &names, NEAR, ALIKE);
    let hint = match near.as_slice() {
        [] => String::new(),
        near => format!(" Did you mean `{}`?", near.join("` or `")),
    };
    ToolError::failed(format!(
        "There is no skill `{name}`.{hint} There are: {}. Load one of these, or do the task without a skill.",
        names.join(", ")
    ))
}

const NEAR: usize = 3;
const ALIKE: f32 = 0.6;
const DESCRIPTION: &str = include_str!("../../prompt/load_skill.md");
