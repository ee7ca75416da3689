//! State of each flow of a pinned scheme.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use airpace_core::{Bytes, Rate};

use super::{BISCAY, MORC, PBE, SCHEMES};
use crate::layout::ShownWords;
use crate::twin::NONE;

/// One flow of a scheme, or one download of the relay.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowStatus {
    /// Inode number of the flow's network namespace, as in `/proc/PID/ns/net`.
    pub netns: u32,
    /// The flow's address and port on this machine.
    pub local: SocketAddr,
    /// The peer's address and port.
    pub remote: SocketAddr,
    /// The scheme's state for this flow.
    pub state: &'static str,
    /// Pacing rate of the payload; for a download, the bandwidth that limits it. `None` if there is no rate.
    pub rate: Option<Rate>,
    /// Congestion window in payload bytes; for a download, the maximum window that is advertised. `None` if the window
    /// is not limited.
    pub window: Option<Bytes>,
    /// The minimum round-trip time, if known.
    pub rtt: Option<Duration>,
}

/// The names of a scheme's states, indexed by the programs' numbers.
fn states(scheme: &str) -> &'static [&'static str] {
    match scheme {
        BISCAY => &["STARTUP", "BISCAY", "FALLBACK"],
        MORC => &["SlowStart", "RateAdjusting", "Drain"],
        PBE => &["start", "wireless", "drain", "Internet", "fallback", "check", "held"],
        _ => &["free", "bounded"],
    }
}

/// Reads a scheme's flows from its iterator file. Sockets that have changed to another scheme are omitted.
///
/// # Errors
/// The file cannot be read.
pub(super) fn read(path: &Path, scheme: &str) -> io::Result<Vec<FlowStatus>> {
    let bytes = fs::read(path)?;
    let flows = bytes.chunks_exact(size_of::<ShownWords>()).map(words);
    let mut shown: Vec<FlowStatus> = flows.filter_map(|words| flow(&words, scheme)).collect();
    shown.sort();
    Ok(shown)
}

/// Decodes one record of the iterating program.
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

/// The bytes of a record that were not read yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    /// The next bytes; zeros beyond the end.
    fn take<const LENGTH: usize>(&mut self) -> [u8; LENGTH] {
        let (taken, rest) = self.0.split_first_chunk().unwrap_or((&[0; LENGTH], &[]));
        self.0 = rest;
        *taken
    }
}

/// Converts a record to a flow. `None` if the socket has changed to another scheme.
fn flow(words: &ShownWords, scheme: &str) -> Option<FlowStatus> {
    // With `biscay@window`, the sockets of downloads use another scheme. Their rate counts whole packets.
    let is_chosen = SCHEMES.contains(&scheme);
    if is_chosen && text(&words.scheme) != scheme.as_bytes() {
        return None;
    }
    let known = |word: u64| (word != NONE).then_some(word);
    let bits = |rate: u64| Rate::from_bps(if is_chosen { rate.saturating_mul(8) } else { rate });
    let end = |address, port| SocketAddr::new(ip(words.family, address), port);
    Some(FlowStatus {
        netns: words.netns,
        local: end(words.local, words.local_port),
        remote: end(words.remote, words.remote_port),
        state: states(scheme).get(words.state as usize).copied().unwrap_or("unknown"),
        rate: known(words.rate).map(bits),
        window: known(words.window).map(Bytes),
        rtt: known(words.rtt).map(Duration::from_nanos),
    })
}

/// The bytes before the first zero.
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
