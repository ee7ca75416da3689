//! The vocabulary of Airpace: time, units, packets, radio words, 3GPP tables, random streams and events.
//!
//! Everything here is plain data. The engines ([`cc`], [`path`], …) are pure machines over these words; the
//! drivers give them a clock. Nothing in this crate reads a clock, a file or a socket.
//!
//! | module | names |
//! | --- | --- |
//! | [`time`] | [`Time`], nanoseconds since the run began |
//! | [`units`] | [`Rate`], [`Bytes`], [`Bits`] |
//! | [`packet`] | [`Packet`], [`FlowId`], [`DeviceId`], [`Rider`] |
//! | [`radio`] | [`RadioReport`], [`Dci`], [`Rnti`], [`PrbSet`] |
//! | [`tables`] | TBS, MCS and CQI numbers of 3GPP |
//! | [`rng`] | [`Streams`] of named random numbers |
//! | [`event`] | [`Event`] and [`Recorder`], the one schema of what happened |
//! | [`nearest`] | what somebody may have meant by a name that there is not |
//!
//! [`cc`]: https://docs.rs/airpace-cc
//! [`path`]: https://docs.rs/airpace-path
#![warn(missing_docs)]

pub mod event;
pub mod nearest;
pub mod packet;
pub mod plain;
pub mod radio;
pub mod rng;
pub mod tables;
pub mod time;
pub mod units;

pub use event::{Event, Recorder};
pub use packet::{DeviceId, Ecn, FlowId, Packet, Rider};
pub use radio::{Dci, PrbSet, RadioReport, Rnti};
pub use rng::{Rng, Streams};
pub use time::Time;
pub use units::{Bits, Bytes, Rate};
