//! Compares a controller of your own with a scheme of Airpace's list. Both run over the same link in virtual time.
//!
//! `cargo run -p airpace-cc --example own_controller -- [MBIT_PER_S [QUEUE_PACKETS [SCHEME]]]`

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use airpace_cc::{
    Ack, Bytes, Control, Controller, Ends, Inspect, Ledger, Loss, PacerConfig, Rate, Refused, SchemeSpec,
    Setup, Time,
};

/// Size of every packet.
const MSS: Bytes = Bytes(1500);

/// Round-trip time of the link without queueing.
const RTT: Duration = Duration::from_millis(40);

/// Length of a run (milliseconds).
const RUN_MS: u64 = 20_000;

/// Number of packets that the controller tries to keep in the queue.
const QUEUED: f64 = 8.0;

/// The controller: once per round trip, the window moves halfway to the window at which `QUEUED` packets are in the queue.
///
/// Source: Jin, Wei, Low 2004, FAST TCP (Eq. 1 with a gain of one half)
struct KeepsQueue {
    /// Congestion window (packets).
    window: f64,
    /// First packet number of the next round trip.
    round: u64,
}

impl Controller for KeepsQueue {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        let newest = ack.packets.last().map_or(0, |packet| packet.number);
        let Some(latest) = ack.rtt.latest.filter(|_| newest >= self.round) else { return };
        self.round = ack.next_number;
        let share = ack.rtt.min.as_secs_f64() / latest.as_secs_f64();
        let wanted = share * self.window + QUEUED;
        self.window = (0.5 * (self.window + wanted)).min(2.0 * self.window);
    }

    fn on_loss(&mut self, loss: &Loss<'_>) {
        if loss.packets.iter().any(|packet| packet.number >= self.round) {
            self.round = loss.next_number;
            self.window = (0.5 * self.window).max(2.0);
        }
    }

    fn control(&self) -> Control {
        Control { cwnd: MSS.scaled(self.window), pacing_rate: None }
    }

    fn inspect(&self, out: &mut Inspect) {
        out.state = "KeepsQueue";
        out.value("window_packets", self.window);
    }
}

fn own(_: &Setup) -> Result<Ends, Refused> {
    Ok(Ends { controller: Box::new(KeepsQueue { window: 10.0, round: 0 }), receiver: None })
}

/// Results of a run.
#[derive(Debug)]
pub struct Seen {
    /// Ratio of the delivered data to the data that the link could have delivered.
    pub utilization: f64,
    /// Smoothed round-trip time at the end.
    pub rtt: Duration,
    /// Lost packets.
    pub lost: u64,
}

/// Runs a flow over a link of this rate, whose queue holds this many packets and drops those that arrive at a full queue.
fn run(spec: &SchemeSpec, link: Rate, queue: u64) -> Result<Seen, Box<dyn Error>> {
    let ends = spec.build(&Setup::seeded(MSS, 1))?;
    let mut ledger = Ledger::new(Time::ZERO, MSS, PacerConfig::default(), ends.controller);
    let (mut free, mut number) = (Time::ZERO, 0);
    // The outcome of each packet: the time at which the sender learns the outcome, the packet number, whether the
    // packet was delivered.
    let mut outcomes: VecDeque<(Time, u64, bool)> = VecDeque::new();
    for now in (0..RUN_MS).map(Time::from_millis) {
        while let Some((_, number, is_delivered)) = outcomes.front().copied().filter(|(at, ..)| *at <= now) {
            outcomes.pop_front();
            if is_delivered {
                ledger.on_acked(number)
            } else {
                ledger.on_lost(number)
            };
        }
        ledger.settle(now, &[]);
        ledger.handle_timeout(now);
        loop {
            if let Err(blocked) = ledger.allowance(now, MSS) {
                ledger.on_held(now, MSS, blocked);
                break;
            }
            ledger.on_sent(now, number, MSS, false);
            let is_delivered = free.max(now) - now <= link.time_for(Bytes(MSS.0 * queue));
            if is_delivered {
                free = free.max(now) + link.time_for(MSS);
            }
            outcomes.push_back((free.max(now) + RTT, number, is_delivered));
            number += 1;
        }
    }
    let span = Duration::from_millis(RUN_MS);
    let capacity = link.bytes_in(span).0 as f64;
    let rtt = ledger.rtt().ok_or("no packet was acknowledged")?.smoothed;
    Ok(Seen { utilization: ledger.delivered().0 as f64 / capacity, rtt, lost: ledger.counts().lost })
}

/// The value of the argument with index `at`, which must be at least `min`; `default` if the argument is not given.
fn number(args: &[String], at: usize, what: &str, min: u64, default: u64) -> Result<u64, String> {
    let Some(text) = args.get(at) else { return Ok(default) };
    let number = text.parse().ok().filter(|number| *number >= min);
    number.ok_or_else(|| format!("{what}: `{text}` is not a whole number of at least {min}"))
}

/// Runs this example's controller, then the scheme of the list, with the program's arguments.
///
/// # Errors
/// An argument is not valid, or a scheme cannot be built.
pub fn compare(args: &[String]) -> Result<Vec<(String, Seen)>, Box<dyn Error>> {
    let link = Rate::from_bps(1_000_000 * number(args, 0, "MBIT_PER_S", 1, 20)?.min(10_000));
    let queue = number(args, 1, "QUEUE_PACKETS", 1, 100)?;
    let of_list = SchemeSpec::parse(args.get(2).map_or("cubic", String::as_str))?;
    let specs = [SchemeSpec::own("keeps-queue", Arc::new(own))?, of_list];
    specs.iter().map(|spec| Ok((spec.text().to_owned(), run(spec, link, queue)?))).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    for (name, seen) in compare(&args)? {
        let (percent, rtt_ms) = (100.0 * seen.utilization, 1e3 * seen.rtt.as_secs_f64());
        println!("{name}: {percent:.1} % of the link, RTT {rtt_ms:.1} ms, {} packets lost", seen.lost);
    }
    Ok(())
}
