//! Results of `airpace-cc` on recorded cellular links: every scheme and preset alone and beside CUBIC, over mahimahi
//! traces with a delay of 20 ms in each direction and a deep drop-tail queue. A change of behaviour is visible as a
//! text diff.
//!
//! After an intended change, run `INSTA_UPDATE=always cargo test -p airpace-sim --test runs recorded`, and state the reason
//! for the change.

use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use airpace_event::{Event, Fate, Recorder};
use airpace_sim::{Scenario, SchemeSpec};

/// Recordings of very different links: LTE stationary and driving, a 3G link with long outages, and steps.
const TRACES: [&str; 4] =
    ["TMobile-LTE-short.down", "nyc-taxi3.down", "Verizon-EVDO-driving.down", "orca-step-10s-3-level.down"];

/// Arrived data of each flow, and the link's capacity.
#[derive(Default)]
struct Tally {
    flows: Vec<Flow>,
    capacity_bytes: u64,
}

#[derive(Clone, Default)]
struct Flow {
    bytes: u64,
    delays_ms: Vec<f64>,
    sent: u64,
    dropped: u64,
}

impl Tally {
    fn flow(&mut self, index: u16) -> &mut Flow {
        let index = usize::from(index);
        if self.flows.len() <= index {
            self.flows.resize_with(index + 1, Flow::default);
        }
        &mut self.flows[index]
    }
}

impl Recorder for Tally {
    fn record(&mut self, event: Event<'_>) {
        match event {
            Event::Sent(packet) => self.flow(packet.flow.0).sent += 1,
            Event::Capacity(capacity) => self.capacity_bytes += capacity.bytes.0,
            Event::Arrived(arrived) if arrived.fate == Fate::Delivered => {
                let one_way = arrived.time - arrived.packet.sent;
                let queueing = one_way.saturating_sub(arrived.propagation_delay);
                let flow = self.flow(arrived.packet.flow.0);
                flow.bytes += arrived.packet.bytes.0;
                flow.delays_ms.push(queueing.as_secs_f64() * 1e3);
            }
            Event::Arrived(arrived) => self.flow(arrived.packet.flow.0).dropped += 1,
            _ => {}
        }
    }
}

fn run(trace: &Path, schemes: &[&str]) -> Tally {
    let mut text = format!(
        "name = \"recorded\"\nduration_s = 30\n[trace]\nfile = {trace:?}\nallow_holes = true\n\
         link.buffer.bytes = 3_000_000\n"
    );
    for scheme in schemes {
        write!(text, "[[flow]]\nrtt_ms = 40\nscheme = \"{scheme}\"\n").unwrap();
    }
    let scenario = Scenario::load(&text, "recorded.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let mut tally = Tally::default();
    let spec = SchemeSpec::parse(schemes[0]).unwrap();
    airpace_sim::run(&scenario, &spec, 1, &mut tally, &mut |_| ControlFlow::Continue(())).unwrap();
    tally
}

fn row(trace: &Path, choice: &str) -> String {
    let mut alone = run(trace, &[choice]);
    let capacity = alone.capacity_bytes as f64;
    let flow = alone.flow(0);
    flow.delays_ms.sort_by(f64::total_cmp);
    let count = flow.delays_ms.len();
    let mean_ms = flow.delays_ms.iter().sum::<f64>() / count as f64;
    let p95_ms = flow.delays_ms.get(count * 95 / 100).copied().unwrap_or(f64::NAN);
    let mut beside = run(trace, &[choice, "cubic"]);
    let (own, cubic) = (beside.flow(0).bytes as f64, beside.flow(1).bytes as f64);
    let flow = alone.flow(0);
    format!(
        "{:>18} {:11.1} {:14.1} {:7.1} {:6.2} {:13.2} {:5.2}\n",
        choice,
        flow.bytes as f64 / capacity * 100.0,
        mean_ms,
        p95_ms,
        flow.dropped as f64 / (flow.sent as f64).max(1.0) * 100.0,
        own / (own + cubic),
        (own + cubic) * (own + cubic) / (2.0 * (own * own + cubic * cubic)),
    )
}

#[test]
fn the_table_on_recorded_links() {
    let Some(folder) = airpace_testing::recordings("traces") else { return };
    let choices = airpace_cc::schemes::choices();
    let rows = Mutex::new(vec![String::new(); TRACES.len() * choices.len()]);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(trace) = TRACES.get(index / choices.len()) else { break };
                    let row = row(&folder.join(trace), &choices[index % choices.len()]);
                    rows.lock().unwrap()[index] = row;
                }
            });
        }
    });
    let rows = rows.into_inner().unwrap();
    let mut table = String::new();
    for (trace, rows) in TRACES.iter().zip(rows.chunks(choices.len())) {
        writeln!(table, "== {trace}, 40 ms, buffer 3 MB").unwrap();
        table += "            scheme utilization  queueing mean     p95   lost  beside CUBIC  Jain\n";
        table += "                             %             ms      ms      %         share\n";
        table.extend(rows.iter().map(String::as_str));
    }
    insta::assert_snapshot!(table);
}
