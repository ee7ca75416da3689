//! Comparison of the C and Rust versions of the window that BISCAY's receiver advertises to any sender, over a queue and
//! over arbitrary events.

use std::collections::VecDeque;
use std::time::Duration;

use airpace_bpf::twin::KernelTuning;
use airpace_bpf::twin::active::DeviceView;
use airpace_bpf::twin::window::Window;
use airpace_cc::SchemeSpec;
use airpace_cc::biscay::Tuning;
use airpace_cc::biscay::echo::EchoRtt;
use airpace_cc::biscay::feedback::write_echo;
use airpace_cc::biscay::receiver::BiscayReceiver;
use airpace_cc::controller::{Arrival, Inspect, Receiver};
use airpace_cc::registry::DeviceFlows;
use airpace_core::{Bits, Bytes, Direction, Rate, Time};
use airpace_radio::{BitLayer, CarrierId, Dci, OwnRadio, PrbSet, RadioReport, Rnti, Scope, Slot};
use proptest::prelude::*;

const MSS: Bytes = Bytes(1500);

/// Maximum difference of two windows in bytes, caused by rounding of a rate and of a product.
const TOLERANCE: u64 = 2;

/// A modem's report of one millisecond with `bits` granted bits.
fn report(now: Time, bits: u64) -> RadioReport {
    let own = Rnti(9);
    let subframe = now.as_nanos() / 1_000_000;
    RadioReport {
        carrier: CarrierId(0),
        time: now,
        slot: Slot::subframe_of_lte(subframe),
        scope: Scope::Everyone,
        carrier_prbs: Some(50),
        cfi: Some(1),
        symbols: None,
        dcis: vec![Dci {
            rnti: own,
            direction: Direction::Downlink,
            prbs: PrbSet::run(0, 10),
            mcs: [Some(10), None],
            tbs: [Bits(bits), Bits::ZERO],
            harq: Some((subframe % 8) as u8),
            ndi: [Some((subframe / 8).is_multiple_of(2)), None],
            layers: 1,
            ..Dci::default()
        }],
        own: Some(OwnRadio {
            rnti: own,
            active: true,
            sinr_db: Some(20.0),
            bits_per_prb: Some(500.0),
            decoded: None,
            uplink_queue: None,
        }),
        layer: BitLayer::Transport,
    }
}

/// The receiver in Rust and in C, with the same inputs.
struct Both {
    rust: BiscayReceiver,
    c: Window,
    kernel: KernelTuning,
    stale_after: Duration,
    device: DeviceFlows,
    heard: bool,
    last_heard: Option<Time>,
    /// Number of compared windows, and of those without a limit.
    compared: [u64; 2],
}

impl Both {
    fn new(scheme: &str) -> Both {
        let spec = SchemeSpec::parse(scheme).unwrap();
        let tuning = Tuning::read(spec.options()).unwrap();
        let kernel = KernelTuning::new(&tuning).expect("the kernel knows them");
        Both {
            rust: BiscayReceiver::new(tuning, MSS, true),
            c: Window::new(kernel),
            kernel,
            stale_after: tuning.stale_after,
            device: DeviceFlows::ALONE,
            heard: false,
            last_heard: None,
            compared: [0; 2],
        }
    }

    fn report(&mut self, now: Time, bits: u64) {
        self.rust.on_radio(&report(now, bits));
        self.heard = true;
    }

    /// The Rust receiver has no clock between two calls, and takes the time of the next call as a report's arrival
    /// time.
    fn see_clock(&mut self, now: Time) {
        if std::mem::take(&mut self.heard) {
            self.last_heard = Some(now);
        }
    }

    fn packet(&mut self, now: Time, sent_ack: Time) {
        self.see_clock(now);
        let echoed = EchoRtt::timestamp(sent_ack);
        let (header, device) = (write_echo(echoed), self.device);
        let header = header.as_bytes();
        let mut arrival = Arrival::new(now, sent_ack, 0, MSS);
        (arrival.header, arrival.device) = (header, device);
        self.rust.on_packet(&arrival);
        let micros = EchoRtt::timestamp(now).wrapping_sub(echoed);
        self.c.on_echo(now, Duration::from_micros(micros.into()));
    }

    /// Returns the window of the two versions, or an error if their windows differ.
    fn window(&mut self, now: Time) -> Result<Option<Bytes>, String> {
        self.see_clock(now);
        let mut seen = Inspect::default();
        self.rust.inspect(&mut seen);
        let (_, mbps) = seen.values[0];
        let is_fresh = self.last_heard.is_some_and(|heard| now - heard <= self.stale_after);
        let sampled = (is_fresh && !mbps.is_nan()).then(|| Rate::from_bps((mbps * 1e6 + 0.5) as u64));
        let DeviceFlows { flows, apps, app_flows, .. } = self.device;
        let [flows, apps, app_flows] = [flows, apps, app_flows].map(u64::from);
        let part = self.kernel.part(&DeviceView { flows, apps, app_flows, used: 0, moved: 0 });
        let rust = self.rust.window(now);
        let c = self.c.get(now, MSS, sampled, part);
        let is_same = match (rust, c) {
            (Some(rust), Some(c)) => rust.0.abs_diff(c.0) <= TOLERANCE,
            (rust, c) => rust == c,
        };
        self.compared[usize::from(c.is_none())] += 1;
        if is_same { Ok(c) } else { Err(format!("at {now:?}: Rust {rust:?}, C {c:?}, {sampled:?}")) }
    }
}

/// A download from a sender that always fills its window. The cell's rate changes every five seconds, and the path beyond
/// the cell has a delay of 20 ms in each direction.
fn download(scheme: &str, flows: u16) -> [u64; 2] {
    let half = Duration::from_millis(20);
    let mut both = Both::new(scheme);
    both.device = DeviceFlows { flows, ..DeviceFlows::ALONE };
    // Packets on the way to the cell, with their arrival times and echoed time stamps, and packets in the cell's queue.
    let (mut coming, mut queue) = (VecDeque::new(), VecDeque::<Time>::new());
    let mut now = Time::from_secs(1_000);
    coming.extend((0..10).map(|_| (now + half * 2, now)));
    let (mut budget, mut in_flight, mut granted) = (0_u64, 10_u64, 0);
    for milli in 0..65_000_u64 {
        now += Duration::from_millis(1);
        while coming.front().is_some_and(|(at, _)| *at <= now) {
            queue.extend(coming.pop_front().map(|(_, echoed)| echoed));
        }
        let mbps = [12, 4, 20, 9][(milli / 5_000) as usize % 4];
        // The modem sends no reports for 300 ms.
        let is_silent = (30_000..30_300).contains(&milli);
        budget = (budget + mbps * 1_000).min(24_000);
        while budget >= MSS.0 * 8 {
            let Some(echoed) = queue.pop_front() else { break };
            budget -= MSS.0 * 8;
            granted += MSS.0 * 8;
            in_flight -= 1;
            both.packet(now, echoed);
            let window = both.window(now).unwrap_or_else(|unlike| panic!("{scheme}: {unlike}"));
            // If the receiver sets no limit, the sender fills a buffer of 400 packets.
            let may = window.map_or(400, |window| (window.0 / MSS.0).max(1));
            while in_flight < may {
                in_flight += 1;
                coming.push_back((now + half * 2, now));
            }
        }
        if !is_silent {
            both.report(now, std::mem::take(&mut granted));
        }
        if in_flight == 0 {
            in_flight = 1;
            coming.push_back((now + half * 2, now));
        }
    }
    println!("{scheme}, {flows} flows: {:?}", both.compared);
    both.compared
}

#[test]
fn a_download_over_a_cell_is_offered_the_same_windows() {
    for scheme in
        ["biscay@window", "biscay@window:startup=first:hold=off", "biscay@window:rtt_window_s=3:split=app"]
    {
        for flows in [1, 3] {
            let [bounded, unbounded] = download(scheme, flows);
            assert!(bounded > 20_000 && unbounded > 10, "{scheme}: {bounded} and {unbounded}");
        }
    }
}

proptest! {
    #[test]
    fn arbitrary_events_get_the_same_windows(
        steps in prop::collection::vec((0u64..30_000_000, 0u8..4, 0u64..60_000, 15_000_000u64..300_000_000, 1u16..9), 1..300),
    ) {
        let mut both = Both::new("biscay@window:bandwidth=tbs:tbs_ttis=1:sample_ms=1:rtt_window_s=1");
        let mut now = Time::from_secs(1_000);
        for (wait, what, bits, rtt, flows) in steps {
            now += Duration::from_nanos(wait);
            match what {
                0 => both.report(now, bits),
                1 | 2 => {
                    both.device = DeviceFlows { flows, ..DeviceFlows::ALONE };
                    both.packet(now, now - Duration::from_nanos(rtt));
                }
                _ => {
                    let window = both.window(now);
                    prop_assert!(window.is_ok(), "{}", window.unwrap_err());
                }
            }
        }
    }
}
