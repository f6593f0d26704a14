//! Settings by layer: which files count, what a workspace may grant, what happens to one that cannot be read.

use agent_testkit::{Reply, SimProvider};

use crate::support::{Home, Output};

/// Writes settings for some layers of a test's home.
struct Files<'h>(&'h Home);

impl Files<'_> {
    fn write(&self, name: &str, text: &str) -> &Self {
        let path = match name {
            "user" => self.0.config().join("settings.json"),
            "project" => self.0.work().join(".agent/settings.json"),
            "local" => self.0.work().join(".agent/settings.local.json"),
            "managed" => self.0.work().join("managed.json"),
            other => panic!("no layer {other}"),
        };
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    fn trust(&self) -> String {
        format!(r#""trust":[{:?}]"#, self.0.work())
    }

    async fn check(&self, flags: &[&str]) -> Output {
        let input = r#"{"command":"git push"}"#;
        self.0.agent(&[&["permissions", "check", "bash", input], flags].concat()).await
    }

    /// The decision, and what decided.
    async fn decides(&self, flags: &[&str], expect: &str) {
        let output = self.check(flags).await;
        let lines: Vec<&str> = output.stdout.lines().collect();
        assert_eq!(lines[..2].join(" "), expect, "{}", output.stderr);
    }
}

#[tokio::test]
async fn layers_decide_in_their_order() {
    let home = Home::new();
    let files = Files(&home);
    files.decides(&[], "ask decided by: the mode default, for no rule covers the call").await;
    files.write("user", &format!(r#"{{"permissions":{{"allow":["bash(git:*)"]}},{}}}"#, files.trust()));
    files.decides(&[], "allow decided by: the rule allow bash(git:*) (user)").await;
    files.write("project", r#"{"permissions":{"ask":["bash(git push:*)"]}}"#);
    files.decides(&[], "ask decided by: the rule ask bash(git push:*) (project)").await;
    files.decides(&["--allow", "bash"], "allow decided by: the rule allow bash (session)").await;
    files.write("managed", r#"{"permissions":{"deny":["bash(git push:*)"]}}"#);
    let managed = ["--managed-settings", "managed.json", "--allow", "bash", "--mode", "bypass"];
    files.decides(&managed, "deny decided by: the rule deny bash(git push:*) (managed)").await;

    let mut by_variable = home.command(&["permissions", "check", "bash", r#"{"command":"git push"}"#]);
    by_variable.env("AGENT_MANAGED_SETTINGS", home.work().join("managed.json"));
    let output = by_variable.output().await.unwrap();
    assert!(output.stdout.starts_with(b"deny\n"), "{output:?}");
}

#[tokio::test]
async fn the_mode_is_that_of_the_flag_unless_it_is_managed() {
    let home = Home::new();
    let files = Files(&home);
    let trust = files.trust();
    let mode = |mode: &str| format!(r#"{{"permissions":{{"mode":"{mode}"}},{trust}}}"#);
    let by = |decision: &str, mode: &str| {
        format!("{decision} decided by: the mode {mode}, for no rule covers the call")
    };
    files.write("user", &mode("bypass")).decides(&[], &by("allow", "bypass")).await;
    files.write("project", &mode("plan")).decides(&[], &by("deny", "plan")).await;
    files.write("local", &mode("default")).decides(&[], &by("ask", "default")).await;
    files.decides(&["--mode", "bypass"], &by("allow", "bypass")).await;
    files.write("managed", &mode("plan"));
    files.decides(&["--mode", "bypass", "--managed-settings", "managed.json"], &by("deny", "plan")).await;
}

#[tokio::test]
async fn a_workspace_grants_nothing_before_it_is_trusted() {
    let home = Home::new();
    let files = Files(&home);
    files.write("project", r#"{"permissions":{"mode":"bypass","allow":["bash"],"deny":["grep"]},"hooks":[{"on":"pre_tool","command":"touch ran"}]}"#);
    let output = files.check(&[]).await;
    assert!(output.stdout.starts_with("ask\n"), "{}", output.stdout);
    for words in ["allow bash", "mode bypass", "hook \"touch ran\"", "\"trust\": [", "settings.json"] {
        assert!(output.stderr.contains(words), "{words}: {}", output.stderr);
    }
    let denied = home.agent(&["permissions", "check", "grep", r#"{"pattern":"x"}"#]).await;
    assert!(denied.stdout.starts_with("deny\n"), "what it refuses always holds: {}", denied.stdout);
    // It cannot vouch for itself.
    files.write("local", &format!("{{{}}}", files.trust()));
    assert!(files.check(&[]).await.stdout.starts_with("ask\n"));
    files.write("user", &format!("{{{}}}", files.trust()));
    let trusted = files.check(&[]).await;
    assert_eq!((trusted.stdout.lines().next(), trusted.stderr.as_str()), (Some("allow"), ""));
}

#[tokio::test]
async fn settings_that_cannot_be_read_end_the_program() {
    let check = async |layer: &str, text: &str, expect: &str| {
        let home = Home::new();
        Files(&home).write(layer, text);
        let sim = SimProvider::start(vec![Reply::text("Hi.")]).unwrap();
        let mut args = vec!["go"];
        if layer == "managed" {
            args.extend(["--managed-settings", "managed.json"]);
        }
        let output = home.run(&sim.base_url(), &args).await;
        assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""), "{layer} {text}");
        assert!(output.stderr.contains(expect), "{layer} {text}: {}", output.stderr);
        assert!(output.stderr.contains(".json: "), "it is named: {}", output.stderr);
        assert!(sim.requests().is_empty() && !home.data().join("sessions.db").exists(), "nothing ran");
    };
    for layer in ["user", "project", "local", "managed"] {
        check(layer, "{", &format!("the {layer} settings cannot be read")).await;
    }
    check("project", r#"{"permissions":{"deny":["bash("]}}"#, "at `permissions.deny[0]`").await;
    check("user", r#"{"permission":{}}"#, "unknown field `permission`").await;
    check("project", &" ".repeat(2_000_000), "it has more than 1048576 bytes").await;

    let home = Home::new();
    let missing = home
        .agent(&["run", "go", "--base-url", "http://127.0.0.1:9", "--managed-settings", "gone.json"])
        .await;
    assert_eq!(missing.code, Some(2), "a policy that is named must be there");
    assert!(missing.stderr.contains("gone.json: No such file"), "{}", missing.stderr);
}

#[tokio::test]
async fn a_run_goes_by_settings_and_flags() {
    let check = async |user: &str, flags: &[&str], ran: bool| {
        let home = Home::new();
        Files(&home).write("user", user);
        let touch = Reply::tool("bash", r#"{"command":"touch ran"}"#);
        let sim = SimProvider::start(vec![touch, Reply::text("Done.")]).unwrap();
        let output = home.run(&sim.base_url(), &[&["go"], flags].concat()).await;
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        assert_eq!(home.work().join("ran").exists(), ran, "{user} {flags:?}: {}", output.stdout);
    };
    check("{}", &[], false).await;
    check("{}", &["--allow", "bash(touch:*)"], true).await;
    check("{}", &["--allow", "bash(touch:*)", "--deny", "bash"], false).await;
    check("{}", &["--permission-mode", "bypass", "--ask-rule", "bash"], false).await;
    check(r#"{"permissions":{"allow":["bash(touch ran)"]}}"#, &[], true).await;
    check(r#"{"permissions":{"mode":"bypass"}}"#, &[], true).await;
    check(r#"{"permissions":{"mode":"bypass"}}"#, &["--permission-mode", "default"], false).await;
}

#[tokio::test]
async fn hooks_of_settings_run_around_every_call() {
    let check = async |hook: &str, code: i32, expect: &str| {
        let home = Home::new();
        Files(&home).write("user", &format!(r#"{{"hooks":[{hook}]}}"#));
        let input = r#"{"command":"echo tea"}"#;
        let output = home.agent(&["tools", "call", "bash", input, "--yes"]).await;
        assert_eq!(output.code, Some(code), "{hook}: {}{}", output.stdout, output.stderr);
        assert!(output.stdout.contains(expect), "{hook}: {}", output.stdout);
    };
    let block = r#"{"on":"pre_tool","tools":"bash","command":"grep -q tea && { echo 'No tea today.' >&2; exit 2; }"}"#;
    check(block, 1, "No tea today.").await;
    let other = r#"{"on":"pre_tool","tools":"grep","command":"exit 2"}"#;
    check(other, 0, "tea\n[exit code 0").await;
    let rewrite = r#"{"on":"pre_tool","command":"echo '{\"updated_input\":{\"command\":\"echo rice\"}}'"}"#;
    check(rewrite, 0, "rice\n[exit code 0").await;
    let replace = r#"{"on":"post_tool","command":"echo '{\"output\":\"Cups.\"}'"}"#;
    check(replace, 0, "Cups.").await;
    let broken = r#"{"on":"pre_tool","command":"exit 7"}"#;
    check(broken, 1, "exit code 7").await;
}
