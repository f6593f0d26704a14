//! The rules as rows: who decides, for which text, and what is remembered.

use PermissionDecision::{Allow, Ask, Deny};

use futures_util::FutureExt;

use super::*;

fn matter<'a>(tool: &'a str, access: Access, subject: &'a Subject) -> Matter<'a> {
    Matter { tool, access, own: None, subject: Some(subject), before: None }
}

fn rules(all: &[(PermissionDecision, &str)]) -> Vec<PermissionRule> {
    let rule = |(decision, pattern): &(PermissionDecision, &str)| PermissionRule {
        layer: Layer::User,
        decision: *decision,
        pattern: pattern.parse().unwrap(),
    };
    all.iter().map(rule).collect()
}

#[test]
fn modes() {
    use Access::{Edit, Execute, Network, Read, Session};
    let row = |mode| {
        [Read, Session, Edit, Execute, Network].map(|access| {
            let subject = Subject::Text("x".into());
            let permissions = Permissions { mode, ..Permissions::default() };
            permissions.rule_on(&matter("t", access, &subject), &[], None).decision.name()
        })
    };
    assert_eq!(row(PermissionMode::Default), ["allow", "allow", "ask", "ask", "ask"]);
    assert_eq!(row(PermissionMode::Plan), ["allow", "allow", "deny", "deny", "deny"]);
    assert_eq!(row(PermissionMode::AcceptEdits), ["allow", "allow", "allow", "ask", "ask"]);
    assert_eq!(row(PermissionMode::Bypass), ["allow"; 5]);
}

#[test]
fn what_decides_first() {
    use Access::{Edit, Execute};
    struct Row<'a> {
        mode: PermissionMode,
        rules: &'a [(Layer, PermissionDecision)],
        hook: bool,
        access: Access,
        expect: &'a str,
    }
    fn check(row: Row<'_>) {
        let Row { mode, rules, hook, access, expect } = row;
        let pattern = Pattern::tool("t");
        let rule = |(layer, decision): &(Layer, PermissionDecision)| PermissionRule {
            layer: *layer,
            decision: *decision,
            pattern: pattern.clone(),
        };
        let (session, fixed): (Vec<_>, Vec<_>) =
            rules.iter().map(rule).partition(|rule| rule.layer == Layer::Session);
        let subject = Subject::Text("x".into());
        let permissions = Permissions { mode, rules: fixed, ..Permissions::default() };
        let ruling = permissions.rule_on(&matter("t", access, &subject), &session, hook.then_some("h"));
        let by = match ruling.by {
            DecidedBy::Rule(rule) => rule.layer.name().to_owned(),
            DecidedBy::Mode(_) => "mode".to_owned(),
            DecidedBy::Tool => "tool".to_owned(),
            DecidedBy::Hook(name) => name,
            DecidedBy::Classifier { name, .. } => name,
            DecidedBy::Unknown => "unknown".to_owned(),
            DecidedBy::Confinement => "confinement".to_owned(),
        };
        assert_eq!(format!("{} by {by}", ruling.decision.name()), expect, "{rules:?} in {mode:?}");
    }
    let row = Row {
        mode: PermissionMode::Default,
        rules: &[],
        hook: false,
        access: Execute,
        expect: "ask by mode",
    };
    check(Row { ..row });
    check(Row {
        rules: &[(Layer::Managed, Allow), (Layer::Session, Deny)],
        expect: "deny by session",
        ..row
    });
    check(Row { rules: &[(Layer::User, Deny), (Layer::Managed, Deny)], expect: "deny by managed", ..row });
    check(Row { rules: &[(Layer::User, Deny)], hook: true, expect: "deny by user", ..row });
    check(Row { rules: &[(Layer::Managed, Ask), (Layer::Session, Allow)], expect: "ask by managed", ..row });
    check(Row { rules: &[(Layer::Managed, Ask)], hook: true, expect: "ask by managed", ..row });
    check(Row { rules: &[(Layer::User, Ask), (Layer::Session, Allow)], expect: "allow by session", ..row });
    check(Row { rules: &[(Layer::User, Ask)], hook: true, expect: "allow by h", ..row });
    check(Row { rules: &[(Layer::Project, Allow), (Layer::User, Ask)], expect: "ask by user", ..row });
    check(Row { rules: &[(Layer::Project, Allow)], expect: "allow by project", ..row });
    let plan = Row { mode: PermissionMode::Plan, ..row };
    check(Row { rules: &[(Layer::User, Allow)], expect: "allow by user", ..plan });
    check(Row { rules: &[(Layer::User, Allow)], access: Edit, hook: true, expect: "deny by mode", ..plan });
    let bypass = Row { mode: PermissionMode::Bypass, ..row };
    check(Row { rules: &[(Layer::User, Deny)], expect: "deny by user", ..bypass });
    check(Row { rules: &[(Layer::User, Ask)], expect: "ask by user", ..bypass });
}

/// What becomes of a shell text.
fn bash(all: &[(PermissionDecision, &str)], text: &str) -> String {
    let subject = Subject::Command(text.into());
    let permissions = Permissions { rules: rules(all), ..Permissions::default() };
    let ruling = permissions.rule_on(&matter("bash", Access::Execute, &subject), &[], None);
    // What no rule covers has a test of its own.
    let by_mode = matches!(ruling.by, DecidedBy::Mode(_));
    match ruling.part.filter(|_| !by_mode) {
        Some(part) => format!("{}: {part}", ruling.decision.name()),
        None => ruling.decision.name().to_owned(),
    }
}

#[test]
#[cfg(feature = "shell")]
fn where_the_mode_asks_the_part_is_named_that_no_rule_covers() {
    let check = |some: &[(PermissionDecision, &str)], text: &str, expect: Option<&str>| {
        let subject = Subject::Command(text.into());
        let permissions = Permissions { rules: rules(some), ..Permissions::default() };
        let ruling = permissions.rule_on(&matter("bash", Access::Execute, &subject), &[], None);
        assert_eq!(ruling.part.as_deref(), expect, "{text}");
    };
    let test = [(Allow, "bash(cargo test:*)")];
    check(&test, "cargo test && rm -rf x", Some("rm -rf x"));
    check(&test, "cargo test $(curl a)", Some("curl a"));
    check(&test, "cargo test", None);
    // Without a rule for parts, no part of it is to blame.
    check(&[], "cargo test", None);
    check(&[(Allow, "grep")], "cargo test", None);
}

#[test]
#[cfg(feature = "shell")]
fn a_rule_that_allows_covers_every_command() {
    let check = |text: &str, expect: &str| {
        let some = [(Allow, "bash(git status)"), (Allow, "bash(cargo test:*)"), (Allow, "bash(npm run *)")];
        assert_eq!(bash(&some, text), expect, "{text}");
    };
    check("git status", "allow");
    check("git  'status'", "allow");
    check("git status -s", "ask");
    check("git status; cargo test --all", "allow");
    check("cargo test | tail", "ask");
    check("cargo test $(git status)", "allow");
    check("cargo test $(rm -rf .)", "ask");
    check("cargo test `rm -rf .`", "ask");
    check("cargo test > ~/.bashrc", "ask");
    check("cargo test 2>&1 >/dev/null", "allow");
    check("RUSTC_WRAPPER=./evil cargo test", "ask");
    check("timeout 60 cargo test", "allow");
    check("timeout 60 rm x", "ask");
    check("sudo cargo test", "ask");
    check("bash -c 'cargo test'", "ask");
    check("./cargo test", "ask");
    check("/tmp/cargo test", "ask");
    check("cargo testing", "ask");
    check("npm run build", "allow");
    check("npm run build && rm x", "ask");
    check("cargo test\nrm x", "ask");
    check("cargo test & rm x", "ask");
    check("f() { rm x; }; cargo test", "ask");
    check("cargo test (", "ask");
    check("cargo $x", "ask");
    check("timeout $x cargo test", "ask");
    check("./timeout 5 cargo test", "ask");
    check("npm_config_script_shell=./x npm run build", "ask");
    check("git status\r#; rm x", "ask");
    check("git status\n\\rm x", "ask");
    check("cargo test \\\r\nrm x", "ask");
    check("", "ask");
    check("# git status", "ask");
}

#[test]
#[cfg(feature = "shell")]
fn a_rule_that_refuses_finds_the_command_however_it_is_spelled() {
    let check = |text: &str, expect: &str| {
        let some = [(Allow, "bash"), (Deny, "bash(git push --force*)"), (Deny, "bash(rm:*)")];
        assert_eq!(bash(&some, text), expect, "{text}");
    };
    check("git push", "allow");
    check("git push --force", "deny: git push --force");
    check("git push --force-with-lease origin", "deny: git push --force-with-lease origin");
    check("git -C /x push --force", "deny: git -C /x push --force");
    check("git -c a=b --no-pager push --force", "deny: git -c a=b --no-pager push --force");
    check("/usr/bin/git push --force", "deny: /usr/bin/git push --force");
    check("g\\it 'push' --fo\"rce\"", "deny: git push --force");
    check("true && (git push --force)", "deny: git push --force");
    check("echo $(git push --force)", "deny: git push --force");
    check("sudo -n git push --force", "deny: git push --force");
    check("env A=1 git push --force", "deny: git push --force");
    check("bash -c 'git push --force'", "deny: git push --force");
    check("bash -c \"bash -c 'git push --force'\"", "deny: git push --force");
    check("eval git push --force", "deny: git push --force");
    check("git ls-files | xargs rm", "deny: rm");
    check("find . -exec rm {} ;", "deny: rm {}");
    check("find . -exec rm {} \\;", "deny: rm {} ;");
    check("echo rm", "allow");
    check("grep -r 'rm -rf'", "allow");
    check("$CMD x", "ask: $CMD x");
    check("sudo -u a -g b -p c -C 3 rm x", "deny: rm x");
    check("script -c 'rm x' out", "deny: rm x");
    check("time ! rm x", "deny: rm x");
    check("git $x", "ask: git $x");
    check("git p\"$x\"", "ask: git p\"$x\"");
    check("git log $x", "allow");
    check("grep $x", "allow");
}

#[test]
#[cfg(feature = "shell")]
fn what_a_session_allows_lifts_no_doubt_about_a_refusal() {
    let check = |decision, layer, expect: PermissionDecision| {
        let pattern = "bash(rm:*)".parse().unwrap();
        let permissions = Permissions {
            rules: vec![PermissionRule { layer, decision, pattern }],
            ..Permissions::default()
        };
        let session = [PermissionRule::allow(Pattern::tool("bash")).from_layer(Layer::Session)];
        let subject = Subject::Command("$x y".into());
        let ruling = permissions.rule_on(&matter("bash", Access::Execute, &subject), &session, None);
        assert_eq!(ruling.decision, expect, "{decision:?} of {layer:?}");
    };
    check(Deny, Layer::User, Ask);
    check(Ask, Layer::Managed, Ask);
    check(Ask, Layer::User, Allow);
}

#[test]
fn what_a_person_is_asked_to_remember() {
    let check = |subject: Option<Subject>, expect: &[&str]| {
        let call = CallId::new("c").unwrap();
        let input = RawJson::empty_object();
        let exact = Exact { call: &call, tool: "t", input: &input, access: Access::Execute };
        let ruling = Ruling { decision: Ask, by: DecidedBy::Mode(PermissionMode::Default), part: None };
        let request = AskRequest::new(Permit::new(exact, subject.as_ref()), subject, ruling);
        let remembered: Vec<String> = request.remembers().iter().map(ToString::to_string).collect();
        assert_eq!(remembered, expect);
    };
    check(None, &["t"]);
    check(Some(Subject::Path { given: "./a".into(), real: Some("a".into()) }), &["t(a)"]);
    check(Some(Subject::Path { given: "a".into(), real: None }), &[]);
    check(Some(Subject::Path { given: "a[1].rs".into(), real: Some("a[1].rs".into()) }), &[]);
    check(Some(Subject::Url { url: "https://a.b/c".into(), host: "a.b".into() }), &["t(domain:a.b)"]);
    check(Some(Subject::Text("a*".into())), &[]);
    if cfg!(feature = "shell") {
        let command = |text: &str| Some(Subject::Command(text.into()));
        check(command("cargo test && git status"), &["t(cargo test)", "t(git status)"]);
        check(command("cargo test > x"), &[]);
        check(command("git commit -m 'a b'"), &[]);
        check(command("ls *"), &[]);
    }
}

#[test]
fn a_question_that_a_hook_or_managed_rule_puts_is_put_anew_each_time() {
    let check = |by: DecidedBy, expect: usize| {
        let (call, input) = (CallId::new("c").unwrap(), RawJson::empty_object());
        let exact = Exact { call: &call, tool: "t", input: &input, access: Access::Execute };
        let ruling = Ruling { decision: Ask, by, part: None };
        let request = AskRequest::new(Permit::new(exact, None), None, ruling).again("It does not fit.");
        assert_eq!(request.remembers().len(), expect);
        assert_eq!(request.asked_again(), Some("It does not fit."));
    };
    let ask = |layer| DecidedBy::Rule(PermissionRule::ask(Pattern::tool("t")).from_layer(layer));
    check(DecidedBy::Hook("doubts".into()), 0);
    check(ask(Layer::Managed), 0);
    check(ask(Layer::User), 1);
    check(DecidedBy::Tool, 1);
}

#[test]
fn a_permit_covers_what_the_tool_declared() {
    use Access::{Edit, Execute, Network, Read, Session};
    let (call, input) = (CallId::new("c").unwrap(), RawJson::empty_object());
    let row = |access| {
        let permit = Permit::new(Exact { call: &call, tool: "t", input: &input, access }, None);
        [Read, Edit, Execute, Network].map(|effect| permit.allows(effect).is_ok())
    };
    assert_eq!(row(Read), [true, false, false, false]);
    assert_eq!(row(Session), [true, false, false, false]);
    assert_eq!(row(Edit), [true, true, false, false]);
    assert_eq!(row(Execute), [true, true, true, false]);
    assert_eq!(row(Network), [true, false, false, true]);
}

#[test]
fn a_permit_is_for_one_input_and_one_file() {
    let (call, input) = (CallId::new("c").unwrap(), RawJson::parse(r#"{"a":1}"#).unwrap());
    let exact = Exact { call: &call, tool: "t", input: &input, access: Access::Edit };
    let subject = Subject::Path { given: "x".into(), real: Some("src/x".into()) };
    let permit = Permit::new(exact, Some(&subject));
    assert!(permit.covers("t", &input).is_ok());
    assert!(permit.covers("u", &input).is_err());
    assert!(permit.covers("t", &RawJson::parse(r#"{"a":2}"#).unwrap()).is_err());
    assert!(permit.covers_path("src/x").is_ok());
    assert!(permit.covers_path("secrets/x").is_err());
    assert!(Permit::new(exact, None).covers_path("anything").is_ok());
}

#[test]
fn what_is_refused_of_either_input_is_refused() {
    let written = Subject::Command("git push --force".into());
    let rewritten = Subject::Command("rtk git push --force".into());
    let check = |subject: &Subject, before: &Subject, expect: PermissionDecision| {
        let permissions = Permissions {
            mode: PermissionMode::Bypass,
            rules: rules(&[(Deny, "bash(git push --force*)")]),
            ..Permissions::default()
        };
        let matter = Matter {
            tool: "bash",
            access: Access::Execute,
            own: None,
            subject: Some(subject),
            before: Some(before),
        };
        let ruling = permissions.rule_on(&matter, &[], Some("a hook"));
        if cfg!(feature = "shell") {
            assert_eq!(ruling.decision, expect, "{subject:?}");
        }
    };
    check(&rewritten, &written, Deny);
    check(&written, &rewritten, Deny);
    check(&rewritten, &rewritten, Allow);
}

/// Says what it is told to say, and counts.
#[derive(Debug)]
struct Says(Result<Classified, ClassifierError>, std::sync::atomic::AtomicUsize);

#[async_trait::async_trait]
impl Classifier for Says {
    fn name(&self) -> &str {
        "judge"
    }

    async fn classify(&self, matter: &Matter<'_>, input: &RawJson) -> Result<Classified, ClassifierError> {
        let Some(Subject::Text(text)) = matter.subject else { panic!("it is told what rules look at") };
        assert_eq!((matter.tool, text.as_str()), ("put", input.get()));
        self.1.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        self.0.clone()
    }
}

#[test]
fn a_classifier_stands_only_before_a_person_who_is_asked_by_default() {
    let put = crate::ToolConfig::new("put", "Puts.", Access::Edit, |_, _: serde_json::Value| async {
        Ok(String::new())
    });
    let put = put.build().unwrap();
    let (call, input) = (CallId::new("c").unwrap(), RawJson::empty_object());
    let all = || [Ok(Classified::Allow), Ok(Classified::Ask), Ok(Classified::Deny("Not now.".into()))];
    let check = |mode: PermissionMode,
                 given: &[(PermissionDecision, &str)],
                 hook: Option<&str>,
                 expect: [&str; 3]| {
        let rulings = all().map(|said| {
            let judge = Arc::new(Says(said, std::sync::atomic::AtomicUsize::new(0)));
            let permissions = Permissions {
                mode,
                rules: rules(given),
                classifier: Some(judge.clone()),
                ..Permissions::default()
            };
            let proposal = Proposal { asked_by: hook, ..Proposal::new(&*put, &call, &input) };
            let verdict = permissions.check(proposal).now_or_never().unwrap();
            let asked = judge.1.load(std::sync::atomic::Ordering::SeqCst);
            let decision = match verdict {
                Verdict::Allow(_) => "allow",
                Verdict::Ask(_) => "ask",
                Verdict::Deny(_) => "deny",
            };
            format!("{decision} {asked}")
        });
        assert_eq!(rulings, expect, "{mode:?} {given:?} {hook:?}");
    };
    let judged = ["allow 1", "ask 1", "deny 1"];
    check(PermissionMode::Default, &[], None, judged);
    check(PermissionMode::Default, &[(Allow, "put(x)")], None, judged);
    check(PermissionMode::Default, &[(Allow, "put")], None, ["allow 0"; 3]);
    check(PermissionMode::Default, &[(Ask, "put")], None, ["ask 0"; 3]);
    check(PermissionMode::Default, &[(Deny, "put")], None, ["deny 0"; 3]);
    check(PermissionMode::Default, &[], Some("h"), ["ask 0"; 3]);
    check(PermissionMode::AcceptEdits, &[], None, ["allow 0"; 3]);
    check(PermissionMode::Plan, &[], None, ["deny 0"; 3]);
    check(PermissionMode::Bypass, &[], None, ["allow 0"; 3]);
    check(PermissionMode::Bypass, &[(Ask, "put")], None, ["ask 0"; 3]);
}

#[test]
fn a_classifier_refuses_in_words_and_its_failure_asks() {
    let put = crate::ToolConfig::new("put", "Puts.", Access::Edit, |_, _: serde_json::Value| async {
        Ok(String::new())
    });
    let put = put.permission(Ask).build().unwrap();
    let (call, input) = (CallId::new("c").unwrap(), RawJson::empty_object());
    let check = |said| {
        let judge = Arc::new(Says(said, std::sync::atomic::AtomicUsize::new(0)));
        let permissions = Permissions { classifier: Some(judge), ..Permissions::default() };
        permissions.check(Proposal::new(&*put, &call, &input)).now_or_never().unwrap()
    };
    let Verdict::Deny(words) = check(Ok(Classified::Deny("It is night.".into()))) else { panic!("refused") };
    insta::assert_snapshot!(words, @"`put` was not run: the classifier `judge` refuses it. It is night. Do not repeat the call; reach the goal with other tools, or tell the user what you need and why.");
    let Verdict::Ask(request) = check(Err(ClassifierError::new("judge", "no model"))) else {
        panic!("asked")
    };
    insta::assert_snapshot!(request.classifier_fault().unwrap(), @"the classifier `judge` failed: no model");
    assert_eq!(request.ruling().by, DecidedBy::Tool);
}

#[test]
fn no_spelling_of_the_input_escapes_a_refusal() {
    let check = |rule: &str, input: &str, expect: PermissionDecision| {
        let subject = Subject::Text(input.to_owned());
        let permissions =
            Permissions { rules: rules(&[(Allow, "t"), (Deny, rule)]), ..Permissions::default() };
        let ruling = permissions.rule_on(&matter("t", Access::Execute, &subject), &[], None);
        assert_eq!(ruling.decision, expect, "{rule} {input}");
    };
    check("t(*curl*)", r#"{"run":"curl x"}"#, Deny);
    check("t(*curl*)", r#"{"run":"\u0063url x"}"#, Deny);
    check("t(curl *)", r#"{"run":"\u0063url x"}"#, Deny);
    check("t(*\"run\":\"curl*)", r#"{ "\u0072un" : "curl x" }"#, Deny);
    check("t(*curl*)", r#"{"run":"curl x","run":"ls"}"#, Deny);
    check("t(*curl*)", r#"{"run":["a",{"b":"\u0063url"}]}"#, Deny);
    check("t(*curl*)", &format!(r#"{{"run":{}"\u0063url"{}}}"#, "[".repeat(300), "]".repeat(300)), Ask);
    check("t(*curl*)", r#"{"run":"ls"}"#, Allow);
    check("t(*curl*)", "ls", Allow);
}

#[test]
fn a_rule_for_an_absolute_path_is_not_passed_over() {
    let check = |decision, given: &str, expect: &str| {
        let subject = Subject::Path { given: given.into(), real: Some("secrets/a".into()) };
        let all = rules(&[(Allow, "t"), (decision, "t(/srv/secrets/**)")]);
        let permissions = Permissions { rules: all, ..Permissions::default() };
        let ruling = permissions.rule_on(&matter("t", Access::Read, &subject), &[], None);
        let part = ruling.part.map_or_else(String::new, |part| format!(": {part}"));
        assert_eq!(format!("{}{part}", ruling.decision.name()), expect, "{decision:?} {given}");
    };
    check(Deny, "/srv/secrets/a", "deny: /srv/secrets/a");
    check(Deny, "secrets/a", "ask: /srv/secrets/** (write the rule relative to the workspace)");
    check(Ask, "secrets/a", "ask: /srv/secrets/** (write the rule relative to the workspace)");
}

#[test]
fn a_pattern_speaks_of_parts() {
    let check = |pattern: &str, subject: Option<Subject>, expect: bool| {
        let pattern: Pattern = pattern.parse().unwrap();
        assert_eq!(pattern.speaks_of("bash", subject.as_ref()), expect, "{pattern} {subject:?}");
    };
    let text = |text: &str| Some(Subject::Text(text.to_owned()));
    check("bash", None, true);
    check("grep", None, false);
    check("bash(a*)", None, true);
    check("bash(a*)", text("ab"), true);
    check("bash(a*)", text("b"), false);
    check("grep(a*)", text("ab"), false);
    if cfg!(feature = "shell") {
        let command = |text: &str| Some(Subject::Command(text.to_owned()));
        check("bash(git:*)", command("ls && /usr/bin/git push"), true);
        check("bash(git:*)", command("ls"), false);
        check("bash(git:*)", command("$x push"), true);
    }
}

/// Of two rulings the stricter holds, and one that a classifier may not answer is stricter than one that it may.
#[test]
fn a_ceiling_only_narrows() {
    use PermissionDecision::{Allow, Ask, Deny};
    let decisions: [&[(PermissionDecision, &str)]; 4] = [&[], &[(Allow, "t")], &[(Ask, "t")], &[(Deny, "t")]];
    let matter = Matter { tool: "t", access: Access::Execute, own: None, subject: None, before: None };
    for above in decisions {
        for below in decisions {
            let ceiling = Permissions { rules: rules(above), ..Permissions::default() };
            let own = Permissions { rules: rules(below), ..Permissions::default() };
            let [high, low] = [&ceiling, &own].map(|one| one.rule_on(&matter, &[], None));
            let both = own.within(Arc::new(ceiling)).rule_on(&matter, &[], None);
            assert_eq!(both.decision, high.decision.max(low.decision), "{above:?} {below:?}");
            let is_by_rule = [&high, &low]
                .iter()
                .any(|one| one.decision == both.decision && matches!(one.by, DecidedBy::Rule(_)));
            assert_eq!(matches!(both.by, DecidedBy::Rule(_)), is_by_rule, "{above:?} {below:?}");
        }
    }
}

#[test]
fn a_confined_run_is_for_one_thing() {
    let tool = |name: &str, access: Access| {
        let tool = crate::ToolConfig::new(name, "Does.", access, |_, _: serde_json::Value| async {
            Ok(String::new())
        });
        tool.build().unwrap()
    };
    let call = CallId::new("c").unwrap();
    let input = RawJson::parse(r#"{"at":"a"}"#).unwrap();
    let check = |name: &str, access: Access, reads: bool, hook: Option<&str>| {
        let confinement = Confinement { reads, words: "Only `memory` may run here.".into() };
        let given = [(Allow, r#"memory({"at":"a"})"#), (Ask, "asks"), (Deny, "denied")];
        let permissions = Permissions {
            mode: PermissionMode::Bypass,
            rules: rules(&given),
            confinement: Some(confinement),
            ..Permissions::default()
        };
        let tool = tool(name, access);
        let proposal = Proposal { allowed_by: hook, ..Proposal::new(&*tool, &call, &input) };
        match permissions.check(proposal).now_or_never().unwrap() {
            Verdict::Allow(_) => "allow".to_owned(),
            Verdict::Ask(_) => "ask".to_owned(),
            Verdict::Deny(words) => words,
        }
    };
    let refused = |name: &str| format!("`{name}` was not run: Only `memory` may run here.");
    assert_eq!(check("memory", Access::Edit, false, None), "allow");
    assert_eq!(check("look", Access::Read, true, None), "allow");
    assert_eq!(check("look", Access::Read, false, None), refused("look"));
    for (name, access) in [("todo", Access::Session), ("put", Access::Edit), ("fetch", Access::Network)] {
        assert_eq!(check(name, access, true, None), refused(name));
        assert_eq!(check(name, access, true, Some("hook")), refused(name), "no hook opens it");
    }
    assert_eq!(check("asks", Access::Read, true, None), refused("asks"), "there is nobody to ask");
    assert_eq!(check("denied", Access::Read, true, None), refused("denied"));
}
