//! Tests of LEDBAT.

use crate::plan;

use std::time::Duration;

use airpace_cc::controller::{Ack, Arrival, Rtt, SentPacket};
use airpace_cc::endpoint::Backlog;
use airpace_cc::{SchemeSpec, Setup};
use airpace_core::{Bytes, Rate, Streams, Time};
use plan::{Conditions, MSS, Plan};

const RTT: Duration = Duration::from_millis(40);

/// A link of 20 Mbit/s with a buffer of ten seconds, so that nothing is ever lost.
fn bufferbloat() -> Conditions {
    Conditions { buffer: Bytes(25_000_000), ..Conditions::default() }
}

fn value(plan: &Plan, flow: usize, name: &str) -> f64 {
    plan.inspect(flow).values.iter().find(|(known, _)| *known == name).expect("a name of LEDBAT's").1
}

#[test]
fn its_queue_is_as_long_as_the_target_and_no_longer() {
    for (scheme, target_ms) in
        [("ledbat", 100.0), ("ledbat:target_ms=25", 25.0), ("ledbat@utp", 100.0), ("ledbat@plusplus", 60.0)]
    {
        let mut plan = Plan::new(bufferbloat());
        let flow = plan.start(scheme);
        plan.run_for(Duration::from_secs(40));
        plan.forget();
        plan.run_for(Duration::from_secs(40));
        let seen = plan.seen(flow);
        let kept = seen.queueing_delay_p95_ms / target_ms;
        assert!((0.9..1.05).contains(&kept), "{scheme} keeps {} ms", seen.queueing_delay_p95_ms);
        assert!(seen.utilization > 0.9, "{scheme} uses {} of the link", seen.utilization);
        assert_eq!(seen.loss_rate, 0.0);
    }
}

#[test]
fn it_begins_with_two_packets_and_gains_at_most_one_per_round() {
    let mut plan = Plan::new(bufferbloat());
    let flow = plan.start("ledbat");
    assert_eq!(plan.cwnd_packets(flow), 2.0);
    let mut before = 2.0;
    for _ in 0..20 {
        plan.run_for(RTT + Duration::from_micros(600));
        let after = plan.cwnd_packets(flow);
        assert!(
            (0.5..=1.3).contains(&(after - before)),
            "with an empty queue, the window grows by a packet, not {}",
            after - before
        );
        before = after;
    }
    let half = plan.start("ledbat:gain=0.5");
    plan.run_for(10 * RTT);
    assert!(
        (5.0..8.0).contains(&plan.cwnd_packets(half)),
        "with a gain of a half, it grows by half a packet"
    );
}

#[test]
fn utp_calls_slow_start_what_ends_before_the_target_or_at_a_loss() {
    let mut plan = Plan::new(bufferbloat());
    let flow = plan.start("ledbat@utp");
    assert_eq!((plan.cwnd_packets(flow), plan.inspect(flow).state), (1.0, "SlowStart"));
    plan.run_for(20 * RTT);
    let window = plan.cwnd_packets(flow);
    assert!(
        (35.0..42.0).contains(&window),
        "slow start adds two packets a round, not {window} in twenty rounds"
    );
    while plan.inspect(flow).state == "SlowStart" {
        plan.run_for(Duration::from_millis(1));
        assert!(plan.now() < Time::from_secs(20), "the queue grows within 20 s");
    }
    assert!(value(&plan, flow, "queueing_delay_ms") > 90.0, "nine tenths of the target end slow start");
    assert_eq!(plan.seen(flow).loss_rate, 0.0);
}

#[test]
fn utp_wins_two_packets_per_round_and_follows_the_target_from_both_sides() {
    let mut plan = Plan::new(Conditions { rate: Rate::from_mbps(200.0), ..bufferbloat() });
    let flow = plan.start("ledbat@utp");
    // A loss ends slow start far below the capacity of the path.
    while plan.cwnd_packets(flow) < 60.0 {
        plan.run_for(Duration::from_millis(1));
    }
    plan.lose_next(flow);
    plan.run_for(4 * RTT);
    assert_eq!(plan.inspect(flow).state, "Ledbat");
    let before = plan.cwnd_packets(flow);
    plan.run_for(20 * RTT);
    let per_round = (plan.cwnd_packets(flow) - before) / 20.0;
    assert!(
        (1.7..2.1).contains(&per_round),
        "the window grows by 3000 bytes per round, not {per_round} packets"
    );
    plan.rate_from(plan.now(), Rate::from_mbps(2.0));
    plan.run_for(Duration::from_secs(1));
    assert!(plan.seen(flow).queueing_delay_p95_ms > 120.0, "the queue is too long at first");
    plan.run_for(Duration::from_secs(20));
    plan.forget();
    plan.run_for(Duration::from_secs(20));
    let kept = plan.seen(flow).queueing_delay_mean_ms;
    assert!((80.0..110.0).contains(&kept), "then it shrinks to the target: {kept} ms");
}

#[test]
fn it_leaves_the_link_to_cubic_and_takes_it_back() {
    for scheme in ["ledbat", "ledbat@utp", "ledbat@plusplus"] {
        // The buffer holds half a second. CUBIC's queue is above the target nearly all the time.
        let mut plan = Plan::new(Conditions { buffer: Bytes(1_250_000), ..Conditions::default() });
        let ledbat = plan.start(scheme);
        plan.run_for(Duration::from_secs(20));
        let cubic = plan.start("cubic");
        plan.run_for(Duration::from_secs(10));
        plan.forget();
        plan.run_for(Duration::from_secs(30));
        let share = plan.seen(ledbat).utilization;
        assert!(share < 0.05, "{scheme} keeps {share} of the link with CUBIC");
        plan.stop(cubic);
        plan.run_for(Duration::from_secs(20));
        plan.forget();
        plan.run_for(Duration::from_secs(20));
        let share = plan.seen(ledbat).utilization;
        assert!(share > 0.9, "{scheme} uses {share} of what CUBIC left");
    }
}

#[test]
fn a_latecomer_takes_the_first_ones_queue_for_the_path_and_the_link_from_it() {
    let share = |scheme: &str| {
        let mut plan = Plan::new(bufferbloat());
        let first = plan.start(scheme);
        plan.run_for(Duration::from_secs(20));
        let latecomer = plan.start(scheme);
        plan.run_for(Duration::from_secs(120));
        plan.forget();
        plan.run_for(Duration::from_secs(20));
        let (first, latecomer) = (plan.seen(first).utilization, plan.seen(latecomer).utilization);
        latecomer / (first + latecomer)
    };
    for scheme in ["ledbat", "ledbat@utp"] {
        let share = share(scheme);
        assert!(share > 0.8, "{scheme}: the latecomer has {share}, a known weakness of LEDBAT");
    }
    let share = share("ledbat@plusplus");
    assert!(
        (0.3..0.7).contains(&share),
        "slowdowns let LEDBAT++ measure the empty path: its latecomer has {share}"
    );
}

#[test]
fn the_losses_of_a_round_halve_the_window_once() {
    for scheme in ["ledbat", "ledbat@utp", "ledbat@plusplus"] {
        let mut plan = Plan::new(bufferbloat());
        let flow = plan.start(scheme);
        plan.run_for(Duration::from_secs(40));
        while plan.inspect(flow).state == "Slowdown" || plan.inspect(flow).state == "Return" {
            plan.run_for(Duration::from_millis(100));
        }
        let before = plan.cwnd_packets(flow);
        for _ in 0..5 {
            plan.lose_next(flow);
            plan.run_for(Duration::from_millis(3));
        }
        let mut least = before;
        for _ in 0..300 {
            plan.run_for(Duration::from_millis(1));
            least = least.min(plan.cwnd_packets(flow));
        }
        let left = least / before;
        assert!((0.45..0.55).contains(&left), "{scheme}: {left} of the window is left");
    }
}

#[test]
fn utp_halves_again_after_a_tenth_of_a_second() {
    let mut plan = Plan::new(bufferbloat());
    let flow = plan.start("ledbat@utp");
    plan.run_for(Duration::from_secs(40));
    let before = plan.cwnd_packets(flow);
    // All losses are within one round of 140 ms, but the first and the last loss are more than 100 ms apart.
    for _ in 0..5 {
        plan.lose_next(flow);
        plan.run_for(Duration::from_millis(27));
    }
    let mut least = before;
    for _ in 0..300 {
        plan.run_for(Duration::from_millis(1));
        least = least.min(plan.cwnd_packets(flow));
    }
    let left = least / before;
    assert!((0.2..0.3).contains(&left), "{left} of the window is left after two halvings");
}

#[test]
fn a_silence_leaves_one_packet_from_which_it_comes_back() {
    for scheme in ["ledbat", "ledbat@utp", "ledbat@plusplus"] {
        let mut plan = Plan::new(Conditions::default());
        let flow = plan.start(scheme);
        plan.run_for(Duration::from_secs(10));
        plan.rate_from(plan.now(), Rate::ZERO);
        plan.rate_from(plan.now() + Duration::from_secs(3), Rate::from_mbps(20.0));
        plan.run_for(Duration::from_secs(2));
        assert!(plan.cwnd_packets(flow) <= 2.0, "{scheme} has {}", plan.cwnd_packets(flow));
        plan.run_for(Duration::from_secs(11));
        plan.forget();
        plan.run_for(Duration::from_secs(5));
        assert!(plan.seen(flow).utilization > 0.85, "{scheme} uses {}", plan.seen(flow).utilization);
    }
}

#[test]
fn a_longer_route_is_a_queue_until_the_base_delay_has_aged() {
    let mut plan = Plan::new(Conditions::default());
    let flow = plan.start("ledbat:base_history_minutes=2:target_ms=10");
    plan.run_for(Duration::from_secs(30));
    plan.set_rtt(2 * RTT);
    plan.run_for(Duration::from_secs(5));
    plan.forget();
    plan.run_for(Duration::from_secs(20));
    let share = plan.seen(flow).utilization;
    assert!(share < 0.1, "20 ms more each way is twice the target: the flow uses {share}");
    plan.run_for(Duration::from_secs(90));
    plan.forget();
    plan.run_for(Duration::from_secs(20));
    let share = plan.seen(flow).utilization;
    assert!(share > 0.9, "after two minutes the longer route is the base delay: the flow uses {share}");
}

#[test]
fn an_application_that_sends_little_does_not_grow_the_window() {
    for (scheme, most) in [("ledbat", 4.0), ("ledbat@utp", 140.0), ("ledbat@plusplus", 4.0)] {
        let mut plan = Plan::new(Conditions::default());
        let flow = plan.start_with(scheme, Backlog::Limited(Bytes::ZERO));
        for _ in 0..1_500 {
            plan.offer(flow, Bytes(3_000));
            plan.run_for(Duration::from_millis(40));
        }
        let window = plan.cwnd_packets(flow);
        assert!(window <= most, "{scheme} has a window of {window} packets for two per round");
    }
}

#[test]
fn slowdowns_show_the_base_delay_for_a_tenth_of_the_time() {
    let mut plan = Plan::new(bufferbloat());
    let flow = plan.start("ledbat@plusplus");
    plan.run_for(Duration::from_secs(20));
    let (mut slow, mut begun, mut emptied, mut state) = (0u64, 0, 0, "");
    for _ in 0..120_000 {
        plan.run_for(Duration::from_millis(1));
        let now = plan.inspect(flow).state;
        begun += u64::from(now == "Slowdown" && state != "Slowdown");
        emptied += u64::from(now == "Return" && state == "Slowdown" && plan.queued() <= Bytes(2 * MSS.0));
        slow += u64::from(now == "Slowdown" || now == "Return");
        state = now;
    }
    assert!(begun >= 5, "{begun} slowdowns in two minutes");
    assert_eq!(emptied, begun, "each slowdown empties the queue");
    let share = slow as f64 / 120_000.0;
    assert!((0.08..0.12).contains(&share), "{share} of the time is spent on slowdowns");
}

#[test]
fn plusplus_is_no_faster_than_reno_at_any_rtt() {
    // The inverse of the gain is 2 · 60 ms divided by the base RTT, rounded up, at most sixteen: 3 at 40 ms, 1 at 120
    // ms, 16 at 2 ms.
    for (rtt_ms, gain) in [(40, 1.0 / 3.0), (120, 1.0), (200, 1.0), (2, 1.0 / 16.0)] {
        let rtt = Duration::from_millis(rtt_ms);
        let mut plan = Plan::new(Conditions { rtt, ..bufferbloat() });
        let flow = plan.start("ledbat@plusplus");
        plan.run_for(Duration::from_secs(2));
        let seen = value(&plan, flow, "gain_packets");
        assert!(
            (seen - gain).abs() < 0.02 || (seen - 1.0 / (1.0 / gain).floor()).abs() < 0.02,
            "{rtt_ms} ms: {seen}"
        );
    }
}

/// The windows of a flow over a path whose queue grows and shrinks. The receiver's clock is ahead by `offset`.
fn windows(scheme: &str, offset: Duration) -> Vec<Bytes> {
    let setup = Setup::new(MSS, Streams::new(1).stream("clock"));
    let ends = SchemeSpec::parse(scheme).unwrap().build(&setup).unwrap();
    let (mut controller, mut receiver) = (ends.controller, ends.receiver.unwrap());
    let mut windows = vec![];
    for number in 0..4_000u64 {
        let sent = Time::from_millis(number);
        let queueing = Duration::from_micros(100 * (number % 2_000).min(2_000 - number % 2_000));
        let arrived = sent + RTT / 2 + queueing;
        receiver.on_packet(&Arrival::new(arrived + offset, sent, number, MSS));
        let feedback = receiver.feedback(arrived + offset);
        let rtt = RTT + queueing;
        let packets = [SentPacket::new(number, MSS, sent)];
        let times = Rtt { latest: Some(rtt), smoothed: rtt, variation: rtt / 2, min: RTT };
        let mut ack = Ack::new(sent + rtt, &packets, times);
        (ack.prior_inflight, ack.next_number) = (controller.control().cwnd, number + 100);
        (ack.cwnd_limited, ack.feedback) = (true, feedback.as_bytes());
        controller.on_ack(&ack);
        windows.push(controller.control().cwnd);
    }
    windows
}

#[test]
fn the_offset_of_the_clocks_is_immaterial() {
    for scheme in ["ledbat", "ledbat@utp"] {
        let reference = windows(scheme, Duration::ZERO);
        let (least, most) = (reference.iter().min().unwrap(), reference.iter().max().unwrap());
        assert!(most.0 > 3 * least.0, "{scheme}: the queue moves the window, from {least:?} to {most:?}");
        // With the second offset, the 32-bit microsecond clock wraps during the run.
        for offset_us in [86_400_000_000, (1 << 32) - 90_000, 1] {
            assert!(
                windows(scheme, Duration::from_micros(offset_us)) == reference,
                "{scheme}: {offset_us} µs ahead"
            );
        }
    }
}
