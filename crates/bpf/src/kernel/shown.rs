//! How each flow of a pinned scheme is.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use airpace_core::{Bytes, Rate};

use super::{BISCAY, MORC, PBE, SCHEMES};
use crate::layout::ShownWords;
use crate::twin::NONE;

/// One flow of a scheme, or one download that the relay knows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shown {
    /// The number of its network namespace, as `/proc/PID/ns/net` has it.
    pub netns: u32,
    /// Its end on this machine.
    pub local: SocketAddr,
    /// Its other end.
    pub remote: SocketAddr,
    /// What the scheme does with it.
    pub state: &'static str,
    /// Payload as the kernel paces it; of a download, the bandwidth of the device that bounds it. `None` if there is none.
    pub rate: Option<Rate>,
    /// Payload that may be in flight; of a download, the window that is advertised at most. `None` if there is no bound.
    pub window: Option<Bytes>,
    /// The least round-trip time, if one is known.
    pub rtt: Option<Duration>,
}

/// The states of a scheme, as its programs number them.
fn states(scheme: &str) -> &'static [&'static str] {
    match scheme {
        BISCAY => &["STARTUP", "BISCAY", "FALLBACK"],
        MORC => &["SlowStart", "RateAdjusting", "Drain"],
        PBE => &["start", "wireless", "drain", "Internet", "fallback", "check", "held"],
        _ => &["free", "bounded"],
    }
}

/// Reads the file that goes through a scheme's flows. Flows that have changed to another scheme are left out.
///
/// # Errors
/// If it cannot be read.
pub(super) fn read(path: &Path, scheme: &str) -> io::Result<Vec<Shown>> {
    let bytes = fs::read(path)?;
    let flows = bytes.chunks_exact(size_of::<ShownWords>()).map(words);
    let mut shown: Vec<Shown> = flows.filter_map(|words| flow(&words, scheme)).collect();
    shown.sort();
    Ok(shown)
}

/// What a program has written of one flow.
fn words(bytes: &[u8]) -> ShownWords {
    let mut rest = Rest(bytes);
    ShownWords {
        local: rest.take(),
        remote: rest.take(),
        scheme: rest.take(),
        netns: u32::from_ne_bytes(rest.take()),
        family: u32::from_ne_bytes(rest.take()),
        local_port: u16::from_ne_bytes(rest.take()),
        remote_port: u16::from_ne_bytes(rest.take()),
        state: u32::from_ne_bytes(rest.take()),
        rate: u64::from_ne_bytes(rest.take()),
        window: u64::from_ne_bytes(rest.take()),
        rtt: u64::from_ne_bytes(rest.take()),
    }
}

/// What was not read yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    /// The next bytes; zeros behind the end.
    fn take<const LENGTH: usize>(&mut self) -> [u8; LENGTH] {
        let (taken, rest) = self.0.split_first_chunk().unwrap_or((&[0; LENGTH], &[]));
        self.0 = rest;
        *taken
    }
}

/// `None` if its socket has another scheme by now.
fn flow(words: &ShownWords, scheme: &str) -> Option<Shown> {
    // The sockets of what the relay bounds choose no scheme of ours, and its rate is that of packets.
    let is_chosen = SCHEMES.contains(&scheme);
    if is_chosen && text(&words.scheme) != scheme.as_bytes() {
        return None;
    }
    let known = |word: u64| (word != NONE).then_some(word);
    let bits = |rate: u64| Rate::from_bps(if is_chosen { rate.saturating_mul(8) } else { rate });
    let end = |address, port| SocketAddr::new(ip(words.family, address), port);
    Some(Shown {
        netns: words.netns,
        local: end(words.local, words.local_port),
        remote: end(words.remote, words.remote_port),
        state: states(scheme).get(words.state as usize).copied().unwrap_or("unknown"),
        rate: known(words.rate).map(bits),
        window: known(words.window).map(Bytes),
        rtt: known(words.rtt).map(Duration::from_nanos),
    })
}

/// What comes before the first zero.
fn text(name: &[u8; 16]) -> &[u8] {
    name.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// `AF_INET6`.
///
/// Source: Linux include/linux/socket.h
const INET6: u32 = 10;

fn ip(family: u32, address: [u8; 16]) -> IpAddr {
    let [a, b, c, d, ..] = address;
    if family == INET6 { Ipv6Addr::from(address).to_canonical() } else { Ipv4Addr::new(a, b, c, d).into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(family: u32, state: u32) -> Vec<u8> {
        let mut bytes = vec![0; 16 * 3];
        bytes[..4].copy_from_slice(&[10, 0, 0, 1]);
        bytes[16..20].copy_from_slice(&[10, 0, 0, 2]);
        bytes[32..36].copy_from_slice(b"morc");
        for word in [77, family] {
            bytes.extend(word.to_ne_bytes());
        }
        for port in [40_000_u16, 443] {
            bytes.extend(port.to_ne_bytes());
        }
        bytes.extend(state.to_ne_bytes());
        for word in [1_250_000, 28_960, NONE] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn a_flow_is_read_as_it_was_written() {
        let shown = flow(&words(&line(2, 1)), MORC).unwrap();
        assert_eq!(
            (shown.local, shown.remote),
            ("10.0.0.1:40000".parse().unwrap(), "10.0.0.2:443".parse().unwrap())
        );
        assert_eq!((shown.netns, shown.state), (77, "RateAdjusting"));
        assert_eq!(shown.rate, Some(Rate::from_mbps(10.0)));
        assert_eq!((shown.window, shown.rtt), (Some(Bytes(28_960)), None));
        assert!(flow(&words(&line(INET6, 9)), MORC).unwrap().remote.is_ipv6());
        assert_eq!(flow(&words(&line(2, 1)), BISCAY), None, "it has changed to morc");
    }
}
