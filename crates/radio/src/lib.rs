//! Types for radio reports: the grants of each user, per carrier and slot.
//!
//! The simulated cell, a decoder of IQ samples and a modem's log all use these types.
//!
//! | module | contents |
//! | --- | --- |
//! | [`grant`] | [`Dci`], one user's grant; [`Rnti`], its user; [`DciFormat`] |
//! | [`prb`] | [`PrbSet`], the PRB pairs of a grant |
//! | [`report`] | [`RadioReport`] on one slot of one carrier; [`Scope`] of its grants; [`Missed`] grants; [`OwnRadio`] |
//! | [`slot`] | [`Slot`] and [`Numerology`], the time unit of a carrier |
//! | [`align`] | [`Alignment`](align::Alignment), equal numbers for simultaneous subframes of several recordings |
//! | [`fusion`] | [`Fusion`](fusion::Fusion), merges the reports of several carriers |
//! | [`mod@line`] | reports as lines of text, for storage |
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]
#![warn(missing_docs)]

pub mod align;
pub mod fusion;
pub mod grant;
pub mod line;
pub mod prb;
pub mod report;
pub mod slot;

pub use grant::{Dci, DciFormat, Rnti};
pub use prb::PrbSet;
pub use report::{BitLayer, CarrierId, Missed, OwnRadio, RadioReport, Scope};
pub use slot::{Numerology, Slot};
