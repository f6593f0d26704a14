//! The index over its caps (case E02).

use agent_memory::{INDEX_BYTES, INDEX_LINES, IndexView, MemoryError};

use crate::support::{Place, memory, name};

/// What a session is shown of an index, and what it is told of the rest.
struct Shown {
    lines: usize,
    /// Names, or numbers of lines that are no entries.
    left_out: Vec<String>,
}

#[track_caller]
fn check(place: &Place, expect: &Shown) -> IndexView {
    let view = place.memories.index().unwrap();
    assert!(view.text.lines().count() <= INDEX_LINES && view.text.len() <= INDEX_BYTES);
    assert_eq!(view.text.lines().count(), expect.lines);
    let left = |left: &agent_memory::LeftOut| {
        let line = left.line.map(|line| line.to_string()).unwrap_or_default();
        left.name.as_ref().map_or(line, ToString::to_string)
    };
    assert_eq!(view.left_out.iter().map(left).collect::<Vec<_>>(), expect.left_out);
    // No line is cut, and two loads of the same directory are the same bytes.
    let whole = place.text("MEMORY.md");
    assert!(view.text.lines().all(|line| whole.lines().any(|known| known == line)));
    assert_eq!(place.memories.index().unwrap(), view);
    view
}

/// Memories m001 and so on, each a minute younger than the one before, entered as somebody would who adds at the end.
fn appended(count: usize, description: &str) -> Place {
    let place = Place::new();
    let mut index = String::new();
    for number in 1..=count {
        place.aged(&format!("m{number:03}"), description, 60 * number as u64);
        index.push_str(&format!("- [m{number:03}](m{number:03}.md): {description}\n"));
    }
    place.put("MEMORY.md", index);
    place
}

fn numbered(range: std::ops::RangeInclusive<usize>) -> Vec<String> {
    range.map(|number| format!("m{number:03}")).collect()
}

#[test]
fn of_too_many_lines_the_oldest_are_left_out_by_name() {
    let view = check(&appended(200, "x"), &Shown { lines: 200, left_out: vec![] });
    assert!(view.is_whole() && view.prompt() == view.text);
    check(&appended(201, "x"), &Shown { lines: 200, left_out: numbered(1..=1) });
    let view = check(&appended(238, "x"), &Shown { lines: 200, left_out: numbered(1..=38) });
    let told = view.prompt();
    assert!(
        told.contains("delete what no longer holds: m001, m002,") && told.contains("m012 and 26 more]"),
        "{told}"
    );
}

#[test]
fn of_too_many_bytes_the_oldest_are_left_out_by_name() {
    // 150 lines of 200 bytes each.
    let description = "x".repeat(200 - "- [m001](m001.md): \n".len());
    let place = appended(150, &description);
    assert_eq!(place.text("MEMORY.md").len(), 30_000);
    check(&place, &Shown { lines: 125, left_out: numbered(1..=25) });
}

#[test]
fn a_correction_at_the_end_outlives_what_it_corrects() {
    let place = appended(201, "x");
    place.aged("m012", "The port is 80", 60 * 12);
    place.aged("m201", "The port is 8080, not 80", 60 * 201);
    let index = place.text("MEMORY.md");
    let index = index.replace("(m012.md): x", "(m012.md): The port is 80");
    place.put("MEMORY.md", index.replace("(m201.md): x", "(m201.md): The port is 8080, not 80"));
    let view = check(&place, &Shown { lines: 200, left_out: numbered(1..=1) });
    assert!(view.text.contains("The port is 8080, not 80"));
    // Whoever keeps on adding does not lose the correction either.
    for number in 202..=212 {
        place.aged(&format!("m{number}"), "x", 60 * number);
    }
    let view = place.memories.index().unwrap();
    assert!(
        view.text.contains("8080, not 80") && !view.text.contains("is 80\n"),
        "{:?}",
        view.left_out_names()
    );
}

#[test]
fn a_line_that_does_not_fit_is_left_out_whole() {
    let place = appended(2, "x");
    // 40,000 bytes in characters of three bytes, and one left over.
    let line = format!("{}a", "記".repeat(13_333));
    assert_eq!(line.len(), 40_000);
    place.put("MEMORY.md", format!("{}{line}\nThe last line.\n", place.text("MEMORY.md")));
    let view = check(&place, &Shown { lines: 3, left_out: vec!["3".to_owned()] });
    assert!(view.prompt().contains("line 3 (記"), "{}", view.prompt());
    assert!(view.left_out[0].begins.len() <= 40);
}

#[test]
fn of_lines_that_point_nowhere_the_last_are_kept() {
    let place = Place::new();
    let facts: String = (1..=238).map(|number| format!("Fact {number}.\n")).collect();
    place.put("MEMORY.md", facts);
    let left_out = (1..=38).map(|number: usize| number.to_string()).collect();
    let view = check(&place, &Shown { lines: 200, left_out });
    assert!(view.text.starts_with("Fact 39.\n") && view.text.ends_with("Fact 238.\n"));
}

#[test]
fn an_entry_whose_file_is_gone_is_noted() {
    let place = appended(2, "x");
    place.put("MEMORY.md", format!("{}- [m003](m003.md): gone\n", place.text("MEMORY.md")));
    let view = check(&place, &Shown { lines: 2, left_out: vec![] });
    assert_eq!(view.dangling, [name("m003")]);
    assert!(!view.is_whole() && view.prompt().ends_with("[listed, and the file is gone: m003]\n"));
}

#[test]
fn the_write_that_would_overflow_is_told_what_to_do() {
    let place = appended(199, "x");
    let memories = &place.memories;
    let done = memories.add(&memory("m200", "x")).unwrap();
    assert!(done.advice().is_some_and(|advice| advice.contains("200 of 200 lines")), "{:?}", done.advice());
    let before = (place.text("MEMORY.md"), place.names());
    let full = memories.add(&memory("m201", "x")).unwrap_err();
    let words = full.to_string();
    assert!(matches!(&full, MemoryError::IndexFull { lines: 201, .. }), "{full}");
    assert!(words.contains("Make room first") && words.contains("m199, m198"), "{words}");
    assert_eq!((place.text("MEMORY.md"), place.names()), before, "nothing was written");
    // What makes no line is not refused, and what makes room is heeded.
    let text = memories.read(&name("m001")).unwrap();
    memories.replace(&name("m001"), &text, &text.replace("The body.", "Another body.")).unwrap();
    memories.remove(&name("m199")).unwrap();
    memories.add(&memory("m201", "x")).unwrap();
    assert!(memories.index().unwrap().is_whole());
}

#[test]
fn an_index_that_is_over_by_hand_may_shrink_and_not_grow() {
    let place = appended(238, "x");
    let memories = &place.memories;
    assert!(matches!(memories.add(&memory("more", "x")), Err(MemoryError::IndexFull { .. })));
    assert_eq!(memories.remove(&name("m002")).unwrap().lines, 237);
    memories.rename(&name("m003"), &name("n003")).unwrap();
    assert_eq!(memories.index().unwrap().text.lines().count(), 200);
    // A few words more would be more bytes.
    let room = appended(120, &"x".repeat(190));
    let text = room.memories.read(&name("m001")).unwrap();
    let longer = text.replace(&"x".repeat(190), &"x".repeat(200));
    assert_eq!(room.text("MEMORY.md").len(), 120 * 210);
    let error = room.memories.replace(&name("m001"), &text, &longer).unwrap_err();
    assert!(matches!(error, MemoryError::IndexFull { lines: 120, bytes: 25_210, .. }), "{error}");
}
