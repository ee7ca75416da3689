//! The modem's own words: bytes of a Qualcomm diagnostic port in, log packets out.
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
//! | [`mac`] | MAC headers and control elements that some packets carry |
//! | [`source`] | forms of log files |

pub mod frame;
pub mod layout;
pub mod log;
pub mod mac;
pub mod packet;
pub mod source;
pub mod stamp;

pub use frame::{Deframer, Fault, Framed, Framing};
pub use packet::{LogCode, LogPacket, Message, Radio};
pub use source::Format;
pub use stamp::Stamp;
