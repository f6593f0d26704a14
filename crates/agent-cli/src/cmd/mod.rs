//! The commands, one file each.

pub(crate) mod cache;
pub(crate) mod context;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod memory;
pub(crate) mod permissions;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod sessions;
pub(crate) mod signals;
pub(crate) mod sim;
pub(crate) mod stats;
pub(crate) mod tools;
pub(crate) mod wire;
