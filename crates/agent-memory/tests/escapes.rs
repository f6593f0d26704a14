//! Nothing outside the directory is read or written through it (requirement C4).

use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use agent_core::SessionId;
use agent_memory::{MemoryDir, MemoryError, NotesFile};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::{Place, memory, name, read, remove, write};

const SECRET: &str = "---\nname: one\ndescription: secret words\ntype: user\n---\n\nThe key.\n";

#[test]
fn a_link_is_not_followed() {
    let place = Place::new();
    let memories = &place.memories;
    write(&place.outside("one.md"), SECRET.as_bytes());
    symlink(place.outside("one.md"), place.path("one.md")).unwrap();
    let before = place.surroundings();

    let is_link = |error: MemoryError| {
        assert!(matches!(&error, MemoryError::NotAFile { kind: "symbolic link", .. }), "{error:?}");
    };
    is_link(memories.read(&name("one")).unwrap_err());
    is_link(memories.edit(&name("one"), |_| panic!("nothing to edit")).unwrap_err());
    is_link(memories.rename(&name("one"), &name("two")).unwrap_err());
    assert!(matches!(memories.add(&memory("one", "x")), Err(MemoryError::Exists(_))));
    assert!(matches!(memories.rename(&name("two"), &name("one")), Err(MemoryError::Missing { .. })));
    let index = memories.index().unwrap();
    assert_eq!((index.text.as_str(), index.strange.len()), ("", 1));
    // What is removed is the link.
    memories.remove(&name("one")).unwrap();
    assert_eq!(place.surroundings(), before);
}

#[test]
fn an_index_that_is_a_link_is_neither_read_nor_written() {
    let place = Place::new();
    let memories = &place.memories;
    memories.add(&memory("one", "The first")).unwrap();
    write(&place.outside("index"), b"- secret\n");
    remove(&place.path("MEMORY.md"));
    symlink(place.outside("index"), place.path("MEMORY.md")).unwrap();
    let (before, names) = (place.surroundings(), place.names());

    let index = memories.index().unwrap();
    assert_eq!(index.text, "- [one](one.md): The first\n");
    assert!(index.fault.is_some_and(|fault| fault.contains("symbolic link")));
    for refused in [memories.add(&memory("two", "x")), memories.remove(&name("one"))] {
        assert!(matches!(refused, Err(MemoryError::NotAFile { .. })), "{refused:?}");
    }
    assert!(memories.index_text().is_err());
    assert_eq!((place.surroundings(), place.names()), (before, names));
}

#[test]
fn pipes_and_folders_do_not_hold_anybody_up() {
    let place = Place::new();
    let memories = &place.memories;
    mknodat(CWD, place.path("pipe.md"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    std::fs::create_dir(place.path("folder.md")).unwrap();
    for (title, kind) in [("pipe", "named pipe"), ("folder", "directory")] {
        let told = memories.read(&name(title)).unwrap_err().to_string();
        assert!(told.contains(kind), "{told}");
        assert!(matches!(memories.add(&memory(title, "x")), Err(MemoryError::Exists(_))));
    }
    assert_eq!(memories.index().unwrap().strange.len(), 2);
    memories.remove(&name("pipe")).unwrap();
    assert!(memories.remove(&name("folder")).is_err());
}

#[test]
fn a_lock_that_is_no_file_is_told() {
    for make in [
        |place: &Place| symlink(place.outside("lock"), place.path(".lock")).unwrap(),
        |place: &Place| std::fs::create_dir(place.path(".lock")).unwrap(),
    ] {
        let place = Place::new();
        make(&place);
        let before = place.surroundings();
        assert!(place.memories.add(&memory("one", "x")).is_err());
        assert_eq!(place.surroundings(), before, "no lock is made elsewhere");
    }
}

/// A file that is a link every other moment: whatever the moment, the outside is neither shown nor changed.
#[test]
fn a_link_that_comes_between_is_not_followed() {
    let place = Place::new();
    write(&place.outside("one.md"), SECRET.as_bytes());
    let before = place.surroundings();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let swap = || {
            while !is_over.load(Ordering::Relaxed) {
                let passing = place.path(".swap");
                symlink(place.outside("one.md"), &passing).unwrap();
                rename(&passing, &place.path("one.md"));
                std::thread::yield_now();
                write(&passing, memory("one", "Inside").render().as_bytes());
                rename(&passing, &place.path("one.md"));
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
        };
        scope.spawn(swap);
        let memories = MemoryDir::open(place.memories.path()).unwrap();
        let (mut inside, mut refused) = (0, 0);
        for round in 0..100_000 {
            match memories.read(&name("one")) {
                Ok(text) => {
                    assert!(!text.contains("key"), "{text}");
                    inside += 1;
                }
                Err(_) => refused += 1,
            }
            let edited = memories.edit(&name("one"), |text| {
                assert!(!text.contains("key"));
                Ok(text.replace("The body.", &format!("Round {round}.")))
            });
            inside += usize::from(edited.is_ok());
            assert!(!memories.index().unwrap().text.contains("secret"));
            if round > 200 && inside > 20 && refused > 20 {
                break;
            }
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(inside > 20 && refused > 20, "it was both: {inside} {refused}");
    });
    assert_eq!(place.surroundings(), before);
}

#[test]
fn notes_that_are_a_link_are_neither_read_nor_written() {
    let place = Place::new();
    let data = place.outside("data");
    let notes = NotesFile::new(&data, &SessionId::new("s").unwrap());
    notes.write("x").unwrap();
    write(&place.outside("key"), b"The key.");
    remove(&notes.path());
    symlink(place.outside("key"), notes.path()).unwrap();
    assert!(matches!(notes.read(), Err(MemoryError::NotAFile { .. })));
    assert!(notes.write("y").is_err());
    assert!(notes.change(|_| panic!("nothing to change")).is_err());
    notes.remove().unwrap();
    assert_eq!(read(&place.outside("key")), "The key.");
}

#[expect(clippy::disallowed_methods, reason = "a test changes the disk behind the crate's back")]
fn rename(from: &std::path::Path, to: &std::path::Path) {
    std::fs::rename(from, to).unwrap();
}
