//! Scenario tests of paths and flows: conditions → run → check.

use std::ops::ControlFlow;

use airpace_core::Time;
use airpace_core::remedy::explain_plainly;
use airpace_event::{Discard, Event, Recorder};
use airpace_sim::{Scenario, SchemeSpec};

use crate::common;
use common::{run, scenario};

/// Writes a trace with one delivery opportunity per millisecond, which is 12 Mbit/s.
fn constant_trace(name: &str) -> String {
    let path = std::env::temp_dir().join(format!("airpace-sim-{name}-{}.down", std::process::id()));
    let chances: String = (1..=1000).map(|ms| format!("{ms}\n")).collect();
    std::fs::write(&path, chances).unwrap();
    path.to_string_lossy().into_owned()
}

#[test]
fn cubic_fills_a_trace_of_known_rate() {
    let file = constant_trace("fills");
    let scenario = scenario(&format!(
        "duration_s = 10\ntrace = {{ file = '{file}', link.buffer.packets = 60 }}\nflow = [{{ rtt_ms = 40 }}]"
    ));
    let (_, notebook) = run(&scenario, "cubic", 1);
    let mbps = notebook.flows[0].mbps(2.0, 10.0);
    assert!((mbps - 12.0).abs() < 0.1, "one packet of 1500 bytes per ms is 12 Mbit/s, not {mbps}");
    assert_eq!(notebook.capacity_bytes[0], 9_999 * 1500, "the capacity counts every chance once");
    let p95 = notebook.flows[0].queueing_delay_ms(0.95, 2.0, 10.0);
    assert!((30.0..=62.0).contains(&p95), "60 packets are 60 ms of queue, not {p95} ms");
    std::fs::remove_file(file).unwrap();
}

#[test]
fn the_oracle_and_pbe_fill_a_trace_with_next_to_no_queue() {
    let file = constant_trace("oracle");
    let scenario = scenario(&format!("duration_s = 10\ntrace.file = '{file}'\nflow = [{{ rtt_ms = 40 }}]"));
    for (scheme, least_mbps) in [("oracle", 11.5), ("pbe", 11.0)] {
        let (_, notebook) = run(&scenario, scheme, 1);
        let (mbps, p95) =
            (notebook.flows[0].mbps(1.0, 10.0), notebook.flows[0].queueing_delay_ms(0.95, 1.0, 10.0));
        assert!(mbps > least_mbps, "{scheme} carries nearly 12 Mbit/s, not {mbps}");
        assert!(p95 < 25.0, "{scheme} keeps the queue short: {p95} ms at p95");
    }
    std::fs::remove_file(file).unwrap();
}

#[test]
fn a_saturated_device_carries_what_its_capacity_says() {
    for channel in ["sinr_db = 25", "sinr_db = 16.5, layers = 2"] {
        for model in ["sinr", "pbe", "none"] {
            let scenario = scenario(&format!(
                "duration_s = 5
                cell = {{ prbs = 100, bler.model = '{model}' }}
                device = [{{ radio.channel = {{ {channel} }} }}]
                flow = [{{ rtt_ms = 20, scheme = 'cbr:rate_mbps=150' }}]"
            ));
            let (_, notebook) = run(&scenario, "cbr", 1);
            let capacity_mbps = notebook.capacity_bytes[0] as f64 * 8e-6 / 5.0;
            let used = notebook.flows[0].mbps(1.0, 5.0) / capacity_mbps;
            assert!(
                (0.98..=1.02).contains(&used),
                "{used} of the capacity is used with {channel}, errors: {model}"
            );
        }
    }
}

#[test]
fn the_smallest_round_trip_is_the_one_asked_for_whatever_the_last_hop() {
    struct Least(f64);
    impl Recorder for Least {
        fn record(&mut self, event: Event<'_>) {
            if let Event::Acked(acked) = event
                && let Some(rtt) = acked.rtt
            {
                self.0 = self.0.min(rtt.as_secs_f64() * 1e3);
            }
        }
    }
    for (path, most_ms) in [
        ("", 60.001),
        ("internet.rate_mbps = 12\n", 60.001),
        // The next subframe starts up to 1 ms after a packet is ready for it.
        ("cell.prbs = 100\n", 61.0),
    ] {
        let text = format!("duration_s = 2\n{path}flow = [{{ rtt_ms = 60, rate_mbps = 0.5 }}]");
        let mut least = Least(f64::INFINITY);
        let spec = SchemeSpec::parse("reno").unwrap();
        airpace_sim::run(&scenario(&text), &spec, 1, &mut least, &mut |_| ControlFlow::Continue(())).unwrap();
        assert!((60.0..=most_ms).contains(&least.0), "the least RTT is {} over `{path}`", least.0);
    }
}

#[test]
fn duplicates_and_disorder_on_both_wires_break_nothing() {
    let scenario = scenario(
        "duration_s = 5
        forward = { duplicate = 0.05, jitter_mean_ms = 1, reorder = { probability = 0.05, extra_ms = 15 } }
        reverse = { duplicate = 0.05, jitter_mean_ms = 1, reorder = { probability = 0.05, extra_ms = 15 } }
        internet = { rate_mbps = 20, buffer.ms = 80 }
        flow = [{ rtt_ms = 30, bytes = 1200000 }]",
    );
    for scheme in ["reno", "cubic", "bbr", "pbe"] {
        let (stats, notebook) = run(&scenario, scheme, 1);
        let flow = &notebook.flows[0];
        assert!(stats.flows[0].duplicated > 20, "{scheme}: the wire should duplicate packets");
        assert!(flow.duplicates > 20, "{scheme}: the receiver should recognise duplicates");
        assert!(
            flow.arrivals.windows(2).any(|two| two[1].number < two[0].number),
            "{scheme}: disorder arrived"
        );
        assert_eq!(
            flow.acked_bytes / 1500 * 1500,
            flow.acked_bytes,
            "{scheme}: whole packets were acknowledged"
        );
        assert!(
            flow.acked_bytes >= 1_200_000,
            "{scheme}: all data should arrive, not {} bytes",
            flow.acked_bytes
        );
    }
}

#[test]
fn every_scheme_survives_ten_seconds_without_acks() {
    let scenario = scenario(
        "duration_s = 25
        cell.prbs = 50
        ack_outage = [{ at_s = 5, for_s = 10 }]
        flow = [{ rtt_ms = 50 }]",
    );
    for scheme in ["reno", "cubic", "bbr", "pbe", "oracle"] {
        let (_, notebook) = run(&scenario, scheme, 1);
        let flow = &notebook.flows[0];
        let (before, after) = (flow.mbps(3.0, 5.0), flow.mbps(20.0, 25.0));
        assert!(after > 0.7 * before, "{scheme}: {after} Mbit/s long after the outage, {before} before it");
        if scheme != "oracle" {
            let during = flow.mbps(8.0, 15.0);
            assert!(during < 0.1 * before, "{scheme} sends {during} Mbit/s into ten seconds of silence");
        }
    }
}

#[test]
fn a_first_window_without_acks_does_not_end_slow_start() {
    // Neither the ACKs of the first window nor the ACKs of the first probes arrive: after 3 s, all packets count as
    // lost.
    let text = "duration_s = 10
        internet = { rate_mbps = 20, buffer.ms = 100 }
        ack_outage = [{ at_s = 0, for_s = 3.1 }]
        flow = [{ rtt_ms = 100 }]";
    for scheme in ["reno", "reno@linux", "cubic", "cubic@linux"] {
        let (_, notebook) = run(&scenario(text), scheme, 1);
        let mbps = notebook.flows[0].mbps(5.0, 10.0);
        assert!(mbps > 0.9 * 20.0, "{scheme}: {mbps} of 20 Mbit/s, although no packet was lost");
    }
}

#[test]
fn an_application_sends_when_as_fast_and_as_much_as_the_scenario_says() {
    let path = "duration_s = 10\ninternet.rate_mbps = 20\n";
    let arrived =
        |flow: &str| run(&scenario(&format!("{path}flow = [{flow}]")), "cubic", 1).1.flows.remove(0);

    let finite = arrived("{ rtt_ms = 40, bytes = 100000 }");
    assert_eq!(finite.acked_bytes, 100_000, "a finite flow should send all its bytes");

    let limited = arrived("{ rtt_ms = 40, rate_mbps = 3 }");
    assert!((limited.mbps(1.0, 9.0) - 3.0).abs() < 0.05, "{} Mbit/s", limited.mbps(1.0, 9.0));

    let pausing = arrived("{ rtt_ms = 40, start_s = 1, on_s = 2, off_s = 2, scheme = 'cbr:rate_mbps=10' }");
    for (from_s, to_s, mbps) in [(0.0, 1.0, 0.0), (1.2, 2.8, 10.0), (3.2, 4.8, 0.0), (5.2, 6.8, 10.0)] {
        let seen = pausing.mbps(from_s, to_s);
        assert!((seen - mbps).abs() < 0.2, "{seen} instead of {mbps} Mbit/s from {from_s} to {to_s} s");
    }

    let stopped = arrived("{ rtt_ms = 40, start_s = 2, stop_s = 4 }");
    assert!(stopped.between(0.0, 2.0).next().is_none(), "nothing before its start");
    assert!(stopped.mbps(2.5, 4.0) > 15.0);
    assert!(stopped.between(5.0, 10.0).next().is_none(), "nothing long after its end");
}

#[test]
fn a_device_with_a_wrong_clock_receives_as_well_as_one_with_a_right_one() {
    let with = |clock: &str| {
        let text = format!(
            "duration_s = 6\ncell.prbs = 50\ndevice = [{{ clock = {{ {clock} }} }}]\nflow = [{{ rtt_ms = 40 }}]"
        );
        run(&scenario(&text), "pbe", 1).1.flows.remove(0).mbps(1.0, 6.0)
    };
    let right = with("");
    for clock in ["offset_ms = -100000", "offset_ms = 100000", "drift_ppm = 100", "drift_ppm = -100"] {
        let wrong = with(clock);
        assert!((wrong - right).abs() < 0.02 * right, "{wrong} with {clock}, {right} with a right clock");
    }
}

#[test]
fn a_receiver_acknowledges_as_seldom_as_the_scenario_says() {
    let with = |flow: &str, path: &str| {
        let text =
            format!("duration_s = 4\n{path}internet.rate_mbps = 20\nflow = [{{ rtt_ms = 40, {flow} }}]");
        let (stats, mut notebook) = run(&scenario(&text), "cubic", 1);
        (stats.flows[0], notebook.flows.remove(0))
    };
    for clock in ["", "device = [{ clock = { offset_ms = -5000, drift_ppm = 10000 } }]\n"] {
        let (stats, flow) = with("ack_every = 2", clock);
        let share = stats.acks as f64 / flow.arrivals.len() as f64;
        assert!((0.49..0.52).contains(&share), "there should be one ACK per two packets, not {share}");
        assert!(flow.mbps(1.0, 4.0) > 19.5, "half as many ACKs should give the same rate");

        // With one packet every 100 ms, a second packet never arrives in time, so each ACK waits for the maximum delay.
        let (stats, flow) = with("ack_every = 2, ack_delay_ms = 30, rate_mbps = 0.12", clock);
        let (acks, arrivals) = (stats.acks, flow.arrivals.len() as u64);
        assert!(arrivals >= 38 && arrivals - acks <= 1, "{acks} ACKs of {arrivals} single packets");
        let waits = flow.rtts_ms.iter().filter(|rtt| (69.0..72.0).contains(*rtt)).count();
        assert_eq!(waits, flow.rtts_ms.len(), "each was held back for 30 ms: {:?}", flow.rtts_ms);
    }
}

#[test]
fn an_internet_bottleneck_comes_and_goes() {
    let scenario = scenario(
        "duration_s = 12
        internet = { schedule = [{ at_s = 4, rate_mbps = 8 }, { at_s = 8, rate_mbps = inf }], buffer.ms = 100 }
        cell.prbs = 50
        flow = [{ rtt_ms = 40 }, { rtt_ms = 40, internet = false, rate_mbps = 1, label = 'beside' }]",
    );
    let (_, notebook) = run(&scenario, "cubic", 1);
    let [through, beside] = &notebook.flows[..] else { panic!("two flows") };
    assert!((through.mbps(5.0, 8.0) - 8.0).abs() < 0.2, "{} Mbit/s through 8", through.mbps(5.0, 8.0));
    assert!(
        through.mbps(2.0, 4.0) > 20.0 && through.mbps(10.0, 12.0) > 20.0,
        "at other times the flow should get the cell's rate"
    );
    assert!(
        (beside.mbps(5.0, 8.0) - 1.0).abs() < 0.1,
        "the flow that does not cross the bottleneck should not change"
    );
}

#[test]
fn a_run_stops_when_it_is_told_to() {
    let scenario = scenario("duration_s = 60\ninternet.rate_mbps = 5\nflow = [{ rtt_ms = 40 }]");
    let spec = SchemeSpec::parse("cubic").unwrap();
    let mut progress = |now: Time| match now.as_millis() {
        0..1000 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    };
    let stats = airpace_sim::run(&scenario, &spec, 1, &mut Discard, &mut progress).unwrap();
    assert!(stats.interrupted && stats.ended == Time::from_secs(1));
}

#[test]
fn what_cannot_be_run_is_refused_with_file_key_and_remedy() {
    let hole = std::env::temp_dir().join(format!("airpace-sim-hole-{}.down", std::process::id()));
    std::fs::write(&hole, "1\n2\n10002\n10003\n").unwrap();
    let broken = std::env::temp_dir().join(format!("airpace-sim-broken-{}.down", std::process::id()));
    std::fs::write(&broken, "1\n2\nthree\n").unwrap();
    let text = "name = 'story'\nduration_s = 1\nschemes = ['reno']\ntrace.telemetry = false\nflow = [{ rtt_ms = 9 }]";
    let refusal = |sets: &[(&str, &str)]| {
        let sets: Vec<_> = sets.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        let scenario = Scenario::load(text, "story.toml", &sets).unwrap();
        scenario.prepare().map(|_| ()).map_err(|error| explain_plainly(&error))
    };
    let (hole_name, broken_name) = (hole.to_str().unwrap(), broken.to_str().unwrap());

    let missing = refusal(&[]).unwrap_err();
    assert!(
        missing.contains("story.toml: `trace.file` is missing") && missing.contains("`trace=FILE`"),
        "{missing}"
    );
    let absent = refusal(&[("trace", "/nowhere.down")]).unwrap_err();
    assert!(absent.contains("trace=/nowhere.down: `trace.file` cannot be read"), "{absent}");
    let endless = refusal(&[("trace", "/dev/zero")]).unwrap_err();
    assert!(
        endless.contains("`trace.file` cannot be read: /dev/zero: it is neither a file nor a pipe"),
        "{endless}"
    );
    let words = refusal(&[("trace", broken_name)]).unwrap_err();
    assert!(words.contains(broken_name) && words.contains("line 3"), "{words}");
    assert_eq!(refusal(&[("trace", hole_name)]), Ok(()), "a run of 1 s meets no hole of 5 s");
    let silent = refusal(&[("trace", hole_name), ("duration_s", "20")]).unwrap_err();
    assert!(silent.contains("for 10.0 s from 0.0 s on") && silent.contains("trace.allow_holes"), "{silent}");
    assert_eq!(
        refusal(&[("trace", hole_name), ("duration_s", "20"), ("trace.allow_holes", "true")]),
        Ok(()),
        "a hole may be intended"
    );

    let load = |text: &str| {
        let text = format!("name = 'story'\nduration_s = 1\nschemes = ['reno']\n{text}");
        explain_plainly(&Scenario::load(&text, "story.toml", &[]).unwrap_err())
    };
    let silent = load("cell.prbs = 100\nflow = [{ rtt_ms = 20, ack_every = 0 }]");
    assert!(silent.contains("`flow.0.ack_every` is 0") && silent.contains("give 1"), "{silent}");
    let patient = load("cell.prbs = 100\nflow = [{ rtt_ms = 20, ack_delay_ms = 20000 }]");
    assert!(patient.contains("`flow.0.ack_delay_ms` is 20000"), "{patient}");
    let near = load("cell.prbs = 100\nflow = [{ rtt_ms = 2 }]");
    assert!(near.contains("`flow.0.rtt_ms` is 2") && near.contains("give at least that"), "{near}");
    let odd = load("cell.prbs = 77\nflow = [{ rtt_ms = 20 }]");
    assert!(odd.contains("`cell.prbs` is 77"), "{odd}");
    let layers = load("cell.prbs = 100\ndevice = [{ radio.channel.layers = 9 }]\nflow = [{ rtt_ms = 20 }]");
    assert!(layers.contains("`device.0.radio.channel.layers`"), "{layers}");
    let both = load("cell.prbs = 100\ntrace.file = 'x'\nflow = [{ rtt_ms = 20 }]");
    assert!(both.contains("a path has one last hop"), "{both}");
    std::fs::remove_file(hole).unwrap();
    std::fs::remove_file(broken).unwrap();
}

#[test]
fn a_queue_marks_whom_asks_for_it_and_drops_nothing_of_it() {
    let internet = |buffer: &str| {
        scenario(&format!(
            "duration_s = 12\ninternet = {{ rate_mbps = 20, {buffer} }}\nflow = [{{ rtt_ms = 40 }}]"
        ))
    };
    let codel = internet("buffer.discipline = 'codel'");
    let threshold = internet("buffer.ecn_threshold_ms = 30");
    for scheme in ["cubic", "reno"] {
        let (_, deaf) = run(&codel, scheme, 1);
        assert!(deaf.flows[0].dropped > 0, "{scheme}: CoDel should drop packets of a flow without ECN");
        for (scenario, most_ms) in [(&codel, 25.0), (&threshold, 60.0)] {
            let (_, marked) = run(scenario, &format!("{scheme}:ecn=on"), 1);
            let flow = &marked.flows[0];
            assert_eq!(
                (flow.dropped, flow.declared_lost),
                (0, 0),
                "{scheme}: a mark should not cost a packet"
            );
            let (mbps, p95) = (flow.mbps(4.0, 12.0), flow.queueing_delay_ms(0.95, 4.0, 12.0));
            assert!(
                mbps > 16.0 && p95 < most_ms,
                "{scheme} should react to marks: {mbps} Mbit/s, {p95} ms at p95"
            );
        }
    }
}

#[test]
fn an_application_changes_its_rate_at_the_scheduled_times() {
    let scenario = scenario(
        "duration_s = 6
        forward.rate_mbps = 100
        [[flow]]
        rtt_ms = 20
        rate_mbps = 40
        schedule = [{ at_s = 2, rate_mbps = 6 }, { at_s = 3, rate_mbps = 0 }, { at_s = 4, rate_mbps = 20 }]",
    );
    for scheme in ["cbr:rate_mbps=90", "cubic"] {
        let (_, notebook) = run(&scenario, scheme, 1);
        let flow = &notebook.flows[0];
        for (from_s, until_s, mbps) in [(1.0, 2.0, 40.0), (2.1, 3.0, 6.0), (3.1, 4.0, 0.0), (4.5, 6.0, 20.0)]
        {
            let carried = flow.mbps(from_s, until_s);
            assert!(
                (carried - mbps).abs() <= 0.02 * mbps,
                "{scheme}, {from_s} s: {carried} of {mbps} Mbit/s"
            );
        }
    }
}

#[test]
fn an_application_with_pauses_sends_only_while_it_is_on() {
    let phases = [(100, 100, 1.0), (50, 50, 1.0), (20, 180, 5.0), (300, 700, 20.0)];
    for ((on_ms, off_ms, mbps), flow) in phases.into_iter().flat_map(|phase| {
        // In the first case, the sender determines the rate; in the second case, the application determines it.
        [(phase, String::new()), (phase, format!(", rate_mbps = {}", phase.2))]
    }) {
        let scenario = scenario(&format!(
            "duration_s = 6
            forward.rate_mbps = 50
            flow = [{{ rtt_ms = 20, on_s = {}, off_s = {}{flow} }}]",
            f64::from(on_ms) * 1e-3,
            f64::from(off_ms) * 1e-3
        ));
        let (_, notebook) = run(&scenario, &format!("cbr:rate_mbps={mbps}"), 1);
        let arrivals = &notebook.flows[0].arrivals;
        let sent_ms = arrivals.iter().map(|arrival| arrival.time_s * 1e3 - arrival.one_way_delay_ms);
        let in_period = |ms: f64| ms % f64::from(on_ms + off_ms);
        // A flow starts up to a millisecond late; the last packet of the application may wait for the pacer.
        let latest = sent_ms.map(in_period).fold(0.0, f64::max);
        let packet_ms = 12.0 / mbps;
        let slack_ms = 1.0 + if flow.is_empty() { 0.0 } else { packet_ms };
        assert!(
            latest <= f64::from(on_ms) + slack_ms,
            "{on_ms} ms on, {off_ms} ms off{flow}: sends until {latest} ms"
        );
        let part = notebook.flows[0].mbps(0.0, 6.0) / mbps;
        let expected = f64::from(on_ms) / f64::from(on_ms + off_ms);
        let most = expected + packet_ms / f64::from(on_ms + off_ms);
        assert!(
            (0.9 * expected..=1.02 * most).contains(&part),
            "{on_ms}/{off_ms}{flow}: on {part} of the time"
        );
    }
}

#[test]
fn packets_have_the_size_that_a_flow_asks_for() {
    let file = constant_trace("sizes");
    let paths = [
        "cell.prbs = 50\ndevice = [{ radio.channel.sinr_db = 12 }]".to_owned(),
        format!("trace.file = '{file}'"),
        "forward.rate_mbps = 12".to_owned(),
    ];
    for (path, mss) in paths.iter().flat_map(|path| [300, 1500, 4000].map(|mss| (path, mss))) {
        let scenario =
            scenario(&format!("duration_s = 8\n{path}\nflow = [{{ rtt_ms = 40, mss_bytes = {mss} }}]"));
        for scheme in ["oracle", "bbr", "pbe", "cubic", "biscay"] {
            // A wired link has no radio, so no radio report tells PBE-CC the link's capacity.
            if scheme == "pbe" && path.starts_with("forward") {
                continue;
            }
            let (_, notebook) = run(&scenario, scheme, 1);
            let flow = &notebook.flows[0];
            assert!(flow.arrivals.iter().all(|arrival| arrival.bytes == mss), "{path} {mss} {scheme}");
            let (mbps, capacity_mbps) = (flow.mbps(2.0, 8.0), notebook.capacity_bytes[0] as f64 * 1e-6);
            let least_ms = flow.least_rtt_ms();
            assert!(
                mbps > 0.7 * capacity_mbps && mbps < 1.03 * capacity_mbps,
                "{path} {mss} {scheme}: {mbps} of {capacity_mbps}"
            );
            assert!(
                (39.0..45.0).contains(&least_ms),
                "{path} {mss} {scheme}: least round trip {least_ms} ms"
            );
        }
    }
    std::fs::remove_file(file).unwrap();
}
