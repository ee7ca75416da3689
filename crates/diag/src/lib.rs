//! Decoder for Qualcomm diagnostic (DIAG) logs: bytes of a phone modem's diagnostic port in, log packets out.
//!
//! ```text
//! port or file ──bytes──▶ Deframer ──bodies──▶ LogPacket { radio, code, stamp, payload }
//!                                                   │ layout table of its code and version
//!                                                   ├──all fields──▶ Decoded: nested values
//!                                                   └──some fields─▶ Pick: rows of cells
//! ```
//!
//! | module | subject |
//! | --- | --- |
//! | [`frame`] | framing: start and end of a message, checksum |
//! | [`packet`] | log packets among the messages, and the SIM whose modem sent them |
//! | [`stamp`] | time stamps of the modem's clock |
//! | [`layout`] | grammar of the layout tables, and the two ways to read a packet with a table |
//! | [`log`] | layout tables, one file per log code |
//! | [`kpi`] | metrics (KPIs) that can be selected by name, and their position in the packets |
//! | [`grant`] | the phone's uplink and downlink grants, each with its subframe |
//! | [`bandwidth`] | granted bandwidth, determined by two methods |
//! | [`mac`] | MAC headers and control elements that some packets carry |
//! | [`rlc`] | RLC headers that some packets carry |
//! | [`rrc`] | types of RRC messages |
//! | [`export`] | packets as JSON, tables, captures and text |
//! | [`source`] | formats of log files, and incremental reading of them |
//! | [`command`] | requests to a modem and its answers |
//! | [`mask`] | log masks: the log codes that are switched on |
//! | [`control`] | buffering of packets in the modem, and draining of that buffer |
//! | [`modem`] | emulated modem for tests: the modem's end of the port |
//! | [`compose`] | log packets that a modem would send, made from radio reports |
//! | [`session`] | the host's end of the port: requests log codes, restores the modem's masks at the end |
//! | [`char_device`] | blocks and ioctls of `/dev/diag`, which wraps the stream |

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod bandwidth;
pub mod char_device;
pub mod command;
pub mod compose;
pub mod control;
pub mod export;
pub mod frame;
pub mod grant;
pub mod kpi;
pub mod layout;
pub mod log;
pub mod mac;
pub mod mask;
pub mod modem;
pub mod packet;
pub mod rlc;
pub mod rrc;
pub mod session;
pub mod source;
pub mod stamp;

pub use control::{Buffering, Control, Drain, Evenness};
pub use frame::{Deframer, Fault, Framed, Framing};
pub use mask::Mask;
pub use modem::{Modem, ModemOptions, ModemStats};
pub use packet::{LogCode, LogPacket, Message, Radio};
pub use session::{Line, Session, SessionOptions, State, Trouble};
pub use source::Format;
pub use stamp::Stamp;
