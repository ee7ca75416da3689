//! Guarantees of every scheme under arbitrary events and paths.

use crate::plan;

use std::time::Duration;

use airpace_cc::controller::{
    Ack, Arrival, Controller, Inspect, Loss, LossCause, RateSample, Receiver, Rtt, Sees, Sent, SentPacket,
};
use airpace_cc::registry::DeviceFlows;
use airpace_cc::schemes::{self, SCHEMES};
use airpace_cc::{SchemeSpec, Setup};
use airpace_core::{Bits, Bytes, Direction, Rate, Streams, Time};
use airpace_radio::{BitLayer, CarrierId, Dci, OwnRadio, PrbSet, RadioReport, Rnti, Scope, Slot};
use plan::{Conditions, MSS, Plan};
use proptest::prelude::*;

/// Every scheme choice. Schemes that can use ECN marks are listed a second time with marks enabled.
fn choices() -> Vec<String> {
    let marks = SCHEMES.iter().filter(|scheme| scheme.options.iter().any(|option| option.name == "ecn"));
    schemes::choices().into_iter().chain(marks.map(|scheme| format!("{}:ecn=on", scheme.name))).collect()
}

#[test]
fn a_scheme_is_drawn_like_no_other_and_its_defaults_can_be_read() {
    for (index, scheme) in SCHEMES.iter().enumerate() {
        assert!(!scheme.summary.is_empty());
        for other in &SCHEMES[..index] {
            assert_ne!(scheme.name, other.name);
            assert_ne!(scheme.style.colour, other.style.colour, "{} and {}", scheme.name, other.name);
        }
        for option in scheme.options {
            let default = format!("{}:{}={}", scheme.name, option.name, option.default);
            assert!(SchemeSpec::parse(&default).is_ok(), "`{default}` is a valid choice");
            let nonsense = format!("{}:{}=nonsense", scheme.name, option.name);
            let refused = SchemeSpec::parse(&nonsense).expect_err("nonsense is refused").to_string();
            assert!(refused.contains(option.name) && refused.contains("give "), "`{nonsense}`: {refused}");
        }
    }
}

#[test]
fn only_a_scheme_that_steers_by_delay_takes_the_suffix_and_it_goes_before_preset_and_options() {
    for scheme in SCHEMES {
        let text = format!("{}+ran", scheme.name);
        match SchemeSpec::parse(&text) {
            Ok(spec) => assert!(spec.with_ran() && scheme.takes_ran, "{text}"),
            Err(error) => {
                assert!(!scheme.takes_ran, "{text}: {error}");
                assert!(error.to_string().contains("copa+ran"), "{error}");
            }
        }
    }
    let spec = SchemeSpec::parse("copa+ran@pantheon:delta=0.5").unwrap();
    assert_eq!((spec.scheme().name, spec.preset(), spec.with_ran()), ("copa", Some("pantheon"), true));
    assert!(SchemeSpec::parse("copa+fan").is_err() && SchemeSpec::parse("copa@pantheon+ran").is_err());
    assert!(!SchemeSpec::parse("copa").unwrap().with_ran());
}

#[test]
fn only_the_oracle_sees_what_no_transport_can_know() {
    let sees = |choice: &str| {
        let setup = Setup::new(MSS, Streams::new(1).stream("sees"));
        let ends = SchemeSpec::parse(choice).and_then(|spec| spec.build(&setup)).unwrap();
        (ends.controller.sees(), ends.receiver.map_or(Sees::Packets, |receiver| receiver.sees()))
    };
    for choice in choices() {
        let expected = match choice.split(['@', ':']).next().unwrap() {
            "oracle" => (Sees::Truth, Sees::Packets),
            "pbe" => (Sees::Packets, Sees::Device),
            // The scheme uses the receiving device to control the data that the device receives.
            "biscay" if choice.contains("window") => (Sees::Packets, Sees::DeviceOnly),
            "biscay" => (Sees::Device, Sees::Device),
            // The receiver of `+ran` uses radio reports.
            name if name.ends_with("+ran") => (Sees::Packets, Sees::Device),
            _ => (Sees::Packets, Sees::Packets),
        };
        assert_eq!(sees(&choice), expected, "{choice}: the controller, and the receiver half");
    }
}

#[test]
fn memory_is_bounded_even_when_nothing_is_ever_acknowledged() {
    for choice in choices() {
        let mut plan = Plan::new(Conditions { radio: true, ..Conditions::default() });
        let flow = plan.start(&choice);
        plan.run_for(Duration::from_secs(3));
        plan.rate_from(plan.now(), Rate::ZERO);
        let mut most = 0;
        for _ in 0..60 {
            plan.run_for(Duration::from_secs(1));
            most = most.max(plan.sender(flow).remembered());
        }
        // The bound is 60 Mbit/s, the rate of the fastest scheme that ignores all feedback, multiplied by the time for
        // which the record of a lost packet is kept.
        assert!(most < 25_000, "{choice} remembers {most} packets");
    }
}

/// One event that may happen to a controller or to its receiver.
#[derive(Clone, Debug)]
enum Happening {
    Sent { bytes: u64 },
    Acked { packets: u64, rtt_us: u64, rate_bps: Option<u64>, feedback: bool, cwnd_limited: bool },
    Lost { packets: u64, persistent: bool },
    Arrived { one_way_us: u64 },
    Device { flows: u16, apps: u16, app_flows: u16, used_share: f64 },
    Radio { prbs: u16, others: u16, bits_per_prb: f64, active: bool },
    Timer,
    ReceiverTimer,
    Silence { ms: u64 },
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        6 => (1u64..=1500).prop_map(|bytes| Happening::Sent { bytes }),
        6 => (1u64..20, 0u64..3_000_000, prop::option::of(0u64..2_000_000_000), any::<bool>(), any::<bool>()).prop_map(
            |(packets, rtt_us, rate_bps, feedback, cwnd_limited)| {
                Happening::Acked { packets, rtt_us, rate_bps, feedback, cwnd_limited }
            }
        ),
        2 => (1u64..20, any::<bool>()).prop_map(|(packets, persistent)| Happening::Lost { packets, persistent }),
        4 => (0u64..2_000_000).prop_map(|one_way_us| Happening::Arrived { one_way_us }),
        4 => (0u16..=100, 0u16..=100, 0.0f64..2_000.0, any::<bool>())
            .prop_map(|(prbs, others, bits_per_prb, active)| Happening::Radio { prbs, others, bits_per_prb, active }),
        1 => (1u16..=u16::MAX, 1u16..50, 1u16..50, 0.0f64..=1.0).prop_map(|(flows, apps, app_flows, used_share)| {
            Happening::Device { flows, apps, app_flows, used_share }
        }),
        2 => Just(Happening::Timer),
        2 => Just(Happening::ReceiverTimer),
        1 => (1u64..20_000).prop_map(|ms| Happening::Silence { ms }),
    ]
}

/// A controller and its receiver. Their events need not be consistent.
struct Victim {
    choice: String,
    controller: Box<dyn Controller>,
    receiver: Option<Box<dyn Receiver>>,
    now: Time,
    next_number: u64,
    oldest: u64,
    inflight: Bytes,
    delivered: Bytes,
    lost: Bytes,
    names: Option<Vec<&'static str>>,
    device: DeviceFlows,
}

impl Victim {
    fn new(choice: &str) -> Victim {
        let setup = Setup::new(MSS, Streams::new(1).stream("victim"));
        let ends = SchemeSpec::parse(choice).unwrap().build(&setup).unwrap();
        Victim {
            choice: choice.to_owned(),
            controller: ends.controller,
            receiver: ends.receiver,
            now: Time::from_millis(5),
            next_number: 0,
            oldest: 0,
            inflight: Bytes::ZERO,
            delivered: Bytes::ZERO,
            lost: Bytes::ZERO,
            names: None,
            device: DeviceFlows::ALONE,
        }
    }

    fn suffer(&mut self, happening: &Happening) {
        self.now += Duration::from_micros(100);
        match *happening {
            Happening::Sent { bytes } => self.send(Bytes(bytes)),
            Happening::Acked { packets, rtt_us, rate_bps, feedback, cwnd_limited } => {
                self.ack(packets, Duration::from_micros(rtt_us), rate_bps, feedback, cwnd_limited);
            }
            Happening::Lost { packets, persistent } => self.lose(packets, persistent),
            Happening::Arrived { one_way_us } => {
                let header = self.controller.header();
                let sent = self.now - Duration::from_micros(one_way_us);
                let mut arrival = Arrival::new(self.now, sent, self.next_number, MSS);
                (arrival.header, arrival.device) = (header.as_bytes(), self.device);
                if let Some(receiver) = &mut self.receiver {
                    receiver.on_packet(&arrival);
                }
            }
            Happening::Radio { prbs, others, bits_per_prb, active } => {
                self.radio(prbs, others, bits_per_prb, active);
            }
            Happening::Device { flows, apps, app_flows, used_share } => {
                self.device = DeviceFlows { flows, apps, app_flows, used_share };
                self.controller.on_device(self.now, &self.device);
            }
            Happening::Timer => {
                if let Some(due) = self.controller.poll_timeout() {
                    self.now = self.now.max(due.min(self.now + Duration::from_secs(60)));
                    self.controller.handle_timeout(self.now);
                }
            }
            Happening::ReceiverTimer => self.time_receiver(),
            Happening::Silence { ms } => self.now += Duration::from_millis(ms),
        }
        self.check();
    }

    fn time_receiver(&mut self) {
        let Some(receiver) = &mut self.receiver else { return };
        let Some(due) = receiver.poll_timeout() else { return };
        self.now = self.now.max(due.min(self.now + Duration::from_secs(60)));
        if receiver.handle_timeout(self.now) {
            let feedback = receiver.feedback(self.now);
            self.controller.on_feedback(self.now, feedback.as_bytes());
        }
        let next = receiver.poll_timeout();
        assert!(next.is_none_or(|next| next > self.now), "{}: a timer that spins", self.choice);
    }

    fn send(&mut self, bytes: Bytes) {
        self.inflight += bytes;
        self.controller.on_sent(&Sent::new(self.now, self.next_number, bytes, self.inflight));
        self.next_number += 1;
    }

    /// Removes the oldest packets in flight, at most `packets` packets, and returns them with their total size.
    fn take(&mut self, packets: u64, sent: Time) -> (Vec<SentPacket>, Bytes) {
        let end = (self.oldest + packets).min(self.next_number);
        let taken: Vec<SentPacket> = (self.oldest..end)
            .map(|number| {
                let mut packet = SentPacket::new(number, Bytes(1000), sent);
                packet.inflight_at_send = self.inflight;
                packet.lost_at_send = Bytes(self.lost.0.saturating_sub(number % 7 * 1000));
                (packet.app_limited, packet.declared_lost) = (number % 5 == 0, number % 11 == 0);
                packet
            })
            .collect();
        self.oldest = end;
        let bytes = Bytes(1000 * taken.len() as u64);
        self.inflight -= bytes;
        (taken, bytes)
    }

    fn ack(
        &mut self,
        packets: u64,
        rtt: Duration,
        rate_bps: Option<u64>,
        feedback: bool,
        cwnd_limited: bool,
    ) {
        let prior_inflight = self.inflight;
        let (packets, acked) = self.take(packets, self.now - rtt);
        if packets.is_empty() {
            return;
        }
        self.delivered += acked;
        let feedback = match &mut self.receiver {
            Some(receiver) if feedback => {
                receiver.window(self.now);
                receiver.feedback(self.now)
            }
            _ => airpace_core::Rider::EMPTY,
        };
        let bps = rate_bps.unwrap_or(0);
        let mut sample = RateSample::default();
        (sample.rate, sample.interval) = (rate_bps.map(Rate::from_bps), rtt);
        (sample.delivered, sample.prior_delivered) = (self.delivered, self.delivered - Bytes(bps % 100_000));
        (sample.app_limited, sample.tx_in_flight) = (!cwnd_limited, prior_inflight);
        (sample.lost, sample.ce) = (Bytes(bps % 5_000), bps % 50);
        let rtt = Rtt { latest: Some(rtt), smoothed: rtt, variation: rtt / 2, min: rtt / 2 };
        let mut ack = Ack::new(self.now, &packets, rtt);
        (ack.prior_inflight, ack.inflight, ack.next_number) =
            (prior_inflight, self.inflight, self.next_number);
        (ack.rate, ack.cwnd_limited) = (sample, cwnd_limited);
        (ack.ce, ack.feedback) = (bps % 3, feedback.as_bytes());
        self.controller.on_ack(&ack);
    }

    fn lose(&mut self, packets: u64, persistent: bool) {
        let prior_inflight = self.inflight;
        let packets = if persistent { u64::MAX / 2 } else { packets };
        let (packets, lost) = self.take(packets, self.now - Duration::from_millis(50));
        if packets.is_empty() {
            return;
        }
        self.lost += lost;
        let cause = if persistent { LossCause::Persistent } else { LossCause::Threshold };
        let mut loss = Loss::new(self.now, &packets, cause);
        (loss.prior_inflight, loss.inflight, loss.next_number) =
            (prior_inflight, self.inflight, self.next_number);
        self.controller.on_loss(&loss);
    }

    fn radio(&mut self, prbs: u16, others: u16, bits_per_prb: f64, active: bool) {
        let own = Rnti(0x100);
        let grant = |rnti, start, len| Dci {
            rnti,
            prbs: PrbSet::run(start, len),
            mcs: [Some(20), None],
            tbs: [Bits((f64::from(len) * bits_per_prb) as u64), Bits::ZERO],
            layers: 1,
            ..Dci::default()
        };
        let report = RadioReport {
            carrier: CarrierId((prbs % 3) as u8),
            time: self.now,
            slot: Slot::subframe_of_lte(self.now.as_millis()),
            scope: Scope::Everyone,
            carrier_prbs: Some(100),
            cfi: Some(1),
            symbols: None,
            dcis: vec![grant(own, 0, prbs), grant(Rnti(0x200 + others), prbs, others)],
            own: Some(OwnRadio {
                rnti: own,
                active,
                sinr_db: Some(10.0),
                bits_per_prb: Some(bits_per_prb),
                decoded: Some(active),
                uplink_queue: None,
            }),
            layer: if active { BitLayer::Physical } else { BitLayer::Transport },
        };
        // A device's own modem reports its uplink and the bytes queued there.
        let mut uplink = RadioReport { dcis: vec![grant(own, 0, others)], ..report.clone() };
        uplink.dcis[0].direction = Direction::Uplink;
        if let Some(own) = &mut uplink.own {
            own.uplink_queue = (prbs > 50).then_some(Bytes(u64::from(others) << (prbs % 40)));
        }
        for report in [&report, &uplink] {
            self.controller.on_radio(report);
            if let Some(receiver) = &mut self.receiver {
                receiver.on_radio(report);
            }
        }
    }

    fn check(&mut self) {
        let choice = &self.choice;
        let control = self.controller.control();
        assert!(control.cwnd >= MSS, "{choice}: a window of {:?}", control.cwnd);
        assert!(control.pacing_rate != Some(Rate::ZERO), "{choice}: a pacing rate of zero");
        let mut inspect = Inspect::default();
        self.controller.inspect(&mut inspect);
        if let Some(receiver) = &self.receiver {
            receiver.inspect(&mut inspect);
        }
        assert!(!inspect.state.is_empty(), "{choice}: the state has a name");
        for (name, value) in &inspect.values {
            assert!(!value.is_infinite(), "{choice}: `{name}` is infinite; an unknown value is NaN");
        }
        let names: Vec<_> = inspect.values.iter().map(|(name, _)| *name).collect();
        let first = self.names.get_or_insert_with(|| names.clone());
        assert_eq!(&names, first, "{choice}: the names of the values never change");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever events occur, a controller fulfils the contract.
    #[test]
    fn no_sequence_of_events_breaks_a_controller(happenings in prop::collection::vec(happening(), 1..400)) {
        for choice in choices() {
            let mut victim = Victim::new(&choice);
            victim.check();
            for happening in &happenings {
                victim.suffer(happening);
            }
        }
    }

}

proptest! {
    // Every case simulates minutes for all schemes.
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    /// Whatever happens on the path, a flow survives and continues when the path is good again.
    #[test]
    fn no_path_kills_a_flow(
        seed in any::<u64>(),
        changes in prop::collection::vec((0.0f64..40.0, 0.0f64..1.0, 50u64..1_500), 1..6),
    ) {
        for choice in choices() {
            let mut plan = Plan::new(Conditions { seed, radio: true, ..Conditions::default() });
            let flow = plan.start(&choice);
            for &(rate_mbps, loss, ms) in &changes {
                let rate = if rate_mbps < 5.0 { Rate::ZERO } else { Rate::from_mbps(rate_mbps) };
                plan.rate_from(plan.now(), rate);
                plan.set_loss(loss * loss * loss);
                plan.run_for(Duration::from_millis(ms));
                prop_assert!(plan.control(flow).cwnd >= MSS);
            }
            plan.set_loss(0.0);
            plan.rate_from(plan.now(), Rate::from_mbps(10.0));
            plan.run_for(Duration::from_secs(15));
            plan.forget();
            plan.run_for(Duration::from_secs(5));
            let utilization = plan.seen(flow).utilization;
            // After losses, Sprout's program may send only heartbeats for good: its receiver then counts only
            // heartbeats and forecasts no more than these. `sprout` avoids this by `dry_ticks`.
            let least = if choice == "sprout@pantheon" { 0.02 } else { 0.5 };
            prop_assert!(utilization > least, "{choice} uses {utilization} of the link after the trouble");
        }
    }
}

/// The first round-trip time contains an outage, so that two packets per round trip are a low rate. When the outage is
/// over, the minimum rate is higher than the learner's base rate.
#[test]
fn a_rise_of_the_minimum_rate_leaves_no_learner_below_it() {
    let mut plans = 0;
    for choice in
        choices().iter().filter(|it| ["allegro", "vivace", "morc"].iter().any(|name| it.starts_with(name)))
    {
        let mut plan = Plan::new(Conditions { seed: 2_216_215_156_513_701_163, ..Conditions::default() });
        let flow = plan.start(choice);
        for (rate_mbps, loss, ms) in
            [(0, 0.26, 735), (37, 0.67, 83), (13, 0.04, 773), (0, 0.19, 1292), (32, 0.15, 910)]
        {
            plan.rate_from(plan.now(), Rate::from_mbps(f64::from(rate_mbps)));
            plan.set_loss(loss);
            plan.run_for(Duration::from_millis(ms));
        }
        plan.set_loss(0.0);
        plan.rate_from(plan.now(), Rate::from_mbps(10.0));
        plan.run_for(Duration::from_secs(10));
        plan.forget();
        plan.run_for(Duration::from_secs(5));
        let utilization = plan.seen(flow).utilization;
        assert!(utilization > 0.8, "{choice} uses {utilization} of the link after the outage");
        plans += 1;
    }
    assert!(plans >= 8, "{plans} plans");
}
