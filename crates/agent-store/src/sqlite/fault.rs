//! Telling a refusal of ours from a failure of SQLite, and one failure from another.

use rusqlite::ErrorCode;

use crate::StoreError;

/// Why a job did not succeed.
#[derive(Debug)]
pub(super) enum Fail {
    /// By our rules; the database is well.
    Refused(StoreError),
    /// SQLite failed, and may have rolled back the whole transaction.
    Sql(rusqlite::Error),
}

impl From<StoreError> for Fail {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<rusqlite::Error> for Fail {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<Fail> for StoreError {
    fn from(fail: Fail) -> Self {
        match fail {
            Fail::Refused(error) => error,
            Fail::Sql(error) => of(error),
        }
    }
}

fn of(error: rusqlite::Error) -> StoreError {
    let code = error.sqlite_error_code();
    let cause = Box::new(error);
    if code == Some(ErrorCode::DiskFull) {
        StoreError::DiskFull { cause }
    } else if code == Some(ErrorCode::SystemIoFailure) {
        StoreError::DiskFailed { cause }
    } else if matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)) {
        StoreError::DatabaseBusy { cause }
    } else if matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)) {
        StoreError::Damaged { cause }
    } else {
        StoreError::Database { cause }
    }
}
