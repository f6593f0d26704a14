//! The file system that SQLite is given: each call is handed to the disk of its directory.
#![expect(unsafe_code, reason = "SQLite calls it through C; this and tuning.rs are the only places that may")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Once};

use rusqlite::ffi::{self, sqlite3_file, sqlite3_int64, sqlite3_vfs};

use crate::disk::{self, Code, File, Op, State};
use crate::locks::Region;

/// Makes this the file system of every connection that is opened from here on.
pub(crate) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let vfs = Box::leak(Box::new(vfs()));
        // SAFETY: the structure and its name live as long as the process. It fails on a name that is null only.
        let end = unsafe { ffi::sqlite3_vfs_register(vfs, 1) };
        debug_assert_eq!(end, ffi::SQLITE_OK);
        crate::tuning::register();
    });
}

/// The directory of a path.
pub(crate) fn dir_of(path: &str) -> &str {
    path.rsplit_once(['/', '\\']).map_or("", |(dir, _)| dir)
}

// SAFETY: SQLite itself keeps the accesses of its threads apart, by the locks of `Shared` and by barriers.
unsafe impl Send for Region {}
// SAFETY: as above; nothing of this crate looks into the memory.
unsafe impl Sync for Region {}

/// A file as SQLite allots it: its own part first.
#[repr(C)]
struct Raw {
    base: sqlite3_file,
    open: *mut Open,
}

/// What is ours of an open file.
struct Open {
    id: u64,
    life: u64,
    path: String,
    is_temporary: bool,
    /// The regions that SQLite has pointers to.
    regions: Vec<Arc<Region>>,
}

impl Open {
    /// SAFETY: `file` was opened by [`open`], is not closed yet, and is used by one thread at a time.
    unsafe fn of<'a>(file: *mut sqlite3_file) -> &'a mut Self {
        // SAFETY: by the caller's word, and `open` put a box there.
        unsafe { &mut *(*file.cast::<Raw>()).open }
    }

    fn with<T>(&self, work: impl FnOnce(&mut State, u64, &str) -> T) -> T {
        work(disk::all().entry(dir_of(&self.path).to_owned()).or_default(), self.life, &self.path)
    }

    fn locks(&self, op: Op, work: impl FnOnce(&mut File) -> Result<(), Code>) -> Code {
        code(self.with(|state, life, path| state.locks(life, path, op).and_then(work)))
    }

    fn gives_back(&self, work: impl FnOnce(&mut File)) {
        self.with(|state, life, path| state.gives_back(life, path).map(work));
    }
}

fn code(end: Result<(), Code>) -> Code {
    end.err().unwrap_or(ffi::SQLITE_OK)
}

/// A number that SQLite gives; it gives none below zero.
fn size<N: TryInto<usize>>(n: N) -> usize {
    n.try_into().unwrap_or_default()
}

/// SAFETY: `name` is null or a C string.
unsafe fn text(name: *const c_char) -> Option<String> {
    // SAFETY: by the caller's word.
    let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) });
    name.map(|name| name.to_string_lossy().into_owned())
}

fn with_path<T>(path: &str, work: impl FnOnce(&mut State) -> T) -> T {
    work(disk::all().entry(dir_of(path).to_owned()).or_default())
}

unsafe extern "C" fn open(
    _: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    // SAFETY: SQLite gives room for `szOsFile` bytes, and a name that is null for a temporary file.
    let (raw, name) = unsafe { (&mut *file.cast::<Raw>(), text(name)) };
    raw.base.pMethods = std::ptr::null();
    let is_temporary = name.is_none();
    let path = name.unwrap_or_else(|| format!("temporary/{id}"));
    let makes = flags & (ffi::SQLITE_OPEN_CREATE | ffi::SQLITE_OPEN_MAIN_DB) != 0;
    let opened = with_path(&path, |state| state.open(&path, makes).map(|()| state.life));
    let life = match opened {
        Ok(life) => life,
        Err(code) => return code,
    };
    raw.open = Box::into_raw(Box::new(Open { id, life, path, is_temporary, regions: Vec::new() }));
    raw.base.pMethods = &raw const METHODS;
    if !out.is_null() {
        // SAFETY: it is not null, so it is SQLite's place for the flags.
        unsafe { *out = flags };
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    // SAFETY: SQLite closes an opened file once.
    let open = unsafe { Box::from_raw((*file.cast::<Raw>()).open) };
    open.gives_back(|it| {
        it.levels.lower(open.id, ffi::SQLITE_LOCK_NONE);
        it.shared.leave(open.id);
    });
    if open.is_temporary {
        open.with(|state, _, path| state.forget(path));
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn read(
    file: *mut sqlite3_file,
    into: *mut c_void,
    len: c_int,
    at: sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite gives an open file and room for `len` bytes.
    let (open, into) =
        unsafe { (Open::of(file), std::slice::from_raw_parts_mut(into.cast::<u8>(), size(len))) };
    match open.with(|state, life, path| state.read(life, path, size(at), into)) {
        Ok(true) => ffi::SQLITE_OK,
        Ok(false) => ffi::SQLITE_IOERR_SHORT_READ,
        Err(code) => code,
    }
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    bytes: *const c_void,
    len: c_int,
    at: sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite gives an open file and `len` bytes.
    let (open, bytes) =
        unsafe { (Open::of(file), std::slice::from_raw_parts(bytes.cast::<u8>(), size(len))) };
    code(open.with(|state, life, path| state.write(life, path, size(at), bytes)))
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, len: sqlite3_int64) -> c_int {
    // SAFETY: SQLite gives an open file.
    let open = unsafe { Open::of(file) };
    code(open.with(|state, life, path| state.truncate(life, path, size(len))))
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: SQLite gives an open file.
    let open = unsafe { Open::of(file) };
    code(open.with(State::sync))
}

unsafe extern "C" fn file_size(file: *mut sqlite3_file, out: *mut sqlite3_int64) -> c_int {
    // SAFETY: SQLite gives an open file, and a place for its size.
    let (open, out) = unsafe { (Open::of(file), &mut *out) };
    code(open.with(State::size).map(|len| *out = len.try_into().unwrap_or(sqlite3_int64::MAX)))
}

unsafe extern "C" fn lock(file: *mut sqlite3_file, level: c_int) -> c_int {
    // SAFETY: SQLite gives an open file.
    let open = unsafe { Open::of(file) };
    open.locks(Op::Lock, |it| it.levels.raise(open.id, level))
}

unsafe extern "C" fn unlock(file: *mut sqlite3_file, level: c_int) -> c_int {
    // SAFETY: SQLite gives an open file.
    let open = unsafe { Open::of(file) };
    open.gives_back(|it| it.levels.lower(open.id, level));
    ffi::SQLITE_OK
}

unsafe extern "C" fn check_reserved(file: *mut sqlite3_file, out: *mut c_int) -> c_int {
    // SAFETY: SQLite gives an open file, and a place for the answer.
    let (open, out) = unsafe { (Open::of(file), &mut *out) };
    open.locks(Op::Lock, |it| {
        *out = c_int::from(it.levels.is_reserved());
        Ok(())
    })
}

unsafe extern "C" fn file_control(_: *mut sqlite3_file, _op: c_int, _arg: *mut c_void) -> c_int {
    ffi::SQLITE_NOTFOUND
}

unsafe extern "C" fn sector_size(_: *mut sqlite3_file) -> c_int {
    512
}

/// What SQLite takes every disk for, too: a sector that is written anew is the old one or the new one.
unsafe extern "C" fn characteristics(_: *mut sqlite3_file) -> c_int {
    ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE
}

unsafe extern "C" fn shm_map(
    file: *mut sqlite3_file,
    at: c_int,
    len: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: SQLite gives an open file, and a place for the address.
    let (open, out) = unsafe { (Open::of(file), &mut *out) };
    let make = (extend != 0).then_some(size(len));
    let (who, mut found) = (open.id, None);
    let end = open.locks(Op::ShmMap, |it| {
        found = it.shared.region(who, size(at), make);
        Ok(())
    });
    *out = found.as_ref().map_or(std::ptr::null_mut(), |region| region.start().cast());
    // SQLite keeps the address, so the handle keeps the memory.
    open.regions.extend(found);
    end
}

unsafe extern "C" fn shm_lock(file: *mut sqlite3_file, from: c_int, n: c_int, flags: c_int) -> c_int {
    // SAFETY: SQLite gives an open file.
    let open = unsafe { Open::of(file) };
    let slots = size(from)..size(from + n);
    if flags & ffi::SQLITE_SHM_UNLOCK != 0 {
        open.gives_back(|it| it.shared.unlock(open.id, slots));
        return ffi::SQLITE_OK;
    }
    let is_shared = flags & ffi::SQLITE_SHM_SHARED != 0;
    open.locks(Op::ShmLock, |it| it.shared.lock(open.id, slots, is_shared))
}

unsafe extern "C" fn shm_barrier(_: *mut sqlite3_file) {
    fence(Ordering::SeqCst);
}

unsafe extern "C" fn shm_unmap(file: *mut sqlite3_file, _delete: c_int) -> c_int {
    // SAFETY: SQLite gives an open file.
    let open = unsafe { Open::of(file) };
    open.gives_back(|it| it.shared.leave(open.id));
    open.regions.clear();
    ffi::SQLITE_OK
}

unsafe extern "C" fn delete(_: *mut sqlite3_vfs, name: *const c_char, syncs: c_int) -> c_int {
    // SAFETY: SQLite gives a name.
    let path = unsafe { text(name) }.unwrap_or_default();
    code(with_path(&path, |state| state.delete(&path, syncs != 0)))
}

unsafe extern "C" fn access(_: *mut sqlite3_vfs, name: *const c_char, _: c_int, out: *mut c_int) -> c_int {
    // SAFETY: SQLite gives a name, and a place for the answer.
    let (path, out) = unsafe { (text(name).unwrap_or_default(), &mut *out) };
    *out = c_int::from(with_path(&path, |state| state.exists(&path)));
    ffi::SQLITE_OK
}

unsafe extern "C" fn full_path(
    _: *mut sqlite3_vfs,
    name: *const c_char,
    room: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: SQLite gives a name.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes_with_nul();
    if name.len() > size(room) {
        return ffi::SQLITE_CANTOPEN;
    }
    // SAFETY: `out` has room for as many bytes, and overlaps nothing of the name.
    unsafe { std::ptr::copy_nonoverlapping(name.as_ptr().cast(), out, name.len()) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn randomness(_: *mut sqlite3_vfs, len: c_int, out: *mut c_char) -> c_int {
    // SAFETY: SQLite gives room for `len` bytes. The same ones each time make runs alike.
    unsafe { std::ptr::write_bytes(out, 0x5a, size(len)) };
    len
}

unsafe extern "C" fn sleep(_: *mut sqlite3_vfs, micros: c_int) -> c_int {
    std::thread::yield_now();
    micros
}

unsafe extern "C" fn now(_: *mut sqlite3_vfs, out: *mut f64) -> c_int {
    // SAFETY: SQLite gives a place for the day.
    unsafe { *out = 2_460_000.5 };
    ffi::SQLITE_OK
}

unsafe extern "C" fn last_error(_: *mut sqlite3_vfs, _: c_int, _: *mut c_char) -> c_int {
    0
}

fn vfs() -> sqlite3_vfs {
    sqlite3_vfs {
        iVersion: 1,
        szOsFile: size_of::<Raw>().try_into().unwrap_or(c_int::MAX),
        mxPathname: 1024,
        pNext: std::ptr::null_mut(),
        zName: c"agent-store-faults".as_ptr(),
        pAppData: std::ptr::null_mut(),
        xOpen: Some(open),
        xDelete: Some(delete),
        xAccess: Some(access),
        xFullPathname: Some(full_path),
        xDlOpen: None,
        xDlError: None,
        xDlSym: None,
        xDlClose: None,
        xRandomness: Some(randomness),
        xSleep: Some(sleep),
        xCurrentTime: Some(now),
        xGetLastError: Some(last_error),
        xCurrentTimeInt64: None,
        xSetSystemCall: None,
        xGetSystemCall: None,
        xNextSystemCall: None,
    }
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};
