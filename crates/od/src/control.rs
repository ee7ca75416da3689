//! Control protocol of the daemon: programs request the shared-memory region, the list of KPIs, and subscriptions.
//!
//! `control` in the daemon's folder is a Unix stream socket. Each request is one line. Each answer is one line, except
//! the answer to `list`:
//!
//! | request | answer |
//! | --- | --- |
//! | `board` | `ok`, together with the descriptor of the shared-memory region |
//! | `list` | `ok N`, then N lines `NAME⇥UNIT⇥ABOUT` |
//! | `subscribe NAME` | `ok SLOT`: index of the KPI's row in the region |
//! | `unsubscribe SLOT` | `ok` |
//! | any request that fails | `error ERRNO TEXT` |
//!
//! A subscription is a lease. A lease ends with `unsubscribe` or when the connection closes for any reason. Leases are
//! counted: two subscriptions to a KPI need two `unsubscribe` requests.
//!
//! Limits ensure that no process and no user can block others. The server accepts [`MAX_PROGRAMS`] connections. A
//! process may have at most [`MAX_PER_PROCESS`] connections, with [`MAX_LEASES`] subscriptions in total. A user may
//! have at most [`MAX_PER_USER`] connections, and subscriptions up to three eighths of the number of rows. The two
//! limits per user do not apply to root and the daemon's own user. [`RESERVED_PROGRAMS`] connections and a quarter of
//! the rows are reserved for root and the daemon's own user. Several other users together can use up the part that they
//! share, but not the reserved part. The server answers root and the daemon's own user first, then the other users in
//! turn. The server closes a connection that has requested neither the region nor a KPI within [`MAX_IDLE`], or that
//! has left a request or an answer unfinished for this time. All requests together use at most a tenth of a core.
//!
//! `printf 'list\n' | socat - UNIX:/run/airpace/control` prints the list of KPIs.
//!
//! Chosen: lines of text, because requests are rare, and a person can type text by hand. Readings go through shared
//! memory.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use rustix::io::Errno;

use crate::error::Error;

mod client;
mod folder;
mod limits;
mod server;

pub use client::Client;
pub use limits::{MAX_IDLE, MAX_LEASES, MAX_PER_PROCESS, MAX_PER_USER, MAX_PROGRAMS, RESERVED_PROGRAMS};
pub use server::{Host, Server};

/// Name of the control socket in the daemon's folder.
pub const SOCKET_NAME: &str = "control";
/// Maximum length of a request, including its line end (bytes).
pub const MAX_REQUEST_BYTES: usize = 256;

/// The daemon's folder: `$OD_DIR`; otherwise `/run/airpace` for root and `$XDG_RUNTIME_DIR/airpace` for other users.
///
/// # Errors
/// [`Error::NoFolder`] for users other than root without `XDG_RUNTIME_DIR`.
pub fn default_dir() -> Result<PathBuf, Error> {
    let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    match folder("OD_DIR") {
        Some(dir) => Ok(dir),
        None if rustix::process::geteuid().is_root() => Ok(PathBuf::from("/run/airpace")),
        None => Ok(folder("XDG_RUNTIME_DIR").ok_or(Error::NoFolder)?.join("airpace")),
    }
}

/// A KPI that the daemon offers. No field contains tabs or line breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KpiInfo {
    /// The name to subscribe to.
    pub name: String,
    /// Unit of the KPI's values.
    pub unit: String,
    /// Meaning of the KPI, in a few words.
    pub about: String,
}

/// A request of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// Requests the descriptor of the shared-memory region.
    Board,
    /// Requests the list of all KPIs.
    List,
    /// Requests a lease on the KPI with this name.
    Subscribe(&'a str),
    /// Ends a lease on the KPI in this row.
    Unsubscribe(u32),
}

/// An answer of the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// `ok`, followed by a number if the request returns a number.
    Done(Option<u32>),
    /// `error ERRNO TEXT`.
    Refused(Refusal),
}

/// Reason for refusing a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason as a POSIX number.
    pub errno: Errno,
    /// The reason in words, on one line.
    pub text: String,
}

impl Refusal {
    /// Creates a refusal.
    pub fn new(errno: Errno, text: impl Into<String>) -> Refusal {
        Refusal { errno, text: text.into() }
    }
}

/// A line that is not a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRequest;

impl<'a> Request<'a> {
    /// Reads a line, without its line end.
    ///
    /// # Errors
    /// [`NoRequest`] if the line is not a request.
    pub fn parse(line: &'a str) -> Result<Request<'a>, NoRequest> {
        match line.split_once(' ') {
            None if line == "board" => Ok(Request::Board),
            None if line == "list" => Ok(Request::List),
            Some(("subscribe", name)) if is_word(name) => Ok(Request::Subscribe(name)),
            Some(("unsubscribe", slot)) => slot.parse().map(Request::Unsubscribe).map_err(|_| NoRequest),
            _ => Err(NoRequest),
        }
    }
}

/// Writes the request as a line, without its line end.
impl fmt::Display for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Request::Board => f.write_str("board"),
            Request::List => f.write_str("list"),
            Request::Subscribe(name) => write!(f, "subscribe {name}"),
            Request::Unsubscribe(slot) => write!(f, "unsubscribe {slot}"),
        }
    }
}

/// Whether a name can be sent in a request.
fn is_word(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Reads a line, without its line end. An error means that the line is not an answer.
impl FromStr for Answer {
    type Err = ();

    fn from_str(line: &str) -> Result<Answer, ()> {
        let (word, rest) = line.split_once(' ').map_or((line, None), |(word, rest)| (word, Some(rest)));
        match (word, rest) {
            ("ok", None) => Ok(Answer::Done(None)),
            ("ok", Some(number)) => Ok(Answer::Done(Some(number.parse().map_err(|_| ())?))),
            ("error", Some(rest)) => {
                let (errno, text) = rest.split_once(' ').ok_or(())?;
                let errno = errno.parse().ok().filter(|errno| (1..4_096).contains(errno)).ok_or(())?;
                Ok(Answer::Refused(Refusal::new(Errno::from_raw_os_error(errno), text)))
            }
            _ => Err(()),
        }
    }
}

/// Writes the answer as a line, without its line end.
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Done(None) => f.write_str("ok"),
            Answer::Done(Some(number)) => write!(f, "ok {number}"),
            Answer::Refused(Refusal { errno, text }) => {
                write!(f, "error {} {}", errno.raw_os_error(), text.replace(['\n', '\r'], " "))
            }
        }
    }
}

/// Parses a line of the list, without its line end. An error means that the line is not a list entry.
impl FromStr for KpiInfo {
    type Err = ();

    fn from_str(line: &str) -> Result<KpiInfo, ()> {
        let mut fields = line.splitn(3, '\t').map(str::to_owned);
        let mut next = || fields.next().ok_or(());
        Ok(KpiInfo { name: next()?, unit: next()?, about: next()? })
    }
}

/// Writes the list entry as a line, without its line end.
impl fmt::Display for KpiInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\t{}\t{}", self.name, self.unit, self.about)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn requests_and_answers_read_as_they_are_written() {
        for line in ["board", "list", "subscribe lte.rsrp@2", "unsubscribe 17"] {
            assert_eq!(Request::parse(line).expect(line).to_string(), line);
        }
        for line in ["", "boards", "board ", "subscribe", "subscribe a b", "subscribe a\tb", "unsubscribe -1"]
        {
            assert_eq!(Request::parse(line), Err(NoRequest), "{line:?}");
        }
        for line in ["ok", "ok 17", "error 2 there is no KPI `lte.rsrq2`; near: lte.rsrq"] {
            assert_eq!(line.parse::<Answer>().expect(line).to_string(), line);
        }
        for line in ["", "okay", "ok x", "error", "error 2", "error 0 fine", "error 99999 far"] {
            assert_eq!(line.parse::<Answer>(), Err(()), "{line:?}");
        }
        let refused = Answer::Refused(Refusal::new(Errno::INVAL, "two\nlines"));
        assert_eq!(refused.to_string(), "error 22 two lines", "an answer is one line, whatever its text");
    }

    proptest! {
        #[test]
        fn no_line_upsets_the_grammar(line in "\\PC{0,40}") {
            let _ = Request::parse(&line).map(|request| request.to_string());
            let _ = line.parse::<Answer>().map(|answer| answer.to_string());
            let _ = line.parse::<KpiInfo>().map(|info| info.to_string());
        }
    }
}
