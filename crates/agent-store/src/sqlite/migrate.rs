//! Bringing a database to the newest format, and refusing one from the future.

use rusqlite::{Connection, TransactionBehavior};
use sha2::{Digest, Sha256};

use super::fault::Fail;
use crate::StoreError;

/// One step of the format. A step that was released is never changed.
struct Migration {
    n: u64,
    name: &'static str,
    sql: &'static str,
}

const MIGRATIONS: [Migration; 6] = [
    Migration { n: 1, name: "init", sql: include_str!("../../migrations/0001_init.sql") },
    Migration { n: 2, name: "stamps", sql: include_str!("../../migrations/0002_stamps.sql") },
    Migration { n: 3, name: "inbox", sql: include_str!("../../migrations/0003_inbox.sql") },
    Migration { n: 4, name: "rounds", sql: include_str!("../../migrations/0004_rounds.sql") },
    Migration { n: 5, name: "parts", sql: include_str!("../../migrations/0005_parts.sql") },
    Migration { n: 6, name: "attempts", sql: include_str!("../../migrations/0006_attempts.sql") },
];

/// Applies what is missing, all of it in one transaction, so that two processes cannot both do it.
pub(super) fn run(db: &mut Connection) -> Result<(), Fail> {
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    tx.execute_batch(
        "CREATE TABLE IF NOT EXISTS schema_migrations
         (n INTEGER PRIMARY KEY, name TEXT NOT NULL, sha256 TEXT NOT NULL) STRICT",
    )?;
    let applied = applied(&tx)?;
    judge(&applied)?;
    for migration in MIGRATIONS.iter().skip(applied.len()) {
        tx.execute_batch(migration.sql)?;
        tx.execute(
            "INSERT INTO schema_migrations (n, name, sha256) VALUES (?1, ?2, ?3)",
            (migration.n, migration.name, migration.sha256()),
        )?;
    }
    Ok(tx.commit()?)
}

fn applied(db: &Connection) -> Result<Vec<(u64, String)>, Fail> {
    let mut query = db.prepare("SELECT n, sha256 FROM schema_migrations ORDER BY n")?;
    let rows = query.query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Whether the applied steps are the first ones of ours.
fn judge(applied: &[(u64, String)]) -> Result<(), StoreError> {
    let known = newest();
    if let Some((found, _)) = applied.last().filter(|(n, _)| *n > known) {
        return Err(StoreError::NewerFormat { found: *found, known });
    }
    for ((n, sha256), ours) in applied.iter().zip(&MIGRATIONS) {
        if *n != ours.n || *sha256 != ours.sha256() {
            return Err(StoreError::ForeignFormat(*n));
        }
    }
    Ok(())
}

/// The newest format.
fn newest() -> u64 {
    MIGRATIONS.last().map_or(0, |migration| migration.n)
}

impl Migration {
    fn sha256(&self) -> String {
        agent_core::hex(&Sha256::digest(self.sql))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_grow() {
        assert_eq!(MIGRATIONS[0].n, 1);
        assert!(MIGRATIONS.is_sorted_by(|one, next| one.n < next.n));
    }

    #[test]
    fn only_our_own_steps_are_taken() {
        let ours = MIGRATIONS[0].sha256();
        let check = |applied: &[(u64, &str)], expect: &str| {
            let applied: Vec<_> = applied.iter().map(|(n, sha)| (*n, (*sha).to_owned())).collect();
            let end = judge(&applied).map_or_else(|error| error.to_string(), |()| "ours".into());
            assert!(end.starts_with(expect), "{applied:?}: {end}");
        };
        check(&[], "ours");
        check(&[(1, &ours)], "ours");
        check(&[(1, &ours), (2, "other")], "step 2 of the store's format is not the one");
        check(&[(1, "other")], "step 1 of the store's format is not the one");
        let next = newest() + 1;
        let newer = format!("the store has format {next}, this program knows up to {}", next - 1);
        check(&[(1, &ours), (next, "later")], &newer);
    }
}
