//! The `airpace` binary.
fn main() {}
