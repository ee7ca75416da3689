//! Basic types of Airpace: time, units, packets, 3GPP tables and random streams.
//!
//! All types are plain data. The engines ([`cc`], [`path`], …) are pure state machines that use these types; the
//! drivers pass the time to them. This crate never reads a clock, a file or a socket.
//!
//! | module | content |
//! | --- | --- |
//! | [`time`] | [`Time`], nanoseconds since the start of the run |
//! | [`units`] | [`Rate`], [`Bytes`], [`Bits`] |
//! | [`packet`] | [`Packet`], [`FlowId`], [`DeviceId`], [`Rider`] |
//! | [`direction`] | [`Direction`]: downlink or uplink |
//! | [`deadlines`] | [`Deadlines`]: event queue |
//! | [`tables`] | TBS, MCS, CQI and band tables of 3GPP, delay profiles |
//! | [`rng`] | [`Streams`] and [`Draws`] of named random numbers |
//! | [`count`] | formatting of numbers with their noun |
//! | [`nearest`] | suggestions for misspelt names |
//! | [`remedy`] | [`Remedy`]: what a user can do about an error, for each front end to render |
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
pub mod remedy;
pub mod rng;
pub mod tables;
pub mod time;
pub mod units;

pub use deadlines::Deadlines;
pub use direction::Direction;
pub use packet::{DeviceId, Ecn, FlowId, Packet, Rider};
pub use remedy::{Refused, Remedy};
pub use rng::{Draw, Draws, Rng, Streams};
pub use time::Time;
pub use units::{Bits, Bytes, Rate};
