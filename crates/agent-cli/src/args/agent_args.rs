//! What an agent of the command line is made of, and the flags that make the same one again.

use std::path::{Path, PathBuf};

use agent::Vendor;
use agent_providers::without_secrets;
use clap::{Parser, ValueEnum};

use super::{
    AskMode, BudgetArgs, DataArgs, KeptArgs, ModelsArgs, ReachArgs, RuleArgs, SandboxArg, SkillArgs,
};
use crate::parked::quoted;

/// What an agent is made of.
#[derive(Debug, Parser)]
pub(crate) struct AgentArgs {
    /// The model, as PROVIDER/NAME
    #[arg(long, default_value = DEFAULT_MODEL)]
    pub(crate) model: String,
    /// Address of the provider or of a server that speaks its format
    #[arg(long)]
    pub(crate) base_url: Option<String>,
    #[command(flatten)]
    pub(crate) known: ModelsArgs,
    /// The directory to work in
    #[arg(long, default_value = ".")]
    pub(crate) cwd: PathBuf,
    /// Begin without rule files (AGENTS.md, CLAUDE.md), without skills that are not named, without kinds of sub-agents and
    /// without the state of the git repository
    #[arg(long)]
    pub(crate) bare: bool,
    /// Most steps of the turn
    #[arg(long, default_value_t = MAX_STEPS, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_steps: u32,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
    /// Most requests of one model call; what fails for now is sent again after a wait
    #[arg(long, default_value_t = MAX_ATTEMPTS, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_attempts: u32,
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
    #[command(flatten)]
    pub(crate) skills: SkillArgs,
    #[command(flatten)]
    pub(crate) kept: KeptArgs,
    /// Let the agent give tasks to sub-agents like itself. Those that Markdown files define (with name, description, tools
    /// and model in front) are there without it: files of .agent/agents of a trusted workspace and of the user
    #[arg(long)]
    pub(crate) subagents: bool,
    /// Let the model's provider search the web, where it offers that
    #[arg(long)]
    pub(crate) web_search: bool,
    /// What happens when a call needs permission; default: prompt on a terminal, else deny (`agent resume`: later). The
    /// model can ask questions where somebody answers them: with prompt and with later
    #[arg(long, value_enum)]
    pub(crate) ask: Option<AskMode>,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

impl AgentArgs {
    /// Whose model it is, and its name there; `None` when `--model` names no known vendor.
    pub(crate) fn chosen(&self) -> Option<(Vendor, String)> {
        let (vendor, model) = self.model.split_once('/').filter(|(_, model)| !model.is_empty())?;
        Vendor::named(vendor).map(|vendor| (vendor, model.to_owned()))
    }

    /// The flags that another command needs to be this agent, without secrets. They are those of `agent resume`.
    pub(crate) fn flags(&self) -> String {
        let mut flags = self.data.flags();
        let mut say = |flag: &str, value: &str| flags.push_str(&format!(" --{flag} {}", quoted(value)));
        if self.model != DEFAULT_MODEL {
            say("model", &self.model);
        }
        if let Some(url) = &self.base_url {
            say("base-url", &without_secrets(url));
        }
        if self.cwd != Path::new(".") {
            say("cwd", &self.cwd.display().to_string());
        }
        if let Some(mode) = self.rules.permission_mode.and_then(|mode| mode.to_possible_value()) {
            say("permission-mode", mode.get_name());
        }
        let rules = [
            ("allow", &self.rules.allow),
            ("deny-rule", &self.rules.deny),
            ("ask-rule", &self.rules.ask_rule),
        ];
        for (flag, patterns) in rules {
            patterns.iter().for_each(|pattern| say(flag, &pattern.to_string()));
        }
        self.skills.skills.iter().for_each(|dir| say("skills", &dir.display().to_string()));
        self.reach.allow_host.iter().for_each(|host| say("allow-host", &host.to_string()));
        if self.reach.sandbox == SandboxArg::Isolated {
            say("sandbox", "isolated");
        }
        let files = [
            ("models", &self.known.file),
            ("managed-settings", &self.rules.managed.managed_settings),
            ("memory-dir", &self.kept.memory_dir),
        ];
        self.kept.memory_model.iter().for_each(|model| say("memory-model", model));
        for (flag, file) in files {
            file.iter().for_each(|file| say(flag, &file.display().to_string()));
        }
        if self.max_steps != MAX_STEPS {
            say("max-steps", &self.max_steps.to_string());
        }
        if self.max_attempts != MAX_ATTEMPTS {
            say("max-attempts", &self.max_attempts.to_string());
        }
        // Who answers on a terminal, or later, is found by the other command itself.
        if let Some(mode) = self.ask.filter(|mode| matches!(mode, AskMode::Allow | AskMode::Deny)) {
            mode.to_possible_value().iter().for_each(|mode| say("ask", mode.get_name()));
        }
        self.budget.say(&mut say);
        let switches = [
            ("bare", self.bare),
            ("web-search", self.web_search),
            ("subagents", self.subagents),
            ("task", self.budget.task),
            ("memory", self.kept.memory),
        ];
        for (flag, _) in switches.iter().filter(|(_, is_set)| *is_set) {
            flags.push_str(&format!(" --{flag}"));
        }
        flags
    }
}

const DEFAULT_MODEL: &str = "anthropic/claude-opus-5-5";
const MAX_STEPS: u32 = 40;
const MAX_ATTEMPTS: u32 = 5;

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::args::{Args, Command, ResumeArgs};

    /// Every flag of an agent with a value that is not the usual one.
    const ALL: &str = "--model openai/m --base-url http://127.0.0.1:1/v1 --models m.json --cwd sub --bare --max-steps 7 \
        --max-tokens-total 8 --max-cost 0.25 --max-minutes 9 --task --max-attempts 2 --permission-mode accept-edits \
        --allow bash(ls) --allow grep --deny-rule bash(rm:*) --ask-rule web_fetch --managed-settings managed.json \
        --sandbox isolated --allow-host localhost --skills one --skills two --memory --memory-dir kept --memory-model small \
        --web-search --subagents --ask allow --data-dir data";

    fn resume(flags: &str) -> ResumeArgs {
        let args = ["agent", "resume", "s"].into_iter().map(str::to_owned);
        let words = flags.split_whitespace().map(|word| word.trim_matches('\'').to_owned());
        let Command::Resume(args) = Args::try_parse_from(args.chain(words)).unwrap().command else {
            panic!()
        };
        args
    }

    #[test]
    fn a_printed_command_is_the_same_agent() {
        let check = |flags: &str| {
            let given = resume(flags).agent;
            assert_eq!(
                format!("{:?}", resume(&given.flags()).agent),
                format!("{given:?}"),
                "{}",
                given.flags()
            );
        };
        check("");
        check(ALL);
        check("--ask deny --permission-mode bypass");
    }

    #[test]
    fn no_flag_of_an_agent_is_left_out() {
        let args = AgentArgs::command();
        let names: Vec<_> = args.get_arguments().filter_map(clap::Arg::get_long).collect();
        assert!(names.len() > 20, "{names:?}");
        let printed = resume(ALL).agent.flags();
        for name in names {
            // On `agent resume` the other word is a reply.
            let flag = if name == "deny" { "deny-rule" } else { name };
            assert!(printed.contains(&format!(" --{flag}")), "--{flag} is missing in{printed}");
        }
    }

    #[test]
    fn no_secret_is_printed() {
        let printed = resume("--base-url https://me:hidden@host/v1?key=hidden").agent.flags();
        assert_eq!(printed, " --base-url https://host/v1");
    }
}
