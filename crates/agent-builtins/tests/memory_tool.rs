//! The tool for memories and session notes, on real files.

use std::path::PathBuf;
use std::sync::Arc;

use agent_builtins::memory;
use agent_core::{CallId, Layer, RawJson, SessionId};
use agent_memory::{INDEX_BYTES, INDEX_LINES, MEMORIES, Memory, MemoryDir, MemoryFiles, NOTES_PATH};
use agent_tools::{
    Pattern, PermissionDecision, PermissionRule, Permissions, Proposal, Tool, ToolCx, Verdict,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{call, write};

/// Memories with the tool on them, and a folder beside them that nothing may touch.
struct Desk {
    base: tempfile::TempDir,
    tools: Vec<Arc<dyn Tool>>,
    memories: Arc<MemoryDir>,
    cx: ToolCx,
}

impl Desk {
    fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        let memories = Arc::new(MemoryDir::open(&base.path().join("memory")).unwrap());
        write(&base.path().join("key.md"), b"The key.");
        let files = MemoryFiles::new(Arc::clone(&memories)).with_notes(base.path().join("data"));
        Self { tools: vec![memory(files)], base, memories, cx: ToolCx::for_test("session", "call").unwrap() }
    }

    async fn run(&self, input: Value) -> String {
        match call(&self.tools, &self.cx, "memory", &input).await {
            Ok(text) => text,
            Err(error) => format!("ERROR: {error}"),
        }
    }

    async fn create(&self, name: &str, description: &str) -> String {
        let path = format!("{MEMORIES}/{name}.md");
        self.run(json!({"command": "create", "path": path, "file_text": file(name, description)})).await
    }

    /// What lies beside the memories, without the notes.
    fn beside(&self) -> Vec<(PathBuf, u64)> {
        let entries = std::fs::read_dir(self.base.path()).unwrap().map(|entry| entry.unwrap());
        let mut found: Vec<_> =
            entries.map(|entry| (entry.path(), entry.metadata().unwrap().len())).collect();
        found.retain(|(path, _)| !path.ends_with("data") && !path.ends_with("memory"));
        found.sort();
        found
    }
}

fn file(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\ntype: user\n---\n\nA line.\nAnother line.\n")
}

#[tokio::test]
async fn memories_are_kept_shown_changed_and_deleted() {
    let desk = Desk::new();
    let mut told = Vec::new();
    for input in [
        json!({"command": "view", "path": "/memories"}),
        json!({"command": "create", "path": "/memories/role.md", "file_text": file("role", "Writes compilers")}),
        json!({"command": "view", "path": "/memories/role.md"}),
        json!({"command": "str_replace", "path": "/memories/role.md", "old_str": "A line.", "new_str": "The line."}),
        json!({"command": "insert", "path": "/memories/role.md", "insert_line": 7, "insert_text": "Between."}),
        json!({"command": "view", "path": "/memories/role.md", "view_range": [7, -1]}),
        json!({"command": "str_replace", "path": "/memories/role.md", "old_str": "Between.\n"}),
        json!({"command": "rename", "old_path": "/memories/role.md", "new_path": "/memories/user_role.md"}),
        json!({"command": "view", "path": "/memories/MEMORY.md"}),
        json!({"command": "view", "path": "/memories/"}),
        json!({"command": "delete", "path": "/memories/user_role.md"}),
        json!({"command": "view", "path": "/memories/MEMORY.md"}),
    ] {
        told.push(desk.run(input).await);
    }
    insta::assert_snapshot!(told.join("\n"), @"
    There are no memories yet. Keep one with create on /memories/NAME.md.

    Created /memories/role.md.
         1	---
         2	name: role
         3	description: Writes compilers
         4	type: user
         5	---
         6	
         7	A line.
         8	Another line.

    Changed /memories/role.md.
    Changed /memories/role.md.
         7	The line.
         8	Between.
         9	Another line.

    Changed /memories/role.md.
    Renamed /memories/role.md to /memories/user_role.md.
         1	- [user_role](user_role.md): Writes compilers

    There is 1 memory in /memories:
    - user_role.md (user): Writes compilers

    Deleted /memories/user_role.md.
    /memories/MEMORY.md is empty.
    ");
}

#[tokio::test]
async fn notes_belong_to_their_session() {
    let mut desk = Desk::new();
    let notes = |rest: Value| {
        let mut input = json!({"path": NOTES_PATH});
        input.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        input
    };
    let mut told = Vec::new();
    for input in [
        notes(json!({"command": "view"})),
        notes(json!({"command": "insert", "insert_line": 0, "insert_text": "x"})),
        notes(json!({"command": "create", "file_text": "# Task\nMend it.\n"})),
        notes(json!({"command": "str_replace", "old_str": "Mend", "new_str": "Mended"})),
        notes(json!({"command": "insert", "insert_line": 1, "insert_text": "Soon."})),
        notes(json!({"command": "view"})),
        notes(json!({"command": "delete"})),
        notes(json!({"command": "create", "file_text": "x".repeat(50_000)})),
        notes(json!({"command": "create", "file_text": "# Task\nAnew.\n"})),
    ] {
        told.push(desk.run(input).await);
    }
    insta::assert_snapshot!(told.join("\n"), @"
    ERROR: There are no notes yet. Write them with create on /session/notes.md.
    ERROR: There are no notes yet. Write them with create on /session/notes.md.
    Created /session/notes.md.
    Changed /session/notes.md.
    Changed /session/notes.md.
         1	# Task
         2	Soon.
         3	Mended it.

    ERROR: The notes of the session go when the session goes, and are not deleted before. To begin them anew, create /session/notes.md with other text.
    ERROR: The session notes would have 50000 bytes and may have 49152; shorten what is settled, and keep what the work needs next.
    Created /session/notes.md.
    ");
    desk.cx.session = SessionId::new("other").unwrap();
    let other = desk.run(notes(json!({"command": "view"}))).await;
    assert!(other.starts_with("ERROR: There are no notes yet."), "{other}");
    let without = vec![memory(MemoryFiles::new(Arc::clone(&desk.memories)))];
    let error = call(&without, &desk.cx, "memory", &notes(json!({"command": "view"}))).await.unwrap_err();
    assert!(error.to_string().contains("No notes of sessions are kept here"), "{error}");
}

#[tokio::test]
async fn what_cannot_be_done_says_what_can() {
    let desk = Desk::new();
    desk.create("role", "Writes compilers").await;
    let check = async |input: Value, expect: &str| {
        let before = (desk.memories.list().unwrap(), desk.memories.index_text().unwrap(), desk.beside());
        let told = desk.run(input.clone()).await;
        let shown = input.to_string();
        let shown = &shown[..agent_core::floor_boundary(&shown, 200)];
        assert!(told.starts_with("ERROR: ") && told.contains(expect), "{shown}: {told}");
        let after = (desk.memories.list().unwrap(), desk.memories.index_text().unwrap(), desk.beside());
        assert!(after == before, "{shown}: {after:?}");
    };
    let at = |path: &str, text: &str| json!({"command": "create", "path": path, "file_text": text});
    check(at("/memories/role.md", &file("role", "x")), "View it, then change it").await;
    check(at("/memories/a.md", "Just words."), "`a.md` is no memory: it does not begin with front matter")
        .await;
    check(at("/memories/a.md", &file("b", "x")), "write the same name in both").await;
    check(at("/memories/a.md", &file("a", &"x".repeat(201))), "201 characters").await;
    check(at("/memories/a.md", &file("a", "x").replace("user", "feedback")), "**Why:**").await;
    check(at("/memories/a.md", &format!("{}{}", file("a", "x"), "x".repeat(40_000))), "may have 32768").await;
    check(at("/memories/MEMORY.md", "- x"), "is kept for you").await;
    check(at("/memories", "x"), "Name a file in it").await;
    check(at("/memories/../key.md", "x"), "no path of a memory").await;
    check(at("/memories/A.md", "x"), "no name of a memory").await;
    check(at("/etc/passwd", "x"), "Other files are reached with other tools.").await;
    let role = |command: &str| json!({"command": command, "path": "/memories/role.md"});
    check(role("create"), "The command create needs `file_text`").await;
    check(role("insert"), "needs `insert_line`").await;
    check(role("rename"), "needs `old_path`").await;
    check(json!({"command": "view"}), "needs `path`").await;
    check(json!({"command": "forget", "path": "/memories"}), "unknown variant `forget`").await;
    let replace = |old: &str, new: &str| json!({"command": "str_replace", "path": "/memories/role.md", "old_str": old, "new_str": new});
    check(replace("No line.", "x"), "old_str was not found. Nearest lines:").await;
    check(replace("     7\tA line.", "x"), "the line numbers that view puts before each line").await;
    check(replace("line.", "x"), "occurs 2 times, on lines 7, 8").await;
    check(replace("", "x"), "use insert").await;
    check(replace("A line.", "A line."), "nothing to do").await;
    check(replace("type: user", "type: fact"), "`reference`").await;
    check(
        json!({"command": "insert", "path": "/memories/role.md", "insert_line": 9, "insert_text": "x"}),
        "from 0 (the beginning) to 8",
    )
    .await;
    for range in [json!([0, 1]), json!([1]), json!([9, 9]), json!([3, 2]), json!([1, -2])] {
        let view = json!({"command": "view", "path": "/memories/role.md", "view_range": range});
        check(view, "two lines from 1 to 8").await;
    }
    check(
        json!({"command": "delete", "path": "/memories/rol.md"}),
        "There is no memory `rol`. Did you mean `role`?",
    )
    .await;
    check(
        json!({"command": "rename", "old_path": "/memories/role.md", "new_path": NOTES_PATH}),
        "Only memories are renamed",
    )
    .await;
}

#[tokio::test]
async fn a_full_index_is_told_before_and_when_it_is_full() {
    let desk = Desk::new();
    for number in 0..INDEX_LINES - 1 {
        desk.memories.add(&Memory::parse(&file(&format!("m{number}"), "x")).unwrap()).unwrap();
    }
    let near = desk.create("last", "x").await;
    assert!(near.starts_with("Created /memories/last.md. The index has 200 of 200 lines"), "{near}");
    let full = desk.create("more", "x").await;
    assert!(
        full.starts_with("ERROR: The index would have 201 lines") && full.contains("Make room first"),
        "{full}"
    );
}

#[tokio::test]
async fn rules_look_at_the_path() {
    let desk = Desk::new();
    let rule = |pattern: &str, decision| PermissionRule {
        pattern: pattern.parse::<Pattern>().unwrap(),
        decision,
        layer: Layer::User,
    };
    let check = async |rules: &[(&str, PermissionDecision)], input: Value, expect: &str| {
        let rules = rules.iter().map(|(pattern, decision)| rule(pattern, *decision)).collect();
        let permissions = Permissions { rules, ..Permissions::default() };
        let (id, input) = (CallId::new("call").unwrap(), RawJson::of(&input).unwrap());
        let verdict = permissions.check(Proposal::new(&*desk.tools[0], &id, &input)).await;
        let found = match verdict {
            Verdict::Allow(_) => "allow",
            Verdict::Ask(_) => "ask",
            Verdict::Deny(_) => "deny",
        };
        assert_eq!(found, expect, "{}", input.get());
    };
    let create = |path: &str| json!({"command": "create", "path": path, "file_text": ""});
    let rename = |to: &str| json!({"command": "rename", "old_path": "/memories/a.md", "new_path": to});
    use PermissionDecision::{Allow, Ask, Deny};
    check(&[], create("/memories/a.md"), "allow").await;
    let only_notes = [("memory", Deny)];
    check(&only_notes, create(NOTES_PATH), "deny").await;
    let not_b = [("memory(/memories/b.md)", Deny)];
    check(&not_b, create("/memories/a.md"), "allow").await;
    check(&not_b, create("/memories/b.md"), "deny").await;
    check(&not_b, rename("/memories/b.md"), "deny").await;
    check(&not_b, rename("/memories/c.md"), "allow").await;
    let asked = [("memory(/memories/*)", Ask), ("memory(/session/notes.md)", Allow)];
    check(&asked, create("/memories/a.md"), "ask").await;
    check(&asked, rename("/memories/b.md"), "ask").await;
    check(&asked, create(NOTES_PATH), "allow").await;
}

/// Any input of the tool, more likely one that fits.
fn inputs() -> impl Strategy<Value = Value> {
    let name = prop_oneof![4 => "[abc]", 1 => "(\\.\\./|/|A|memory|MEMORY|\\.lock|é|x{70})?[ab]?"];
    let memory = name.prop_map(|name| format!("/memories/{name}.md"));
    let path = prop_oneof![
        6 => memory.boxed(),
        1 => Just(NOTES_PATH.to_owned()).boxed(),
        1 => "(/memories|/session|/etc|\\.\\.|/|key\\.md|\0){0,4}".boxed(),
    ];
    let text = prop_oneof![
        3 => ("[abc]", "[a-z: ]{1,20}").prop_map(|(name, about)| file(&name, &about)),
        1 => "(---\n|name: [ab]\n|type: user\n|description: x\n|\\PC){0,6}",
    ];
    let command =
        prop::sample::select(vec!["view", "create", "create", "str_replace", "insert", "delete", "rename"]);
    let words =
        prop::sample::select(vec!["A line.", "Another", "name: a", "---", "description: ", "line", "\u{0}"]);
    (command, path.clone(), path, text, words, 0u64..9).prop_map(|(command, path, to, text, words, line)| {
        json!({
            "command": command, "path": path, "old_path": path, "new_path": to, "file_text": text,
            "old_str": words, "new_str": &text[..agent_core::floor_boundary(&text, line as usize)],
            "insert_line": line, "insert_text": text,
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever is called: every file is a memory, the index lists exactly those, the caps hold, and the rest of the disk
    /// stays as it was.
    #[test]
    fn any_calls_leave_memories_whole(calls in prop::collection::vec(inputs(), 1..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let desk = Desk::new();
        let before = desk.beside();
        for input in calls {
            let told = runtime.block_on(desk.run(input));
            prop_assert!(!told.is_empty());
        }
        prop_assert_eq!(desk.beside(), before);
        let (listing, view) = (desk.memories.list().unwrap(), desk.memories.index().unwrap());
        prop_assert!(listing.strange.is_empty() && view.is_whole(), "{:?} {:?}", listing, view);
        prop_assert_eq!(view.text.lines().count(), listing.memories.len());
        prop_assert!(listing.memories.len() <= INDEX_LINES && view.text.len() <= INDEX_BYTES);
        let notes = desk.base.path().join("data/tmp");
        let sessions = std::fs::read_dir(notes).map(|all| all.count()).unwrap_or_default();
        prop_assert!(sessions <= 1);
    }
}
