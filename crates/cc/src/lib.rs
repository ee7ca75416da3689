//! Congestion control as pure state machines: they receive events and compute the congestion window and the pacing
//! rate.
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
//! | [`registry`] | what a device knows about its flows |
//! | [`pacer`], [`delivery_rate`], [`filter`], [`window`] | parts that endpoints and controllers share |
//! | [`pcc`] | monitor intervals, utilities and trials: the common base of [`allegro`], [`vivace`] and [`morc`] |
//! | [`ack_trace`] | the events that the controller of one flow receives, and its outputs, as lines of text |
//! | [`ran`] | `+ran`: subtracts the delay of HARQ and RLC retransmissions from the delays that a scheme sees |
//! | one module per scheme | [`reno`], [`cubic`], [`bbr`], [`bbr3`], [`vegas`], [`copa`], [`ledbat`], [`pbe`], [`allegro`], [`vivace`], [`morc`], [`sprout`], [`verus`], [`oracle`], [`cbr`], [`biscay`] |

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod ack_trace;
pub mod allegro;
pub mod bbr;
pub mod bbr3;
pub mod biscay;
pub mod cbr;
pub mod controller;
pub mod copa;
pub mod cubic;
pub mod delivery_rate;
pub mod endpoint;
pub mod filter;
pub mod ledbat;
pub mod morc;
pub mod oracle;
pub mod pacer;
pub mod pbe;
pub mod pcc;
pub mod ran;
pub mod registry;
pub mod reno;
pub mod scheme;
pub mod schemes;
pub mod sprout;
pub mod vegas;
pub mod verus;
pub mod vivace;
pub mod window;

pub use controller::{Ack, Control, Controller, Inspect, Loss, Receiver, Sees, Sent};
pub use scheme::{Ends, Scheme, SchemeError, Setup};
pub use schemes::SchemeSpec;
