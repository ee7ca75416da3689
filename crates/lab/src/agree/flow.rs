//! One endpoint of a measured flow over a real transport.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use airpace_cc::SchemeSpec;
use airpace_cc::controller::{Controller, Receiver};
use airpace_cc::scheme::Ends;
use airpace_core::count::count;
use airpace_core::{Bytes, Refused};
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
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};

use super::inside::{self, Look};
use super::kernel::sender;
use crate::error::{LabError, refuse};
use crate::over::Over;

/// Maximum number of stream bytes that wait for the retransmission of earlier bytes.
///
/// Chosen: 10 s at 200 Mbit/s. The simulator's flows have no stream and thus no such wait. A sender that does not
/// reduce its rate after losses loses some packets five times, each time a full queue later.
const WAITS: u32 = 256 << 20;

/// Creates senders and receivers of schemes, and stores their recorded states.
#[derive(Default)]
struct Halves {
    looks: Vec<Look>,
}

impl Halves {
    fn ends(scheme: &str) -> Result<Ends, Refused> {
        let spec = SchemeSpec::parse(scheme).map_err(|error| error.to_string())?;
        steering::ends(&spec).map_err(|fault| Refused::of(&fault))
    }
}

impl Hooks for Halves {
    fn controller(&mut self, scheme: &str) -> Result<Box<dyn Controller>, Refused> {
        Ok(Halves::ends(scheme)?.controller)
    }

    fn receiver(&mut self, scheme: &str) -> Result<Option<Box<dyn Receiver>>, Refused> {
        Ok(Halves::ends(scheme)?.receiver)
    }

    fn record(&mut self, sample: &Sample<'_>) {
        self.looks.push(Look::of(sample));
    }
}

/// Runs one endpoint of a measured flow until the flow ends, and writes the states of its scheme to `out`. `at` is the
/// address of the listening endpoint. `order` is the flow that the connecting endpoint requests, and `None` for the
/// endpoint that listens.
///
/// # Errors
/// The connection cannot be opened, or it ended too early.
pub fn run(over: Over, at: SocketAddr, order: Option<Order>, out: &mut dyn Write) -> Result<(), LabError> {
    let looks = match over {
        Over::Kernel => over_tcp(at, order.as_ref())?,
        Over::Udp => {
            let key = std::env::var("AIRPACE_KEY");
            let key = key.map_err(|_| LabError::Refused("AIRPACE_KEY is not set".into()))?;
            let key = code::parse(&key).map_err(LabError::refused)?;
            let config = UdpConfig {
                accepts: order.is_none(),
                receive_buffer: Bytes(WAITS.into()),
                ..UdpConfig::default()
            };
            let endpoint = UdpEndpoint::new(key, config).map_err(LabError::refused)?;
            turn(at, order, endpoint)?
        }
        Over::Quic => {
            let identity = match order {
                None => Some(Identity::self_signed(&["airpace"]).map_err(LabError::refused)?),
                Some(_) => None,
            };
            let config = quic::Config {
                identity,
                receive_window: WAITS,
                send_window: WAITS.into(),
                ..quic::Config::default()
            };
            turn(at, order, QuicEndpoint::new(config).map_err(LabError::refused)?)?
        }
    };
    inside::print(&looks, out).map_err(LabError::step("cannot write the states of the scheme"))
}

/// Runs an endpoint over the kernel's TCP.
fn over_tcp(at: SocketAddr, order: Option<&Order>) -> Result<Vec<Look>, LabError> {
    widen().map_err(LabError::step("this endpoint runs within an experiment only"))?;
    let mut looks = vec![];
    let mut record = |sample: &Sample<'_>| looks.push(Look::of(sample));
    let mut choose = |socket: BorrowedFd<'_>, scheme: &str| {
        let spec = SchemeSpec::parse(scheme).map_err(|error| error.to_string())?;
        kernel_choose(socket, sender(&spec)).map_err(|error| Refused::of(&error))
    };
    let nobody = || LabError::step(format!("no program listens at {at}"));
    let carried = match order {
        None => {
            let listener = TcpListener::bind(at).map_err(LabError::step(format!("cannot listen at {at}")))?;
            let (stream, _) = listener.accept().map_err(LabError::step("no program connects"))?;
            tcp::serve(stream, &mut choose, &mut record)
        }
        Some(order) => {
            // The local port identifies the flow.
            let from = SocketAddr::new(any_of(at), at.port());
            let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
            let socket = socket(family, SocketType::STREAM, None);
            let socket = socket.map_err(|error| LabError::step("cannot open a socket")(error.into()))?;
            let taken = LabError::step(format!("port {} is taken", from.port()));
            bind(&socket, &from).map_err(|error| taken(error.into()))?;
            connect(&socket, &at).map_err(|error| nobody()(error.into()))?;
            tcp::ask(TcpStream::from(socket), order, &mut choose, &mut record)
        }
    };
    nobody_sent(carried.map_err(LabError::refused)?.wrong)?;
    Ok(looks)
}

/// Runs an endpoint of one of Airpace's transports.
fn turn(at: SocketAddr, order: Option<Order>, mut endpoint: impl Endpoint) -> Result<Vec<Look>, LabError> {
    let from = if order.is_none() { at } else { SocketAddr::new(any_of(at), at.port()) };
    let socket = Socket::bind(from, Buffers::default()).map_err(LabError::refused)?;
    let radios = order.iter().filter_map(radio).collect();
    let app = match order {
        None => Bulk::serve(Halves::default(), 1),
        Some(order) => {
            let id = endpoint.connect(clock::now(), at).map_err(LabError::refused)?;
            Bulk::ask(Halves::default(), id, order)
        }
    };
    let control = Control::new().map_err(LabError::step("cannot make an event"))?;
    let turned = Turn { socket, endpoint, app, radios, control, wants_realtime: true }.run();
    let [Outcome { problem, wrong, .. }] = &turned.app.outcomes[..] else {
        refuse!("the flow has not ended");
    };
    nobody_sent(*wrong)?;
    match problem {
        Some(why) => Err(LabError::Refused(why.clone().into())),
        None => Ok(turned.app.hooks.looks),
    }
}

/// The unspecified address of the same family.
fn any_of(at: SocketAddr) -> IpAddr {
    match at {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// An error if bytes arrived that nobody sent.
fn nobody_sent(wrong: Bytes) -> Result<(), LabError> {
    if wrong.0 > 0 {
        refuse!("{} arrived that no program sent; please report this", count(wrong.0, "byte"));
    }
    Ok(())
}

/// The radio of this endpoint's device: the grants of all users for a download, its own grants for an upload.
fn radio(order: &Order) -> Option<Box<dyn Radio>> {
    let variable = match order.flow {
        Flow::Pull => "AIRPACE_REPORTS",
        Flow::Push => "AIRPACE_MODEM_REPORTS",
    };
    std::env::var_os(variable).map(|path| {
        let place = Place::Path(PathBuf::from(path));
        Box::new(Lines::new(place)) as Box<dyn Radio>
    })
}
