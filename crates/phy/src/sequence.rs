//! Sequences known to every receiver: scrambling sequences, synchronisation signals and reference signals.

pub mod crs;
pub mod gold;
pub mod pss;
pub mod sss;

pub use gold::Gold;
