//! PBE-CC's receiver can read the radio reports that `airpace decode --reports` and `airpace sim` write.

use std::ops::ControlFlow;

use airpace_cc::SchemeSpec;
use airpace_cc::pbe::feedback::Feedback;
use airpace_cc::scheme::Setup;
use airpace_core::{Bytes, DeviceId, Streams, Time};
use airpace_event::{Detail, Event, Recorder, Source};
use airpace_radio::line;
use airpace_radio::{RadioReport, Scope};
use airpace_sim::{Scenario, builtin};

use super::Shell;

/// A phone in a small and busy cell.
const NAME: &str = "stationary-busy";
const SETS: [(&str, &str); 3] = [("cell.prbs", "25"), ("cell.crs_ports", "2"), ("duration_s", "1.5")];

/// Reports that the first phone receives from perfect telemetry.
#[derive(Default)]
struct Perfect(Vec<RadioReport>);

impl Recorder for Perfect {
    fn wants(&self, detail: Detail) -> bool {
        detail == Detail::Reports(DeviceId(0), Source::ControlChannel)
    }

    fn record(&mut self, event: Event<'_>) {
        if let Event::Reported(reported) = event {
            self.0.push(reported.report.clone());
        }
    }
}

fn perfect() -> Vec<RadioReport> {
    let text = builtin().iter().find(|(name, _)| *name == NAME).expect("it is built in").1;
    let sets = SETS.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let scenario = Scenario::load(text, NAME, &sets).unwrap();
    let mut told = Perfect::default();
    let pbe = SchemeSpec::parse("pbe").unwrap();
    airpace_sim::run(&scenario, &pbe, 1, &mut told, &mut |_| ControlFlow::Continue(())).unwrap();
    told.0
}

/// Capacity and fair share in Mbit/s that PBE-CC's receiver returns, by subframe.
fn rates(reports: &[RadioReport]) -> Vec<(u64, f64, f64)> {
    let setup = Setup::new(Bytes(1500), Streams::new(1).stream("receiver"));
    let ends = SchemeSpec::parse("pbe").unwrap().build(&setup).unwrap();
    let mut receiver = ends.receiver.expect("PBE-CC has a half at the receiver");
    let rates = reports.iter().map(|report| {
        receiver.on_radio(report);
        let feedback = receiver.feedback(Time::from_millis(report.slot.index + 1));
        let feedback = Feedback::read(feedback.as_bytes()).expect("a feedback");
        let mbps = |rate: Option<airpace_core::Rate>| rate.map_or(0.0, |rate| rate.as_mbps());
        (report.slot.index, mbps(feedback.capacity), mbps(feedback.fair_share))
    });
    rates.collect()
}

#[test]
fn reports_give_pbes_receiver_the_rate_that_perfect_telemetry_gives() {
    let shell = Shell::new();
    let perfect = perfect();
    let own = perfect[0].own.expect("the device's own entry").rnti;
    let sets = SETS.map(|(key, value)| format!("{key}={value}"));
    let mut words = vec![
        "encode",
        NAME,
        "--out",
        "a",
        "--snr",
        "20",
        "--fading",
        "epa",
        "--doppler",
        "5",
        "--scheme",
        "pbe",
    ];
    sets.iter().for_each(|set| words.extend(["--set", set]));
    shell.run(&words).fine();
    let rnti = own.0.to_string();
    shell.run(&["decode", "a.sigmf-meta", "--rnti", &rnti, "--reports", "reports"]).fine();
    let read = |line: &str| line::from_line(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    let decoded: Vec<RadioReport> = shell.read("reports").lines().flat_map(read).collect();
    assert!(decoded.len() >= 1499, "{} of 1500 subframes are reported", decoded.len());

    let (told, read) = (rates(&perfect), rates(&decoded));
    let mut compared = 0;
    for (index, capacity, fair_share) in &read {
        // From this subframe on, both receivers have a full window of reports.
        let Some(same) = told.iter().find(|(at, ..)| at == index).filter(|_| *index >= 200) else { continue };
        compared += 1;
        for (what, read, told) in [("capacity", *capacity, same.1), ("fair share", *fair_share, same.2)] {
            assert!(
                (read / told - 1.0).abs() < 0.03,
                "subframe {index}: {what} {read} Mbit/s instead of {told}"
            );
        }
    }
    assert!(compared > 1000, "{compared} subframes are compared");

    // The outcome of almost all of the phone's blocks is known before their reports are sent, and is correct.
    let (mut granted, mut known, mut right) = (0, 0, 0);
    for report in &decoded {
        let truth = perfect.iter().find(|other| other.slot.index == report.slot.index);
        let (Some(read), Some(Some(truth))) =
            (report.own, truth.map(|truth| truth.own.and_then(|own| own.decoded)))
        else {
            continue;
        };
        granted += 1;
        known += usize::from(read.decoded.is_some());
        right += usize::from(read.decoded == Some(truth));
    }
    assert!(
        granted > 1000 && known * 100 >= granted * 95,
        "the outcome of {known} of {granted} grants is known"
    );
    // A block whose retransmissions the cell abandoned looks like a received block.
    assert!(right * 100 >= known * 99, "{right} of {known} outcomes are right");
}

#[test]
fn each_subframe_of_two_decoded_carriers_is_one_line_in_the_order_of_time() {
    let shell = Shell::new();
    let sets = [
        "duration_s=0.8",
        "cell.prbs=15",
        "cell.carriers=2",
        "cell.aggregation.always_active=true",
        "device.0.decoder.snr_db=12",
        "device.0.reports=told",
    ];
    let mut words = vec!["sim", "stationary-idle", "--scheme", "pbe", "--out", "run"];
    sets.iter().for_each(|set| words.extend(["--set", set]));
    shell.run(&words).fine();
    let told = shell.read("told");
    let lines: Vec<Vec<RadioReport>> = told.lines().map(|line| line::from_line(line).unwrap()).collect();
    let subframes: Vec<u64> = lines.iter().map(|reports| reports[0].slot.subframe()).collect();
    assert!(subframes.is_sorted_by(|one, next| one < next), "{subframes:?}");
    let both = lines.iter().filter(|reports| reports.len() == 2).count();
    assert!(both * 10 > lines.len() * 9, "{both} of {} lines have both carriers", lines.len());
}

#[test]
fn a_run_writes_what_a_device_is_told() {
    let shell = Shell::new();
    let sets = SETS.map(|(key, value)| format!("{key}={value}"));
    let of = |more: &[&str]| {
        let mut words = vec!["sim", NAME, "--scheme", "pbe", "--out", "run"];
        sets.iter().for_each(|set| words.extend(["--set", set]));
        words.extend(more);
        words.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let run = |more: &[&str]| shell.run(&of(more).iter().map(String::as_str).collect::<Vec<_>>());
    run(&["--set", "device.0.reports=told"]).fine();
    let told = shell.read("told");
    let told: Vec<RadioReport> = told.lines().flat_map(|line| line::from_line(line).unwrap()).collect();
    assert_eq!(told, perfect());

    // A sender on the device uses the modem's reports, which contain only the device's own grants.
    let sender = ["sim", "biscay-uplink", "--scheme", "biscay", "--set", "duration_s=0.5"];
    shell.run(&[&sender[..], &["--set", "device.0.reports=modem", "--out", "sent"]].concat()).fine();
    let modem: Vec<RadioReport> =
        shell.read("modem").lines().flat_map(|line| line::from_line(line).unwrap()).collect();
    assert!(modem.len() > 400 && modem.iter().all(|report| report.scope == Scope::Own), "{}", modem.len());

    // The copy in the run folder can be run again and then writes no reports.
    shell.run(&["sim", "run/scenarios/stationary-busy.toml", "--scheme", "cubic", "--out", "again"]).fine();
    let named =
        "name = \"x\"\nduration_s = 1\n[cell]\n[[device]]\nreports = \"told\"\n[[flow]]\nrtt_ms = 40\n";
    shell.write("x.toml", named);
    shell.run(&["sim", "x.toml"]).refused(&["x.toml: `device.0.reports`", "set the key for one run"]);
    run(&["--set", "device.0.reports=told", "--seeds", "1,2"])
        .refused(&["2 runs would write it", "one seed"]);
    run(&["--set", "device.0.reports=none/told"])
        .refused(&["device.0.reports=none/told", "no folder `none`"]);
    let lost = "device.0.reports=run/summary.json";
    run(&["--set", lost]).refused(&[lost, "in the run folder", "another place"]);
    let encode = ["encode", NAME, "--out", "samples", "--set", "device.0.reports=told"];
    shell.run(&encode).refused(&["device.0.reports", "only the simulator"]);
    let log = ["diag", "encode", NAME, "--out", "log.qmdl", "--set", "device.0.reports=told"];
    shell.run(&log).refused(&["device.0.reports", "only the simulator"]);
    shell.write("y.toml", &named.replace("reports = \"told\"\n", ""));
    let over = ["sim", "y.toml", "--scheme", "pbe", "--set", "device.0.reports=./y.toml"];
    shell.run(&over).refused(&["would be written over y.toml"]);
    let without = named.replace("[cell]\n", "").replace("[[device]]\nreports = \"told\"\n", "");
    shell.write("z.toml", &without);
    let radio = ["sim", "z.toml", "--scheme", "pbe", "--set", "device.0.reports=told"];
    shell.run(&radio).refused(&["neither a `[cell]` nor a `[trace]`"]);
}
