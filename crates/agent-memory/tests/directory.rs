//! Keeping, changing, finding and removing memories.

use agent_memory::{MemoryError, MemoryFault};

use crate::support::{Place, memory, name, remove};

#[test]
fn memories_come_and_go_with_their_entries() {
    let place = Place::new();
    let memories = &place.memories;
    memories.add(&memory("one", "The first")).unwrap();
    memories.add(&memory("two", "The second: with a colon")).unwrap();
    assert_eq!(
        place.text("MEMORY.md"),
        "- [two](two.md): The second: with a colon\n- [one](one.md): The first\n"
    );

    // A change makes it the newest, and a name can change in the file and the index at once.
    let before = memories.read(&name("one")).unwrap();
    memories.replace(&name("one"), &before, &before.replace("The first", "The best")).unwrap();
    let done = memories.rename(&name("two"), &name("three")).unwrap();
    assert_eq!((done.lines, done.listed.len(), done.dropped.len()), (2, 0, 0));
    assert_eq!(
        place.text("MEMORY.md"),
        "- [three](three.md): The second: with a colon\n- [one](one.md): The best\n"
    );
    assert_eq!(memories.memory(&name("three")).unwrap().body(), "The body.");
    assert!(memories.index().unwrap().is_whole());

    memories.remove(&name("one")).unwrap();
    assert_eq!(place.names(), ["MEMORY.md", "three.md"]);
    let found = memories.find("second", 2).unwrap();
    assert_eq!(found.iter().map(|memory| memory.name().as_str()).collect::<Vec<_>>(), ["three"]);
}

#[test]
fn what_cannot_be_done_says_so_and_changes_nothing() {
    let place = Place::new();
    let memories = &place.memories;
    memories.add(&memory("one", "The first")).unwrap();
    memories.add(&memory("other", "The other")).unwrap();
    let before = (place.text("one.md"), place.text("MEMORY.md"));
    let check = |done: Result<agent_memory::Written, MemoryError>, expect: &str| {
        let error = done.unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
        assert_eq!((place.text("one.md"), place.text("MEMORY.md")), before);
        assert_eq!(place.names(), ["MEMORY.md", "one.md", "other.md"]);
    };
    check(memories.add(&memory("one", "Again")), "`one` already");
    check(memories.remove(&name("ones")), "Did you mean `one`");
    check(memories.rename(&name("two"), &name("three")), "no memory `two`");
    check(memories.rename(&name("one"), &name("other")), "`other` already");
    check(memories.create(&name("two"), &memory("three", "x").render()), "the file is `two.md`");
    check(memories.create(&name("two"), "Just words."), "front matter");
    check(memories.replace(&name("one"), "What it said once.", "x"), "somebody else");
    check(memories.edit(&name("one"), |_| Err(MemoryError::Refused("no".to_owned()))), "no");
    check(memories.edit(&name("one"), |text| Ok(text.replace("type: project", "type: fact"))), "`reference`");
    let large = memories.edit(&name("one"), |text| Ok(format!("{text}{}", "x".repeat(40_000))));
    assert!(matches!(&large, Err(MemoryError::Fault { fault: MemoryFault::TooLarge(_), .. })));
    check(large, "several memories");
}

#[test]
fn what_a_dead_program_left_is_shown_and_mended() {
    let place = Place::new();
    let memories = &place.memories;
    memories.add(&memory("one", "The first")).unwrap();
    memories.add(&memory("gone", "Was removed")).unwrap();
    // Between a file and its entry: one was written, and one was removed.
    place.put("late.md", memory("late", "Came late").render());
    remove(&place.path("gone.md"));

    let index = memories.index().unwrap();
    assert_eq!(index.text, "- [late](late.md): Came late\n- [one](one.md): The first\n");
    assert_eq!(
        (index.unlisted.as_slice(), index.dangling.as_slice()),
        (&[name("late")][..], &[name("gone")][..])
    );
    assert!(index.prompt().contains("[listed, and the file is gone: gone]"), "{}", index.prompt());

    let done = memories.add(&memory("two", "The second")).unwrap();
    assert_eq!((done.listed, done.dropped), (vec![name("late")], vec![name("gone")]));
    assert!(memories.index().unwrap().is_whole());
    // An entry whose file is gone can also be removed by its name.
    remove(&place.path("two.md"));
    memories.remove(&name("two")).unwrap();
    assert!(memories.index().unwrap().is_whole());
}

#[test]
fn what_a_person_wrote_stays() {
    let place = Place::new();
    let memories = &place.memories;
    place
        .put("MEMORY.md", "# Ours\r\n\r\n- [The freeze](freeze.md) since May\r\n\r\nAsk before you add.\r\n");
    place.put(
        "freeze.md",
        "---\nname: freeze\nowner: me\ndescription: No releases\ntype: project\n---\nNone in May.\n",
    );
    memories.add(&memory("one", "The first")).unwrap();
    let text = memories.read(&name("freeze")).unwrap();
    memories.replace(&name("freeze"), &text, &text.replace("May", "June")).unwrap();
    insta::assert_snapshot!(place.text("MEMORY.md"), @r"
    # Ours

    - [The freeze](freeze.md) since May
    - [one](one.md): The first

    Ask before you add.
    ");
    memories.rename(&name("freeze"), &name("frost")).unwrap();
    insta::assert_snapshot!(place.text("frost.md"), @r"
    ---
    name: frost
    owner: me
    description: No releases
    type: project
    ---
    None in June.
    ");
}

#[test]
fn files_that_are_no_memories_are_named() {
    let place = Place::new();
    place.put("User_Role.md", "x");
    place.put("notes.txt", "x");
    place.put("odd\u{202e}.md", "x");
    place.put("broken.md", "no front matter");
    place.put("other.md", memory("one", "x").render());
    place.put("latin.md", b"---\nname: latin\n\xe9");
    place.put("large.md", vec![b'x'; 40_000]);
    place.put("MEMORY.md", b"\xff");
    std::fs::create_dir(place.path("folder.md")).unwrap();

    let index = place.memories.index().unwrap();
    let told: Vec<String> =
        index.strange.iter().map(|file| format!("{}: {}\n", file.file, file.why)).collect();
    insta::assert_snapshot!(told.concat(), @r#"
    User_Role.md: "User_Role" is no name of a memory: use 1 to 64 lower-case letters (a-z), digits, `_` and `-`, beginning with a letter or a digit, for example `feedback_short_answers`
    broken.md: `broken.md` is no memory: it does not begin with front matter, which begins with a line `---`. Begin with a line `---`, then `name: ...`, `description: ...` and `type: ...`, then a line `---`, then what is to be remembered
    folder.md: `folder.md` is a directory and no regular file, so it is not opened; put a regular file in its place, or remove it
    large.md: `large.md` has more than 32768 bytes, so it is not read; shorten it
    latin.md: byte 16 of `latin.md` is not UTF-8; save it as UTF-8
    notes.txt: only `.md` files are memories; put it elsewhere
    odd�.md: "odd\u{202e}" is no name of a memory: use 1 to 64 lower-case letters (a-z), digits, `_` and `-`, beginning with a letter or a digit, for example `feedback_short_answers`
    other.md: `other.md` is no memory: its front matter says `name: one`, and the file is `other.md`; write the same name in both
    "#);
    assert_eq!(index.text, "");
    insta::assert_snapshot!(index.fault.unwrap(), @"byte 0 of `MEMORY.md` is not UTF-8; save it as UTF-8");
}
