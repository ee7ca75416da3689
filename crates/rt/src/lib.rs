//! Real time on Linux, for event loops with deadlines: clocks, a sleeper, scheduling priority, lateness statistics, signals
//! and socket options.
//!
//! | module | content |
//! | --- | --- |
//! | [`clock`] | the machine's clocks, and a clock that starts at zero |
//! | [`sleeper`] | sleeps until a deadline or an event, and spins for the last microseconds |
//! | [`priority`] | real-time priority, short time slices, locked memory |
//! | [`lateness`] | the distribution of delays from deadlines to the execution of their actions |
//! | [`signal`] | signals for which no safe wrapper exists |
//! | [`sockopt`] | socket options for which no safe wrapper exists |

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod clock;
pub mod lateness;
pub mod priority;
pub mod signal;
pub mod sleeper;
pub mod sockopt;
