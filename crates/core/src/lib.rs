//! The vocabulary of Airpace: time, units, packets, 3GPP tables and random streams.
//!
//! Everything here is plain data. The engines ([`cc`], [`path`], …) are pure state machines that use these types. The
//! drivers give them a clock. Nothing in this crate reads a clock, a file or a socket.
//!
//! | module | names |
//! | --- | --- |
//! | [`time`] | [`Time`], nanoseconds since the run began |
//! | [`units`] | [`Rate`], [`Bytes`], [`Bits`] |
//! | [`packet`] | [`Packet`], [`FlowId`], [`DeviceId`], [`Rider`] |
//! | [`direction`] | [`Direction`], to a device or from it |
//! | [`deadlines`] | [`Deadlines`]: which part is due next |
//! | [`tables`] | TBS, MCS and CQI numbers of 3GPP, delay profiles |
//! | [`rng`] | [`Streams`] and [`Draws`] of named random numbers |
//! | [`count`] | a number of things in words |
//! | [`nearest`] | the existing name that a user may have meant by a wrong one |
//!
//! [`cc`]: https://docs.rs/airpace-cc
//! [`path`]: https://docs.rs/airpace-path
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]
#![warn(missing_docs)]

pub mod count;
pub mod deadlines;
pub mod direction;
pub mod nearest;
pub mod packet;
pub mod plain;
pub mod rng;
pub mod tables;
pub mod time;
pub mod units;

pub use deadlines::Deadlines;
pub use direction::Direction;
pub use packet::{DeviceId, Ecn, FlowId, Packet, Rider};
pub use rng::{Draw, Draws, Rng, Streams};
pub use time::Time;
pub use units::{Bits, Bytes, Rate};
