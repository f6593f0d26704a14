//! Connections with the settings that make an answered write a durable one.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::fault::Fail;
use super::{SqliteOptions, locks, migrate};
use crate::StoreError;

/// The connection that writes; the database is made and migrated here.
pub(super) fn writer(dir: &Path, options: &SqliteOptions) -> Result<Connection, StoreError> {
    trusted(rusqlite::version_number(), rusqlite::version())?;
    let path = file(dir);
    // SQLite gives its side files the mode of the database.
    let made = locks::private(OpenOptions::new().append(true).create(true)).open(&path);
    made.map_err(|cause| StoreError::Io { path: path.clone(), cause })?;
    let mut db = connect(&path)?;
    let mode = set_up(&db, options)?;
    if mode != "wal" {
        return Err(StoreError::NoWal { path, mode });
    }
    migrate::run(&mut db)?;
    Ok(db)
}

/// A connection that only reads.
pub(super) fn reader(dir: &Path) -> Result<Connection, StoreError> {
    let db = connect(&file(dir))?;
    db.pragma_update(None, "query_only", true).map_err(Fail::from)?;
    Ok(db)
}

/// Refuses a SQLite that a program was linked with instead of the one compiled in.
fn trusted(number: i32, found: &'static str) -> Result<(), StoreError> {
    if number < NEEDED.0 {
        return Err(StoreError::OldSqlite { found, needed: NEEDED.1 });
    }
    Ok(())
}

fn connect(path: &Path) -> Result<Connection, Fail> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(BUSY)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(db)
}

/// Settles the connection; answers the journal mode it got.
fn set_up(db: &Connection, options: &SqliteOptions) -> Result<String, Fail> {
    // Has an effect on a new file only.
    db.pragma_update(None, "page_size", PAGE)?;
    let mode = db.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    db.pragma_update(None, "synchronous", "FULL")?;
    db.pragma_update(None, "foreign_keys", true)?;
    // For macOS, whose fsync alone does not reach the disk; elsewhere without effect.
    db.pragma_update(None, "fullfsync", true)?;
    if let Some(bytes) = options.max_bytes {
        let page: u64 = db.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let pages = bytes.div_ceil(page).max(1);
        db.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    }
    Ok(mode)
}

fn file(dir: &Path) -> PathBuf {
    dir.join("sessions.db")
}

/// Before this version two processes could damage a database by a checkpoint beside a write.
const NEEDED: (i32, &str) = (3_051_003, "3.51.3");
const BUSY: Duration = Duration::from_secs(10);
const PAGE: u32 = 8192;
/// More than there are statements in the store.
const STATEMENTS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_sqlite_is_refused() {
        let check = |number: i32, name: &'static str, expect: &str| {
            let end = trusted(number, name).map_or_else(|error| error.to_string(), |()| "trusted".into());
            assert!(end.starts_with(expect), "{name}: {end}");
        };
        check(
            3_051_002,
            "3.51.2",
            "SQLite 3.51.2 can damage a database that several processes use; build with 3.51.3",
        );
        check(3_051_003, "3.51.3", "trusted");
        check(rusqlite::version_number(), rusqlite::version(), "trusted");
    }

    /// What a later connection cannot see of an earlier one.
    #[test]
    fn each_connection_has_the_settings_that_keep_answers() {
        let dir = tempfile::tempdir().unwrap();
        let writer = writer(dir.path(), &SqliteOptions::default()).unwrap();
        let reader = reader(dir.path()).unwrap();
        let setting = |db: &Connection, name: &str| -> String {
            db.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0))
                .map_or_else(|error| error.to_string(), |value| format!("{value:?}"))
        };
        let check = |db: &Connection, name: &str, expect: &str| {
            assert_eq!(setting(db, name), format!("Integer({expect})"), "{name}");
        };
        check(&writer, "page_size", "8192");
        check(&writer, "foreign_keys", "1");
        check(&writer, "fullfsync", "1");
        check(&reader, "query_only", "1");
        for db in [&writer, &reader] {
            check(db, "synchronous", "2");
            // A file that shrinks under a mapping would kill the process.
            check(db, "mmap_size", "0");
            check(db, "busy_timeout", "10000");
        }
        assert!(reader.execute_batch("DELETE FROM sessions").is_err(), "writes pass through the writer");
    }
}
