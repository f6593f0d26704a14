//! A disk under SQLite that fails when it is told to: what a store promises is tried at every file operation.
//!
//! [`Disk::at`] makes SQLite keep the files below a directory in memory, for every connection of the process, whoever
//! opens it. [`Disk::arm`] picks the operation at which a [`Fault`] strikes. After a fault that ends the process
//! ([`Disk::has_stopped`]) every connection of that life gets errors and changes nothing more; [`Disk::restart`]
//! gives the files to the next one, as a kill or a power cut left them.
//!
//! **This crate knows** files, sectors, what was synced and what was not. **It never knows** what a store keeps in
//! them. It registers its file system as SQLite's default, so a test binary that uses it tests nothing else.
//!
//! ```
//! use agent_store_faults::{Disk, Fault};
//! use rusqlite::Connection;
//!
//! # fn main() -> rusqlite::Result<()> {
//! let disk = Disk::at(std::path::Path::new("/nowhere"));
//! let db = Connection::open("/nowhere/tea.db")?;
//! db.execute_batch("CREATE TABLE tea (name TEXT)")?;
//! disk.arm(Fault::Kill, 3);
//! assert!(db.execute("INSERT INTO tea VALUES ('sencha')", ()).is_err());
//! assert!(disk.has_stopped());
//! drop(db);
//! disk.restart();
//! let db = Connection::open("/nowhere/tea.db")?;
//! assert_eq!(db.query_row("SELECT count(*) FROM tea", (), |row| row.get::<_, u64>(0))?, 0);
//! # Ok(())
//! # }
//! ```

mod disk;
mod locks;
mod tuning;
mod vfs;

use std::path::Path;

pub use tuning::Tuning;

/// What goes wrong. Each strikes at the operations that can go wrong this way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The process is killed before any operation; what it wrote stays.
    Kill,
    /// The process is killed in a write, of which the first half was done.
    TornWrite,
    /// The power goes before any operation: of what was not synced, each sector of 512 bytes is kept or lost by a
    /// draw from the seed. Without a seed all of it is lost.
    PowerLoss(Option<u64>),
    /// A write does its first half and finds no room for the rest, and so do the four writes after it.
    DiskFull,
    /// A write fails after its first half.
    WriteError,
    /// A sync fails, and what was to be synced never reaches the disk, although reads still see it.
    SyncError,
}

/// The files below a directory. Dropping it forgets them.
#[derive(Debug)]
pub struct Disk {
    dir: String,
}

impl Disk {
    /// An empty disk for the files of this directory, which need not exist.
    pub fn at(dir: &Path) -> Self {
        vfs::register();
        let dir = dir.display().to_string();
        disk::all().insert(dir.clone(), disk::State::default());
        Self { dir }
    }

    /// Settings that connections made from here on get over their own.
    pub fn tune(&self, tuning: Tuning) {
        self.with(|state| state.tuning = tuning);
    }

    /// Lets the fault strike at the operation, of those that it can strike at, after `skipped` more of them.
    pub fn arm(&self, fault: Fault, skipped: u64) {
        self.with(|state| state.arm(fault, skipped));
    }

    /// Whether the armed fault struck.
    pub fn was_struck(&self) -> bool {
        self.with(|state| state.was_struck)
    }

    /// Whether the fault ended the life of the process.
    pub fn has_stopped(&self) -> bool {
        self.with(|state| state.has_stopped)
    }

    /// How many syncs reached the disk: what several writes share is told by fewer of them.
    pub fn syncs(&self) -> u64 {
        self.with(|state| state.syncs)
    }

    /// Kills the process now, if that has not happened, and lets the next one work without faults.
    pub fn restart(&self) {
        self.with(disk::State::restart);
    }

    /// The same after a power cut: nothing is kept that was not synced.
    pub fn cut_power(&self) {
        self.with(|state| state.lose(None));
        self.restart();
    }

    fn with<T>(&self, work: impl FnOnce(&mut disk::State) -> T) -> T {
        work(disk::all().entry(self.dir.clone()).or_default())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        disk::all().remove(&self.dir);
    }
}
