#![doc = include_str!("../README.md")]
//! # Data flow
//!
//! ```text
//! port or file ──bytes──▶ Deframer ──bodies──▶ LogPacket { radio, code, stamp, payload }
//!                                                   │ layout table of its code and version
//!                                                   ├──all fields──▶ Decoded: nested values
//!                                                   └──some fields─▶ Pick: rows of cells
//! ```
//!
//! Modules without a link are not listed in the documentation.
//!
//! | module | subject |
//! | --- | --- |
//! | [`frame`] | framing: start and end of a message, checksum |
//! | `packet` | log packets among the messages, and the SIM whose modem sent them |
//! | `stamp` | time stamps of the modem's clock |
//! | [`layout`] | grammar of the layout tables, and the two ways to read a packet with a table |
//! | [`log`] | layout tables, one file per log code |
//! | [`kpi`] | metrics (KPIs) that can be selected by name, and their position in the packets |
//! | [`grant`] | the phone's uplink and downlink grants, each with its subframe |
//! | [`bandwidth`] | granted bandwidth, determined by two methods |
//! | `mac` | MAC headers and control elements that some packets carry |
//! | `rlc` | RLC headers that some packets carry |
//! | `rrc` | types of RRC messages |
//! | [`export`] | packets as JSON, tables, captures and text |
//! | [`source`] | formats of log files, and incremental reading of them |
//! | [`tally`] | counts of the contents of a log |
//! | `command` | requests to a modem and its answers |
//! | `mask` | log masks: the log codes that are switched on |
//! | `control` | buffering of packets in the modem, and draining of that buffer |
//! | `modem` | emulated modem for tests, at the other end of the port |
//! | `compose` | log packets that a modem would send, made from radio reports |
//! | `session` | the host that requests log codes over the port, and restores the modem's masks at the end |
//! | `char_device` | blocks and ioctls of `/dev/diag`, which wraps the stream |

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod bandwidth;
pub mod export;
pub mod frame;
pub mod grant;
pub mod kpi;
pub mod layout;
pub mod log;
pub mod source;
pub mod tally;

mod packet;
mod stamp;

// For Airpace's own crates, tests and benches.
#[doc(hidden)]
pub mod char_device;
#[doc(hidden)]
pub mod command;
#[doc(hidden)]
pub mod compose;
#[doc(hidden)]
pub mod control;
#[doc(hidden)]
pub mod mac;
#[doc(hidden)]
pub mod mask;
#[doc(hidden)]
pub mod modem;
#[doc(hidden)]
pub mod rlc;
#[doc(hidden)]
pub mod rrc;
#[doc(hidden)]
pub mod session;

pub use airpace_radio::RadioReport;

pub use bandwidth::Bandwidth;
pub use frame::{Deframer, Fault, Framed, Framing};
pub use grant::{Grant, GrantReport, Grants};
pub use kpi::{Extractor, KPIS, Kpi, KpiError, Sample, Subscription};
pub use layout::{Decoded, Record, Unreadable, Value};
pub use packet::{LogCode, LogPacket, Message, Radio};
pub use source::{Format, Item, Place, Reader};
pub use stamp::Stamp;

// For Airpace's own crates, tests and benches.
#[doc(hidden)]
pub use control::{Buffering, Control, Drain, Evenness};
#[doc(hidden)]
pub use mask::Mask;
#[doc(hidden)]
pub use modem::{Modem, ModemOptions, ModemStats};
#[doc(hidden)]
pub use session::{Line, Session, SessionOptions, State, Trouble};
