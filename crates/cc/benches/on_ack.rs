//! Cost of one ACK, on a flow that fills a 100 Mbit/s link.
//!
//! `controller`: cost of the scheme itself per ACK, including the packet that the ACK releases (`on_sent`, `on_ack`,
//! `control`, `poll_timeout`; `handle_timeout` if due). `endpoint`: the same including the transport.
//!
//! `cargo bench -p airpace-cc --bench on_ack`

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use airpace_cc::controller::{Ack, Arrival, Control, Controller, Inspect, Loss, Sees, Sent, SentPacket};
use airpace_cc::endpoint::{AckFrame, AckPolicy, Acker, Backlog, Sender, SenderConfig};
use airpace_cc::scheme::Scheme;
use airpace_cc::schemes::SCHEMES;
use airpace_cc::{Ends, SchemeSpec, Setup};
use airpace_core::{Bytes, FlowId, Rate, Rider, Streams, Time};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, criterion_group, criterion_main};

const MSS: Bytes = Bytes(1500);
const RATE: Rate = Rate::from_bps(100_000_000);
const DELAY: Duration = Duration::from_millis(40);
/// The delay of a full queue.
const BUFFER: Duration = Duration::from_millis(40);
/// Number of ACKs per measurement. The cost of reading the clock is negligible for several ACKs, but not for one.
const BATCH: usize = 32;
/// Maximum time for which an ACK waits until enough ACKs for one measurement have arrived. A longer wait could stop the
/// sender, which needs ACKs to send more.
const PATIENCE: Duration = Duration::from_millis(4);

fn ends(scheme: &str) -> Ends {
    let rng = Streams::new(1).stream("bench");
    SchemeSpec::parse(scheme).unwrap().build(&Setup::new(MSS, rng)).unwrap()
}

/// A flow over a simulated link without an event queue: the arrival time of every packet is computed when the packet
/// leaves.
struct Flow {
    sender: Sender,
    acker: Acker,
    now: Time,
    busy_until: Time,
    /// Packets on the link: arrival time, departure time, packet number, header bytes.
    wire: VecDeque<(Time, Time, u64, Rider)>,
    frames: Vec<(Time, AckFrame)>,
}

impl Flow {
    fn new(ends: Ends) -> Flow {
        Flow {
            sender: Sender::new(SenderConfig::new(FlowId(0), MSS), ends.controller, Backlog::Unlimited),
            acker: Acker::new(AckPolicy::default(), ends.receiver),
            now: Time::ZERO,
            busy_until: Time::ZERO,
            wire: VecDeque::new(),
            frames: vec![],
        }
    }

    /// Runs the flow, outside of the measured time, until the next ACKs have arrived. It collects at most `most` ACKs.
    fn gather(&mut self, most: usize) {
        self.frames.clear();
        while self.frames.len() < most {
            while let Some(transmit) = self.sender.poll_transmit(self.now) {
                let start = self.busy_until.max(self.now);
                if start - self.now < BUFFER {
                    self.busy_until = start + RATE.time_for(transmit.bytes);
                    self.wire.push_back((
                        self.busy_until + DELAY,
                        self.now,
                        transmit.number,
                        transmit.header,
                    ));
                }
            }
            let wake = self.sender.poll_timeout().unwrap_or(Time::NEVER);
            let arrival = self.wire.front().map_or(Time::NEVER, |packet| packet.0);
            let timer = self.acker.poll_timeout().unwrap_or(Time::NEVER);
            let next = wake.min(arrival).min(timer);
            if self.frames.first().is_some_and(|first| next - first.0 > PATIENCE) {
                break;
            }
            self.now = self.now.max(next);
            if timer < wake.min(arrival) {
                self.acker.handle_timeout(self.now);
                self.frames.extend(self.acker.poll_ack(self.now).map(|frame| (self.now, frame)));
                continue;
            }
            if wake < arrival {
                self.sender.handle_timeout(self.now);
                continue;
            }
            let (now, sent, number, header) = self.wire.pop_front().expect("a packet arrives");
            let mut arrival = Arrival::new(now, sent, number, MSS);
            arrival.header = header.as_bytes();
            self.acker.on_packet(&arrival);
            self.frames.push((now, self.acker.poll_ack(now).expect("every packet is acknowledged")));
        }
    }

    /// Processes the ACKs that have arrived.
    fn acknowledge(&mut self) {
        for (now, frame) in &self.frames {
            black_box(self.sender.on_ack(*now, frame)).expect("a proper ACK");
        }
    }
}

/// A call of a controller.
enum Event {
    Sent(Sent),
    /// An ACK with its packets and its feedback.
    Ack(Box<Ack<'static>>, Vec<SentPacket>, Rider),
    Feedback(Time, Rider),
    Loss(Loss<'static>, Vec<SentPacket>),
    Timer(Time),
}

/// A controller that records the calls that it receives, so that a second instance can receive the same calls.
struct Scribe {
    controller: Box<dyn Controller>,
    told: Arc<Mutex<Vec<Event>>>,
}

impl Scribe {
    fn note(&self, told: Event) {
        self.told.lock().expect("one thread").push(told);
    }
}

impl Controller for Scribe {
    fn on_sent(&mut self, sent: &Sent) {
        self.note(Event::Sent(*sent));
        self.controller.on_sent(sent);
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        let feedback = Rider::new(ack.feedback).expect("it came on an ACK");
        let mut bare = Box::new(Ack::new(ack.now, &[], ack.rtt));
        (bare.acked, bare.prior_inflight, bare.inflight) = (ack.acked, ack.prior_inflight, ack.inflight);
        (bare.next_number, bare.rate) = (ack.next_number, ack.rate);
        (bare.cwnd_limited, bare.ce) = (ack.cwnd_limited, ack.ce);
        self.note(Event::Ack(bare, ack.packets.to_vec(), feedback));
        self.controller.on_ack(ack);
    }

    fn on_feedback(&mut self, now: Time, feedback: &[u8]) {
        self.note(Event::Feedback(now, Rider::new(feedback).expect("it came on an ACK")));
        self.controller.on_feedback(now, feedback);
    }

    fn on_loss(&mut self, loss: &Loss<'_>) {
        let mut bare = Loss::new(loss.now, &[], loss.cause);
        (bare.lost, bare.prior_inflight, bare.inflight) = (loss.lost, loss.prior_inflight, loss.inflight);
        bare.next_number = loss.next_number;
        self.note(Event::Loss(bare, loss.packets.to_vec()));
        self.controller.on_loss(loss);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.note(Event::Timer(now));
        self.controller.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.controller.poll_timeout()
    }

    fn control(&self) -> Control {
        self.controller.control()
    }

    fn header(&self) -> Rider {
        self.controller.header()
    }

    fn inspect(&self, out: &mut Inspect) {
        self.controller.inspect(out);
    }
}

/// Makes the recorded calls to a second instance of the controller. Returns the number of ACKs among the calls.
fn tell(twin: &mut dyn Controller, told: &[Event]) -> u64 {
    let mut acks = 0;
    for told in told {
        match told {
            Event::Sent(sent) => twin.on_sent(sent),
            Event::Ack(ack, packets, feedback) => {
                let mut whole: Ack<'_> = **ack;
                (whole.packets, whole.feedback) = (packets, feedback.as_bytes());
                twin.on_ack(&whole);
                acks += 1;
            }
            Event::Feedback(now, feedback) => twin.on_feedback(*now, feedback.as_bytes()),
            Event::Loss(loss, packets) => {
                let mut whole: Loss<'_> = *loss;
                whole.packets = packets;
                twin.on_loss(&whole);
            }
            Event::Timer(now) => twin.handle_timeout(*now),
        }
        black_box((twin.control(), twin.poll_timeout()));
    }
    acks
}

/// Runs a benchmark. Criterion measures the time of `measure` per ACK; the time of `prepare` is not measured.
fn bench<S>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    state: &mut S,
    mut prepare: impl FnMut(&mut S),
    mut measure: impl FnMut(&mut S) -> u64,
) {
    for _ in 0..2_000 {
        prepare(state);
        measure(state);
    }
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|iterations| {
            let mut total = Duration::ZERO;
            let mut done = 0;
            while done < iterations {
                prepare(state);
                let start = Instant::now();
                done += measure(state);
                total += start.elapsed();
            }
            total.mul_f64(iterations as f64 / done as f64)
        });
    });
}

/// Whether the scheme reacts to ACKs. The scheme `oracle` does not.
fn works_from_acks(scheme: &Scheme) -> bool {
    ends(scheme.name).controller.sees() != Sees::Truth
}

fn controller(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("controller");
    for scheme in SCHEMES.iter().filter(|scheme| works_from_acks(scheme)) {
        let told = Arc::new(Mutex::new(vec![]));
        let twin = ends(scheme.name).controller;
        let original = ends(scheme.name);
        let scribe = Scribe { controller: original.controller, told: told.clone() };
        let flow = Flow::new(Ends { controller: Box::new(scribe), receiver: original.receiver });
        let prepare = |(flow, _, heard): &mut (Flow, Box<dyn Controller>, Vec<Event>)| {
            for _ in 0..BATCH {
                flow.gather(1);
                flow.acknowledge();
            }
            heard.clear();
            heard.append(&mut told.lock().expect("one thread"));
        };
        bench(&mut group, scheme.name, &mut (flow, twin, vec![]), prepare, |(_, twin, heard)| {
            tell(twin.as_mut(), heard)
        });
    }
    group.finish();
}

fn endpoint(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("endpoint");
    for scheme in SCHEMES.iter().filter(|scheme| works_from_acks(scheme)) {
        bench(
            &mut group,
            scheme.name,
            &mut Flow::new(ends(scheme.name)),
            |flow| flow.gather(BATCH),
            |flow| {
                flow.acknowledge();
                flow.frames.len() as u64
            },
        );
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_secs(1));
    targets = controller, endpoint
}
criterion_main!(benches);
