//! Real time on Linux, for event loops with deadlines: clocks, a sleeper, scheduling priority, and lateness statistics.
//!
//! | module | content |
//! | --- | --- |
//! | [`clock`] | the machine's clocks, and a clock that starts at zero |
//! | [`sleeper`] | sleeps until a deadline or an event, and spins for the last microseconds |
//! | [`priority`] | real-time priority, short time slices, locked memory |
//! | [`lateness`] | the distribution of delays between deadlines and their actions |

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod clock;
pub mod lateness;
pub mod priority;
pub mod sleeper;
