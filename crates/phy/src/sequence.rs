//! Sequences that every receiver knows: pseudo-random bits, synchronisation and reference signals.

pub mod crs;
pub mod gold;
pub mod pss;
pub mod sss;

pub use gold::Gold;
