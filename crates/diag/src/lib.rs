//! The modem's own log: bytes of a Qualcomm diagnostic port in, log packets out.
//!
//! ```text
//! port or file ──bytes──▶ Deframer ──bodies──▶ LogPacket { radio, code, stamp, payload }
//!                                                   │ the table of its code and version
//!                                                   ├──all of it──▶ Decoded: nested values
//!                                                   └──a few bits──▶ Pick: rows of cells
//! ```
//!
//! | module | what it knows |
//! | --- | --- |
//! | [`frame`] | where a message begins and ends, and whether it came whole |
//! | [`packet`] | log packets among the messages, and which SIM's modem sent them |
//! | [`stamp`] | the modem's clock |
//! | [`layout`] | the grammar of tables, and the two ways to read a packet by one |
//! | [`log`] | the tables, one file per code |
//! | [`kpi`] | what can be followed by name, and where it is in the packets |
//! | [`grant`] | what the network gave the phone, one by one, each in its own subframe |
//! | [`bandwidth`] | how much that is, determined in two ways |
//! | [`mac`] | MAC headers and control elements that some packets carry |
//! | [`rlc`] | RLC headers that some packets carry |
//! | [`rrc`] | types of RRC messages |
//! | [`export`] | packets as JSON, tables, captures and text |
//! | [`source`] | forms of log files, and reading them in pieces |
//! | [`command`] | requests to a modem and its answers |
//! | [`mask`] | which codes are on |
//! | [`control`] | what a modem does with packets before it sends them, and how to make it send |
//! | [`modem`] | the modem's side of a port: a modem to test against |
//! | [`compose`] | log packets made of radio reports: what a modem would say |
//! | [`session`] | the host's side of a port: asks for codes, gives the modem back as it was |
//! | [`char_device`] | the blocks and ioctls of `/dev/diag`, where the stream does not come bare |

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
