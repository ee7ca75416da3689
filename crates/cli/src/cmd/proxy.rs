//! `airpace proxy`: splits TCP connections, so that the connection to the phone uses a chosen congestion control of the
//! kernel.

#[cfg(feature = "proxy")]
mod split;

use std::net::SocketAddr;

#[cfg(feature = "proxy")]
use airpace_proxy::Range;
#[cfg(feature = "proxy")]
pub use split::run;

/// Error message of a build without the feature `proxy`, with instructions to build with it.
#[cfg(not(feature = "proxy"))]
const REMEDY: &str = "this program was built without the proxy: build with `--features proxy`, or start \
                      AIRPACE_FEATURES=proxy ./airpace";

/// Idle timeout of a connection (s).
///
/// Source: RFC 5382 REQ-5 (routers keep established connections for at least 2 h 4 min)
const IDLE_S: f64 = 7_440.0;

/// Splits TCP connections between servers and phones, and uses a chosen congestion control towards phones.
///
/// The proxy runs between a fast network and the radio access network: in front of a base station, at an operator's
/// gateway, or on a server. Servers and phones remain unchanged. Clients request connections by SOCKS5 or HTTP CONNECT, on
/// the same port. A transparent proxy (--transparent) takes over all connections that arrive through an interface, and both
/// endpoints keep their addresses; this requires root and `nft`. A scheme of Airpace must be loaded first: `airpace kernel
/// load morc`. Runs until Ctrl-C; open connections then have 10 s to end.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace proxy --client-leg morc --listen 10.0.0.1:1080 --allow 10.0.0.0/8\n         \
                         airpace proxy --client-leg bbr\n         \
                         airpace proxy --client-leg morc --transparent eth1 --ports 80,443"
)]
pub struct Args {
    /// The address and TCP port to listen on. [default: 127.0.0.1:1080; with --transparent any address]
    #[arg(long, value_name = "ADDR:PORT", value_parser = listen_address)]
    listen: Option<SocketAddr>,
    /// Congestion control of the data to clients. [default: the kernel's default]
    #[arg(long, value_name = "NAME")]
    client_leg: Option<String>,
    /// Congestion control of the data to servers. [default: the kernel's default]
    #[arg(long, value_name = "NAME")]
    server_leg: Option<String>,
    /// Address ranges of permitted clients, separated by commas. [default: this machine; with --transparent all]
    #[arg(long, value_name = "RANGES", value_delimiter = ',', value_parser = Range::parse)]
    allow: Vec<Range>,
    /// Takes over the connections that arrive through this interface.
    #[arg(long, value_name = "INTERFACE", value_parser = interface)]
    transparent: Option<String>,
    /// Takes over only connections to these ports, with --transparent.
    #[arg(long, value_name = "PORTS", value_delimiter = ',', requires = "transparent")]
    ports: Vec<u16>,
    /// Maximum number of simultaneous connections; further connections are refused.
    ///
    /// When half of them are in use, a client that has its fair share gets no further connection.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    connections: u32,
    /// Idle timeout: closes a connection without data in either direction for this time.
    #[arg(long, value_name = "SECONDS", default_value_t = IDLE_S, value_parser = super::within::<1, 10_000_000>)]
    idle: f64,
    /// Maximum number of bytes from a server that are buffered while the client accepts none.
    ///
    /// The server stops when the buffer is full. By default, the kernel sizes the buffer by the path to the server, up to
    /// the last number of net.ipv4.tcp_rmem.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(4_096..=1 << 30))]
    server_queue: Option<u32>,
    /// Prints one JSON object per event.
    #[arg(long)]
    json: bool,
    /// Prints only errors.
    #[arg(long)]
    quiet: bool,
}

/// Stand-in for a range of addresses: only the proxy itself can parse ranges.
#[cfg(not(feature = "proxy"))]
#[derive(Clone)]
struct Range;

#[cfg(not(feature = "proxy"))]
impl Range {
    fn parse(_: &str) -> Result<Range, std::convert::Infallible> {
        Ok(Range)
    }
}

/// Parses the name of an interface. Names that could be misread in a rule are rejected.
fn interface(name: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@:".contains(&byte);
    match (1..16).contains(&name.len()) && name.bytes().all(is_plain) {
        true => Ok(name.to_owned()),
        false => Err("give the name of an interface, as `ip link` lists them".to_owned()),
    }
}

/// Returns an error that names the missing feature.
#[cfg(not(feature = "proxy"))]
pub fn run(_: &Args, _: &mut dyn std::io::Write) -> anyhow::Result<super::Verdict> {
    anyhow::bail!(REMEDY)
}

fn listen_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "give ADDR:PORT, such as 127.0.0.1:1080 or [::1]:1080; names of hosts are not looked up here"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_interfaces_cannot_break_out_of_a_rule() {
        for name in ["eth0", "wlp2s0", "ap-dev0", "eth0.7", "veth1@if2"] {
            assert_eq!(interface(name), Ok(name.to_owned()));
        }
        for name in ["", "a\"b", "a b", "0123456789abcdef", "a;b", "a\n"] {
            assert!(interface(name).is_err(), "{name}");
        }
    }
}
