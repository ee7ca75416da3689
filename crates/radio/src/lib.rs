//! The vocabulary of radio: the grants of each user, per carrier and slot.
//!
//! The simulated cell, a decoder of IQ samples and a modem's log all use these types.
//!
//! | module | names |
//! | --- | --- |
//! | [`grant`] | [`Dci`], one user's grant; [`Rnti`], the user that it is for; [`DciFormat`] |
//! | [`prb`] | [`PrbSet`], the PRB pairs of a grant |
//! | [`report`] | [`RadioReport`], what a radio reports about one slot of one carrier; [`Scope`], whose grants it
//! holds, and [`Missed`], how much it lacks; [`OwnRadio`] |
//! | [`slot`] | [`Slot`] and [`Numerology`], how a carrier counts time |
//! | [`align`] | [`Alignment`](align::Alignment), which gives the subframes of several recordings the same numbers |
//! | [`fusion`] | [`Fusion`](fusion::Fusion), which brings the reports of several carriers together |
//! | [`mod@line`] | reports as lines of text, to store and read again |
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
