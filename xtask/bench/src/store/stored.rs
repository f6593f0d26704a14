//! What lies in the database after a run, without knowing what its tables mean.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use serde::{Deserialize, Serialize};

use crate::bench::Fault;

/// Rows of all tables, their content in bytes, and the pages they need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Stored {
    pub(crate) rows: u64,
    pub(crate) row_bytes: u64,
    /// Bytes of the database file once its log is folded in.
    pub(crate) file_bytes: u64,
}

/// Looks into the one database of a folder.
pub(crate) fn look(folder: &Path) -> Result<Stored, Fault> {
    let db = Connection::open_with_flags(folder.join("sessions.db"), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let number = |sql: &str| db.query_row(sql, (), |row| row.get::<_, i64>(0));
    let file_bytes = number("PRAGMA page_count")? * number("PRAGMA page_size")?;
    let mut stored = Stored { file_bytes: u64::try_from(file_bytes)?, ..Stored::default() };
    for table in
        names(&db, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")?
    {
        let columns = names(&db, &format!("SELECT name FROM pragma_table_info('{table}')"))?;
        let lengths: Vec<String> =
            columns.iter().map(|column| format!("coalesce(length(CAST(\"{column}\" AS BLOB)), 0)")).collect();
        let bytes = format!("SELECT coalesce(sum({}), 0) FROM \"{table}\"", lengths.join(" + "));
        stored.rows += u64::try_from(number(&format!("SELECT count(*) FROM \"{table}\""))?)?;
        stored.row_bytes += u64::try_from(number(&bytes)?)?;
    }
    Ok(stored)
}

fn names(db: &Connection, sql: &str) -> Result<Vec<String>, Fault> {
    let mut query = db.prepare(sql)?;
    let names = query.query_map((), |row| row.get(0))?;
    Ok(names.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_with_their_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let db = Connection::open(folder.path().join("sessions.db")).unwrap();
        db.execute_batch(
            "CREATE TABLE a (n INTEGER, body BLOB); CREATE TABLE b (word TEXT);
             INSERT INTO a VALUES (1, x'0102'), (10, NULL); INSERT INTO b VALUES ('three');",
        )
        .unwrap();
        let stored = look(folder.path()).unwrap();
        assert_eq!((stored.rows, stored.row_bytes), (3, 1 + 2 + 2 + 5));
        assert!(stored.file_bytes >= 4_096, "{stored:?}");
        assert!(look(&folder.path().join("none")).is_err());
    }
}
