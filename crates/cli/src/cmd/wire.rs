//! Shared part of `airpace send` and `airpace recv`: addresses, keys, and the display of progress.

pub mod radio;

use std::io::{IsTerminal, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use airpace_core::Rate;
use airpace_core::plain::plain;
use airpace_rt::clock;
use airpace_transfer::progress::{Progress, Stage};
use airpace_transfer::watch::{Speed, capacity};
use airpace_transfer::{code, keys};
use airpace_transport::both;
use airpace_transport::key::Key;
use anyhow::{Context, anyhow, bail};
use indicatif::{DecimalBytes, ProgressBar};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use serde_json::{Value, json};

use crate::explain::failed;
use crate::terminal;

pub use airpace_transfer::watch::States;
pub use airpace_transfer::wire::{PORT, Role, Wire, call, listen, turn};

/// Environment variable that may contain a key.
pub const KEY_VARIABLE: &str = "AIRPACE_KEY";

/// A transport of Airpace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Transport {
    /// QUIC: encrypted, passes middleboxes, survives a change of address; feedback in datagrams.
    #[default]
    Quic,
    /// The papers' prototype over UDP: encrypted packets, feedback in every ACK.
    Udp,
}

impl Transport {
    /// The transport's name.
    pub fn name(self) -> &'static str {
        match self {
            Transport::Quic => "quic",
            Transport::Udp => "udp",
        }
    }
}

impl From<Transport> for both::Transport {
    fn from(transport: Transport) -> both::Transport {
        match transport {
            Transport::Quic => both::Transport::Quic,
            Transport::Udp => both::Transport::Udp,
        }
    }
}

/// Parses an address to listen on: `ADDR:PORT`, `:PORT`, a port or an address.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let any = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let port = |text: &str| text.parse().ok().map(|port| SocketAddr::new(any, port));
    let address = |text: &str| Some(SocketAddr::new(text.trim_matches(['[', ']']).parse().ok()?, PORT));
    let whole = text.parse().ok().or_else(|| port(text.strip_prefix(':').unwrap_or(text)));
    whole.or_else(|| address(text)).ok_or_else(|| {
        "give ADDR:PORT, :PORT or ADDR, such as 192.0.2.1:47474, :5000 or [::1]; names of hosts are not looked up here"
            .to_owned()
    })
}

/// Host and port of `HOST[:PORT]`.
pub fn host_and_port(text: &str) -> Result<(String, u16), String> {
    let wrong = || "give HOST or HOST:PORT; an IPv6 address with a port is [2001:db8::1]:47474".to_owned();
    airpace_transfer::wire::host_and_port(text).ok_or_else(wrong)
}

/// The address of a host.
pub fn look_up(host: &str, port: u16) -> anyhow::Result<SocketAddr> {
    let found = (host, port).to_socket_addrs();
    let found = found.map_err(|error| {
        failed(format_args!("cannot find the host `{host}`"), &error, "give its name in full, or its address")
    })?;
    found.into_iter().next().ok_or_else(|| anyhow!("`{host}` has no address"))
}

/// The key of a sender: from a file, from the environment, or typed by the user. Texts name `airpace recv` plainly, because
/// it runs on the other machine.
pub fn key_to_send(file: Option<&Path>, out: &mut dyn Write) -> anyhow::Result<Key> {
    if let Some(path) = file {
        return keys::read(path).map_err(|why| anyhow!("{why}"));
    }
    if let Some(text) = std::env::var_os(KEY_VARIABLE) {
        let text = text.to_str().unwrap_or_default();
        return code::parse(text).map_err(|error| anyhow!("${KEY_VARIABLE}: {error}"));
    }
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        bail!(
            "the key of the receiver is needed: put what `airpace recv` printed into a file, type chmod 600 FILE, and \
             give --key FILE; or set {KEY_VARIABLE}"
        );
    }
    out.flush()?;
    loop {
        match code::parse(&typed_unseen("key that `airpace recv` printed: ")?) {
            Ok(key) => return Ok(key),
            Err(code::CodeError::Length(0)) => {
                bail!("no key was typed; `airpace recv` prints it on the other machine")
            }
            Err(error) => terminal::say(error),
        }
    }
}

/// Reads a line from the terminal without echo.
fn typed_unseen(prompt: &str) -> anyhow::Result<String> {
    let stdin = std::io::stdin();
    let before = tcgetattr(&stdin).context("the terminal does not answer questions")?;
    let mut unseen = before.clone();
    unseen.local_modes.remove(LocalModes::ECHO);
    let mut shown = std::io::stderr();
    let _ = write!(shown, "{prompt}");
    tcsetattr(&stdin, OptionalActions::Flush, &unseen).context("the terminal does not answer questions")?;
    let mut line = String::new();
    let read = stdin.read_line(&mut line);
    tcsetattr(&stdin, OptionalActions::Flush, &before)
        .context("the terminal stays without echo; type: reset")?;
    let _ = writeln!(shown);
    read.context("nothing could be read")?;
    Ok(line)
}

/// The key of a receiver, and the path of its file unless the key came from the environment.
pub fn key_to_receive(file: Option<&Path>) -> anyhow::Result<(Key, Option<PathBuf>)> {
    if file.is_none()
        && let Some(text) = std::env::var_os(KEY_VARIABLE)
    {
        let key = code::parse(text.to_str().unwrap_or_default());
        return Ok((key.map_err(|error| anyhow!("${KEY_VARIABLE}: {error}"))?, None));
    }
    let [state, home] = ["XDG_STATE_HOME", "HOME"].map(|name| std::env::var_os(name).map(PathBuf::from));
    let usual = || keys::usual_place(state.as_deref(), home.as_deref());
    let path = file.map(Path::to_owned).or_else(usual);
    let path = path.context("there is no home folder for the key; give --key FILE")?;
    let key = keys::read_or_make(&path).map_err(|why| anyhow!("{why}"))?;
    Ok((key, Some(path)))
}

/// Display of a transfer's progress.
pub struct Watch {
    bar: ProgressBar,
    speed: Speed,
    told: Option<String>,
    ear: radio::Ear,
    changes: radio::Changes,
    is_quiet: bool,
}

impl Watch {
    /// Shows nothing if `is_quiet` is set or if standard error is not a terminal. `ear` is the state of the radio.
    pub fn new(is_quiet: bool, ear: radio::Ear) -> Watch {
        let bar = terminal::wordy_progress(is_quiet);
        let changes = radio::Changes::default();
        Watch { bar, speed: Speed::default(), told: None, ear, changes, is_quiet }
    }

    /// Shows this progress.
    pub fn show(&mut self, progress: &Progress) {
        if let Stage::Waiting(why) = &progress.stage
            && self.told.as_ref() != Some(why)
        {
            self.bar.suspend(|| terminal::say(format_args!("{why}; trying again")));
            self.told = Some(why.clone());
        }
        let heard = self.ear.as_deref();
        let (now, need) = (clock::now(), radio::need(&progress.inspect));
        if !self.is_quiet
            && let Some(change) = heard.and_then(|heard| self.changes.look(heard, now, need))
        {
            self.bar.suspend(|| terminal::say(plain(&change)));
        }
        let tally = &progress.tally;
        let moved = tally.done.saturating_sub(tally.resumed);
        if let Some(bytes) = tally.bytes {
            // Bytes that existed before took no time. Exclude them from the estimate of the remaining time.
            self.bar.set_length(bytes.saturating_sub(tally.resumed).max(1));
        }
        self.bar.set_position(moved);
        let speed = self.speed.at(progress.elapsed, moved);
        let mut words = line(progress, speed);
        if let Some(heard) = heard {
            words = format!("{words}, {}", radio::state(heard, now, need));
        }
        self.bar.set_message(plain(&words).into_owned());
    }

    /// Removes the progress line after the end of the transfer.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// Progress of a transfer, as text.
pub fn line(progress: &Progress, speed: Option<Rate>) -> String {
    let stage = match &progress.stage {
        Stage::Connecting => "connecting".to_owned(),
        Stage::Agreeing => "agreeing".to_owned(),
        Stage::Waiting(_) => "waiting for the next try".to_owned(),
        Stage::Moving if progress.tally.done == 0 && progress.tally.checked > 0 => {
            format!("comparing what is there, {}", DecimalBytes(progress.tally.checked))
        }
        Stage::Moving | Stage::Done => DecimalBytes(progress.tally.done).to_string(),
    };
    let mut parts = vec![stage];
    parts.extend(speed.map(|speed| format!("{:.1} Mbit/s", speed.as_mbps())));
    let millis = |span: Duration| span.as_secs_f64() * 1e3;
    parts.extend(progress.figures.queueing_delay.map(|delay| format!("queue {:.0} ms", millis(delay))));
    parts.extend(capacity(progress).map(|capacity| format!("capacity {:.0}", capacity.as_mbps())));
    parts.extend((!progress.inspect.state.is_empty()).then(|| progress.inspect.state.to_owned()));
    parts.join(", ")
}

/// JSON for programs about a transfer in progress.
pub fn moving(progress: &Progress, ear: &radio::Ear) -> Value {
    let millis = |span: Duration| span.as_secs_f64() * 1e3;
    json!({
        "event": "moving",
        "peer": progress.peer.map(|peer| peer.to_string()),
        "bytes_done": progress.tally.done,
        "bytes": progress.tally.bytes,
        "seconds": progress.elapsed.as_secs_f64(),
        "queueing_delay_ms": progress.figures.queueing_delay.map(millis),
        "rtt_ms": progress.figures.rtt.map(|rtt| millis(rtt.smoothed)),
        "state": progress.inspect.state,
        "capacity_mbps": capacity(progress).map(Rate::as_mbps),
        "radio": ear.as_deref().map(|heard| radio::object(heard, clock::now(), radio::need(&progress.inspect))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_the_forms_that_people_type() {
        let host = |text: &str| host_and_port(text).map(|(host, port)| format!("{host} {port}"));
        assert_eq!(host("phone.local"), Ok("phone.local 47474".to_owned()));
        assert_eq!(host("192.0.2.1:5000"), Ok("192.0.2.1 5000".to_owned()));
        assert_eq!(host("2001:db8::1"), Ok("2001:db8::1 47474".to_owned()));
        assert_eq!(host("[2001:db8::1]"), Ok("2001:db8::1 47474".to_owned()));
        assert_eq!(host("[2001:db8::1]:5000"), Ok("2001:db8::1 5000".to_owned()));
        for wrong in ["", ":5000", "host:", "host:0", "host:70000", "[::1]5", "[::1", "host:x"] {
            assert!(host(wrong).is_err() || wrong == "[::1", "{wrong}");
        }
        let listen = |text: &str| listen_address(text).map(|address| address.to_string());
        assert_eq!(listen(":5000"), Ok("[::]:5000".to_owned()));
        assert_eq!(listen("5000"), Ok("[::]:5000".to_owned()));
        assert_eq!(listen("192.0.2.1"), Ok("192.0.2.1:47474".to_owned()));
        assert_eq!(listen("[::1]"), Ok("[::1]:47474".to_owned()));
        assert_eq!(listen("[::1]:80"), Ok("[::1]:80".to_owned()));
        assert!(listen("localhost").is_err() && listen("").is_err());
    }

    #[test]
    fn progress_is_a_line_of_words() {
        let mut progress = Progress { stage: Stage::Moving, ..Progress::default() };
        progress.tally.done = 12_300_000;
        progress.figures.queueing_delay = Some(Duration::from_millis(7));
        progress.inspect.state = "Wireless";
        assert_eq!(
            line(&progress, Some(Rate::from_mbps(48.25))),
            "12.30 MB, 48.2 Mbit/s, queue 7 ms, Wireless"
        );
        progress.stage = Stage::Waiting("gone".to_owned());
        progress.inspect.state = "";
        progress.figures.queueing_delay = None;
        assert_eq!(line(&progress, None), "waiting for the next try");
    }
}
