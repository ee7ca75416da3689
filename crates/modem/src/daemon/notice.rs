//! Messages of the daemon to users.

use std::fmt;
use std::io;

use airpace_diag::session::Missing;
use airpace_diag::{LogCode, kpi, session};

/// A message of the daemon to users.
#[derive(Debug)]
pub enum Notice {
    /// Result of the request for real-time priority and locked memory: success, or the error that prevents it.
    Realtime(io::Result<()>),
    /// The port was opened.
    Opened,
    /// The port cannot be opened now. The daemon tries again, without further messages.
    NotOpened(io::Error),
    /// The modem streams the subscription: its model and software, if the modem reports them.
    Streaming(Option<String>),
    /// The modem will not send packets with this code, for the given reason.
    Missing(LogCode, Missing),
    /// The port was lost, which causes a gap in the readings. The daemon opens it again, without further messages.
    Lost(io::Error),
    /// The session failed. The daemon tries again.
    Failed(session::Trouble),
    /// The first packet of a kind that cannot be parsed.
    Trouble(kpi::Trouble),
    /// The guard process does not run. If the daemon is killed, the modem keeps its current state.
    Unguarded(io::Error),
    /// The modem did not respond to the requests that restore it.
    NotRestored,
    /// The daemon cannot continue.
    Broken(String),
}

impl Notice {
    /// Returns an identifier of this kind of message, for programs.
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

    /// Returns whether this message reports a problem.
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
            Notice::Streaming(None) => f.write_str("the modem sends the subscribed packets"),
            Notice::Streaming(Some(name)) => write!(f, "the modem sends the subscribed packets: {name}"),
            Notice::Missing(code, why) => write!(f, "the modem will not send {code}: {why}"),
            Notice::Lost(error) => write!(f, "port lost: {error}; a gap; opening it again"),
            Notice::Failed(trouble) => write!(f, "{trouble}; trying again"),
            Notice::Trouble(trouble) => write!(f, "{trouble}; counted from here on"),
            Notice::Unguarded(error) => {
                write!(f, "no guard ({error}): if killed, the modem keeps the masks that it has now")
            }
            Notice::NotRestored => f.write_str("the modem did not answer when its settings were restored"),
            Notice::Broken(why) => f.write_str(why),
        }
    }
}
