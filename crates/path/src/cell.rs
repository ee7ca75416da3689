//! The cell.

pub mod adaptation;
pub mod bler;
pub mod channel;
