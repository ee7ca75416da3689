//! Closed loops: the C controllers send through the simulator over paths with random losses. Their throughput (±5 %)
//! and mean delay (±10 %) equal the values of the Rust controllers. In a replay, the Rust controller's windows
//! determine the inputs; in these tests, each decision of the C controller affects its later inputs.

use crate::common;

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use airpace_bpf::replay::Replay;
use airpace_bpf::replay::morc::MorcReplay;
use airpace_bpf::replay::pbe::PbeReplay;
use airpace_bpf::twin::morc::MorcTuning;
use airpace_bpf::twin::pbe::PbeTuning;
use airpace_bpf::twin::{KernelTuning, State};
use airpace_cc::ack_trace::{Entry, Traced};
use airpace_cc::controller::{Ack, Control, Inspect, Loss, Sees, Sent, Truth};
use airpace_cc::registry::DeviceFlows;
use airpace_cc::scheme::{Ends, Options, Setup};
use airpace_cc::{Controller, SchemeSpec, biscay, morc, pbe};
use airpace_core::{Rider, Time};
use airpace_event::{Event, Fate, Recorder};
use airpace_radio::RadioReport;
use airpace_sim::{Scenario, builtin};

/// A controller in C. It returns no decision while the kernel's BBR controls the flow.
type InC = Box<dyn FnMut(&Entry) -> Option<Control> + Send>;

/// The C controller, which receives the same calls as the Rust controller. The Rust controller decides before the first
/// entry, and while the C controller returns no decision.
struct Looped {
    rust: Traced,
    answer: Arc<Mutex<Option<Control>>>,
}

impl Controller for Looped {
    fn sees(&self) -> Sees {
        self.rust.sees()
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.rust.on_sent(sent);
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.rust.on_ack(ack);
    }

    fn on_feedback(&mut self, now: Time, feedback: &[u8]) {
        self.rust.on_feedback(now, feedback);
    }

    fn on_loss(&mut self, loss: &Loss<'_>) {
        self.rust.on_loss(loss);
    }

    fn on_radio(&mut self, report: &RadioReport) {
        self.rust.on_radio(report);
    }

    fn on_device(&mut self, now: Time, flows: &DeviceFlows) {
        self.rust.on_device(now, flows);
    }

    fn on_truth(&mut self, truth: &Truth) {
        self.rust.on_truth(truth);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.rust.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.rust.poll_timeout()
    }

    fn control(&self) -> Control {
        self.answer.lock().unwrap().unwrap_or_else(|| self.rust.control())
    }

    fn header(&self) -> Rider {
        self.rust.header()
    }

    fn is_ecn_capable(&self) -> bool {
        self.rust.is_ecn_capable()
    }

    fn inspect(&self, out: &mut Inspect) {
        self.rust.inspect(out);
    }
}

fn in_c(scheme: &str, setup: &Setup) -> InC {
    let mss = setup.mss;
    match scheme {
        "morc" => {
            let options = Options::defaults(&morc::SCHEME);
            let mut c = MorcReplay::new(MorcTuning::new(&morc::profile(&options).unwrap()).unwrap(), mss);
            Box::new(move |entry| {
                let answer = c.tell(entry);
                Some(Control { cwnd: answer.cwnd, pacing_rate: Some(answer.pacing_rate) })
            })
        }
        "pbe" => {
            let options = Options::defaults(&pbe::SCHEME);
            let tuning = PbeTuning::new(&pbe::Tuning::read(&options).unwrap()).unwrap();
            let mut c = PbeReplay::new(&tuning, mss, setup.rng.clone());
            Box::new(move |entry| {
                let answer = c.tell(entry);
                Some(Control { cwnd: answer.cwnd, pacing_rate: Some(answer.pacing_rate) })
            })
        }
        _ => {
            let options = Options::defaults(&biscay::SCHEME);
            let mut c =
                Replay::new(KernelTuning::new(&biscay::Tuning::read(&options).unwrap()).unwrap(), mss);
            Box::new(move |entry| {
                let answer = c.tell(entry);
                let is_own = answer.state != State::Fallback;
                is_own.then_some(Control { cwnd: answer.cwnd, pacing_rate: answer.pacing_rate })
            })
        }
    }
}

/// Returns the scheme with its C controller.
fn looped(scheme: &'static str) -> SchemeSpec {
    let make = move |setup: &Setup| {
        let spec = SchemeSpec::parse(scheme).unwrap();
        let Ends { controller, receiver } = spec.build(setup).unwrap();
        let answer = Arc::new(Mutex::new(None));
        let (kept, mut c) = (Arc::clone(&answer), in_c(scheme, setup));
        let tape = Box::new(move |entry: &Entry| *kept.lock().unwrap() = c(entry));
        let rust = Traced::new(controller, &spec, tape);
        Ok(Ends { controller: Box::new(Looped { rust, answer }), receiver })
    };
    SchemeSpec::own("in-c", Arc::new(make)).unwrap()
}

/// Traffic that the receiver received.
#[derive(Default)]
struct Arrivals {
    bytes: u64,
    delay_ms: f64,
    packets: f64,
}

impl Recorder for Arrivals {
    fn record(&mut self, event: Event<'_>) {
        if let Event::Arrived(arrived) = event
            && arrived.fate == Fate::Delivered
        {
            self.bytes += arrived.packet.bytes.0;
            self.delay_ms += (arrived.time - arrived.packet.sent).as_secs_f64() * 1e3;
            self.packets += 1.0;
        }
    }
}

/// Runs a scenario with three seeds. Returns the mean throughput in Mbit/s and the mean one-way delay in ms.
fn carried(scenario: &Scenario, spec: &SchemeSpec) -> (f64, f64) {
    let mut all = Arrivals::default();
    for seed in 1..=3 {
        airpace_sim::run(scenario, spec, seed, &mut all, &mut |_| ControlFlow::Continue(())).unwrap();
    }
    (all.bytes as f64 * 8e-6 / (3.0 * scenario.duration_s), all.delay_ms / all.packets)
}

const WIRED: &str = "name = \"wired\"\nduration_s = 20\n[internet]\nrate_mbps = 6.6\nbuffer.ms = 200\n\
                     [[flow]]\nrtt_ms = 100\n";

#[test]
fn over_random_loss_each_carries_in_c_what_it_carries_in_rust() {
    let cell = builtin().iter().find(|(name, _)| *name == "stationary-idle").unwrap().1;
    for (scheme, text, seconds) in [("morc", WIRED, "20"), ("pbe", cell, "6"), ("biscay", cell, "6")] {
        for (loss, jitter_ms) in [("0", "0"), ("0.01", "1"), ("0.05", "1"), ("0.1", "1")] {
            let sets = [
                ("forward.loss", loss),
                ("forward.jitter_mean_ms", jitter_ms),
                ("duration_s", seconds),
                ("expect", "[]"),
            ];
            let scenario = common::changed("loops", text, &sets).unwrap();
            let (rust, rust_ms) = carried(&scenario, &SchemeSpec::parse(scheme).unwrap());
            let (c, c_ms) = carried(&scenario, &looped(scheme));
            let said =
                format!("{scheme}, loss {loss}: Rust {rust:.2} Mbit/s, {rust_ms:.1} ms; C {c:.2}, {c_ms:.1}");
            println!("{said}");
            assert!((c / rust - 1.0).abs() < 0.05, "{said}");
            assert!((c_ms / rust_ms - 1.0).abs() < 0.1, "{said}");
        }
    }
}
