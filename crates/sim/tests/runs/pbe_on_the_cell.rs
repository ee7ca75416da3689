//! Requirements on PBE-CC over a cell, as tests over the built-in scenarios: conditions → run → check.

use crate::watched;

use watched::{first, flows};

/// An Oracle with enough slack to keep the device's HARQ processes busy. This Oracle is a fair bound for the delay,
/// because the cell itself delays packets.
const ORACLE: &str = "oracle:slack_ms=8";

#[test]
fn an_idle_cell_is_used_without_a_queue_at_any_round_trip_time() {
    for rtt_ms in [11, 42, 162, 282] {
        let sets = format!("flow.0.rtt_ms={rtt_ms}");
        for seed in 1..=3 {
            let pbe = first("stationary-idle", &sets, "pbe", seed);
            let oracle = first("stationary-idle", &sets, ORACLE, seed);
            let part = pbe.mbps(0.0..20.0) / oracle.mbps(0.0..20.0);
            assert!(
                part >= 0.95,
                "{rtt_ms} ms, seed {seed}: {part} of the Oracle's rate, including the start"
            );
            let p95 = pbe.queueing_p95_ms(0.0..20.0);
            // Over a long path, the small capacity changes of an idle cell build a queue of at most the adaptive
            // buffer's maximum target.
            let most = if rtt_ms < 200 { 30.0 } else { 30.0 + 25.0 };
            assert!(p95 <= most, "{rtt_ms} ms, seed {seed}: {p95} ms of queueing at p95");
            assert_eq!(pbe.states_from(3.0), ["Wireless"], "{rtt_ms} ms, seed {seed}");
            pbe.was_never_in("Internet");
        }
    }
}

#[test]
fn the_estimate_is_what_the_carriers_together_carry() {
    for carriers in [1, 2, 3] {
        let sets = format!("duration_s=6 cell.carriers={carriers}");
        let carried = first("stationary-idle", &sets, "cbr:rate_mbps=300", 1).mbps(2.0..6.0);
        let translated = first("stationary-idle", &sets, "pbe", 1).mean("ct_mbps", 2.0..6.0);
        assert!(
            (translated / carried - 1.0).abs() <= 0.03,
            "the estimate is {translated} Mbit/s for {carriers} carriers that carry {carried}"
        );
    }
}

#[test]
fn the_estimate_on_nr_is_the_capacity_in_each_tdd_pattern() {
    for (pattern, scs_khz) in
        [("DDDSU", 30), ("DDDSU", 15), ("DDDSUUDDDD", 30), ("DDDDDDDSUU", 30), ("DSUUU", 30), ("DDSU", 60)]
    {
        let sets =
            format!("duration_s=4 cell.bandwidth_mhz=40 cell.scs_khz={scs_khz} cell.tdd=\"{pattern}\"");
        let pbe = first("nr-idle", &sets, "pbe", 1);
        let (translated, capacity) = (pbe.mean("ct_mbps", 1.0..4.0), pbe.capacity_mbps(1.0..4.0));
        assert!(
            (translated / capacity - 1.0).abs() <= 0.02,
            "the estimate is {translated} Mbit/s for {pattern} with {scs_khz} kHz, whose capacity is {capacity}"
        );
    }
}

#[test]
fn a_backlogged_competitor_leaves_the_fair_share() {
    for rtt_ms in [11, 42, 162, 282] {
        let sets = format!("duration_s=10 flow.0.rtt_ms={rtt_ms}");
        let alone = first("stationary-idle", &sets, ORACLE, 1).mbps(3.0..10.0);
        let rival = format!("{sets} flow.1.scheme=cubic flow.1.start_s=0 flow.1.on_s=100");
        let pbe = first("competitor", &rival, "pbe", 1);
        let part = pbe.mbps(3.0..10.0) / (0.5 * alone);
        assert!(
            part >= 0.9,
            "{rtt_ms} ms: {part} of its fair share beside a CUBIC that is always backlogged"
        );
        assert_eq!(pbe.states_from(3.0), ["Wireless"], "{rtt_ms} ms");
        pbe.was_never_in("Internet");
    }
}

#[test]
fn a_competitor_that_comes_and_goes_is_not_taken_for_the_internet() {
    for seed in 1..=3 {
        first("competitor", "duration_s=21", "pbe", seed).was_never_in("Internet");
    }
}

#[test]
fn a_start_over_further_carriers_is_not_taken_for_a_stalled_one() {
    for carriers in [2, 3] {
        for (rtt_ms, seed) in [11, 42].into_iter().flat_map(|rtt_ms| (1..=12).map(move |seed| (rtt_ms, seed)))
        {
            let sets = format!("duration_s=1 flow.0.rtt_ms={rtt_ms} cell.carriers={carriers}");
            first("stationary-idle", &sets, "pbe", seed).was_never_in("Drain");
        }
    }
}

#[test]
fn silence_of_200_ms_leaves_no_queue_after_a_second() {
    let outage = "duration_s=7 ack_outage=[{at_s=4,for_s=0.2}]";
    let pbe = first("stationary-idle", outage, "pbe", 1);
    let (before, after) = (2.0..4.0, 5.2..7.0);
    let p95 = (pbe.queueing_p95_ms(before.clone()), pbe.queueing_p95_ms(after.clone()));
    assert!(p95.1 <= p95.0 + 3.0, "{} ms a second after the silence, {} before it", p95.1, p95.0);
    let mbps = (pbe.mbps(before), pbe.mbps(after));
    assert!(mbps.1 >= 0.95 * mbps.0, "{} Mbit/s after the silence, {} before it", mbps.1, mbps.0);
    pbe.was_never_in("Internet");
}

#[test]
fn acks_that_come_bunched_by_8_ms_cost_little() {
    let smooth = first("stationary-idle", "duration_s=8", "pbe", 1);
    let bunched = first("stationary-idle", "duration_s=8 reverse.batch_ms=8", "pbe", 1);
    let part = bunched.mbps(0.0..8.0) / smooth.mbps(0.0..8.0);
    assert!(part >= 0.95, "{part} of the rate without bunching");
    let p95 = bunched.queueing_p95_ms(0.0..8.0);
    assert!(p95 <= 30.0, "{p95} ms of queueing at p95");
}

#[test]
fn a_step_of_the_clock_is_forgotten_within_12_seconds() {
    for (seed, step_ms) in [(1, 50), (2, 50), (3, 50), (1, -50)] {
        let step = format!("duration_s=19 device.0.clock.step_ms={step_ms} device.0.clock.step_at_s=5");
        let pbe = first("stationary-idle", &step, "pbe", seed);
        let state = pbe.state_at(17.0);
        assert_eq!(state, "Wireless", "12 s after a step of {step_ms} ms, seed {seed}");
        let plain = first("stationary-idle", "duration_s=19", "pbe", seed);
        let part = pbe.mbps(17.0..19.0) / plain.mbps(17.0..19.0);
        assert!(part >= 0.97, "{part} of the rate with a clock that does not step by {step_ms} ms");
    }
}

#[test]
fn a_clock_that_drifts_by_100_ppm_is_harmless() {
    let mbps = |sets: &str| {
        let pbe = first("stationary-idle", sets, "pbe", 1);
        assert_eq!(pbe.states_from(3.0), ["Wireless"], "{sets}");
        pbe.was_never_in("Internet");
        pbe.mbps(0.0..12.0)
    };
    let plain = mbps("duration_s=12");
    for ppm in [100, -100] {
        let drifting = mbps(&format!("duration_s=12 device.0.clock.drift_ppm={ppm}"));
        assert!((drifting / plain - 1.0).abs() < 0.01, "{drifting} Mbit/s at {ppm} ppm, {plain} without");
    }
}

#[test]
fn a_wired_bottleneck_is_entered_with_hardly_any_loss_and_left_when_it_goes() {
    let full = saturated_mbps("duration_s=8");
    for seed in 1..=3 {
        let pbe = first("wired-bottleneck", "duration_s=24", "pbe", seed);
        assert!(pbe.dropped <= 20, "300 ms of buffer are nearly enough: {} lost, seed {seed}", pbe.dropped);
        assert_eq!(pbe.states_from(10.5)[..3], ["Wireless", "Drain", "Internet.ProbeBW"], "seed {seed}");
        let entered = pbe.enters("Drain", 10.5);
        assert!(entered < 10.65, "noticed at {entered} s, seed {seed}");
        let drained_ms = (pbe.enters("Internet.ProbeBW", entered) - entered) * 1e3;
        // The ACK that ends the drain may wait behind a retransmission.
        assert!((40.0..=60.0).contains(&drained_ms), "drained for one RTprop: {drained_ms} ms, seed {seed}");
        let within = pbe.mbps(12.0..20.0);
        assert!((13.8..15.1).contains(&within), "{within} of 15 Mbit/s, seed {seed}");
        let left = pbe.enters("Wireless", 20.0);
        assert!(left <= 22.5, "left at {left} s, seed {seed}");
        let part = pbe.mbps(22.5..24.0) / full;
        assert!(part > 0.95, "{part} of what the cell carries is used again, seed {seed}");
    }
}

/// With this RTT, the flow loses packets when it switches to the Internet state. The detector of policers must not
/// attribute these losses to a policer, because the flow would then not probe for 48 round trips, which is 14 s.
#[test]
fn a_long_path_is_used_again_when_its_wired_bottleneck_goes() {
    for seed in 1..=3 {
        let pbe = first("wired-bottleneck", "flow.0.rtt_ms=282", "pbe", seed);
        assert!(pbe.dropped > 0, "the story needs losses, seed {seed}");
        let left = pbe.enters("Wireless", 20.0);
        assert!(left <= 27.0, "left at {left} s, seed {seed}");
        let part = pbe.mbps(27.0..30.0) / pbe.capacity_mbps(27.0..30.0);
        assert!(part > 0.8, "{part} of what the path carries is used again, seed {seed}");
    }
}

/// PBE-CC §4.2.2: the flow drains the path when the minimum delay is ten seconds old. The scheme according to the
/// paper's text also trusts its decoder.
#[test]
fn the_text_to_the_letter_empties_the_path_and_believes_its_decoder() {
    let text = first("stationary-idle", "duration_s=30", "pbe@paper", 1);
    let first_time = text.enters("Wireless.ProbeRTT", 0.0);
    assert!(first_time >= 10.0, "at {first_time} s");
    let again = text.enters("Wireless", first_time);
    assert!((0.2..0.4).contains(&(again - first_time)), "after {} s", again - first_time);
    assert!(text.mbps(first_time + 0.1..again) < 10.0, "hardly anything is sent");
    first("stationary-idle", "duration_s=30", "pbe", 1).was_never_in("Wireless.ProbeRTT");

    let deaf = first("stationary-idle", "duration_s=6 cell.telemetry.missed_dci=1", "pbe@paper", 1);
    deaf.was_never_in("Fallback");
}

#[test]
fn a_walk_away_from_the_cell_and_back_is_followed() {
    let pbe = first("mobility", "duration_s=34", "pbe", 1);
    let oracle = first("mobility", "duration_s=34", ORACLE, 1);
    let part = pbe.mbps(0.0..34.0) / oracle.mbps(0.0..34.0);
    assert!(part >= 0.95, "{part} of the Oracle's rate");
    let used = pbe.mbps(0.0..34.0) / pbe.capacity_mbps(0.0..34.0);
    assert!(used <= 1.0, "{used} of the capacity: a flow cannot carry more than that");
    let p95 = pbe.queueing_p95_ms(0.0..34.0);
    assert!(p95 <= 30.0, "{p95} ms of queueing at p95");
    pbe.was_never_in("Internet");
}

#[test]
fn a_decoder_that_reads_nothing_is_not_taken_for_an_idle_cell() {
    let deaf = first("stationary-idle", "duration_s=6 cell.telemetry.missed_dci=1", "pbe", 1);
    assert!(deaf.enters("Fallback.Startup", 0.0) < 1.0, "{:?}", deaf.states);
    assert!(deaf.state_at(5.9).starts_with("Fallback."), "and it stays there: {:?}", deaf.states);
    assert_eq!(deaf.mean("carriers_missing_n", 3.0..6.0), 1.0, "the carrier should count as missing");
    let part = deaf.mbps(2.0..6.0) / deaf.capacity_mbps(2.0..6.0);
    assert!(part > 0.9, "{part} of the cell is used without its telemetry");
    let poor = first("stationary-idle", "duration_s=6 cell.telemetry.missed_dci=0.1", "pbe", 1);
    poor.was_never_in("Fallback");
}

#[test]
fn headers_that_take_more_than_was_thought_cost_no_more_than_the_windows_slack() {
    // On a narrow carrier, the longest headers take 6.3 % of a transport block. `pbe` subtracts 1.5 % for headers, the
    // paper 6.8 %.
    let headers = "duration_s=13 cell.prbs=15 cell.rlc.pdcp_header_bytes=16 cell.rlc.rlc_header_bytes=16 \
                   cell.rlc.mac_header_bytes=16";
    let pbe = first("stationary-idle", headers, "pbe", 1);
    let p95 = pbe.queueing_p95_ms(3.0..13.0);
    assert!(p95 < 35.0, "{p95} ms of queueing at p95");
    assert_eq!(pbe.states_from(3.0), ["Wireless"]);
    let told = first("stationary-idle", headers, "pbe:overhead_percent=6.8", 1);
    let p95 = told.queueing_p95_ms(3.0..13.0);
    assert!(p95 < 25.0, "with the true header size there is hardly any queue: {p95} ms");
}

#[test]
fn the_text_to_the_letter_leaves_a_part_of_a_short_path_unused() {
    let full = saturated_mbps("duration_s=8 flow.0.rtt_ms=11");
    let text = first("stationary-idle", "duration_s=8 flow.0.rtt_ms=11", "pbe@paper", 1);
    let part = text.mbps(3.0..8.0) / full;
    assert!(part < 0.8, "a window of C·RTprop has no room for retransmissions: {part}");
    let p95 = text.queueing_p95_ms(3.0..8.0);
    assert!(p95 < 20.0, "but no queue either: {p95} ms");
}

#[test]
fn a_start_takes_three_round_trips_on_a_straight_line() {
    let pbe =
        first("stationary-idle", "duration_s=1 forward.jitter_mean_ms=0 reverse.jitter_mean_ms=0", "pbe", 1);
    let end_s = pbe.enters("Wireless", 0.0);
    assert!((0.120..=0.145).contains(&end_s), "three round trips of 42–46 ms: {end_s} s");
    let (middle, end) = (pbe.pacing_mbps_at(end_s / 2.0), pbe.pacing_mbps_at(end_s));
    assert!(
        (0.4..=0.6).contains(&(middle / end)),
        "half of the time should give half of the rate: {middle} of {end}"
    );
    assert!(pbe.pacing_mbps_at(0.035) < 2.0, "before the first ACK the rate should stay low");
}

#[test]
fn a_second_user_lowers_the_rate_within_a_round_trip_and_its_leaving_raises_it() {
    // This scheduler divides the cell between the phones without delay. A scheduler with a long memory would give all
    // PRBs to a newcomer, and the first flow would receive no packets and so no feedback. The newcomer's queue is
    // short, so the queue is empty soon after the newcomer stops.
    let rival = "duration_s=5 cell.pf_time_constant_ms=10 device.1.radio.queue_bytes=9000 flow.1.start_s=3 \
                 flow.1.stop_s=4 flow.1.on_s=100 flow.1.scheme=cbr:rate_mbps=300 \
                 forward.jitter_mean_ms=0 reverse.jitter_mean_ms=0";
    let pbe = first("competitor", rival, "pbe", 1);
    // The newcomer's packets need half a round-trip time to the cell. The round-trip time is 42 ms, and the interval of
    // samples is 10 ms.
    let (comes, goes) = (3.022, 4.022);
    let alone = pbe.pacing_mbps_at(comes);
    let fell = pbe.pacing_mbps_at(comes + 0.05);
    assert!(fell < 0.8 * alone, "one round trip after the newcomer: {fell} of {alone}");
    let shared = pbe.pacing_mbps_at(goes);
    let rose = pbe.pacing_mbps_at(goes + 0.05);
    assert!(rose > 1.15 * shared, "one round trip after it left: {rose} of {shared}");
    let after = pbe.pacing_mbps_at(goes + 0.105);
    assert!(after > 0.95 * alone, "and the whole rate soon after: {after} of {alone}");
}

#[test]
fn the_text_to_the_letter_starves_beside_a_backlogged_competitor() {
    let half = 0.5 * saturated_mbps("duration_s=13");
    let beside = |rival: &str, seed: u64| {
        let sets = format!("duration_s=13 flow.1.scheme={rival} flow.1.start_s=3 flow.1.on_s=100");
        first("competitor", &sets, "pbe@paper", seed)
    };
    let part = beside("cubic", 1).mbps(3.0..13.0) / half;
    assert!(part < 0.6, "Eq. 3 does not regain a lost share: {part} of its fair share");
    // The result depends on the seed: the flow enters the drain with 13 of 24 seeds.
    let is_taken = |seed: &u64| beside("cbr:rate_mbps=300", *seed).states_from(3.0).contains(&"Drain");
    let taken = (1..=12).filter(is_taken).count();
    assert!(
        taken >= 2,
        "a burst of a competitor should be taken for the Internet's queue: {taken} of 12 times"
    );
}

#[test]
fn control_users_take_prbs_but_no_share() {
    let users = |scheme: &str| {
        let sets = "duration_s=4 cell.background.control_per_second=340 cell.background.population=60";
        first("stationary-idle", sets, scheme, 1).mean("users_n", 3.0..4.0)
    };
    let counted = users("pbe");
    assert!(counted < 1.05, "users that only update parameters should not count: N = {counted}");
    let everyone = users("pbe:user_filter=off");
    assert!(everyone > 8.0, "without the filter they all count: N = {everyone}");
}

#[test]
fn a_start_into_an_internet_bottleneck_ends_as_bbr() {
    let sets = "duration_s=5 internet.rate_mbps=10 internet.buffer.bytes=500000";
    let pbe = first("stationary-idle", sets, "pbe", 1);
    assert!(pbe.enters("Internet.ProbeBW", 0.0) < 1.0, "{:?}", pbe.states);
    let mbps = pbe.mbps(1.0..5.0);
    assert!(mbps > 9.0 && pbe.dropped == 0, "{mbps} of 10 Mbit/s, {} dropped", pbe.dropped);
}

#[test]
fn an_internet_bottleneck_is_seen_even_where_a_competitor_leaves_nothing_idle() {
    let sets = "duration_s=11 flow.1.scheme=cubic flow.1.start_s=3 flow.1.on_s=100 flow.1.internet=false \
                internet.schedule=[{at_s=5,rate_mbps=10}] internet.buffer.bytes=1000000";
    let pbe = first("competitor", sets, "pbe", 1);
    let states = pbe.states_from(5.0);
    assert!(
        states.contains(&"Internet.ProbeBW"),
        "the flow's share is far below the fair one, so it should see the bottleneck: {states:?}"
    );
}

/// A second, narrower carrier, which the cell activates for a device that has used the first carrier for three seconds.
const NEW_CARRIER: &str =
    "duration_s=5 cell.carriers=2 cell.carrier=[{},{prbs=50}] cell.aggregation.on_ms=3000";

#[test]
fn a_new_carrier_starts_the_approach_again_from_the_present_rate() {
    let pbe = first("stationary-idle", NEW_CARRIER, "pbe", 1);
    assert_eq!(pbe.states_from(2.0), ["Wireless", "Start", "Wireless"]);
    let began = pbe.enters("Start", 2.0);
    let one = pbe.pacing_mbps_at(began - 0.05);
    let least = pbe.pacing_mbps(began..began + 0.5).into_iter().fold(f64::INFINITY, f64::min);
    assert!(least > 0.9 * one, "the rate before the new carrier should be kept: {least} of {one}");
    let both = pbe.pacing_mbps_at(began + 0.5);
    assert!(both > 1.35 * one, "the new carrier should be used: {both} after {one}");
}

#[test]
fn a_new_carrier_starts_from_zero_in_the_text() {
    // `pbe@paper` does not use the first carrier as fully as `pbe`.
    let sets = format!("{NEW_CARRIER} cell.aggregation.on_share=0.5");
    let text = first("stationary-idle", &sets, "pbe@paper", 1);
    let began = text.enters("Start", 2.0);
    let one = text.pacing_mbps_at(began - 0.05);
    let least = text.pacing_mbps(began..began + 0.5).into_iter().fold(f64::INFINITY, f64::min);
    assert!(least < 0.2 * one, "{least} of {one}");
}

#[test]
fn carriers_of_different_widths_are_translated_to_what_they_carry() {
    let sets = "duration_s=8 cell.carriers=2 cell.carrier=[{},{prbs=50}] cell.aggregation.always_active=true";
    let pbe = first("stationary-idle", sets, "pbe", 1);
    let part = pbe.mean("ct_mbps", 3.0..8.0) / saturated_mbps(sets);
    assert!((part - 1.0).abs() < 0.03, "{part} of the carriers' rate");
    assert_eq!(pbe.mean("carriers_n", 3.0..8.0), 2.0);
}

#[test]
fn a_carrier_whose_reports_stop_is_missing_and_does_not_stall_the_other() {
    let sets = "duration_s=6.5 cell.carriers=2 cell.carrier=[{},{prbs=50}] cell.aggregation.always_active=true \
                cell.telemetry.lost_carrier=[{carrier=1,from_s=3,until_s=5}]";
    let full = saturated_mbps(sets);
    let pbe = first("stationary-idle", sets, "pbe", 1);
    assert_eq!(pbe.mean("carriers_missing_n", 4.9..5.0), 1.0);
    assert_eq!(pbe.state_at(5.0), "Wireless");
    let part = pbe.mbps(3.0..5.0) / full;
    assert!(part > 0.58, "the carrier with reports should still be used: {part}");
    assert_eq!(pbe.mean("carriers_missing_n", 5.19..5.21), 0.0);
    let part = pbe.mbps(5.2..6.2) / full;
    assert!(part > 0.88, "the other carrier should be used when its reports are back: {part}");
}

#[test]
fn a_step_of_the_clock_is_explained_by_the_cell_or_else_taken_for_a_queue_but_not_for_ever() {
    let step = "duration_s=17 device.0.clock.step_ms=50 device.0.clock.step_at_s=3";
    let full = saturated_mbps("duration_s=8");
    let believing = "pbe:cell_test=off:explained_test=off";
    for (scheme, expected) in [("pbe", &["Wireless"][..]), (believing, &["Wireless", "Drain"][..])] {
        let pbe = first("stationary-idle", step, scheme, 1);
        let states = pbe.states_from(2.9);
        assert_eq!(states[..expected.len()], *expected, "{scheme}: {states:?}");
        assert_eq!(pbe.state_at(15.0), "Wireless", "{scheme}: {states:?}");
        let part = pbe.mbps(15.0..17.0) / full;
        assert!(part > 0.95, "{scheme}: the clock's step should have no effect any more: {part}");
    }
}

#[test]
fn without_telemetry_it_is_bbr_and_it_comes_back_by_itself() {
    let sets = "duration_s=10 cell.telemetry.lost_carrier=[{carrier=0,from_s=3,until_s=8.5}]";
    let full = saturated_mbps("duration_s=8");
    let pbe = first("stationary-idle", sets, "pbe", 1);
    assert_eq!(pbe.state_at(3.5), "Fallback.ProbeBW");
    let part = pbe.mbps(3.5..8.5) / full;
    assert!(part > 0.88, "BBR needs no telemetry: {part}");
    assert_eq!(pbe.state_at(8.9), "Wireless");
    let p95 = pbe.queueing_p95_ms(9.0..10.0);
    assert!(p95 < 30.0, "and its queue is gone: {p95} ms");
}

#[test]
fn a_start_without_telemetry_is_bbrs_start() {
    let sets = "duration_s=7 cell.telemetry.lost_carrier=[{carrier=0,from_s=0,until_s=7}]";
    let pbe = first("stationary-idle", sets, "pbe", 1);
    assert_eq!(pbe.states_from(0.1)[..3], ["Start", "Fallback.Startup", "Fallback.Drain"]);
    let part = pbe.mbps(5.0..7.0) / saturated_mbps("duration_s=8");
    assert!(part > 0.88, "{part}");
}

#[test]
fn two_flows_share_equally_whether_they_are_of_one_device_or_of_two() {
    let full = saturated_mbps("duration_s=8");
    // Two flows of one device divide the device's share of the cell. Flows of two devices have equal shares within half
    // a second.
    for (device, from_s) in [(0, 5.0), (1, 3.5)] {
        let sets = format!(
            "duration_s=10 flow.1.device={device} flow.1.start_s=3 flow.1.on_s=100 flow.1.scheme=pbe"
        );
        let both = flows("competitor", &sets, "pbe", 1);
        let span = || from_s..from_s + 3.0;
        let [one, other] = [0, 1].map(|flow| both[flow].mbps(span()));
        assert!((one / other - 1.0).abs() < 0.1, "device {device}: {one} and {other} Mbit/s");
        assert!(one + other > 0.94 * full, "device {device}: {one} and {other} of {full} Mbit/s");
        for flow in &both[..2] {
            let p95 = flow.queueing_p95_ms(span());
            assert!(p95 < 30.0, "device {device}: {p95} ms of queueing at p95");
        }
    }
}

/// Returns the rate (Mbit/s) at which the cell serves a device whose queue is never empty.
fn saturated_mbps(sets: &str) -> f64 {
    first("stationary-idle", sets, "cbr:rate_mbps=300", 1).mbps(3.0..8.0f64.min(duration_s(sets)))
}

/// Returns the value of `duration_s` in `sets`.
fn duration_s(sets: &str) -> f64 {
    let said = sets.split_whitespace().find_map(|set| set.strip_prefix("duration_s="));
    said.and_then(|text| text.parse().ok()).expect("a duration")
}
