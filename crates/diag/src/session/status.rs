//! Status of a session: state, identity of the modem, reason of a failure, and codes that the modem cannot send.

use std::fmt;

use crate::command::{Build, Refusal, Release};

/// State of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Setting up. Packets for an earlier host may still arrive.
    Opening(Step),
    /// The modem sends the requested codes.
    Streaming,
    /// Restoring the modem.
    Leaving,
    /// The modem's original masks are restored.
    Closed,
    /// The session has failed.
    Failed(Trouble),
}

/// Step of a session: the request that it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Get the modem's identity.
    Version,
    /// Get the name of the modem's software.
    Build,
    /// Get the version of the modem's protocol.
    Protocol,
    /// Switch to plain framing.
    Framing,
    /// Get the number of items of each equipment.
    Items,
    /// Read the current log mask of an equipment.
    Read(u8),
    /// Read the current event mask.
    ReadEvents,
    /// Switch events off.
    EventsOff,
    /// Switch log packets off.
    LogsOff,
    /// Set the log mask of an equipment.
    Set(u8),
    /// Set the buffering in-band. The number is the index of the control packet in the list of settings.
    Buffer(u8),
    /// Restore the original masks.
    Restore,
}

/// Reason why a session failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// No bytes came from the port.
    Silent,
    /// Messages arrived, but no answer to this step.
    Unanswered(Step),
    /// The modem refused a necessary request.
    Refused(Step, Refusal),
}

/// Reason why a requested code cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The modem has no such equipment.
    Equipment,
    /// The modem has only this many items in this equipment.
    Items(u32),
    /// The modem refused the mask with this status.
    Status(u32),
    /// The modem refused the mask.
    Refused(Refusal),
}

/// The identity that a modem reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Dates of the modem's software.
    pub release: Option<Release>,
    /// Names of the modem's software.
    pub build: Option<Build>,
    /// Version of the modem's diagnostic protocol.
    pub protocol: Option<u16>,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Version => f.write_str("who it is"),
            Step::Build => f.write_str("what its software is called"),
            Step::Protocol => f.write_str("which protocol it speaks"),
            Step::Framing => f.write_str("for plain framing"),
            Step::Items => f.write_str("how many log items it has"),
            Step::Read(equipment) => write!(f, "for the mask of equipment {equipment:#X}"),
            Step::ReadEvents => f.write_str("for the mask of events"),
            Step::EventsOff => f.write_str("for no events"),
            Step::LogsOff => f.write_str("for no log packets"),
            Step::Set(equipment) => write!(f, "for log packets of equipment {equipment:#X}"),
            Step::Buffer(_) => f.write_str("to buffer otherwise"),
            Step::Restore => f.write_str("to be as it was"),
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Silent => f.write_str(
                "the port does not answer: is it the modem's DM port (often the first of several ttyUSB), \
                 and is no other program using it?",
            ),
            Trouble::Unanswered(step) => write!(
                f,
                "the port sends, but does not answer (asked {step}): is another program using it? Unplugging the modem \
                 resets the port"
            ),
            Trouble::Refused(step, refusal) => write!(
                f,
                "the modem refuses (asked {step}): {refusal}. Its diagnostic interface may be locked by its maker"
            ),
        }
    }
}

impl std::error::Error for Trouble {}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::Equipment => f.write_str("the modem has no such equipment"),
            Missing::Items(items) => write!(f, "the modem has only {items} items of its equipment"),
            Missing::Status(status) => write!(f, "the modem did not take the mask (status {status})"),
            Missing::Refused(refusal) => write!(f, "the modem refused the mask: {refusal}"),
        }
    }
}
