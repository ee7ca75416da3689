//! Experiments of the BISCAY paper over recordings. A recording consists of a link's trace and the bandwidth that the
//! modem reported for the link.

use std::path::PathBuf;

use airpace_core::Streams;
use airpace_sim::Scenario;

use crate::common;
use common::{run, scenario};

/// The files of a recorded uplink and of its KPI trace; the files are deleted when the test ends.
struct Recording {
    link: PathBuf,
    kpi: PathBuf,
}

impl Recording {
    /// Creates a link with the rates `mbps`, one value per 10 ms. The modem reports the data that the link transferred
    /// in each 100 ms.
    fn new(name: &str, mbps: impl Iterator<Item = f64>) -> Recording {
        let file = |part: &str| {
            std::env::temp_dir().join(format!("airpace-biscay-{}-{name}.{part}", std::process::id()))
        };
        let recording = Recording { link: file("up"), kpi: file("csv") };
        let (mut link, mut kpi) = (String::new(), String::from("time_ms,bandwidth_mbps\n"));
        let (mut bytes, mut granted) = (0.0, 0.0);
        for (slot, mbps) in mbps.enumerate() {
            for ms in 10 * slot..10 * (slot + 1) {
                bytes += mbps * 125.0;
                while bytes >= 1500.0 {
                    bytes -= 1500.0;
                    link.push_str(&format!("{}\n", ms + 1));
                }
            }
            granted += mbps;
            if slot % 10 == 9 {
                kpi.push_str(&format!("{},{}\n", 10 * (slot - 9), granted / 10.0));
                granted = 0.0;
            }
        }
        std::fs::write(&recording.link, link).unwrap();
        std::fs::write(&recording.kpi, kpi).unwrap();
        recording
    }

    /// Creates a link whose rate varies randomly between 5 and 35 Mbit/s, in steps of up to a quarter every 50 ms.
    fn wandering(name: &str) -> Recording {
        let mut rng = Streams::new(3).stream("wander");
        let mut mbps = 20.0;
        Recording::new(
            name,
            (0..4_000).map(move |slot| {
                if slot % 5 == 0 {
                    mbps = f64::clamp(mbps * rng.range(0.8, 1.25), 5.0, 35.0);
                }
                mbps
            }),
        )
    }

    fn scenario(&self, seconds: u32, rest: &str) -> Scenario {
        scenario(&format!(
            "duration_s = {seconds}
            trace = {{ file = '{}', kpi = '{}', link.buffer.bytes = 3_000_000 }}
            {rest}",
            self.link.display(),
            self.kpi.display()
        ))
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        for file in [&self.link, &self.kpi] {
            let _ = std::fs::remove_file(file);
        }
    }
}

const UPLOAD: &str = "{ rtt_ms = 40, direction = 'up' }";

/// Every `ms` milliseconds, the modem reports the grants since its last report. Each millisecond in which the link
/// delivers data counts as a grant.
#[test]
fn finer_samples_shorten_the_delay_down_to_some_ttis_and_coarser_ones_lengthen_it() {
    let recording = Recording::wandering("samples");
    let scenario = scenario(&format!(
        "duration_s = 40
        trace = {{ file = '{}', telemetry = true, link.buffer.bytes = 3_000_000 }}
        flow = [{UPLOAD}]",
        recording.link.display()
    ));
    let p95 = |scheme: &str| {
        let (_, notebook) = run(&scenario, scheme, 1);
        let flow = &notebook.flows[0];
        let used = notebook.uplink_capacity_bytes[0] as f64 * 8e-6 / 40.0;
        assert!(flow.mbps(2.0, 40.0) > 0.9 * used, "{scheme}: {} of {used} Mbit/s", flow.mbps(2.0, 40.0));
        flow.queueing_delay_ms(0.95, 2.0, 40.0)
    };
    let fine = |ms: u32| p95(&format!("biscay:bandwidth=tbs:tbs_ttis={ms}:sample_ms={ms}"));
    let coarse = |ms: u32| p95(&format!("biscay:sample_ms={ms}"));
    let (shipped, bbr) = (coarse(100), p95("bbr"));
    assert!(shipped < 0.4 * bbr, "{shipped} ms against BBR's {bbr}");
    assert_eq!(fine(100), shipped, "the same bytes, added up over the same time");
    let (one, ten, fifty) = (fine(1), fine(10), fine(50));
    assert!(ten < 0.8 * shipped, "10 ms: {ten} ms against {shipped}");
    assert!(fifty < shipped && fifty > ten, "50 ms: {fifty} ms against {ten} and {shipped}");
    assert!(one > 1.5 * ten, "a single TTI is no measure of the bandwidth: {one} ms against {ten}");
    let (half_a_second, longest) = (coarse(500), coarse(1_500));
    assert!(half_a_second > 1.2 * shipped, "500 ms: {half_a_second} ms against {shipped}");
    assert!(longest > 1.3 * shipped, "1500 ms: {longest} ms against {shipped}");
    assert!(
        half_a_second.max(longest) < 0.5 * bbr,
        "the paper reaches BBR's {bbr} ms there, and this does not"
    );
}

#[test]
fn three_flows_of_a_phone_share_in_every_second() {
    let recording = Recording::wandering("three");
    let scenario = recording.scenario(30, &format!("flow = [{UPLOAD}, {UPLOAD}, {UPLOAD}]"));
    let worst = |scheme: &str| {
        let (_, notebook) = run(&scenario, scheme, 1);
        let jain = |second: u32| {
            let (from, to) = (f64::from(second), f64::from(second + 1));
            let rates: Vec<f64> = notebook.flows.iter().map(|flow| flow.mbps(from, to)).collect();
            rates.iter().sum::<f64>().powi(2) / (3.0 * rates.iter().map(|rate| rate * rate).sum::<f64>())
        };
        (3..30).map(jain).fold(1.0, f64::min)
    };
    let (ours, bbr, cubic) = (worst("biscay"), worst("bbr"), worst("cubic"));
    assert!(ours >= 0.99, "{ours}");
    assert!(bbr < 0.95 && cubic < 0.95, "BBR and CUBIC are fair over longer times only: {bbr}, {cubic}");
}

#[test]
fn wired_bottlenecks_of_5_10_and_15_mbps_are_bbrs_until_they_are_gone() {
    let recording = Recording::new("wired", std::iter::repeat_n(20.0, 1_000));
    let scenario = recording.scenario(
        36,
        "[internet]
            rate_mbps = inf
            buffer.ms = 300
            schedule = [
                { at_s = 4, rate_mbps = 5 }, { at_s = 10, rate_mbps = inf },
                { at_s = 14, rate_mbps = 10 }, { at_s = 20, rate_mbps = inf },
                { at_s = 24, rate_mbps = 15 }, { at_s = 30, rate_mbps = inf },
            ]
            [[flow]]
            rtt_ms = 40
            direction = 'up'",
    );
    let (_, notebook) = run(&scenario, "biscay", 1);
    let flow = &notebook.flows[0];
    let mut states: Vec<&str> = flow
        .states
        .iter()
        .map(
            |state| if state.starts_with("Fallback") { "Fallback" } else { state.trim_end_matches(".Drain") },
        )
        .collect();
    states.dedup();
    let there_and_back = ["Fallback", "Biscay"];
    let expected: Vec<&str> = ["Startup", "Biscay"].into_iter().chain(there_and_back.repeat(3)).collect();
    assert_eq!(states, expected, "it should enter the fallback three times and return each time");
    for (from, mbps) in [(4.0, 5.0), (14.0, 10.0), (24.0, 15.0)] {
        let within = flow.mbps(from + 3.0, from + 6.0);
        assert!((within / mbps - 1.0).abs() < 0.05, "{within} of {mbps} Mbit/s");
        let delay = flow.queueing_delay_ms(0.5, from + 4.0, from + 6.0);
        assert!(delay < 40.0, "{mbps} Mbit/s: BBR should leave little queue, not {delay} ms");
        let after = flow.mbps(from + 8.0, from + 10.0);
        assert!(after > 0.95 * 20.0, "after {mbps} Mbit/s: {after}");
    }
}

#[test]
fn over_a_real_uplink_it_neither_starves_nor_queues() {
    let scenario = scenario(
        "duration_s = 20
        cell = { prbs = 50 }
        flow = [{ rtt_ms = 60, direction = 'up' }]",
    );
    let seen = |scheme: &str| {
        let (_, notebook) = run(&scenario, scheme, 1);
        let flow = &notebook.flows[0];
        (flow.mbps(2.0, 20.0), flow.queueing_delay_ms(0.95, 2.0, 20.0))
    };
    let ((biscay, delay), (bbr, bbrs_delay), (oracle, least)) = (seen("biscay"), seen("bbr"), seen("oracle"));
    assert!(biscay > 0.9 * oracle, "{biscay} Mbit/s of {oracle}");
    assert!(biscay > 0.9 * bbr && delay < 0.6 * bbrs_delay, "{delay} ms against BBR's {bbrs_delay}");
    assert!(delay < 2.0 * least, "most of the delay comes from grants: {delay} ms, the Oracle has {least}");
    let (text, _) = seen("biscay@paper");
    assert!(text < 0.2 * oracle, "a window set by grants alone should shrink more and more: {text} Mbit/s");
}

/// The results of single runs over long paths differ by several per cent, so the mean over several seeds is tested.
#[test]
fn a_long_path_is_filled_in_time_and_without_a_long_queue() {
    const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;
    for (direction, rtt_ms) in [("down", 162), ("down", 282), ("up", 162), ("up", 282)] {
        let scenario = scenario(&format!(
            "duration_s = 20
            cell = {{}}
            flow = [{{ rtt_ms = {rtt_ms}, direction = '{direction}' }}]"
        ));
        let what = format!("{direction}link of {rtt_ms} ms");
        // Mean rate in Mbit/s, and the median delay.
        let seen = |scheme: &str| {
            let of_seed = |seed| {
                let (_, notebook) = run(&scenario, scheme, seed);
                let flow = &notebook.flows[0];
                (flow.mbps(0.0, 20.0), flow.queueing_delay_ms(0.95, 0.0, 20.0))
            };
            let (rates, mut delays): (Vec<f64>, Vec<f64>) = SEEDS.map(of_seed).unzip();
            delays.sort_by(f64::total_cmp);
            (rates.iter().sum::<f64>() / rates.len() as f64, delays[delays.len() / 2])
        };
        let ((biscay, delay_ms), (oracle, _)) = (seen("biscay"), seen("oracle"));
        let (doubling, _) = seen("biscay:startup=full");
        println!(
            "{what}: {biscay:.2} Mbit/s of {oracle:.2}, {doubling:.2} with doubling alone, {delay_ms:.1} ms"
        );
        assert!(biscay > 0.88 * oracle, "{what}: {biscay} Mbit/s of {oracle}");
        assert!(delay_ms < 65.0, "{what}: {delay_ms} ms of queueing at p95");
        assert!(biscay > doubling, "{what}: {biscay} Mbit/s, {doubling} with doubling alone");
    }
}
