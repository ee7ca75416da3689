//! Tests of BBRv3 over one bottleneck: conditions → run → check. Tests from the draft's appendix name the section.

use crate::plan;

use std::time::Duration;

use airpace_cc::endpoint::Backlog;
use airpace_core::{Bytes, Rate};
use plan::{Conditions, MSS, Plan};

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);
const ROUND: Duration = Duration::from_millis(40);

/// A path with an RTT of 40 ms. At 20 Mbit/s, the bandwidth-delay product is 100,000 bytes.
fn wire(mbps: f64, buffer: u64) -> Conditions {
    Conditions { rate: Rate::from_mbps(mbps), buffer: Bytes(buffer), ..Conditions::default() }
}

fn value(plan: &Plan, flow: usize, name: &str) -> f64 {
    let inspect = plan.inspect(flow);
    inspect.values.iter().find(|(known, _)| *known == name).expect(name).1
}

fn pace(plan: &Plan, flow: usize) -> f64 {
    plan.control(flow).pacing_rate.unwrap().as_mbps()
}

/// Runs until `flow` is in `state`. Returns the time that passed.
fn until(plan: &mut Plan, flow: usize, state: &str) -> Duration {
    let began = plan.now();
    while plan.inspect(flow).state != state {
        assert!(
            plan.now() - began < 20 * SECOND,
            "{state} never comes; it is in {}",
            plan.inspect(flow).state
        );
        plan.run_for(Duration::from_micros(250));
    }
    plan.now() - began
}

/// A phase of a flow.
struct Seen {
    state: &'static str,
    lasted: Duration,
    /// Pacing rate divided by the known bandwidth, in the middle of the phase.
    gain: f64,
    /// Window at the end of the phase.
    cwnd: Bytes,
    longterm: f64,
}

/// Runs the plan for `span`. Returns the flow's phases in this time, without the first and the last phase, which are
/// incomplete.
fn phases(plan: &mut Plan, flow: usize, span: Duration) -> Vec<Seen> {
    let end = plan.now() + span;
    let mut seen: Vec<Seen> = vec![];
    while plan.now() < end {
        plan.run_for(MS / 2);
        let state = plan.inspect(flow).state;
        if seen.last().is_none_or(|last| last.state != state) {
            let cwnd = plan.control(flow).cwnd;
            seen.push(Seen { state, lasted: Duration::ZERO, gain: 0.0, cwnd, longterm: f64::NAN });
        }
        let last = seen.last_mut().unwrap();
        last.lasted += MS / 2;
        last.gain = pace(plan, flow) / value(plan, flow, "btlbw_mbps");
        last.cwnd = plan.control(flow).cwnd;
        last.longterm = value(plan, flow, "inflight_longterm_bytes");
    }
    seen.remove(0);
    seen.pop();
    seen
}

fn utilization(plan: &mut Plan, flow: usize, span: Duration) -> f64 {
    plan.forget();
    plan.run_for(span);
    plan.seen(flow).utilization
}

#[test]
fn startup_ends_three_rounds_after_the_rate_stops_growing_and_drain_empties_the_queue() {
    // Appendix A.1 and A.3.
    for (scheme, gain) in [("bbr3", 0.5), ("bbr3@google", 1.0 / 2.885)] {
        let mut plan = Plan::new(wire(20.0, 1_000_000));
        let flow = plan.start(scheme);
        let mut full = None;
        while plan.inspect(flow).state == "Startup" {
            plan.run_for(MS);
            if value(&plan, flow, "btlbw_mbps") > 0.98 * 20.0 {
                full.get_or_insert(plan.now());
            }
        }
        let waited = plan.now() - full.expect("Startup finds the bandwidth");
        assert!(
            (2 * ROUND..8 * ROUND).contains(&waited),
            "Startup waits three rounds of a growing RTT: {waited:?}"
        );
        assert_eq!(plan.inspect(flow).state, "Drain");
        assert!(
            plan.queued() > Bytes(80_000),
            "the window of two BDPs put one into the queue: {:?}",
            plan.queued()
        );
        assert!(
            (pace(&plan, flow) / 20.0 - 0.99 * gain).abs() < 0.01,
            "{scheme} drains at {}",
            pace(&plan, flow)
        );
        until(&mut plan, flow, "ProbeBW_CRUISE");
        assert!(plan.sender(flow).inflight() <= Bytes(101_500), "{:?}", plan.sender(flow).inflight());
        plan.run_for(2 * ROUND);
        assert!(plan.queued() < Bytes(6_000), "the queue is gone: {:?}", plan.queued());
        assert!(
            value(&plan, flow, "inflight_longterm_bytes").is_nan(),
            "nothing was lost, so there is no bound"
        );
        let seen = utilization(&mut plan, flow, 4 * SECOND);
        assert!(seen > 0.96, "{scheme} uses {seen} of the wire");
    }
}

#[test]
fn startup_ends_earlier_where_a_round_loses_two_percent_in_six_places() {
    let mut deep = Plan::new(wire(20.0, 1_000_000));
    let flow = deep.start("bbr3");
    let plateau = until(&mut deep, flow, "Drain");
    let mut shallow = Plan::new(wire(20.0, 25_000));
    let flow = shallow.start("bbr3");
    assert!(
        until(&mut shallow, flow, "Drain") + ROUND < plateau,
        "loss ends Startup before the plateau does"
    );
    let bound = value(&shallow, flow, "inflight_longterm_bytes");
    assert!((99_000.0..150_000.0).contains(&bound), "the bound is what was delivered in a round: {bound}");
    // The loss of one packet does not count.
    let mut plan = Plan::new(wire(200.0, 10_000_000));
    let flow = plan.start("bbr3");
    for _ in 0..4 {
        plan.run_for(ROUND);
        plan.lose_next(flow);
    }
    plan.run_for(2 * ROUND);
    assert_eq!(plan.inspect(flow).state, "Startup");
}

#[test]
fn drain_ends_after_three_rounds_where_the_bandwidth_was_overestimated() {
    // Appendix A.4. Google's program has no limit: Drain lasts until the queue is gone.
    let lasts = |scheme| {
        let mut plan = Plan::new(wire(20.0, 1_000_000));
        let flow = plan.start(scheme);
        until(&mut plan, flow, "Drain");
        plan.rate_from(plan.now(), Rate::from_mbps(5.0));
        let began = plan.now();
        while plan.inspect(flow).state == "Drain" {
            plan.run_for(MS);
        }
        (plan.now() - began, plan.sender(flow).inflight(), plan.inspect(flow).state)
    };
    let (draft, inflight, next) = lasts("bbr3");
    assert_eq!(next, "ProbeBW_DOWN");
    assert!(inflight > Bytes(110_000), "more than the BDP is still in flight: {inflight:?}");
    assert!(draft < 2 * SECOND, "Drain ends after three rounds of 320 ms: {draft:?}");
    let (google, _, next) = lasts("bbr3@google");
    assert!(google > 3 * SECOND && next == "ProbeRTT", "only ProbeRTT ends Drain: {google:?}");
}

#[test]
fn a_cycle_goes_down_cruises_refills_and_probes_up() {
    let mut plan = Plan::new(wire(50.0, 10_000_000));
    let flow = plan.start("bbr3");
    until(&mut plan, flow, "ProbeBW_REFILL");
    let seen = phases(&mut plan, flow, 60 * SECOND);
    // ProbeRTT ends most cycles early. The test uses the first complete cycle without ProbeRTT.
    let cycle = seen
        .windows(5)
        .find(|cycle| cycle[0].state == "ProbeBW_UP" && cycle[4].state == "ProbeBW_UP")
        .expect("a cycle");
    let [up, down, cruise, refill, _] = cycle else { unreachable!() };
    assert_eq!(
        [down.state, cruise.state, refill.state],
        ["ProbeBW_DOWN", "ProbeBW_CRUISE", "ProbeBW_REFILL"]
    );
    for (phase, gain) in [(up, 1.25), (down, 0.90), (cruise, 1.0), (refill, 1.0)] {
        assert!((phase.gain - 0.99 * gain).abs() < 0.01, "{} paces at {}", phase.state, phase.gain);
    }
    assert!(
        (3 * ROUND..6 * ROUND).contains(&up.lasted),
        "three rounds without growth end ProbeBW_UP: {:?}",
        up.lasted
    );
    assert!(
        (ROUND..ROUND * 3 / 2).contains(&refill.lasted),
        "ProbeBW_REFILL lasts a round: {:?}",
        refill.lasted
    );
    let wait = down.lasted + cruise.lasted;
    assert!(
        (2 * SECOND..3 * SECOND + ROUND).contains(&wait),
        "there are two to three seconds between probes: {wait:?}"
    );
    let bdp = 250_000.0;
    assert!((up.cwnd.0 as f64 / bdp - 2.25).abs() < 0.1, "the window has room to probe: {:?}", up.cwnd);
    assert!((cruise.cwnd.0 as f64 / bdp - 2.0).abs() < 0.1, "{:?}", cruise.cwnd);
}

#[test]
fn a_small_window_probes_as_often_as_reno_would() {
    // Ten packets are in flight. A Reno flow would probe, and lose a packet, every ten rounds.
    let mut plan = Plan::new(wire(3.0, 200_000));
    let flow = plan.start("bbr3");
    plan.run_for(2 * SECOND);
    let seen = phases(&mut plan, flow, 15 * SECOND);
    let waits: Vec<Duration> = seen
        .windows(3)
        .filter(|phase| phase[0].state == "ProbeBW_DOWN" && phase[2].state == "ProbeBW_REFILL")
        .map(|phase| phase[0].lasted + phase[1].lasted)
        .collect();
    assert!(waits.len() > 10, "{} probes", waits.len());
    let longest = waits.iter().max().unwrap();
    assert!(
        (8 * ROUND..20 * ROUND).contains(longest),
        "a cycle has as many rounds as there are packets in flight: {longest:?}"
    );
}

#[test]
fn a_probe_that_loses_too_much_bounds_what_is_in_flight_and_leaves_headroom() {
    // Appendix A.21. The bandwidth-delay product of the path is 100,000 bytes, and its queue has 50,000 bytes.
    let mut plan = Plan::new(wire(20.0, 50_000));
    let flow = plan.start("bbr3");
    until(&mut plan, flow, "ProbeBW_UP");
    until(&mut plan, flow, "ProbeBW_DOWN");
    let bound = value(&plan, flow, "inflight_longterm_bytes");
    assert!(
        (140_000.0..156_000.0).contains(&bound),
        "the bound is what the path and its queue hold: {bound}"
    );
    let seen = phases(&mut plan, flow, 20 * SECOND);
    for phase in &seen {
        let most = match phase.state {
            "ProbeBW_CRUISE" | "ProbeRTT" => 0.85 * phase.longterm,
            _ => phase.longterm,
        };
        assert!(phase.cwnd.0 as f64 <= most + 1.0, "{} has a window of {:?}", phase.state, phase.cwnd);
    }
    let lost = {
        plan.forget();
        plan.run_for(20 * SECOND);
        plan.seen(flow)
    };
    assert!(lost.loss_rate < 0.005, "probes lose little: {lost:?}");
    assert!(lost.utilization > 0.95, "{lost:?}");
}

#[test]
fn after_a_probe_that_went_too_high_the_next_one_is_a_precaution() {
    let in_a_row = |scheme: &str| {
        let mut plan = Plan::new(wire(20.0, 50_000));
        let flow = plan.start(scheme);
        let seen = phases(&mut plan, flow, 30 * SECOND);
        let is_touch = |phases: &&[Seen]| {
            phases[0].state == "ProbeBW_UP"
                && phases[1].state == "ProbeBW_DOWN"
                && phases[2].state == "ProbeBW_REFILL"
        };
        let touches: Vec<_> = seen.windows(3).filter(is_touch).map(|phases| phases[1].lasted).collect();
        touches
    };
    let touches = in_a_row("bbr3");
    assert!(touches.len() >= 3, "if a probe reaches the bound without loss, another one follows and goes on");
    assert!(
        touches.iter().all(|down| *down < 3 * ROUND),
        "the next probe begins as soon as the ACKs of the last one are in: {touches:?}"
    );
    assert_eq!(in_a_row("bbr3:precaution=off").len(), 0, "without precaution, every probe goes on");
}

#[test]
fn loss_between_probes_slows_down_by_no_more_than_three_tenths_a_round_until_the_next_probe() {
    let mut plan = Plan::new(wire(20.0, 200_000));
    let flow = plan.start("bbr3");
    until(&mut plan, flow, "ProbeBW_CRUISE");
    plan.run_for(SECOND / 2);
    let before = plan.control(flow).cwnd;
    assert!(value(&plan, flow, "bw_shortterm_mbps").is_nan());
    plan.set_loss(0.2);
    plan.run_for(4 * ROUND);
    plan.set_loss(0.0);
    plan.run_for(ROUND);
    let bw = value(&plan, flow, "bw_shortterm_mbps");
    let inflight = value(&plan, flow, "inflight_shortterm_bytes");
    assert!((0.3 * 20.0..19.0).contains(&bw), "{bw} Mbit/s");
    assert!(inflight < before.0 as f64 && inflight > 0.3 * before.0 as f64, "{inflight} of {before:?}");
    assert!(pace(&plan, flow) <= bw, "the pacing rate is no more than the path delivers");
    assert!(value(&plan, flow, "btlbw_mbps") > 19.5, "the maximum bandwidth is not forgotten");
    assert!(value(&plan, flow, "inflight_longterm_bytes").is_nan(), "the losses were not those of a probe");
    until(&mut plan, flow, "ProbeBW_REFILL");
    assert!(
        value(&plan, flow, "bw_shortterm_mbps").is_nan() && pace(&plan, flow) > 19.0,
        "a probe resets the short-term bound"
    );
}

#[test]
fn half_of_the_bdp_is_in_flight_for_a_fifth_of_a_second_every_five_seconds() {
    // Appendix A.10.
    let mut plan = Plan::new(wire(20.0, 1_000_000));
    let flow = plan.start("bbr3");
    until(&mut plan, flow, "ProbeRTT");
    let mut waits = vec![];
    for _ in 0..3 {
        plan.run_for(ROUND * 2);
        let inflight = plan.sender(flow).inflight();
        assert!((45_000..=51_500).contains(&inflight.0), "half of 100,000 bytes is in flight: {inflight:?}");
        assert_eq!(plan.queued().0 / MSS.0, 0, "nothing waits");
        let more = until(&mut plan, flow, "ProbeBW_CRUISE");
        assert!(
            (120 * MS..200 * MS).contains(&more),
            "ProbeRTT lasts 200 ms after half was reached: {more:?}"
        );
        assert!(
            plan.control(flow).cwnd > Bytes(190_000),
            "the window is restored: {:?}",
            plan.control(flow).cwnd
        );
        waits.push(until(&mut plan, flow, "ProbeRTT"));
    }
    assert!(waits.iter().all(|wait| (4_900 * MS..5_100 * MS).contains(wait)), "{waits:?}");
}

#[test]
fn a_propagation_time_that_grew_is_believed_after_ten_seconds() {
    let mut plan = Plan::new(wire(20.0, 1_000_000));
    let flow = plan.start("bbr3");
    plan.run_for(2 * SECOND);
    // The transmission of a packet takes 1.2 ms instead of 0.6 ms, so the old propagation time, 40.6 ms, cannot be
    // measured again.
    plan.rate_from(plan.now() + MS, Rate::from_mbps(10.0));
    plan.run_for(7 * SECOND);
    assert!(value(&plan, flow, "rtprop_ms") < 41.0, "one ProbeRTT is not enough");
    plan.run_for(13 * SECOND);
    let rtprop = value(&plan, flow, "rtprop_ms");
    assert!((41.1..42.0).contains(&rtprop), "{rtprop}");
    assert!(utilization(&mut plan, flow, 5 * SECOND) > 0.9);
}

#[test]
fn an_idle_application_has_drained_the_queue_already() {
    // Appendix A.11.
    let mut plan = Plan::new(wire(20.0, 1_000_000));
    let flow = plan.start_with("bbr3", Backlog::Limited(Bytes(3_000_000)));
    plan.run_for(12 * SECOND);
    plan.offer(flow, Bytes(10_000_000));
    assert!(pace(&plan, flow) < 20.0, "the flow begins at the known bandwidth");
    let seen = phases(&mut plan, flow, 2 * SECOND);
    assert!(
        seen.iter().all(|phase| phase.state != "ProbeRTT"),
        "no ProbeRTT is needed after 10 s of silence"
    );
    assert!(utilization(&mut plan, flow, SECOND) > 0.9, "the full rate is used at once");
}

#[test]
fn an_application_that_sends_little_neither_ends_startup_nor_lowers_the_bandwidth() {
    // Appendix A.7 and A.22.
    let mut plan = Plan::new(wire(40.0, 2_000_000));
    let flow = plan.start_with("bbr3", Backlog::Limited(Bytes::ZERO));
    for _ in 0..150 {
        plan.offer(flow, MSS);
        plan.run_for(20 * MS);
    }
    assert_eq!(plan.inspect(flow).state, "Startup", "the flow has not searched for the bandwidth yet");
    plan.offer(flow, Bytes(12_000_000));
    plan.run_for(3 * SECOND);
    for _ in 0..250 {
        plan.offer(flow, MSS);
        plan.run_for(20 * MS);
    }
    let btlbw = value(&plan, flow, "btlbw_mbps");
    assert!(btlbw > 38.0, "a slow application does not lower the bandwidth: {btlbw}");
}

#[test]
fn ten_times_the_bandwidth_is_found_in_a_few_probes_and_its_loss_forgotten_in_two_cycles() {
    // Appendix A.15 and A.16.
    let mut plan = Plan::new(wire(10.0, 500_000));
    let flow = plan.start("bbr3");
    plan.run_for(4 * SECOND);
    plan.rate_from(plan.now() + MS, Rate::from_mbps(100.0));
    plan.run_for(7 * SECOND);
    let btlbw = value(&plan, flow, "btlbw_mbps");
    assert!(btlbw > 95.0, "{btlbw} of 100 Mbit/s");
    assert!(utilization(&mut plan, flow, 5 * SECOND) > 0.9);
    plan.rate_from(plan.now() + MS, Rate::from_mbps(10.0));
    let mut least = f64::INFINITY;
    for _ in 0..400 {
        plan.run_for(10 * MS);
        least = pace(&plan, flow).min(least);
    }
    assert!(least < 40.0, "losses slow the flow down long before: {least}");
    plan.run_for(16 * SECOND);
    let btlbw = value(&plan, flow, "btlbw_mbps");
    assert!((9.5..11.0).contains(&btlbw), "{btlbw} of 10 Mbit/s");
}

#[test]
fn four_packets_stay_in_flight_where_the_bdp_is_less_than_one() {
    // Appendix A.14.
    let conditions = Conditions { rtt: 2 * MS, ..wire(0.5, 200_000) };
    let mut plan = Plan::new(conditions);
    let flow = plan.start("bbr3");
    plan.run_for(4 * SECOND);
    assert!(utilization(&mut plan, flow, 10 * SECOND) > 0.95);
    let cwnd = plan.cwnd_packets(flow);
    assert!((4.0..13.0).contains(&cwnd), "{cwnd}");
    assert!((0.3..0.7).contains(&pace(&plan, flow)), "{}", pace(&plan, flow));
}

#[test]
fn one_percent_of_random_loss_does_not_wear_it_down() {
    let mut plan = Plan::new(Conditions { loss: 0.01, ..wire(20.0, 200_000) });
    let flow = plan.start("bbr3");
    plan.run_for(2 * SECOND);
    let used = utilization(&mut plan, flow, 30 * SECOND);
    assert!(used > 0.8, "{used}");
}

#[test]
fn marks_bound_what_is_in_flight_where_they_are_asked_for() {
    let marked = |scheme| {
        let mut plan = Plan::new(wire(20.0, 1_000_000));
        plan.mark_above(5 * MS);
        let flow = plan.start(scheme);
        let startup = until(&mut plan, flow, "Drain");
        plan.run_for(10 * SECOND);
        plan.forget();
        plan.run_for(20 * SECOND);
        let longterm = value(&plan, flow, "inflight_longterm_bytes");
        (startup, longterm, plan.seen(flow), value(&plan, flow, "ecn_alpha_ratio"))
    };
    let (startup, longterm, on, alpha) = marked("bbr3:ecn=on");
    let (deaf_startup, none, off, _) = marked("bbr3");
    assert!(
        startup + ROUND / 2 < deaf_startup,
        "two rounds of marks end Startup: {startup:?} of {deaf_startup:?}"
    );
    assert!((100_000.0..135_000.0).contains(&longterm), "marks end the probes: {longterm}");
    assert!(none.is_nan(), "a flow without ECN is not marked");
    assert!(on.queueing_delay_p95_ms < 0.7 * off.queueing_delay_p95_ms, "{on:?} against {off:?}");
    assert!(on.utilization > 0.94, "{on:?}");
    assert!((0.0..0.3).contains(&alpha), "few packets are marked: {alpha}");
}

#[test]
fn marks_between_probes_lower_what_is_in_flight_by_a_third_of_the_part_marked() {
    let mut plan = Plan::new(wire(20.0, 1_000_000));
    plan.mark_above(5 * MS);
    let flow = plan.start("bbr3:ecn=on");
    until(&mut plan, flow, "ProbeBW_CRUISE");
    plan.run_for(SECOND);
    // Another flow takes half of the link, and a queue grows.
    plan.start("cbr:rate_mbps=10");
    let mut bounds = vec![];
    for _ in 0..10 {
        plan.run_for(ROUND);
        let bound = value(&plan, flow, "inflight_shortterm_bytes");
        if !bound.is_nan() && bounds.last() != Some(&bound) {
            bounds.push(bound);
        }
    }
    assert!(bounds.len() >= 3, "every round with marks lowers the bound: {bounds:?}");
    for pair in bounds.windows(2) {
        let kept = pair[1] / pair[0];
        assert!((0.66..1.0).contains(&kept), "a round lowers the bound by at most a third: {bounds:?}");
    }
    assert!(value(&plan, flow, "bw_shortterm_mbps").is_nan(), "marks do not bound the bandwidth");
}

fn shares(plan: &mut Plan, flows: [usize; 2], span: Duration) -> [f64; 2] {
    plan.forget();
    plan.run_for(span);
    flows.map(|flow| plan.seen(flow).utilization)
}

#[test]
fn two_flows_converge() {
    for buffer in [50_000, 400_000] {
        let mut plan = Plan::new(wire(20.0, buffer));
        let old = plan.start("bbr3");
        plan.run_for(5 * SECOND);
        let new = plan.start("bbr3");
        plan.run_for(30 * SECOND);
        let [a, b] = shares(&mut plan, [old, new], 30 * SECOND);
        assert!(a + b > 0.9 && a / b < 1.6 && b / a < 1.6, "{buffer} bytes of buffer: {a} and {b}");
    }
}

#[test]
fn it_lives_with_cubic_in_shallow_and_in_deep_buffers() {
    for buffer in [50_000, 100_000, 800_000] {
        let mut plan = Plan::new(wire(20.0, buffer));
        let cubic = plan.start("cubic");
        let bbr = plan.start("bbr3");
        plan.run_for(20 * SECOND);
        let [theirs, ours] = shares(&mut plan, [cubic, bbr], 60 * SECOND);
        assert!(theirs > 0.1 && ours > 0.1, "{buffer} bytes of buffer: CUBIC {theirs}, BBR {ours}");
        assert!(theirs + ours > 0.9);
    }
}

#[test]
fn an_outage_leaves_one_packet_and_the_rate_comes_back() {
    let mut plan = Plan::new(wire(20.0, 2_000_000));
    let flow = plan.start("bbr3");
    plan.run_for(2 * SECOND);
    plan.set_loss(1.0);
    plan.run_for(3 * SECOND);
    assert!(plan.cwnd_packets(flow) < 5.0, "everything was lost: {}", plan.cwnd_packets(flow));
    plan.set_loss(0.0);
    while plan.cwnd_packets(flow) < 5.0 {
        plan.run_for(MS);
    }
    // The window is half of the BDP, since ProbeRTT is due after five seconds.
    let cwnd = plan.cwnd_packets(flow);
    assert!((33.0..35.0).contains(&cwnd), "the old model is used again at once: {cwnd}");
    plan.run_for(3 * SECOND);
    let used = utilization(&mut plan, flow, 5 * SECOND);
    assert!(used > 0.9, "{used}");
}
