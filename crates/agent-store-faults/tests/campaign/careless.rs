//! Writers with the mistakes that the store does not make: the disk shows each of them.

use std::path::Path;

use agent_store_faults::{Disk, Fault};
use rusqlite::Connection;

/// A commit in two transactions: a kill between them leaves half of it.
#[test]
fn a_commit_outside_a_transaction_is_found_half_written() {
    let found = runs(Fault::Kill, |db| {
        db.execute("INSERT INTO entries (body) VALUES ('hello')", ())?;
        db.execute("UPDATE sessions SET head = head + 1", ())?;
        Ok(())
    });
    let halves = found.iter().filter(|run| run.entries != run.head).count();
    println!("two transactions: {} runs, {halves} half written", found.len());
    assert!(halves > 0, "{found:?}");
    let lost = found.iter().filter(|run| run.head < run.answered).count();
    assert_eq!(lost, 0, "each of the two is whole: {found:?}");
}

/// A write that answers with a row, outside a transaction: it is answered before it is committed.
#[test]
fn an_answer_before_the_commit_is_found_lost() {
    let found = runs(Fault::SyncError, |db| {
        db.query_row("UPDATE sessions SET head = head + 1 RETURNING head", (), |row| row.get::<_, u64>(0))?;
        Ok(())
    });
    let lost = found.iter().filter(|run| run.head < run.answered).count();
    println!("an answer before the commit: {} runs, {lost} lost", found.len());
    assert!(lost > 0, "{found:?}");
}

/// The same in a transaction: the failed commit is said. As one without an answer it may still be found.
#[test]
fn an_answer_after_the_commit_is_kept() {
    let found = runs(Fault::SyncError, |db| {
        db.execute_batch("BEGIN IMMEDIATE")?;
        let done = db
            .query_row("UPDATE sessions SET head = head + 1 RETURNING head", (), |row| row.get::<_, u64>(0))
            .and_then(|_| db.execute_batch("COMMIT"));
        if !db.is_autocommit() {
            db.execute_batch("ROLLBACK")?;
        }
        done
    });
    assert!(found.len() > 3, "{found:?}");
    assert!(found.iter().all(|run| (run.answered..=run.answered + 1).contains(&run.head)), "{found:?}");
}

/// What a run ended in.
#[derive(Debug)]
struct End {
    /// How many writes were answered.
    answered: u64,
    head: u64,
    entries: u64,
}

/// Four writes, with the fault at every operation of theirs in turn; the next process looks after each.
fn runs(fault: Fault, write: impl Fn(&Connection) -> rusqlite::Result<()>) -> Vec<End> {
    let mut found = Vec::new();
    for skipped in 0.. {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::at(dir.path());
        let db = open(dir.path());
        db.execute_batch(
            "CREATE TABLE entries (body); CREATE TABLE sessions (head); INSERT INTO sessions VALUES (0)",
        )
        .unwrap();
        disk.arm(fault, skipped);
        let answered = (0..4).filter(|_| write(&db).is_ok()).count() as u64;
        let was_struck = disk.was_struck();
        disk.restart();
        drop(db);
        let db = open(dir.path());
        let count = |sql: &str| db.query_row(sql, (), |row| row.get::<_, u64>(0)).unwrap();
        let (head, entries) = (count("SELECT head FROM sessions"), count("SELECT count(*) FROM entries"));
        if !was_struck {
            assert_eq!((answered, head), (4, 4), "without a fault");
            break;
        }
        found.push(End { answered, head, entries });
    }
    found
}

fn open(dir: &Path) -> Connection {
    let db = Connection::open(dir.join("it.db")).unwrap();
    db.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
    db.pragma_update(None, "synchronous", "FULL").unwrap();
    db
}
