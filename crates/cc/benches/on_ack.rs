//! What one ACK costs: [`Sender::on_ack`] with each scheme's controller, on a flow that fills a 100 Mbit/s link.
//!
//! `cargo bench -p airpace-cc --bench on_ack`

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::{Duration, Instant};

use airpace_cc::controller::Arrival;
use airpace_cc::endpoint::{AckFrame, AckPolicy, Acker, Backlog, Sender, SenderConfig};
use airpace_cc::pacer::PacerConfig;
use airpace_cc::scheme::SCHEMES;
use airpace_cc::{SchemeSpec, Setup};
use airpace_core::{Bytes, FlowId, Rate, Rider, Streams, Time};
use criterion::{Criterion, criterion_group, criterion_main};

const MSS: Bytes = Bytes(1500);
const RATE: Rate = Rate::from_bps(100_000_000);
const DELAY: Duration = Duration::from_millis(40);
/// The queue holds so long.
const BUFFER: Duration = Duration::from_millis(40);
/// ACKs per measurement: a few, so that reading the clock does not count.
const BATCH: usize = 32;

/// A flow over a link, without events: every packet's arrival is known when it leaves.
struct Flow {
    sender: Sender,
    acker: Acker,
    now: Time,
    busy_until: Time,
    /// Packets on their way: arrival, sending, number, header.
    wire: VecDeque<(Time, Time, u64, Rider)>,
    frames: Vec<(Time, AckFrame)>,
}

impl Flow {
    fn new(scheme: &str) -> Flow {
        let rng = Streams::new(1).stream("bench");
        let ends = SchemeSpec::parse(scheme).unwrap().build(&Setup { mss: MSS, rng }).unwrap();
        let config = SenderConfig {
            flow: FlowId(0),
            mss: MSS,
            pacer: PacerConfig::default(),
            ack: AckPolicy::default(),
        };
        Flow {
            sender: Sender::new(config, ends.controller, Backlog::Unlimited),
            acker: Acker::new(AckPolicy::default(), ends.receiver),
            now: Time::ZERO,
            busy_until: Time::ZERO,
            wire: VecDeque::new(),
            frames: vec![],
        }
    }

    /// Lets the flow go on, without measuring, until the next few ACKs are on hand.
    fn gather(&mut self) {
        self.frames.clear();
        while self.frames.len() < BATCH {
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
            let wake = self.sender.next().unwrap_or(Time::NEVER);
            let arrival = self.wire.front().map_or(Time::NEVER, |packet| packet.0);
            self.now = self.now.max(wake.min(arrival));
            if wake < arrival {
                self.sender.on_timeout(self.now);
                continue;
            }
            let (now, sent, number, header) = self.wire.pop_front().expect("a packet arrives");
            let header = header.as_bytes();
            self.acker.on_packet(&Arrival { now, sent, number, bytes: MSS, header, device_flows: 1 });
            self.frames.push((now, self.acker.poll_ack(now).expect("every packet is acknowledged")));
        }
    }

    /// Time taken to process the ACKs on hand.
    fn measure(&mut self) -> Duration {
        let start = Instant::now();
        for (now, frame) in &self.frames {
            black_box(self.sender.on_ack(*now, frame)).expect("a proper ACK");
        }
        start.elapsed()
    }
}

fn on_ack(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("on_ack");
    // The Oracle and the constant rate do nothing on an ACK: theirs is the endpoint's own cost.
    for scheme in SCHEMES.iter().filter(|scheme| scheme.name != "oracle") {
        let mut flow = Flow::new(scheme.name);
        for _ in 0..2_000 {
            flow.gather();
            flow.measure();
        }
        group.bench_function(scheme.name, |bencher| {
            bencher.iter_custom(|iterations| {
                let mut total = Duration::ZERO;
                let mut done = 0;
                while done < iterations {
                    flow.gather();
                    total += flow.measure();
                    done += BATCH as u64;
                }
                total.mul_f64(iterations as f64 / done as f64)
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(Duration::from_secs(3)).warm_up_time(Duration::from_secs(1));
    targets = on_ack
}
criterion_main!(benches);
