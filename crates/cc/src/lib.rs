#![doc = include_str!("../README.md")]
//! # Data flow
//!
//! ```text
//!            header on data                     feedback on ACKs
//! Controller ───────────────▶ path ▶ Receiver ───────────────────▶ Controller
//! ```
//!
//! | module | content |
//! | --- | --- |
//! | [`controller`] | the contract: [`Controller`], [`Receiver`] and the events that they receive |
//! | [`scheme`], [`schemes`] | a scheme as users see it; the list of schemes, and the choice of one by text |
//! | [`endpoint`] | one transport endpoint: packet numbers, ACKs, loss detection, RTT |
//! | [`registry`] | registry of a device's flows |
//! | [`pacer`] | the pacer of the endpoints |
//!
//! Not listed in the documentation:
//!
//! | module | content |
//! | --- | --- |
//! | one module per scheme | its controller and, if it has one, its receiver |
//! | `delivery_rate`, `filter`, `window` | parts that endpoints and controllers share |
//! | `pcc` | monitor intervals, utilities and trials: the common base of `allegro`, `vivace` and `morc` |
//! | `nr` | properties of 5G NR carriers: the period of a TDD pattern |
//! | `ack_trace` | the events that the controller of one flow receives, and its outputs, as lines of text |
//! | `ran` | `+ran`: subtracts the delay of HARQ and RLC retransmissions from the delays that a scheme sees |

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod controller;
pub mod endpoint;
pub mod pacer;
pub mod registry;
pub mod scheme;
pub mod schemes;

mod allegro;
mod bbr;
mod bbr3;
mod cbr;
mod copa;
mod cubic;
mod delivery_rate;
mod ledbat;
mod nr;
mod pcc;
mod reno;
mod vegas;
mod verus;
mod vivace;

// These modules are public only for Airpace's own crates, tests and benches.
#[doc(hidden)]
pub mod ack_trace;
#[doc(hidden)]
pub mod biscay;
#[doc(hidden)]
pub mod filter;
#[doc(hidden)]
pub mod morc;
#[doc(hidden)]
pub mod oracle;
#[doc(hidden)]
pub mod pbe;
#[doc(hidden)]
pub mod ran;
#[doc(hidden)]
pub mod sprout;
#[doc(hidden)]
pub mod window;

pub use airpace_core::{Bytes, Ecn, FlowId, Rate, Refused, Rider, Rng, Time};
pub use airpace_radio::RadioReport;

pub use controller::{
    Ack, Arrival, Control, Controller, Inspect, Loss, LossCause, RateSample, Receiver, Rtt, Sees, Sent,
    SentPacket,
};
pub use endpoint::{AckFrame, AckPolicy, Acker, Backlog, Blocked, Ledger, Sender, SenderConfig, Transmit};
pub use pacer::PacerConfig;
pub use registry::DeviceFlows;
pub use scheme::{Ends, Scheme, SchemeError, Setup};
pub use schemes::{SCHEMES, SchemeSpec};
