#![doc = include_str!("../README.md")]
//! # Data flow
//!
//! ```text
//! Message ─pack─▶ Payload ─pdcch─▶ REGs ─grid─▶ OFDM symbols ─▶ samples        (encode)
//! samples ─▶ OFDM symbols ─▶ CFI ─▶ soft bits of CCEs ─▶ Payload + RNTI ─parse─▶ Message
//! ```
//!
//! Both directions use the same tables. Each table cites the clause of the specification. Modules without a link are
//! not listed in the documentation.
//!
//! | module | contents | TS |
//! | --- | --- | --- |
//! | `numerology` | bandwidths, cyclic prefixes, FFT sizes, symbol timing | 36.211 §6.2, §6.12 |
//! | `cell` | parameters of a cell | 36.331 MIB |
//! | `sequence` | pseudo-random bits, synchronisation and reference signals | 36.211 §6.10, §6.11, §7.2 |
//! | `grid` | resource elements, and the groups of them that control channels use | 36.211 §6.2 |
//! | `modulation` | QPSK, hard and soft | 36.211 §7.1 |
//! | `diversity` | transmit diversity with one, two and four antenna ports | 36.211 §6.3.3, §6.3.4 |
//! | `coding` | CRC, tail-biting convolutional code, rate matching | 36.212 §5.1 |
//! | [`dci`] | sizes, fields and allocations of DCI formats | 36.212 §5.3.3, 36.213 §7.1 |
//! | `pbch`, `pcfich`, `phich`, [`pdcch`] | the four control channels | 36.211 §6.6 – §6.9 |
//! | `ofdm` | grid ↔ samples | 36.211 §6.12 |
//! | `encode` | encoder of a whole subframe | |
//! | `sync` | synchronisation: cell search and tracking | 36.211 §6.11 |
//! | [`listen`], [`ladder`] | samples to observations of an automatically found cell; decoding-stage counters | |
//! | `channel` | channel estimate of each antenna port, and noise power | |
//! | `schedule` | assignment of grants to messages in the search spaces of their users | 36.213 §9.1.1 |
//! | [`station`] | transmitter of a cell's grants, with the samples that an antenna receives | |
//! | `observation` | received control region of a subframe: soft bits of its CCEs | |
//! | `search` | search for all messages that these bits may contain, without decoding every candidate | 36.213 §9.1.1 |
//! | [`evidence`] | acceptance of candidate messages, and confidence | |
//! | `harq` | retransmitted blocks, and their original sizes | 36.321 §5.3.2, §5.4.2 |
//! | [`answers`] | HARQ feedback (PHICH) for uplink blocks | 36.213 §8.3, §9.1.2 |
//! | [`found`] | an accepted message with its interpretation | |
//! | [`load`] | load of a subframe: occupied CCEs, granted PRBs | |
//! | [`pseudonym`] | names of users, from which their RNTIs cannot be recovered | |
//! | [`truth`] | the messages of a station, as a perfect decoder would report them | |
//! | `missed` | estimate of the undecoded messages of a subframe and of their grants | |
//! | [`decoder`] | the complete decoder: from samples to the messages of all users | |
//! | [`follow`] | the grants and state of one user (the own device) | |
//! | `resample`, [`impair`] | sample rates; fading, noise, receiver impairments (for tests and encoders) | 36.101 Annex B.2 |
//!
//! # Extension to NR
//!
//! This crate implements LTE only, from the synchronisation signals to the last DCI field. No module supports NR. If
//! the samples contain NR, the decoder stops at the first stages of the [`ladder`], and the hints there report that NR
//! is not supported. NR support would be a second decoder next to [`decoder::Decoder`], not a mode of it. NR has SSBs
//! instead of PSS, SSS and PBCH at fixed positions, CORESETs instead of a control region, and polar codes instead of
//! convolutional codes. The decoder would have the same interface: `push(samples)` and `pop()`, with an output like
//! [`decoder::Output`] (locked, a subframe, late messages, lost). Other crates receive an `airpace_radio::RadioReport`
//! from either decoder. Its terms (carrier, PRBs, grants, own state) fit both. Crate `radio` also merges the reports of
//! several cells and writes them as lines. `resample` and [`impair`] serve both; `sync`, [`listen`], `search`,
//! [`evidence`], `harq` and [`found`] do not.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]
#![warn(missing_docs)]

pub mod answers;
pub mod dci;
pub mod decoder;
pub mod evidence;
pub mod follow;
pub mod found;
pub mod impair;
pub mod ladder;
pub mod listen;
pub mod load;
pub mod numerology;
pub mod pdcch;
pub mod pseudonym;
pub mod station;
pub mod truth;

mod cell;
mod complex;
mod observation;

// For Airpace's own crates, tests and benches.
#[doc(hidden)]
pub mod channel;
#[doc(hidden)]
pub mod coding;
#[doc(hidden)]
pub mod diversity;
#[doc(hidden)]
pub mod encode;
#[doc(hidden)]
pub mod grid;
#[doc(hidden)]
pub mod harq;
#[doc(hidden)]
pub mod missed;
#[doc(hidden)]
pub mod modulation;
#[doc(hidden)]
pub mod ofdm;
#[doc(hidden)]
pub mod pbch;
#[doc(hidden)]
pub mod pcfich;
#[doc(hidden)]
pub mod phich;
#[doc(hidden)]
pub mod resample;
#[doc(hidden)]
pub mod schedule;
#[doc(hidden)]
pub mod search;
#[doc(hidden)]
pub mod sequence;
#[doc(hidden)]
pub mod sync;

pub use airpace_core::{Direction, Streams, Time};
pub use airpace_radio::{CarrierId, Dci, DciFormat, Missed, PrbSet, RadioReport, Rnti, Scope, Slot};
pub use num_complex::Complex32;

pub use answers::Answered;
pub use cell::{Cell, PhichDuration, PhichResource, Ports};
pub use decoder::{Decoder, Options, Output, Reading};
pub use evidence::Caution;
pub use follow::Follower;
pub use found::{Found, RntiKind};
pub use impair::Conditions;
pub use ladder::{Ladder, Rung};
pub use listen::{Lock, UnsupportedRate};
pub use numerology::{Bandwidth, CyclicPrefix};
pub use observation::CceSet;
pub use station::Station;

// For Airpace's own crates, tests and benches.
#[doc(hidden)]
pub use channel::Channel;
#[doc(hidden)]
pub use listen::{Listener, ListenerEvent};
#[doc(hidden)]
pub use numerology::Numerology;
#[doc(hidden)]
pub use observation::{Observation, Observer};
