//! The socket on which programs ask the daemon for the board, for the list of KPIs, and for subscriptions.
//!
//! `control` in the daemon's folder is a Unix stream socket; one line is a request, one line its answer:
//!
//! | request | answer |
//! | --- | --- |
//! | `board` | `ok`, and with it the board's descriptor |
//! | `list` | `ok N`, then N lines `NAME⇥UNIT⇥ABOUT` |
//! | `subscribe NAME` | `ok SLOT`: the KPI's row on the board |
//! | `unsubscribe SLOT` | `ok` |
//! | anything that cannot be done | `error ERRNO TEXT` |
//!
//! A subscription is a lease: it ends by `unsubscribe`, or with the connection, however the connection ends. Leases are
//! counted: two subscriptions to a KPI end with two `unsubscribe`.
//!
//! No process and no user can keep others out. There may be [`MOST_PROGRAMS`] connections. A process may have at most
//! [`MOST_OF_A_PROCESS`] of them, with [`MOST_LEASES`] subscriptions together. A user may have at most
//! [`MOST_OF_A_USER`] connections, and subscriptions to three eighths of the board's rows. The user's two bounds do not
//! hold for root and the daemon's own user, and [`RESERVED_PROGRAMS`] connections and a quarter of the rows are
//! reserved for these two. Other users who act together can fill their shared part, but cannot take anything from these
//! two. Root and the daemon's own user are answered first, the others user by user in turn. A connection ends if it has
//! asked for neither the board nor a KPI within [`MOST_IDLE`], or has left a request or an answer unfinished for that
//! long. All requests together take at most a tenth of a core.
//!
//! `printf 'list\n' | socat - UNIX:/run/airpace/control` shows the KPIs.
//!
//! Chosen: lines of text, because requests are rare and can then be tried by hand. The data path is the board.

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
pub use limits::{
    MOST_IDLE, MOST_LEASES, MOST_OF_A_PROCESS, MOST_OF_A_USER, MOST_PROGRAMS, RESERVED_PROGRAMS,
};
pub use server::{Host, Server};

/// The socket, in the daemon's folder.
pub const SOCKET_NAME: &str = "control";
/// Longest request, including its line end.
pub const MOST_REQUEST_BYTES: usize = 256;

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

/// A KPI that the daemon offers. No field has tabs or line breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KpiInfo {
    /// The name to subscribe to.
    pub name: String,
    /// Unit of its values.
    pub unit: String,
    /// Its meaning, in a few words.
    pub about: String,
}

/// What a program asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// Asks for the board's descriptor.
    Board,
    /// Asks for all KPIs.
    List,
    /// Asks for a lease on a KPI.
    Subscribe(&'a str),
    /// Ends a lease.
    Unsubscribe(u32),
}

/// What the daemon answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// `ok`, with a number if the request is answered with one.
    Done(Option<u32>),
    /// `error ERRNO TEXT`.
    Refused(Refusal),
}

/// Why the daemon refuses a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason as a POSIX number.
    pub errno: Errno,
    /// The reason in words, on one line.
    pub text: String,
}

impl Refusal {
    /// A refusal.
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

/// The line, without its line end.
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

/// The line, without its line end.
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

/// Reads a line of the list, without its line end. An error means that the line is not one.
impl FromStr for KpiInfo {
    type Err = ();

    fn from_str(line: &str) -> Result<KpiInfo, ()> {
        let mut fields = line.splitn(3, '\t').map(str::to_owned);
        let mut next = || fields.next().ok_or(());
        Ok(KpiInfo { name: next()?, unit: next()?, about: next()? })
    }
}

/// The line, without its line end.
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
