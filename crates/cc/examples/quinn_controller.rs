//! A controller of Airpace's list inside the QUIC library quinn: a server sends data to a client over the loopback
//! interface.
//!
//! `cargo run -p airpace-cc --example quinn_controller -- [SCHEME [MEGABYTES]]`
//!
//! quinn asks a controller for its window, and paces by itself at 1.25 windows per round-trip time. A pacing rate has
//! no effect in quinn, nor has feedback of a scheme's receiver. Schemes without a pacing rate therefore fit best:
//! cubic, reno, vegas, ledbat.

use std::any::Any;
use std::collections::VecDeque;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use airpace_cc::{Blocked, Bytes, Ledger, PacerConfig, SchemeSpec, Sees, Setup, Time};
use quinn::congestion::{Controller, ControllerFactory};
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::PrivatePkcs8KeyDer;
use quinn_proto::RttEstimator;

/// Creates the controllers of quinn's connections.
struct Adapter(SchemeSpec);

impl ControllerFactory for Adapter {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let mss = Bytes(current_mtu.into());
        // Each connection needs a seed of its own. A real server would draw a random seed.
        let ends = self.0.build(&Setup::seeded(mss, 1)).expect("main has built it");
        let ledger = Ledger::new(Time::ZERO, mss, PacerConfig::default(), ends.controller);
        let flow = Flow { ledger, mss, sent: VecDeque::new(), next: 0, origin: now };
        Box::new(Adapted { factory: self, flow: Mutex::new(flow) })
    }
}

/// quinn's controller. quinn demands `Sync`, so the flow is behind a lock.
struct Adapted {
    factory: Arc<Adapter>,
    flow: Mutex<Flow>,
}

struct Flow {
    ledger: Ledger,
    mss: Bytes,
    /// The packets without an outcome, oldest first: departure, size, number in the ledger. quinn reports outcomes with
    /// the departure instead of the packet number.
    sent: VecDeque<(Instant, u64, u64)>,
    next: u64,
    origin: Instant,
}

impl Flow {
    fn time(&self, at: Instant) -> Time {
        Time::ZERO + at.saturating_duration_since(self.origin)
    }

    /// Removes the next packet that left at this instant.
    fn take(&mut self, left: Instant) -> Option<u64> {
        let at = self.sent.partition_point(|(sent, ..)| *sent < left);
        self.sent.get(at).filter(|(sent, ..)| *sent == left)?;
        self.sent.remove(at).map(|(.., number)| number)
    }
}

impl Adapted {
    fn flow(&self) -> MutexGuard<'_, Flow> {
        self.flow.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Controller for Adapted {
    /// `bytes` is the total size of one or more datagrams that leave together.
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        let mut flow = self.flow();
        let at = flow.time(now);
        flow.ledger.handle_timeout(at);
        let mut left = bytes;
        while left > 0 {
            let size = left.min(flow.mss.0);
            let number = flow.next;
            flow.ledger.on_sent(at, number, Bytes(size), false);
            flow.sent.push_back((now, size, number));
            (flow.next, left) = (number + 1, left - size);
        }
    }

    fn on_ack(&mut self, _now: Instant, sent: Instant, _bytes: u64, _app_limited: bool, _rtt: &RttEstimator) {
        let mut flow = self.flow();
        if let Some(number) = flow.take(sent) {
            flow.ledger.on_acked(number);
        }
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _largest: Option<u64>) {
        let mut flow = self.flow();
        let (at, mss) = (flow.time(now), flow.mss);
        flow.ledger.settle(at, &[]);
        // quinn also calls this for packets that contain only ACKs, but never reports the outcome of such packets.
        if in_flight == 0 {
            flow.ledger.on_forgotten();
            flow.sent.clear();
        }
        if app_limited { flow.ledger.on_idle() } else { flow.ledger.on_held(at, mss, Blocked::Window) }
    }

    /// `sent` is the departure of the newest lost packet. If a queue marked packets, `lost_bytes` is 0.
    fn on_congestion_event(&mut self, now: Instant, sent: Instant, _is_persistent: bool, lost_bytes: u64) {
        let mut flow = self.flow();
        let at = flow.time(now);
        if lost_bytes == 0 {
            flow.ledger.on_marked(1);
            return;
        }
        let mut left = lost_bytes;
        while left > 0
            && let Some((_, size, number)) =
                flow.sent.front().copied().filter(|(departed, ..)| *departed <= sent)
        {
            flow.sent.pop_front();
            flow.ledger.on_lost(number);
            left = left.saturating_sub(size);
        }
        flow.ledger.settle(at, &[]);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.flow().mss = Bytes(new_mtu.into());
    }

    fn window(&self) -> u64 {
        self.flow().ledger.control().cwnd.0
    }

    fn initial_window(&self) -> u64 {
        self.window()
    }

    /// quinn clones the controller when the peer of a connection has moved to another address. The clone is the
    /// controller for the new path.
    fn clone_box(&self) -> Box<dyn Controller> {
        let mss = u16::try_from(self.flow().mss.0).unwrap_or(u16::MAX);
        self.factory.clone().build(Instant::now(), mss)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Sends this many bytes over the loopback interface. Returns the number of bytes that arrived, the duration (s), and
/// the final congestion window (bytes).
async fn transfer(spec: SchemeSpec, bytes: usize) -> Result<(usize, f64, u64), Box<dyn Error>> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let certificate = made.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut config = quinn::ServerConfig::with_single_cert(vec![certificate.clone()], key.into())?;
    let mut transport = quinn::TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(Adapter(spec)));
    config.transport_config(Arc::new(transport));
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = quinn::Endpoint::server(config, any)?;
    let address = server.local_addr()?;

    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let mut client = quinn::Endpoint::client(any)?;
    client.set_default_client_config(quinn::ClientConfig::with_root_certificates(Arc::new(roots))?);

    let serving = tokio::spawn(async move {
        let connection = server.accept().await.ok_or("the server was closed")?.await?;
        let mut stream = connection.open_uni().await?;
        stream.write_all(&vec![0; bytes]).await?;
        stream.finish()?;
        stream.stopped().await?;
        Ok::<_, Box<dyn Error + Send + Sync>>(connection.stats().path.cwnd)
    });
    let connection = client.connect(address, "localhost")?.await?;
    let started = Instant::now();
    let received = connection.accept_uni().await?.read_to_end(bytes).await?.len();
    let seconds = started.elapsed().as_secs_f64();
    let window = serving.await?.map_err(|error| error.to_string())?;
    Ok((received, seconds, window))
}

/// Runs the transfer that the program's arguments describe. Returns one sentence with the result.
///
/// # Errors
/// An argument is not valid, or the connection fails.
pub fn run(args: &[String]) -> Result<String, Box<dyn Error>> {
    let spec = SchemeSpec::parse(args.first().map_or("cubic", String::as_str))?;
    let ends = spec.build(&Setup::seeded(Bytes(1200), 1))?;
    if ends.controller.sees() == Sees::Truth {
        return Err(format!("{} needs a simulator; choose another scheme", spec.text()).into());
    }
    let text = args.get(1).map_or("20", String::as_str);
    let megabytes = text.parse().ok().filter(|count| (1..=1000).contains(count));
    let megabytes: usize =
        megabytes.ok_or_else(|| format!("MEGABYTES: `{text}` is not a whole number from 1 to 1000"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (received, seconds, window) = runtime.block_on(transfer(spec.clone(), megabytes * 1_000_000))?;
    Ok(format!("{}: {received} bytes in {seconds:.2} s, window {window} bytes at the end", spec.text()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    println!("{}", run(&args)?);
    Ok(())
}
