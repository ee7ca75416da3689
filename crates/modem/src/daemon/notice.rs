//! Messages of the daemon to people.

use std::fmt;
use std::io;

use airpace_diag::session::Missing;
use airpace_diag::{LogCode, kpi, session};

/// A message of the daemon to people.
#[derive(Debug)]
pub enum Notice {
    /// The data thread runs before all other threads, or the reason why it does not.
    Realtime(io::Result<()>),
    /// The port was opened.
    Opened,
    /// The port cannot be opened. The daemon tries again, without further messages.
    NotOpened(io::Error),
    /// The modem sends what is wanted: its model and software, as far as the modem tells them.
    Streaming(Option<String>),
    /// This code will not come, and why.
    Missing(LogCode, Missing),
    /// The port was lost: a gap. The daemon opens it again, without further messages.
    Lost(io::Error),
    /// The session failed. The daemon tries again.
    Failed(session::Trouble),
    /// A kind of packet that cannot be read, when it is first met.
    Trouble(kpi::Trouble),
    /// The guard does not run. A daemon that is killed leaves the modem as it is now.
    Unguarded(io::Error),
    /// The modem did not answer when it was to be restored.
    NotRestored,
    /// The daemon cannot go on.
    Broken(String),
}

impl Notice {
    /// A word for this message, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Notice::Realtime(_) => "realtime",
            Notice::Opened => "opened",
            Notice::NotOpened(_) => "not-opened",
            Notice::Streaming(_) => "streaming",
            Notice::Missing(..) => "missing",
            Notice::Lost(_) => "lost",
            Notice::Failed(_) => "failed",
            Notice::Trouble(_) => "trouble",
            Notice::Unguarded(_) => "unguarded",
            Notice::NotRestored => "not-restored",
            Notice::Broken(_) => "broken",
        }
    }

    /// Whether this is bad news.
    pub fn is_bad(&self) -> bool {
        !matches!(self, Notice::Realtime(Ok(())) | Notice::Opened | Notice::Streaming(_))
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Realtime(Ok(())) => {
                f.write_str("real time: SCHED_FIFO for the data thread, memory locked")
            }
            Notice::Realtime(Err(error)) => write!(
                f,
                "no real-time priority or locked memory ({error}): under load KPIs may be late; run with CAP_SYS_NICE and \
                 CAP_IPC_LOCK"
            ),
            Notice::Opened => f.write_str("port opened"),
            Notice::NotOpened(error) => write!(f, "cannot open the port yet: {error}; trying again"),
            Notice::Streaming(None) => f.write_str("the modem sends what is subscribed to"),
            Notice::Streaming(Some(name)) => write!(f, "the modem sends what is subscribed to: {name}"),
            Notice::Missing(code, why) => write!(f, "{code} will not come: {why}"),
            Notice::Lost(error) => write!(f, "port lost: {error}; a gap; opening it again"),
            Notice::Failed(trouble) => write!(f, "{trouble}; trying again"),
            Notice::Trouble(trouble) => write!(f, "{trouble}; counted from here on"),
            Notice::Unguarded(error) => {
                write!(f, "no guard ({error}): if killed, the modem keeps the masks that it has now")
            }
            Notice::NotRestored => f.write_str("the modem did not answer when it was given back"),
            Notice::Broken(why) => f.write_str(why),
        }
    }
}
