//! The store on a disk that fails, and writers that show what the campaigns would find.

mod campaign;
