//! The control channel of LTE: which user was granted what, from radio samples; and samples from grants.
//!
//! ```text
//! Message ─pack─▶ Payload ─pdcch─▶ REGs ─grid─▶ OFDM symbols ─▶ samples        (encode)
//! samples ─▶ OFDM symbols ─▶ CFI ─▶ soft bits of CCEs ─▶ Payload + RNTI ─parse─▶ Message
//! ```
//!
//! Both directions use the same tables. Each table names the clause that it follows.
//!
//! | module | what it knows | TS |
//! | --- | --- | --- |
//! | [`numerology`] | bandwidths, cyclic prefixes, FFT sizes, where symbols lie in time | 36.211 §6.2, §6.12 |
//! | [`cell`] | what all users of a cell share | 36.331 MIB |
//! | [`sequence`] | pseudo-random bits, synchronisation and reference signals | 36.211 §6.10, §6.11, §7.2 |
//! | [`grid`] | resource elements, and the groups of them that control channels use | 36.211 §6.2 |
//! | [`modulation`] | QPSK, hard and soft | 36.211 §7.1 |
//! | [`diversity`] | one, two and four antenna ports | 36.211 §6.3.3, §6.3.4 |
//! | [`coding`] | CRC, tail-biting convolutional code, rate matching | 36.212 §5.1 |
//! | [`dci`] | sizes, fields and allocations of DCI formats | 36.212 §5.3.3, 36.213 §7.1 |
//! | [`pbch`], [`pcfich`], [`phich`], [`pdcch`] | the four control channels | 36.211 §6.6 – §6.9 |
//! | [`ofdm`] | grid ↔ samples | 36.211 §6.12 |
//! | [`encode`] | a whole subframe as a cell sends it | |
//! | [`sync`] | cells among samples: found, then followed | 36.211 §6.11 |
//! | [`listen`], [`ladder`] | samples to observations of a cell that was found by itself; how far they led | |
//! | [`channel`] | what each antenna port reaches the receiver through, and the noise | |
//! | [`schedule`] | grants as messages, each at a place in its receiver's search space | 36.213 §9.1.1 |
//! | [`station`] | a cell's grants on the air, and what an antenna hears of them | |
//! | [`observation`] | what was heard of a subframe: soft bits of its CCEs, for any search | |
//! | [`search`] | every message that those bits may hold, without decoding them all | 36.213 §9.1.1 |
//! | [`evidence`] | which of them to believe, and how much | |
//! | [`harq`] | which blocks are sent again, and how long those were | 36.321 §5.3.2, §5.4.2 |
//! | [`answers`] | which uplink blocks were received, as the cell answers | 36.213 §8.3, §9.1.2 |
//! | [`found`] | a message that is believed, with all that can be told of it | |
//! | [`missed`] | how much of a subframe was not read, and what that may grant | |
//! | [`decoder`] | all of it: samples in, everyone's messages out | |
//! | [`follow`] | one user's grants and side | |
//! | [`resample`], [`impair`] | other sample rates; fading, noise and imperfect radios, for tests and encoders | 36.101 Annex B.2 |
//!
//! # Where NR would come in
//!
//! All of this crate is LTE, from the first signal that the search looks for to the last field that the parser reads.
//! No module knows NR. A recording of NR ends on the lowest rungs of the [`ladder`], whose hints say that NR is not
//! read. A decoder of NR would be a second decoder beside [`decoder::Decoder`], not a mode of it. NR has SSBs instead
//! of PSS, SSS and PBCH at fixed places, CORESETs instead of a control region, and polar codes instead of convolutional
//! ones. The decoder would have the same shape: `push(samples)` and `pop()`, with an output like [`decoder::Output`]
//! (locked, a subframe, late messages, lost). What other crates take from either decoder is
//! `airpace_radio::RadioReport`. Its words (carrier, PRBs, grants, own side) fit both. Crate `radio` also brings the
//! reports of several cells together and writes them as lines. [`resample`] and [`impair`] serve both; [`sync`],
//! [`listen`], [`search`], [`evidence`], [`harq`] and [`found`] do not.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]
#![warn(missing_docs)]

pub mod answers;
pub mod cell;
pub mod channel;
pub mod coding;
pub mod dci;
pub mod decoder;
pub mod diversity;
pub mod encode;
pub mod evidence;
pub mod follow;
pub mod found;
pub mod grid;
pub mod harq;
pub mod impair;
pub mod ladder;
pub mod listen;
pub mod missed;
pub mod modulation;
pub mod numerology;
pub mod observation;
pub mod ofdm;
pub mod pbch;
pub mod pcfich;
pub mod pdcch;
pub mod phich;
pub mod resample;
pub mod schedule;
pub mod search;
pub mod sequence;
pub mod station;
pub mod sync;

pub use cell::{Cell, PhichDuration, PhichResource, Ports};
pub use channel::Channel;
pub use ladder::Ladder;
pub use listen::{Heard, Listener};
pub use num_complex::Complex32;
pub use numerology::{Bandwidth, CyclicPrefix, Numerology};
pub use observation::{Observation, Observer};
