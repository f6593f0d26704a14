//! Settings that connections get from outside, over what their owner asks for.
#![expect(unsafe_code, reason = "SQLite offers its connections at their opening through C alone")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use rusqlite::ffi::{self, sqlite3};

use crate::disk;
use crate::vfs::dir_of;

/// Settings of the connections to a [`Disk`](crate::Disk), which their owner does not choose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a config, written as a literal with ..Default")]
pub struct Tuning {
    /// After how many pages in its log a connection copies them to the database; `None` leaves it at SQLite's 1,000.
    pub checkpoint_after: Option<u16>,
    /// `synchronous`, whatever the connection's owner sets later: `NORMAL` and `OFF` show what `FULL` is for.
    pub synchronous: Option<&'static str>,
}

/// Has every connection tuned that is opened from here on.
pub(crate) fn register() {
    // SAFETY: the function lives as long as the process. It fails without memory only.
    let end = unsafe { ffi::sqlite3_auto_extension(Some(tune)) };
    debug_assert_eq!(end, ffi::SQLITE_OK);
}

unsafe extern "C" fn tune(
    db: *mut sqlite3,
    _: *mut *mut c_char,
    _: *const ffi::sqlite3_api_routines,
) -> c_int {
    // SAFETY: SQLite gives an open connection; the name it answers is null or a C string of that connection.
    let name = unsafe {
        let name = ffi::sqlite3_db_filename(db, c"main".as_ptr());
        (!name.is_null()).then(|| CStr::from_ptr(name).to_string_lossy().into_owned())
    };
    let Some(name) = name else { return ffi::SQLITE_OK };
    let tuning = disk::all().get(dir_of(&name)).map(|state| state.tuning).unwrap_or_default();
    // SAFETY: the connection is open, and nobody else has it yet.
    unsafe { apply(db, tuning) }
}

unsafe fn apply(db: *mut sqlite3, tuning: Tuning) -> c_int {
    if let Some(pages) = tuning.checkpoint_after {
        // SAFETY: by the caller's word.
        unsafe { ffi::sqlite3_wal_autocheckpoint(db, pages.into()) };
    }
    let Some(level) = tuning.synchronous else { return ffi::SQLITE_OK };
    let Ok(sql) = CString::new(format!("PRAGMA synchronous = {level}")) else { return ffi::SQLITE_MISUSE };
    // SAFETY: by the caller's word, and the text lives through the call.
    unsafe {
        let none = std::ptr::null_mut();
        let end = ffi::sqlite3_exec(db, sql.as_ptr(), None, none, std::ptr::null_mut());
        ffi::sqlite3_set_authorizer(db, Some(keep), none);
        end
    }
}

/// Passes over every later `PRAGMA synchronous`, and lets all else be done.
unsafe extern "C" fn keep(
    _: *mut c_void,
    action: c_int,
    name: *const c_char,
    _: *const c_char,
    _: *const c_char,
    _: *const c_char,
) -> c_int {
    if action != ffi::SQLITE_PRAGMA || name.is_null() {
        return ffi::SQLITE_OK;
    }
    // SAFETY: it is not null, so it is a C string.
    let name = unsafe { CStr::from_ptr(name) };
    if name.to_bytes().eq_ignore_ascii_case(b"synchronous") { ffi::SQLITE_IGNORE } else { ffi::SQLITE_OK }
}
