//! Accuracy of pacing: error of a constant rate, delay until a rate step is followed, and throughput over the loopback.
//!
//! ```text
//! cargo run --release -p airpace-transfer --example rates -- [SECONDS [plain|udp|quic]]
//! ```
//!
//! One thread sends and one receives, each with a socket on the loopback interface. [`plain`] is a minimal transport. To
//! measure another endpoint, add a call of [`measure`] to `main`.

mod plain;

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use airpace_cc::controller::{self, Ack, Control, Controller, Inspect, Loss};
use airpace_core::{Bytes, Rate, Refused, Time};
use airpace_rt::clock;
use airpace_transfer::bulk::{Bulk, Flow, Hooks, Order, Sample, Traffic};
use airpace_transport::endpoint::{
    Connection, ConnectionId, Endpoint, Event, Ignored, Inbound, MSS, Outbound, overhead,
};
use airpace_transport::key::Key;
use airpace_transport::quic::{self, QuicEndpoint};
use airpace_transport::socket::{Buffers, Socket};
use airpace_transport::turn::{self, Turn, Turned};
use airpace_transport::udp::{UdpConfig, UdpEndpoint};

/// Constant rates, and the rates of the step test, in Mbit/s. `STEP` is the time between steps.
const RATES: [f64; 5] = [10.0, 50.0, 200.0, 1_000.0, 2_500.0];
const STEPS: [f64; 4] = [10.0, 50.0, 200.0, 30.0];
const STEP: Duration = Duration::from_millis(50);

/// Controller that cycles through rates and reports the due time of each step.
struct Stepper {
    rates: Vec<Option<Rate>>,
    at: usize,
    next: Option<Time>,
    told: Sender<(Time, f64)>,
}

impl Controller for Stepper {
    fn on_ack(&mut self, _: &Ack<'_>) {}

    fn on_loss(&mut self, _: &Loss<'_>) {}

    fn handle_timeout(&mut self, now: Time) {
        self.at = (self.at + 1) % self.rates.len();
        // Steps are timed by their due times, so that the lateness of the timer counts too.
        let due = self.next.unwrap_or(now);
        self.next = Some(due + STEP);
        let mbps = self.rates[self.at].map_or(0.0, |rate| rate.as_bps() as f64 * 1e-6);
        let _ = self.told.send((due, mbps));
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.next
    }

    fn control(&self) -> Control {
        Control { cwnd: Bytes(1 << 30), pacing_rate: self.rates[self.at] }
    }

    fn inspect(&self, out: &mut Inspect) {
        out.state = "Steps";
    }
}

/// Wrapper of an endpoint that records each transmission: time, and bytes including the packets' overhead.
struct Tap<E> {
    inner: E,
    departures: Vec<(Time, u64)>,
}

impl<E: Endpoint> Endpoint for Tap<E> {
    fn handle(&mut self, datagram: Inbound<'_>) {
        self.inner.handle(datagram);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.inner.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.inner.poll_timeout()
    }

    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<Outbound> {
        let before = buffer.len();
        let out = self.inner.poll_transmit(now, buffer)?;
        let payload = (buffer.len() - before) as u64;
        let packets = out.segment.map_or(1, |size| payload.div_ceil(size as u64));
        self.departures.push((now, payload + packets * overhead(&out.to).0));
        Some(out)
    }

    fn poll_event(&mut self) -> Option<(ConnectionId, Event)> {
        self.inner.poll_event()
    }

    fn connect(&mut self, now: Time, peer: SocketAddr) -> Result<ConnectionId, Refused> {
        self.inner.connect(now, peer)
    }

    fn connection(&mut self, id: ConnectionId) -> Option<&mut dyn Connection> {
        self.inner.connection(id)
    }

    fn on_rebound(&mut self, now: Time) {
        self.inner.on_rebound(now);
    }

    fn ignored(&self) -> Ignored {
        self.inner.ignored()
    }
}

/// Hooks whose controller uses these rates.
struct Steered {
    rates: Vec<Option<Rate>>,
    told: Sender<(Time, f64)>,
}

impl Hooks for Steered {
    fn controller(&mut self, _: &str) -> Result<Box<dyn Controller>, Refused> {
        let next = (self.rates.len() > 1).then(|| clock::now() + STEP);
        Ok(Box::new(Stepper { rates: self.rates.clone(), at: 0, next, told: self.told.clone() }))
    }

    fn receiver(&mut self, _: &str) -> Result<Option<Box<dyn controller::Receiver>>, Refused> {
        Ok(None)
    }

    fn record(&mut self, _: &Sample<'_>) {}
}

type Done<E> = Turned<Tap<E>, Bulk<Steered>>;

/// Runs a flow for `lasts` seconds. Returns the sender, the receiver and the times of the rate steps.
fn run<E: Endpoint + Send + 'static>(
    make: fn() -> E,
    rates: &[Option<f64>],
    lasts: f64,
) -> (Done<E>, Done<E>, Receiver<(Time, f64)>) {
    let (told, steps) = channel();
    let rates: Vec<Option<Rate>> = rates.iter().map(|mbps| mbps.map(Rate::from_mbps)).collect();
    let hooks = || Steered { rates: rates.clone(), told: told.clone() };
    let socket =
        || Socket::bind("127.0.0.1:0".parse().expect("an address"), Buffers::default()).expect("a socket");
    let turn = |socket, endpoint, app| {
        let control = turn::Control::new().expect("a descriptor");
        let endpoint = Tap { inner: endpoint, departures: Vec::with_capacity(1 << 20) };
        Turn { socket, endpoint, app, radios: vec![], control, wants_realtime: true }
    };
    let listener = socket();
    let at = listener.local();
    let server = turn(listener, make(), Bulk::serve(hooks(), 1));
    let server = std::thread::spawn(|| server.run());
    let mut endpoint = make();
    let id = endpoint.connect(clock::now(), at).expect("a connection");
    let traffic = Traffic { stop_s: Some(lasts), ..Traffic::default() };
    let order = Order { flow: Flow::Push, scheme: String::new(), traffic };
    let client = turn(socket(), endpoint, Bulk::ask(hooks(), id, order)).run();
    (client, server.join().expect("the server"), steps)
}

/// Runs all measurements of an endpoint and prints the results.
fn measure<E: Endpoint + Send + 'static>(name: &str, make: fn() -> E, lasts: f64) {
    println!("{name}");
    for mbps in RATES {
        let (client, server, _) = run(make, &[Some(mbps)], lasts);
        let sent = &client.endpoint.departures;
        // Smaller packets are left out: those of the handshake and of the close are not paced.
        let paced: Vec<&(Time, u64)> = sent.iter().filter(|(_, bytes)| *bytes >= MSS.0).collect();
        let (first, last) = (paced[0], paced[paced.len() - 1]);
        let longest = paced.windows(2).map(|two| two[1].0 - two[0].0).max().unwrap_or_default();
        let bits: u64 = paced[..paced.len() - 1].iter().map(|(_, bytes)| bytes * 8).sum();
        let rate = bits as f64 / (last.0 - first.0).as_secs_f64() * 1e-6;
        println!(
            "  {mbps:>4} Mbit/s: error {:+.3} %, {:.0} % of a core to send, {:.0} % to receive, {} datagrams per send, the longest pause {:.2} ms; {}",
            (rate / mbps - 1.0) * 100.0,
            share(&client),
            share(&server),
            client.socket.counts().sent / client.socket.counts().send_calls.max(1),
            longest.as_secs_f64() * 1e3,
            client.audit.lateness,
        );
    }
    let (client, _, steps) = run(make, &STEPS.map(Some), lasts);
    // Smaller packets are left out: ACKs and feedback are not paced.
    let sent: Vec<(Time, u64)> =
        client.endpoint.departures.iter().copied().filter(|(_, bytes)| *bytes >= MSS.0).collect();
    let mut follows: Vec<f64> = steps.try_iter().filter_map(|(at, mbps)| followed(&sent, at, mbps)).collect();
    follows.sort_by(f64::total_cmp);
    if let [.., slowest] = follows[..] {
        let p95 = follows[(follows.len() * 95).div_ceil(100) - 1];
        let median = follows[follows.len() / 2];
        println!(
            "  a step is followed in {median:.2} ms (median), {p95:.2} ms (p95), {slowest:.2} ms (worst of {})",
            follows.len()
        );
    }
    let (client, server, _) = run(make, &[None], lasts);
    let outcome = &server.app.outcomes[0];
    let took = outcome.began.map_or(Duration::ZERO, |began| outcome.ended - began);
    let packets = server.socket.counts().received.max(1) as f64;
    println!(
        "  loopback: {:.2} Gbit/s; {:.0} % of a core to send ({:.2} µs per packet), {:.0} % to receive ({:.2} µs); {} \
         datagrams per send, {} per receive, {} lost",
        outcome.bytes.0 as f64 * 8e-9 / took.as_secs_f64(),
        share(&client),
        client.audit.cpu.as_secs_f64() * 1e6 / packets,
        share(&server),
        server.audit.cpu.as_secs_f64() * 1e6 / packets,
        client.socket.counts().sent / client.socket.counts().send_calls.max(1),
        server.socket.counts().received / server.socket.counts().receive_calls.max(1),
        server.socket.counts().overflows,
    );
    if let Some(problem) = &outcome.problem {
        println!("  but: {problem}");
    }
    if let Some(why) = &client.audit.not_realtime_because {
        println!("  {why}");
    }
}

fn share<E>(done: &Done<E>) -> f64 {
    100.0 * done.audit.cpu.as_secs_f64() / done.audit.took.as_secs_f64()
}

/// Time for which the packets must keep the schedule of a new rate, so that the step counts as followed.
const HOLDS: Duration = Duration::from_millis(10);

/// Maximum deviation of a packet from its schedule: two groups of the pacer.
const BESIDE: Duration = Duration::from_micros(500);

/// Delay from the due time of a step until the packets follow it, in ms. The delay ends at the first packet from which on,
/// for [`HOLDS`], each packet leaves when the previous ones have taken their time at the new rate. A step that is not
/// followed before the next step counts with the time between steps. `None` if the recording ends too early.
fn followed(sent: &[(Time, u64)], at: Time, mbps: f64) -> Option<f64> {
    let (rate, last) = (Rate::from_mbps(mbps), sent.last()?.0);
    let keeps = |sent: &[(Time, u64)]| {
        let begin = sent[0].0;
        let mut ideal = begin;
        for (when, bytes) in sent {
            if u128::from(when.signed_nanos_since(ideal).unsigned_abs()) > BESIDE.as_nanos() {
                return false;
            }
            if *when >= begin + HOLDS {
                return true;
            }
            ideal += rate.time_for(Bytes(*bytes));
        }
        false
    };
    if at + STEP + HOLDS > last {
        return None;
    }
    let first = sent.partition_point(|(when, _)| *when < at);
    let kept =
        (first..sent.len()).take_while(|from| sent[*from].0 < at + STEP).find(|from| keeps(&sent[*from..]));
    Some(kept.map_or(STEP, |from| sent[from].0 - at).as_secs_f64() * 1e3)
}

fn udp() -> UdpEndpoint {
    let config = UdpConfig { accepts: true, ..UdpConfig::default() };
    UdpEndpoint::new(Key::new([1; Key::BYTES]), config).expect("random numbers")
}

fn quic() -> QuicEndpoint {
    let identity = Some(quic::Identity::self_signed(&["airpace"]).expect("random numbers"));
    QuicEndpoint::new(quic::Config { identity, ..quic::Config::default() }).expect("settings that fit")
}

fn main() {
    let lasts = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(3.0);
    let only = std::env::args().nth(2);
    let is_wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    if is_wanted("plain") {
        measure("plain", plain::Plain::default, lasts);
    }
    if is_wanted("udp") {
        measure("udp", udp, lasts);
    }
    if is_wanted("quic") {
        measure("quic", quic, lasts);
    }
}
