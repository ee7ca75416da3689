//! One endpoint of a measured flow over a real transport. `airpace agree` starts both endpoints.

use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use airpace_cc::SchemeSpec;
use airpace_cc::controller::{Controller, Receiver};
use airpace_cc::scheme::Ends;
use airpace_core::{Bytes, Direction};
use airpace_emu::bulk::{choose as kernel_choose, widen};
use airpace_feed::{Lines, Place, Radio};
use airpace_rt::clock;
use airpace_transfer::bulk::{Bulk, Flow, Hooks, Order, Outcome, Sample, tcp};
use airpace_transfer::{code, steering};
use airpace_transport::endpoint::Endpoint;
use airpace_transport::quic::{self, Identity, QuicEndpoint};
use airpace_transport::socket::{Buffers, Socket};
use airpace_transport::turn::{Control, Turn};
use airpace_transport::udp::{UdpConfig, UdpEndpoint};
use anyhow::{Context, anyhow, bail, ensure};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};

use super::inside::{self, Look};
use super::kernel::sender;
use super::over::Over;
use crate::cmd::Verdict;
use crate::terminal::count;

/// Maximum number of stream bytes that wait for the retransmission of earlier bytes.
///
/// Chosen: 10 s at 200 Mbit/s. The simulator's flows have no stream and thus no such wait. A sender that does not
/// reduce its rate after losses loses some packets five times, each time a full queue later.
const WAITS: u32 = 256 << 20;

/// Runs one endpoint of a measured flow over a real transport; `airpace agree` starts both endpoints.
#[derive(clap::Args)]
#[command(
    before_help = "Example: airpace wire-flow listen --transport udp --at 100.64.0.1:7001",
    hide = true
)]
pub struct Args {
    /// Whether this endpoint listens for the connection or opens it.
    #[arg(value_enum)]
    part: Part,
    /// The transport of the flow.
    #[arg(long, value_enum)]
    transport: Over,
    /// The address of the listening endpoint; the other endpoint has the same port.
    #[arg(long, value_name = "ADDRESS")]
    at: SocketAddr,
    /// The flow that the connecting endpoint requests.
    #[arg(long, value_name = "JSON", value_parser = order)]
    order: Option<Order>,
}

/// Role of an endpoint when the connection is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Listen,
    Connect,
}

fn order(text: &str) -> Result<Order, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Creates senders and receivers of schemes, and stores their recorded states.
#[derive(Default)]
struct Halves {
    looks: Vec<Look>,
}

impl Halves {
    fn ends(scheme: &str) -> Result<Ends, String> {
        let spec = SchemeSpec::parse(scheme).map_err(|error| error.to_string())?;
        steering::ends(&spec).map_err(|fault| fault.sentence)
    }
}

impl Hooks for Halves {
    fn controller(&mut self, scheme: &str) -> Result<Box<dyn Controller>, String> {
        Ok(Halves::ends(scheme)?.controller)
    }

    fn receiver(&mut self, scheme: &str) -> Result<Option<Box<dyn Receiver>>, String> {
        Ok(Halves::ends(scheme)?.receiver)
    }

    fn record(&mut self, sample: &Sample<'_>) {
        self.looks.push(Look::of(sample));
    }
}

/// Runs the endpoint until the flow ends.
///
/// # Errors
/// The connection cannot be opened, or it ended too early.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    if args.transport == Over::Kernel {
        return over_tcp(args, out);
    }
    let key = std::env::var("AIRPACE_KEY").context("AIRPACE_KEY is not set")?;
    let key = code::parse(&key)?;
    let socket = match args.part {
        Part::Listen => Socket::bind(args.at, Buffers::default())?,
        Part::Connect => {
            let mut any = args.at;
            any.set_ip(match args.at {
                SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            });
            Socket::bind(any, Buffers::default())?
        }
    };
    match args.transport {
        Over::Udp => {
            let config = UdpConfig {
                accepts: args.part == Part::Listen,
                receive_buffer: Bytes(WAITS.into()),
                ..UdpConfig::default()
            };
            let endpoint = UdpEndpoint::new(key, config)?;
            turn(args, socket, endpoint, out)
        }
        Over::Quic => {
            let identity = match args.part {
                Part::Listen => Some(Identity::self_signed(&["airpace"]).map_err(|why| anyhow!(why))?),
                Part::Connect => None,
            };
            let config = quic::Config {
                identity,
                receive_window: WAITS,
                send_window: WAITS.into(),
                ..quic::Config::default()
            };
            turn(args, socket, QuicEndpoint::new(config).map_err(|why| anyhow!(why))?, out)
        }
        Over::Kernel => bail!("the kernel's TCP takes no datagrams"),
    }
}

/// Runs an endpoint over the kernel's TCP.
fn over_tcp(args: &Args, out: &mut dyn Write) -> anyhow::Result<Verdict> {
    widen().context("this end runs within `airpace agree` only")?;
    let mut looks = vec![];
    let mut record = |sample: &Sample<'_>| looks.push(Look::of(sample));
    let mut choose = |socket: BorrowedFd<'_>, scheme: &str| {
        let spec = SchemeSpec::parse(scheme).map_err(|error| error.to_string())?;
        kernel_choose(socket, sender(&spec)).map_err(|error| error.to_string())
    };
    let carried = match args.part {
        Part::Listen => {
            let listener =
                TcpListener::bind(args.at).with_context(|| format!("cannot listen at {}", args.at))?;
            tcp::serve(listener.accept()?.0, &mut choose, &mut record)
        }
        Part::Connect => {
            let order = args.order.as_ref().context("an end that connects needs --order")?;
            // The local port identifies the flow.
            let from = match args.at {
                SocketAddr::V4(at) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, at.port())),
                SocketAddr::V6(at) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, at.port())),
            };
            let socket = socket(
                if args.at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 },
                SocketType::STREAM,
                None,
            )?;
            bind(&socket, &from).with_context(|| format!("port {} is taken", from.port()))?;
            connect(&socket, &args.at).with_context(|| format!("nobody listens at {}", args.at))?;
            tcp::ask(TcpStream::from(socket), order, &mut choose, &mut record)
        }
    };
    let carried = carried.map_err(|why| anyhow!(why))?;
    ensure!(
        carried.wrong.0 == 0,
        "{} arrived that nobody sent; please report this",
        count(carried.wrong.0, "byte")
    );
    inside::print(&looks, out)?;
    Ok(Verdict::Fine)
}

fn turn(
    args: &Args,
    socket: Socket,
    mut endpoint: impl Endpoint,
    out: &mut dyn Write,
) -> anyhow::Result<Verdict> {
    let app = match args.part {
        Part::Listen => Bulk::serve(Halves::default(), 1),
        Part::Connect => {
            let order = args.order.clone().context("an end that connects needs --order")?;
            let id = endpoint.connect(clock::now(), args.at).map_err(|why| anyhow!(why))?;
            Bulk::ask(Halves::default(), id, order)
        }
    };
    let radios = match &args.order {
        Some(order) => radio(order)?.into_iter().collect(),
        None => vec![],
    };
    let control = Control::new().context("cannot make an event")?;
    let turned = Turn { socket, endpoint, app, radios, control, wants_realtime: true }.run();
    let [Outcome { problem, wrong, .. }] = &turned.app.outcomes[..] else {
        bail!("the flow has not ended");
    };
    if wrong.0 > 0 {
        bail!("{} arrived that nobody sent; please report this", count(wrong.0, "byte"));
    }
    match problem {
        Some(why) => Err(anyhow!("{why}")),
        None => {
            inside::print(&turned.app.hooks.looks, out)?;
            Ok(Verdict::Fine)
        }
    }
}

/// The radio of this endpoint's device: the grants of all users for a download, its own grants for an upload.
fn radio(order: &Order) -> anyhow::Result<Option<Box<dyn Radio>>> {
    let direction = if order.flow == Flow::Pull { Direction::Downlink } else { Direction::Uplink };
    let variable = match direction {
        Direction::Downlink => "AIRPACE_REPORTS",
        Direction::Uplink => "AIRPACE_MODEM_REPORTS",
    };
    Ok(std::env::var_os(variable).map(|path| {
        let place = Place::Path(PathBuf::from(path));
        Box::new(Lines::new(place)) as Box<dyn Radio>
    }))
}
