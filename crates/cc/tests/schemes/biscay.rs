//! Tests of BISCAY: conditions → run → check.
//!
//! On an uplink, all flows are on one device, whose modem reports its grants. The modem reports either the maximum that
//! the cell could have granted ([`Modem::Saturated`], the paper's traces), or the requested and granted PRBs
//! ([`Modem::Granted`], any real cell).

use crate::plan;

use std::time::Duration;

use airpace_cc::endpoint::Backlog;
use airpace_core::{Bytes, Rate, Streams, Time};
use plan::{Conditions, MSS, Modem, Plan, Seen};

const MODEMS: [Modem; 2] = [Modem::Saturated, Modem::Granted];

/// An uplink of 20 Mbit/s and 40 ms with a deep buffer.
fn uplink(modem: Modem) -> Plan {
    Plan::new(Conditions { uplink: Some(modem), buffer: Bytes(3_000_000), ..Conditions::default() })
}

/// Changes the bottleneck's rate at random between 5 and 35 Mbit/s, every 50 ms.
fn wander(plan: &mut Plan, seconds: u64) {
    let mut rng = Streams::new(7).stream("wander");
    let mut mbps = 20.0;
    for step in 0..seconds * 20 {
        mbps = f64::clamp(mbps * rng.range(0.8, 1.25), 5.0, 35.0);
        plan.rate_from(Time::from_millis(step * 50), Rate::from_mbps(mbps));
    }
}

/// The result of one flow in 30 s of an uplink with a random rate.
fn wandering(scheme: &str, modem: Modem) -> Seen {
    let mut plan = uplink(modem);
    wander(&mut plan, 30);
    let flow = plan.start(scheme);
    plan.run_for(Duration::from_secs(30));
    plan.seen(flow)
}

/// The result of the flow in the next `millis` ms.
fn next(plan: &mut Plan, flow: usize, millis: u64) -> Seen {
    plan.forget();
    plan.run_for(Duration::from_millis(millis));
    plan.seen(flow)
}

fn state(plan: &Plan, flow: usize) -> &'static str {
    let state = plan.inspect(flow).state;
    if state.starts_with("Fallback") { "Fallback" } else { state.trim_end_matches(".Drain") }
}

fn value(plan: &Plan, flow: usize, name: &str) -> f64 {
    plan.inspect(flow).values.iter().find(|(known, _)| *known == name).expect("a value of BISCAY").1
}

/// The states of the flow in the next `millis` ms, each with the time at which it started (ms).
fn states(plan: &mut Plan, flow: usize, millis: u64) -> Vec<(u64, &'static str)> {
    let mut seen = vec![(0, state(plan, flow))];
    for at in (10..=millis).step_by(10) {
        plan.run_for(Duration::from_millis(10));
        if seen.last().expect("the first").1 != state(plan, flow) {
            seen.push((at, state(plan, flow)));
        }
    }
    seen
}

fn jain(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>().powi(2)
        / (rates.len() as f64 * rates.iter().map(|rate| rate * rate).sum::<f64>())
}

#[test]
fn by_the_text_startup_ends_with_the_first_bandwidth_which_slow_start_has_not_shown_end_to_end() {
    let mut plan = uplink(Modem::Saturated);
    let flow = plan.start("biscay@paper");
    let states = states(&mut plan, flow, 1_000);
    assert_eq!(states[0].1, "Startup");
    assert!((100..=150).contains(&states[1].0), "the MAC's first summary comes after 100 ms: {states:?}");
    assert_eq!(
        states[1].1, "Fallback",
        "a cell above the end-to-end bandwidth counts as a wired bottleneck: {states:?}"
    );
    assert_eq!(states[2].1, "Biscay", "it returns once BBR has found the same bandwidth: {states:?}");
}

#[test]
fn by_the_text_the_window_is_the_bandwidth_times_the_least_round_trip_time() {
    let mut plan = uplink(Modem::Saturated);
    let flow = plan.start("biscay@paper");
    plan.run_for(Duration::from_secs(3));
    let seen = next(&mut plan, flow, 2_000);
    assert_eq!(state(&plan, flow), "Biscay");
    // 20 Mbit/s · 40.6 ms: the minimum RTT contains the transmission time of a packet.
    assert_eq!(plan.control(flow).cwnd, Bytes(101_500));
    assert!(
        seen.utilization > 0.98 && seen.queueing_delay_p95_ms < 0.5,
        "the link is full and the queue is empty: {seen:?}"
    );
}

#[test]
fn startup_fills_a_cell_that_grants_only_what_is_asked_for() {
    for modem in MODEMS {
        let mut plan = uplink(modem);
        let flow = plan.start("biscay");
        plan.run_for(Duration::from_millis(500));
        assert_eq!(state(&plan, flow), "Biscay", "{modem:?}");
        let seen = next(&mut plan, flow, 1_000);
        assert!(seen.utilization > 0.98 && seen.queueing_delay_p95_ms < 25.0, "{modem:?}: {seen:?}");
    }
}

#[test]
fn by_the_text_a_window_of_grants_asks_for_less_and_less_and_ours_does_not() {
    let text = wandering("biscay@paper", Modem::Granted);
    assert!(text.utilization < 0.2, "the grants only show what was requested: {text:?}");
    let ours = wandering("biscay", Modem::Granted);
    assert!(ours.utilization > 0.95, "{ours:?}");
    let saturated = wandering("biscay", Modem::Saturated);
    assert!(
        (ours.throughput.as_mbps() / saturated.throughput.as_mbps() - 1.0).abs() < 0.02,
        "the flow gets nearly as much as if the modem reported all that the cell could have granted: {saturated:?}"
    );
    let bbr = wandering("bbr", Modem::Granted);
    assert!(ours.queueing_delay_mean_ms < 0.5 * bbr.queueing_delay_mean_ms, "against {bbr:?}");
    assert!(ours.queueing_delay_p95_ms < 0.5 * bbr.queueing_delay_p95_ms);
}

#[test]
fn a_cell_that_falls_is_obeyed_within_two_samples_and_one_that_rises_is_used() {
    for modem in MODEMS {
        let mut plan = uplink(modem);
        let flow = plan.start("biscay");
        plan.run_for(Duration::from_secs(3));
        plan.rate_from(plan.now(), Rate::from_mbps(5.0));
        plan.run_for(Duration::from_millis(250));
        let window = plan.control(flow).cwnd.0 as f64;
        assert!(
            window < 0.5 * 100_000.0,
            "{modem:?}: the window is a quarter of the bandwidth plus the extra: {window}"
        );
        plan.run_for(Duration::from_millis(1_000));
        assert!(next(&mut plan, flow, 500).queueing_delay_mean_ms < 20.0, "{modem:?}");
        plan.rate_from(plan.now(), Rate::from_mbps(20.0));
        plan.run_for(Duration::from_millis(1_500));
        let seen = next(&mut plan, flow, 500);
        assert!(seen.utilization > 0.95, "{modem:?}: a rise of the cell is used: {seen:?}");
    }
}

#[test]
fn transport_blocks_and_granted_bytes_agree() {
    for modem in MODEMS {
        let bytes = wandering("biscay", modem);
        let blocks = wandering("biscay:bandwidth=tbs:sample_ms=1", modem);
        let ratio = blocks.throughput.as_mbps() / bytes.throughput.as_mbps();
        assert!((ratio - 1.0).abs() < 0.02, "{modem:?}: {ratio}");
        assert!(blocks.queueing_delay_p95_ms < bytes.queueing_delay_p95_ms, "the finer method is faster");
    }
}

#[test]
fn the_more_often_the_bandwidth_is_sampled_the_shorter_is_the_delay() {
    let p95 = |options: &str| {
        let seen = wandering(&format!("biscay:{options}"), Modem::Saturated);
        assert!(seen.utilization > 0.9, "{options}: {seen:?}");
        seen.queueing_delay_p95_ms
    };
    let fine = |ms: u32| p95(&format!("bandwidth=tbs:tbs_ttis={ms}:sample_ms={ms}"));
    let shipped = p95("sample_ms=100");
    assert_eq!(fine(100), shipped, "the same bytes, added up over the same time");
    let (ten, fifty) = (fine(10), fine(50));
    assert!(ten < fifty && fifty < shipped, "10, 50 and 100 ms: {ten}, {fifty} and {shipped} ms");
    let half_a_second = p95("sample_ms=500");
    let longest = p95("sample_ms=1500");
    assert!(half_a_second > 1.3 * shipped, "{half_a_second} ms against {shipped}");
    assert!(longest > 1.2 * half_a_second, "{longest} ms against {half_a_second}");
}

#[test]
fn three_flows_of_a_device_share_in_every_second() {
    for modem in MODEMS {
        let worst = |scheme: &str| {
            let mut plan = uplink(modem);
            wander(&mut plan, 40);
            let flows: Vec<usize> =
                (0..3).map(|_| (plan.start(scheme), plan.run_for(Duration::from_millis(700))).0).collect();
            plan.run_for(Duration::from_secs(4));
            let fairness = (0..20).map(|_| {
                plan.forget();
                plan.run_for(Duration::from_secs(1));
                let rates: Vec<f64> =
                    flows.iter().map(|&flow| plan.seen(flow).throughput.as_mbps()).collect();
                jain(&rates)
            });
            fairness.fold(1.0, f64::min)
        };
        let ours = worst("biscay");
        assert!(ours >= 0.99, "{modem:?}: {ours}");
        assert!(worst("biscay:split=proportional") >= 0.99, "flows that all want more end up equal");
        let (bbr, cubic) = (worst("bbr"), worst("cubic"));
        assert!(bbr < 0.9 && cubic < 0.9, "other schemes are fair only over minutes: {bbr}, {cubic}");
    }
}

#[test]
fn an_application_with_five_sockets_gets_no_more_than_one_with_one_if_applications_share() {
    let shares = |split: &str| {
        let mut plan = uplink(Modem::Granted);
        let scheme = format!("biscay:split={split}");
        let flows: Vec<usize> = (0..6).map(|_| plan.start(&scheme)).collect();
        flows[..5].iter().for_each(|&flow| plan.set_app(flow, 99));
        plan.run_for(Duration::from_secs(5));
        plan.forget();
        plan.run_for(Duration::from_secs(5));
        let mut mbps = |flow: &usize| plan.seen(*flow).throughput.as_mbps();
        (flows[..5].iter().map(&mut mbps).sum::<f64>(), mbps(&flows[5]))
    };
    let (many, one) = shares("equal");
    assert!(many > 4.0 * one, "flows share equally: {many} and {one}");
    let (many, one) = shares("app");
    assert!(
        many < 1.5 * one,
        "applications share equally, except for the extra of five windows: {many} and {one}"
    );
}

#[test]
fn what_a_slow_application_leaves_goes_to_the_others_if_shares_follow_use() {
    let bulk = |split: &str| {
        let mut plan = uplink(Modem::Granted);
        let scheme = format!("biscay:split={split}");
        let bulk = plan.start(&scheme);
        let slow = plan.start_with(&scheme, Backlog::Limited(Bytes::ZERO));
        for second in 0..6 {
            if second == 3 {
                plan.forget();
            }
            for _ in 0..200 {
                plan.offer(slow, MSS);
                plan.run_for(Duration::from_millis(5));
            }
        }
        assert!(
            (plan.seen(slow).throughput.as_mbps() - 2.4).abs() < 0.1,
            "the slow application gets all that it needs"
        );
        plan.seen(bulk).throughput.as_mbps()
    };
    let (equal, proportional) = (bulk("equal"), bulk("proportional"));
    assert!(equal < 0.75 * 20.0, "the other flow gets half plus the window's extra: {equal}");
    assert!(proportional > 0.85 * 17.6, "the other flow gets nearly all that is left: {proportional}");
}

#[test]
fn a_wired_bottleneck_is_bbrs_until_it_is_gone() {
    for scheme in ["biscay", "biscay@paper"] {
        let mut plan = uplink(Modem::Saturated);
        let flow = plan.start(scheme);
        plan.run_for(Duration::from_millis(3_500));
        for wired in [5.0, 10.0, 15.0] {
            plan.set_wired(Some(Rate::from_mbps(wired)));
            let there = states(&mut plan, flow, 4_000);
            let names: Vec<_> = there.iter().map(|(_, name)| *name).collect();
            assert_eq!(names, ["Biscay", "Fallback"], "{scheme}, {wired} Mbit/s: {there:?}");
            assert!(
                there[1].0 < 2_700,
                "{scheme}, {wired} Mbit/s: the switch takes ten rounds, which the queue makes longer: {there:?}"
            );
            let seen = next(&mut plan, flow, 1_000);
            assert!((seen.throughput.as_mbps() / wired - 1.0).abs() < 0.03, "{scheme}: {seen:?}");
            assert!(seen.queueing_delay_mean_ms < 60.0, "{scheme}: BBR leaves a short queue: {seen:?}");
            plan.set_wired(None);
            let back = states(&mut plan, flow, 3_000);
            assert_eq!(back.last().expect("some").1, "Biscay", "{scheme}, from {wired} Mbit/s: {back:?}");
            assert!(back[1].0 < 1_200, "{scheme}, from {wired} Mbit/s: {back:?}");
            assert!(next(&mut plan, flow, 1_000).utilization > 0.95, "{scheme}");
        }
    }
}

#[test]
fn behind_a_cell_that_grants_what_is_asked_for_a_wired_bottleneck_gets_no_long_queue_either() {
    let mut plan = uplink(Modem::Granted);
    let flow = plan.start("biscay");
    plan.run_for(Duration::from_secs(3));
    plan.set_wired(Some(Rate::from_mbps(5.0)));
    plan.run_for(Duration::from_secs(2));
    let seen = next(&mut plan, flow, 3_000);
    assert!(seen.throughput.as_mbps() > 4.5 && seen.queueing_delay_mean_ms < 30.0, "{seen:?}");
    plan.set_wired(None);
    plan.run_for(Duration::from_secs(2));
    assert!(next(&mut plan, flow, 2_000).utilization > 0.95, "the free capacity is used");
}

#[test]
fn cubic_and_reno_can_stand_in_for_bbr() {
    for fallback in ["cubic", "reno"] {
        let mut plan = uplink(Modem::Saturated);
        let flow = plan.start(&format!("biscay:fallback={fallback}"));
        plan.run_for(Duration::from_secs(3));
        plan.set_wired(Some(Rate::from_mbps(10.0)));
        let there = states(&mut plan, flow, 3_000);
        assert_eq!(there.last().expect("some").1, "Fallback", "{fallback}: {there:?}");
        assert!(next(&mut plan, flow, 2_000).throughput.as_mbps() > 9.5, "{fallback}");
        plan.set_wired(None);
        let back = states(&mut plan, flow, 3_000);
        assert_eq!(back.last().expect("some").1, "Biscay", "{fallback}: {back:?}");
    }
}

#[test]
fn further_signals_tell_of_a_wired_bottleneck_before_ten_rounds_have_passed() {
    let switched_after = |signal: &str, prepare: &dyn Fn(&mut Plan)| {
        let mut plan = Plan::new(Conditions {
            uplink: Some(Modem::Saturated),
            buffer: Bytes(80_000),
            ..Conditions::default()
        });
        prepare(&mut plan);
        let flow = plan.start(&format!("biscay{signal}"));
        plan.run_for(Duration::from_millis(3_500));
        plan.set_wired(Some(Rate::from_mbps(5.0)));
        let there = states(&mut plan, flow, 5_000);
        there.iter().find(|(_, name)| *name == "Fallback").map_or(u64::MAX, |(at, _)| *at)
    };
    let nothing = |_: &mut Plan| {};
    let marks = |plan: &mut Plan| plan.mark_above(Duration::from_millis(30));
    let without = switched_after("", &nothing);
    assert!((1_000..5_000).contains(&without), "{without}");
    for (signal, prepare) in
        [(":ecn=on", &marks as &dyn Fn(&mut Plan)), (":loss=on", &nothing), (":delay_gradient=on", &nothing)]
    {
        let with = switched_after(signal, prepare);
        assert!(with < without / 2, "{signal}: {with} ms instead of {without}");
    }
}

#[test]
fn what_waits_in_the_device_can_be_taken_off_the_window() {
    let delay = |options: &str| {
        let mut plan = uplink(Modem::Granted);
        let flow = plan.start(&format!("biscay:cwnd_slack_ms=30{options}"));
        plan.run_for(Duration::from_secs(3));
        next(&mut plan, flow, 1_500).queueing_delay_mean_ms
    };
    let (without, with) = (delay(""), delay(":queue=on"));
    assert!(with < 0.8 * without, "{with} ms instead of {without}");
}

#[test]
fn an_advertised_window_keeps_an_unmodified_senders_queue_short() {
    let downlink = |scheme: &str| {
        let mut plan =
            Plan::new(Conditions { radio: true, buffer: Bytes(3_000_000), ..Conditions::default() });
        wander(&mut plan, 30);
        let flow = plan.start(scheme);
        plan.run_for(Duration::from_secs(30));
        (plan.seen(flow), plan.sender(flow).advertised())
    };
    let (cubic, advertised) = downlink("cubic");
    assert_eq!(advertised, None);
    for sender in ["cubic", "bbr", "reno"] {
        let (throttled, advertised) = downlink(&format!("biscay@window:sender={sender}"));
        assert!(advertised.is_some());
        assert!(
            throttled.queueing_delay_p95_ms < 0.06 * cubic.queueing_delay_p95_ms,
            "{sender}: {throttled:?}"
        );
        assert!(throttled.utilization > 0.95, "{sender}: {throttled:?}");
    }
    let (fed, _) = downlink("biscay");
    assert!(
        fed.utilization > 0.97 && fed.queueing_delay_p95_ms < 30.0,
        "with feedback to a BISCAY sender: {fed:?}"
    );
}

#[test]
fn a_modem_that_falls_silent_leaves_the_path_to_the_fallback_until_it_speaks() {
    for modem in MODEMS {
        let mut plan = uplink(modem);
        let flow = plan.start("biscay");
        plan.run_for(Duration::from_secs(3));
        plan.set_modem(None);
        plan.run_for(Duration::from_secs(1));
        assert_eq!(state(&plan, flow), "Fallback", "{modem:?}");
        assert!(next(&mut plan, flow, 1_000).utilization > 0.9, "{modem:?}");
        plan.set_modem(Some(modem));
        plan.run_for(Duration::from_millis(1_000));
        assert_eq!(state(&plan, flow), "Biscay", "{modem:?}");
    }
}

#[test]
fn a_pause_of_the_application_is_no_lack_of_bandwidth() {
    let after_a_pause = |scheme: &str| {
        let mut plan = uplink(Modem::Granted);
        let flow = plan.start_with(scheme, Backlog::Limited(Bytes(5_000_000)));
        plan.run_for(Duration::from_secs(3));
        for _ in 0..200 {
            plan.offer(flow, MSS);
            plan.run_for(Duration::from_millis(10));
        }
        plan.offer(flow, Bytes(10_000_000));
        next(&mut plan, flow, 500).utilization
    };
    let ours = after_a_pause("biscay");
    assert!(ours > 0.9, "the grants of a slow application do not show the cell's bandwidth: {ours}");
    let believing = after_a_pause("biscay:hold=off");
    assert!(believing < 0.5 * ours, "if those grants count, the flow asks for no more: {believing}");
}

#[test]
fn a_longer_route_is_found_out_by_draining() {
    for modem in MODEMS {
        let mut plan = uplink(modem);
        let flow = plan.start("biscay");
        plan.run_for(Duration::from_secs(6));
        plan.set_rtt(Duration::from_millis(80));
        plan.run_for(Duration::from_secs(21));
        assert!((value(&plan, flow, "rtprop_ms") - 80.6).abs() < 3.0, "{modem:?}");
        assert!(next(&mut plan, flow, 3_000).utilization > 0.95, "{modem:?}");
    }
}

#[test]
fn a_buffer_too_small_for_the_windows_extra_does_not_go_on_overflowing() {
    let mut plan = Plan::new(Conditions {
        rate: Rate::from_mbps(5.0),
        uplink: Some(Modem::Granted),
        buffer: Bytes(6_000),
        ..Conditions::default()
    });
    let flow = plan.start("biscay");
    plan.run_for(Duration::from_secs(3));
    let seen = next(&mut plan, flow, 5_000);
    assert!(seen.loss_rate < 0.015 && seen.utilization > 0.9, "{seen:?}");
}

#[test]
fn on_a_steady_path_its_own_queue_is_never_taken_for_the_paths_length() {
    for (scheme, uplink) in [("biscay", Some(Modem::Granted)), ("biscay", None), ("biscay@window", None)] {
        let conditions = Conditions { uplink, radio: uplink.is_none(), ..Conditions::default() };
        let mut plan = Plan::new(Conditions { buffer: Bytes(3_000_000), ..conditions });
        let flow = plan.start(scheme);
        plan.run_for(Duration::from_secs(15));
        let early = next(&mut plan, flow, 5_000);
        plan.run_for(Duration::from_secs(100));
        let late = next(&mut plan, flow, 5_000);
        assert!(
            late.queueing_delay_mean_ms < early.queueing_delay_mean_ms + 2.0,
            "{scheme}: {early:?}, two minutes later {late:?}"
        );
        assert!(late.queueing_delay_mean_ms < 30.0 && late.utilization > 0.95, "{scheme}: {late:?}");
    }
}
