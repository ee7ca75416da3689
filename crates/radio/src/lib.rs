//! The vocabulary of radio: who was granted what, per carrier and slot.
//!
//! The same words come from the simulated cell, from a decoder of IQ samples and from a modem's log.
//!
//! | module | names |
//! | --- | --- |
//! | [`grant`] | [`Dci`], one user's grant; [`Rnti`], whom it is for; [`DciFormat`] |
//! | [`prb`] | [`PrbSet`], the PRB pairs of a grant |
//! | [`report`] | [`RadioReport`], what a radio says of one slot of one carrier; [`Scope`], whose grants it holds; [`OwnRadio`] |
//! | [`slot`] | [`Slot`] and [`Numerology`], how a carrier counts time |
//! | [`align`] | [`Alignment`](align::Alignment), which makes several recordings number their subframes alike |
//! | [`fusion`] | [`Fusion`](fusion::Fusion), which brings the reports of several carriers together |
//! | [`line`] | reports as lines of text, to be kept and read again |
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
pub use report::{BitLayer, CarrierId, OwnRadio, RadioReport, Scope};
pub use slot::{Numerology, Slot};
