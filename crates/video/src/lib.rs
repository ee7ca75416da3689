//! Adaptive video: a client that streams a video in segments, as a pure state machine, and a model of its viewer's quality
//! of experience.
//!
//! | module | content |
//! | --- | --- |
//! | [`ladder`] | [`Ladder`]: [`Representation`]s and the length of a segment |
//! | [`sizes`] | [`SegmentSizes`]: bytes of each segment, which vary with the content |
//! | [`p1203`] | the formulas of ITU-T P.1203, and the part of the model that is left out |

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod check;
pub mod ladder;
pub mod p1203;
pub mod sizes;

pub use ladder::{Codec, Ladder, Representation};
pub use sizes::SegmentSizes;
