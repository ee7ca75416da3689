//! Adaptive video: a client that streams a video in segments, as a pure state machine, and a model of its viewer's quality
//! of experience.
//!
//! ```text
//!                 ┌────────────────────── Player ──────────────────────┐
//! Ladder, sizes ─▶│ Rule chooses a representation ─▶ Action::Request ──┼─▶ driver: sends the request
//!                 │ Playback: buffer, position, stalls ◀── segment ◀───┼── driver: on_bytes, on_complete
//!                 └──────────────────────────┬─────────────────────────┘
//!                                            ▼
//!                                  Session: the report ─▶ Quality: 1 (bad) to 5 (excellent)
//! ```
//!
//! A driver owns the clock and the network. It sends the requests that [`Player::poll_action`] returns, reports the bytes that
//! arrive, and calls [`Player::handle_timeout`] at the time that [`Player::poll_timeout`] returns. Playback needs no event in
//! between: the player computes the instants at which its buffer ran empty.
//!
//! | module | content |
//! | --- | --- |
//! | [`ladder`] | [`Ladder`]: [`Representation`]s and the length of a segment |
//! | [`sizes`] | [`SegmentSizes`]: bytes of each segment, which vary with the content |
//! | [`config`] | [`PlayerConfig`]: the keys of a player, and their checks |
//! | [`player`] | [`Player`] and its [`Action`]s |
//! | [`rule`] | [`Rule`]: how the player chooses representations |
//! | [`session`] | [`Session`]: the report of a player; the player's [`State`]s |
//! | [`quality`] | [`Quality`] of a session for a viewer ([`Viewing`]) |
//! | [`p1203`] | the formulas of ITU-T P.1203, and the part of the model that is left out |

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod check;
pub mod config;
pub mod ladder;
pub mod p1203;
pub mod player;
pub mod quality;
pub mod rule;
pub mod session;
pub mod sizes;

pub use config::PlayerConfig;
pub use ladder::{Codec, Ladder, Representation};
pub use player::{Action, Player, Request};
pub use quality::{Quality, Viewing};
pub use rule::Rule;
pub use session::{Session, State};
pub use sizes::SegmentSizes;
