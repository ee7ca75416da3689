//! Scenario tests of uplink data: conditions → run → check.

use std::path::PathBuf;
use std::time::Duration;

use airpace_core::remedy::explain_plainly;
use airpace_core::{Rate, Streams};
use airpace_path::trace::KpiTrace;
use airpace_path::trace::synth::Model;
use airpace_sim::Scenario;

use crate::common;
use common::{run, scenario};

/// A file that is deleted when the test ends.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str, text: &str) -> Temporary {
        let path = std::env::temp_dir().join(format!("airpace-uplink-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Temporary(path)
    }

    fn name(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Writes a trace with one delivery opportunity per millisecond, which is 12 Mbit/s.
fn steady_trace(name: &str) -> Temporary {
    Temporary::new(name, &(1..=1000).map(|ms| format!("{ms}\n")).collect::<String>())
}

#[test]
fn a_phone_fills_a_recorded_uplink() {
    let trace = steady_trace("fills.up");
    let scenario = scenario(&format!(
        "duration_s = 10
        trace = {{ file = '{}', link.buffer.packets = 60 }}
        flow = [{{ rtt_ms = 40, direction = 'up' }}]",
        trace.name()
    ));
    let (_, notebook) = run(&scenario, "cubic", 1);
    let flow = &notebook.flows[0];
    assert!((flow.mbps(2.0, 10.0) - 12.0).abs() < 0.1, "{} Mbit/s", flow.mbps(2.0, 10.0));
    assert!(notebook.capacity_bytes.is_empty(), "a direction without flows should have no capacity events");
    assert_eq!(notebook.uplink_capacity_bytes[0], 9_999 * 1500, "the capacity counts every chance once");
    assert!((40.0..41.1).contains(&flow.least_rtt_ms()), "{} ms", flow.least_rtt_ms());
    let p95 = flow.queueing_delay_ms(0.95, 2.0, 10.0);
    assert!((30.0..=62.0).contains(&p95), "60 packets in the phone are 60 ms of queue, not {p95} ms");

    let (_, notebook) = run(&scenario, "oracle", 1);
    let flow = &notebook.flows[0];
    let p95 = flow.queueing_delay_ms(0.95, 1.0, 10.0);
    assert!(flow.mbps(1.0, 10.0) > 11.5 && p95 < 5.0, "{} Mbit/s, {p95} ms", flow.mbps(1.0, 10.0));
}

#[test]
fn both_directions_of_the_internet_have_a_queue_of_their_own() {
    let scenario = scenario(
        "duration_s = 8
        internet = { rate_mbps = 8, buffer.ms = 100 }
        flow = [{ rtt_ms = 40, label = 'in' }, { rtt_ms = 40, label = 'out', direction = 'up' }]",
    );
    for scheme in ["cubic", "oracle"] {
        let (_, notebook) = run(&scenario, scheme, 1);
        for flow in &notebook.flows {
            assert!((flow.mbps(2.0, 8.0) - 8.0).abs() < 0.2, "{scheme}: {} Mbit/s", flow.mbps(2.0, 8.0));
        }
    }
}

/// A phone with an SINR that gives 23 Mbit/s on the uplink of this cell.
const CELL: &str = "cell.prbs = 50\ndevice = [{ radio.channel.sinr_db = 20 }]\n";

#[test]
fn a_lone_packet_asks_twice_before_it_may_go() {
    let rare = "flow = [{ rtt_ms = 40, direction = 'up', rate_mbps = 0.03 }]";
    let waits = |sr_period_ms: u32| {
        let text = format!("duration_s = 12\n{CELL}cell.uplink.sr_period_ms = {sr_period_ms}\n{rare}");
        let (_, notebook) = run(&scenario(&text), "reno", 1);
        let waits: Vec<f64> = notebook.flows[0].arrivals.iter().map(|it| it.queueing_delay_ms).collect();
        assert!(waits.len() > 25, "there is one packet every 0.4 s");
        let least = waits.iter().copied().fold(f64::INFINITY, f64::min);
        (least, waits.iter().copied().fold(0.0, f64::max), notebook.flows[0].least_rtt_ms())
    };
    // The steps SR to grant, grant to a transport block with a BSR, BSR to grant, and grant to transport block take
    // four subframes each. The last step is part of the idle path's delay. A lost transport block adds eight subframes.
    let (least, most, rtt_ms) = waits(1);
    assert!((12.0..18.0).contains(&least) && most <= least + 17.0, "{least} to {most} ms");
    assert!((rtt_ms - 40.0 - least).abs() < 0.1, "only the wait is added to the round trip: {rtt_ms} ms");
    let (_, most, _) = waits(40);
    assert!(
        most > 30.0,
        "with one opportunity every 40 ms, a packet also waits for the opportunity: {most} ms"
    );
}

#[test]
fn a_bulk_upload_fills_the_uplink() {
    let scenario = scenario(&format!("duration_s = 10\n{CELL}flow = [{{ rtt_ms = 40, direction = 'up' }}]"));
    let carried = |scheme: &str| {
        let (_, notebook) = run(&scenario, scheme, 1);
        let flow = notebook.flows[0].clone();
        let capacity_mbps = notebook.uplink_capacity_bytes[0] as f64 * 8e-6 / 10.0;
        assert!(
            (15.0..30.0).contains(&capacity_mbps),
            "the uplink has half of a downlink's capacity or more: {capacity_mbps}"
        );
        assert!(notebook.capacity_bytes.is_empty(), "the phone receives nothing");
        (flow.mbps(1.0, 10.0) / capacity_mbps, flow.queueing_delay_ms(0.95, 1.0, 10.0))
    };
    let (used, cubic_ms) = carried("cubic");
    assert!((0.97..1.02).contains(&used), "cubic carries {used} of the capacity");
    let (used, oracle_ms) = carried("oracle");
    assert!(used > 0.95, "the Oracle carries {used} of the capacity, {oracle_ms} ms");
    assert!(oracle_ms < 30.0 && oracle_ms < 0.2 * cubic_ms, "{oracle_ms} ms against cubic's {cubic_ms}");
}

#[test]
fn acks_that_cross_the_cell_wait_for_grants_and_come_in_bunches() {
    let flow = |flow: &str| {
        let text = format!("duration_s = 6\n{CELL}flow = [{{ rtt_ms = 40, {flow} }}]");
        run(&scenario(&text), "cubic", 1).1.flows.remove(0)
    };
    let rare = flow("rate_mbps = 0.03, acks = 'cell'");
    let over_wire = flow("rate_mbps = 0.03");
    // The phone sends an SR, and the cell grants a transport block that is large enough for the ACK. The phone would
    // have to send a BSR only for more data.
    let added = rare.least_rtt_ms() - over_wire.least_rtt_ms();
    assert!((5.0..16.0).contains(&added), "a lone ACK waits {added} ms for its grant");

    let bunches = |flow: &common::FlowNotes| {
        let apart = flow.acked_s.windows(2).filter(|pair| pair[1] - pair[0] > 0.5e-3).count();
        flow.acked_s.len() as f64 / (apart + 1) as f64
    };
    let (bulk, over_wire) = (flow("acks = 'cell'"), flow("acks = 'wire'"));
    assert!(
        bulk.mbps(1.0, 6.0) > 0.95 * over_wire.mbps(1.0, 6.0),
        "ACKs are small: the download does not suffer"
    );
    assert!(
        bunches(&bulk) > 3.0 * bunches(&over_wire),
        "{} ACKs at once, {} over the wire",
        bunches(&bulk),
        bunches(&over_wire)
    );

    let upload = flow("direction = 'up', acks = 'cell'");
    assert!((40.0..70.0).contains(&upload.least_rtt_ms()), "{} ms", upload.least_rtt_ms());
    assert!(
        upload.mbps(1.0, 6.0) > 15.0,
        "an upload whose ACKs cross the downlink gets {}",
        upload.mbps(1.0, 6.0)
    );
}

#[test]
fn a_phone_that_sends_and_receives_does_both_as_if_it_did_one() {
    let (down, up) = ("{ rtt_ms = 40, label = 'in' }", "{ rtt_ms = 50, label = 'out', direction = 'up' }");
    let with = |flows: &str| scenario(&format!("duration_s = 6\n{CELL}flow = [{flows}]"));
    for scheme in ["cubic", "oracle", "pbe"] {
        let (_, both) = run(&with(&format!("{down}, {up}")), scheme, 1);
        let (_, only_down) = run(&with(down), scheme, 1);
        let (_, only_up) = run(&with(up), scheme, 1);
        // RLC STATUS messages about the upload take a few bytes of the download's transport blocks.
        let downlink = both.capacity_bytes[0] as f64 / only_down.capacity_bytes[0] as f64;
        assert!(
            (downlink - 1.0).abs() < 0.01,
            "{scheme}: the downlink carries {downlink} of what it carries alone"
        );
        for (beside, alone) in [(&both.flows[0], &only_down.flows[0]), (&both.flows[1], &only_up.flows[0])] {
            let (beside, alone) = (beside.mbps(1.0, 6.0), alone.mbps(1.0, 6.0));
            assert!((beside / alone - 1.0).abs() < 0.03, "{scheme}: {beside} Mbit/s beside, {alone} alone");
        }
    }
}

#[test]
fn a_kpi_trace_says_what_the_modem_was_granted() {
    let trace = steady_trace("kpi.up");
    let sent = |kpi: &str, from_s: f64, to_s: f64| {
        let kpi = Temporary::new("kpi.csv", &format!("time_ms,bandwidth_mbps\n{kpi}"));
        let text = format!(
            "duration_s = 8
            trace = {{ file = '{}', kpi = '{}', link.buffer.packets = 200 }}
            flow = [{{ rtt_ms = 40, direction = 'up' }}]",
            trace.name(),
            kpi.name()
        );
        // The paper's window is exactly bandwidth × RTT, so the flow's rate equals the bandwidth that BISCAY computes.
        run(&scenario(&text), "biscay@paper", 1).1.flows.remove(0).mbps(from_s, to_s)
    };
    let all = sent("0,12\n", 2.0, 8.0);
    assert!(all > 11.0, "the modem reports the link's full rate, and all of it should be used: {all} Mbit/s");
    let half = sent("0,6\n", 2.0, 8.0);
    assert!(
        (5.0..6.5).contains(&half),
        "the modem reports half of the rate, and no more should be used: {half} Mbit/s"
    );
}

#[test]
fn a_made_trace_and_its_kpis_are_those_that_the_commands_write() {
    let (rate, length) = (Rate::from_mbps(20.0), Duration::from_secs(30));
    let trace = Model::Cellular.with_rate(rate, length, &Streams::new(16)).unwrap();
    let kpi = Temporary::new("made.csv", &KpiTrace::of(&trace, Duration::from_millis(100)).to_csv());
    let file = Temporary::new("made.up", &trace.to_mahimahi());
    let with = |trace: &str| {
        let flow = "flow = [{ rtt_ms = 42, direction = 'up' }]";
        let (_, notebook) =
            run(&scenario(&format!("duration_s = 20\ntrace = {{ {trace} }}\n{flow}")), "biscay", 1);
        notebook.fingerprint()
    };
    let made = with("synth = { rate_mbps = 20, seconds = 30, seed = 16 }, kpi_every_ms = 100");
    assert_eq!(made, with(&format!("file = '{}', kpi = '{}'", file.name(), kpi.name())));
    assert_eq!(
        made,
        with(&format!("file = '{}', kpi_every_ms = 100", file.name())),
        "a KPI trace can be made from a trace file, too"
    );
    assert_ne!(made, with("synth = { rate_mbps = 20, seconds = 30, seed = 17 }, kpi_every_ms = 100"));
    assert_ne!(made, with("synth = { rate_mbps = 20, seconds = 30, seed = 16 }, kpi_every_ms = 1000"));
}

#[test]
fn a_phone_shares_its_grants_by_flow_or_by_application() {
    let flow = |label: &str, app: u16, protocol: &str| {
        format!(
            "{{ rtt_ms = 42, direction = 'up', label = '{label}', app = {app}, protocol = '{protocol}' }}"
        )
    };
    let flows = [flow("mail", 1, "tcp"), flow("photos", 2, "tcp"), flow("more photos", 2, "udp")].join(", ");
    let scenario = scenario(&format!("duration_s = 10\n{CELL}flow = [{flows}]"));
    let shares = |scheme: &str| {
        let (_, notebook) = run(&scenario, scheme, 1);
        let mbps: Vec<f64> = notebook.flows.iter().map(|flow| flow.mbps(3.0, 10.0)).collect();
        let all: f64 = mbps.iter().sum();
        assert!(all > 15.0, "{scheme}: {all} Mbit/s together");
        mbps.into_iter().map(|mbps| mbps / all).collect::<Vec<_>>()
    };
    let equal = shares("biscay");
    assert!(equal.iter().all(|share| (share - 1.0 / 3.0).abs() < 0.05), "a third each: {equal:?}");
    let by_app = shares("biscay:split=app");
    assert!((by_app[0] - 0.5).abs() < 0.1, "an application with one flow gets half: {by_app:?}");
    assert!((by_app[1] - by_app[2]).abs() < 0.1, "flows of one application share its half: {by_app:?}");
}

#[test]
fn impaired_wires_behind_the_bottleneck_break_nothing() {
    let scenario = scenario(
        "duration_s = 12
        forward = { loss = 0.01, duplicate = 0.05, jitter_mean_ms = 1, reorder = { probability = 0.05, extra_ms = 15 } }
        reverse = { duplicate = 0.05, jitter_mean_ms = 1, reorder = { probability = 0.05, extra_ms = 15 } }
        internet = { rate_mbps = 20, buffer.ms = 80 }
        flow = [{ rtt_ms = 30, bytes = 1200000, direction = 'up' }]",
    );
    for scheme in ["cubic", "bbr", "pbe"] {
        let (stats, notebook) = run(&scenario, scheme, 1);
        let flow = &notebook.flows[0];
        assert!(
            stats.flows[0].wire_loss > 0 && stats.flows[0].duplicated > 20,
            "{scheme}: the wire should lose and duplicate packets"
        );
        assert!(flow.duplicates > 20, "{scheme}: the server should recognise duplicates");
        assert!(
            flow.acked_bytes >= 1_200_000,
            "{scheme}: all data should arrive, not {} bytes",
            flow.acked_bytes
        );
    }
}

#[test]
fn a_phone_with_a_wrong_clock_sends_as_well_as_one_with_a_right_one() {
    let sent = |clock: &str, scheme: &str| {
        let text = format!(
            "duration_s = 6
            internet = {{ rate_mbps = 20, buffer.ms = 60 }}
            device = [{{ clock = {{ {clock} }} }}]
            flow = [{{ rtt_ms = 40, direction = 'up' }}]"
        );
        run(&scenario(&text), scheme, 1).1.flows.remove(0)
    };
    for scheme in ["bbr", "cubic"] {
        let right = sent("", scheme).mbps(1.0, 6.0);
        for clock in
            ["offset_ms = -100000", "drift_ppm = 200", "drift_ppm = -200", "step_ms = -900, step_at_s = 3"]
        {
            let flow = sent(clock, scheme);
            let wrong = flow.mbps(1.0, 6.0);
            assert!((wrong - right).abs() < 0.02 * right, "{scheme}: {wrong} with {clock}, {right} without");
            assert!((39.9..41.0).contains(&flow.least_rtt_ms()), "{clock}: {} ms", flow.least_rtt_ms());
        }
    }
}

#[test]
fn what_cannot_be_sent_is_refused_with_key_and_remedy() {
    let load = |text: &str| {
        let text = format!("name = 'story'\nduration_s = 1\nschemes = ['reno']\n{text}");
        explain_plainly(&Scenario::load(&text, "story.toml", &[]).unwrap_err())
    };
    let sideways = load("flow = [{ rtt_ms = 9, direction = 'sideways' }]");
    assert!(sideways.contains("`flow.0.direction` cannot be `sideways`; there are down, up"), "{sideways}");
    let sctp = load("flow = [{ rtt_ms = 9, protocol = 'sctp' }]");
    assert!(sctp.contains("`flow.0.protocol` cannot be `sctp`") && sctp.contains("tcp"), "{sctp}");
    let nowhere = load("flow = [{ rtt_ms = 9, acks = 'cell' }]");
    assert!(nowhere.contains("`flow.0.acks` is `cell`, but there is no `[cell]`; add one"), "{nowhere}");
    let mixed = load("trace.file = 'x'\nflow = [{ rtt_ms = 9 }, { rtt_ms = 9, direction = 'up' }]");
    assert!(mixed.contains("`flow.1.direction` differs from that of flow 0"), "{mixed}");
    let deaf = load("trace = { file = 'x', kpi = 'y', telemetry = false }\nflow = [{ rtt_ms = 9 }]");
    assert!(deaf.contains("`trace.kpi` stands beside `telemetry = false`"), "{deaf}");
    let nothing = load("trace.synth = { rate_mbps = 0 }\nflow = [{ rtt_ms = 9 }]");
    assert!(nothing.contains("`trace.synth.rate_mbps` is 0; give a number above 0"), "{nothing}");
    let never = load("trace = { file = 'x', kpi_every_ms = 0 }\nflow = [{ rtt_ms = 9 }]");
    assert!(never.contains("`trace.kpi_every_ms` is 0; give a number above 0"), "{never}");
    let near = load("cell.prbs = 100\nflow = [{ rtt_ms = 2, direction = 'up' }]");
    assert!(near.contains("`flow.0.rtt_ms` is 2") && near.contains("give at least that"), "{near}");

    let trace = steady_trace("refused.up");
    let prepare = |kpi: &str| {
        let text = format!(
            "name = 'story'\nduration_s = 1\nschemes = ['reno']\ntrace = {{ file = '{}', kpi = '{kpi}' }}\n\
             flow = [{{ rtt_ms = 9, direction = 'up' }}]",
            trace.name()
        );
        let scenario = Scenario::load(&text, "story.toml", &[]).unwrap();
        scenario.prepare().map(|_| ()).map_err(|error| explain_plainly(&error))
    };
    let absent = prepare("/nowhere.csv").unwrap_err();
    assert!(absent.contains("`trace.kpi` cannot be read: /nowhere.csv"), "{absent}");
    let broken = Temporary::new("broken.csv", "time_ms,bandwidth_mbps\n0,12\n100,fast\n");
    let words = prepare(broken.name()).unwrap_err();
    let parts = ["story.toml: `trace.kpi`", broken.name(), "line 3", "bandwidth_mbps", "give Mbit/s"];
    assert!(parts.iter().all(|part| words.contains(part)), "{words}");
    let long = Temporary::new("long.csv", "time_ms,bandwidth_mbps\n0,12\n1000,9\n");
    let late = prepare(long.name()).unwrap_err();
    assert!(late.contains("a value at 1000 ms") && late.contains("cut the KPI trace there"), "{late}");
    let fits = Temporary::new("fits.csv", "time_ms,bandwidth_mbps\n0,12\n999,9\n");
    assert_eq!(prepare(fits.name()), Ok(()));
}
