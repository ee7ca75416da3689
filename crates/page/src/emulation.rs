//! Section of the report page on an emulated run: programs, audit of the emulator, and each direction of each device.

use airpace_core::Direction;
use airpace_core::count::{count, thousands};
use airpace_run::manifest::{Control, Emulation, Exit, Lateness, Program};
use airpace_run::manifest::{Manifest, ManifestScenario};
use airpace_run::numbers;
use airpace_run::summary::{LinkSummary, RunSummary};
use serde::Serialize;

use super::table::{Column, texts};

/// Data about the programs and the emulator, as texts.
#[derive(Serialize)]
pub(super) struct EmulationData<'a> {
    fit: bool,
    unfit_because: &'a [String],
    programs: Vec<ProgramRow>,
    /// Audit of the emulator: name and value of each quantity.
    audit: Vec<(String, String)>,
}

#[derive(Serialize)]
struct ProgramRow {
    /// Device behind which the program ran, or the server.
    place: String,
    command: String,
    /// How the program ended.
    ended: String,
    failed: bool,
}

/// Metrics of one direction of a device.
#[derive(Serialize)]
pub(super) struct LinkRow {
    device: u16,
    #[serde(with = "airpace_tables::direction")]
    direction: Direction,
    /// Name of the link, such as `to phone` or `from phone`.
    name: String,
    connections: String,
    packets: String,
    /// Text of each of the first columns.
    texts: Vec<String>,
}

impl EmulationData<'_> {
    /// Data of an emulated run; `None` for a simulated run.
    pub(super) fn of(manifest: &Manifest) -> Option<EmulationData<'_>> {
        let section = manifest.emulation.as_ref()?;
        let scenario = manifest.scenarios.first();
        let row = |program: &Program| ProgramRow {
            place: program.device.map_or("the server's side".to_owned(), |device| named(scenario, device)),
            command: program.command.clone(),
            ended: ended(program.exit),
            failed: !matches!(program.exit, Exit::Status(0) | Exit::Stopped),
        };
        Some(EmulationData {
            fit: section.fit,
            unfit_because: &section.unfit_because,
            programs: section.programs.iter().map(row).collect(),
            // The audit is not known until the run has ended.
            audit: if manifest.complete { audit(section) } else { vec![] },
        })
    }
}

/// Number of the leading columns, which are the most important ones, in the table of links.
const MAIN: usize = 7;

/// The links of an emulated run; empty for a simulated run.
pub(super) fn links(
    run: Option<&RunSummary>,
    scenario: &ManifestScenario,
    columns: &[Column],
) -> Vec<LinkRow> {
    let row = |link: &LinkSummary| {
        let way = if link.direction == Direction::Downlink { "to" } else { "from" };
        LinkRow {
            device: link.device,
            direction: link.direction,
            name: format!("{way} {}", named(Some(scenario), link.device)),
            connections: thousands(link.connections),
            packets: thousands(link.metrics.packets),
            texts: texts(&link.metrics, columns.get(..MAIN).unwrap_or(columns)),
        }
    };
    run.map_or(vec![], |run| run.links.iter().map(row).collect())
}

/// A device's name and number. Numbers start at 1, like in the emulator's options; tables and JSON contain the index from
/// 0.
fn named(scenario: Option<&ManifestScenario>, device: u16) -> String {
    let number = format!("device {}", u32::from(device) + 1);
    let label = scenario.and_then(|scenario| scenario.devices.get(usize::from(device)));
    // A label equal to `device INDEX` is a default and is replaced by the number.
    match label.filter(|label| **label != format!("device {device}")) {
        Some(label) => format!("{label} ({number})"),
        None => number,
    }
}

fn ended(exit: Exit) -> String {
    match exit {
        Exit::Status(0) => "ended with success".to_owned(),
        Exit::Status(status) => format!("failed with status {status}"),
        Exit::Signal(signal) => format!("ended by signal {signal}"),
        Exit::Stopped => "stopped at the run's end".to_owned(),
    }
}

/// Audit of the emulator: name and value of each quantity.
fn audit(section: &Emulation) -> Vec<(String, String)> {
    let Emulation { audit, kernel, foreign, .. } = section;
    let Lateness { p50, p99, p999, max } = audit.lateness_ms;
    let ms = |value: Option<f64>| value.map_or(NOTHING.to_owned(), |value| numbers::text(value, 3));
    let held = |held: bool| if held { "held" } else { "not held" };
    let of_a_core = |share: f64| format!("{} % of a core", numbers::text(share * 100.0, 1));
    let (realtime, locked) = (held(section.realtime_priority), held(section.memory_locked));
    let (packets, bytes) =
        (count(audit.largest_backlog_packets, "packet"), count(audit.largest_backlog_bytes, "byte"));
    let dropped = audit.dropped.iter().map(|(cause, packets)| (cause.as_str(), *packets));
    let rows = [
        ("lateness in ms: p50, p99, p99.9, largest", [p50, p99, p999, max].map(ms).join(", ")),
        (
            "wait before reading in ms, at most: p99.9, largest",
            [audit.wait_ms.p999, audit.wait_ms.max].map(ms).join(", "),
        ),
        ("longest standstill of the emulator in ms", ms(audit.absence_max_ms)),
        ("milliseconds of the last hop that were missed", thousands(audit.missed_ticks)),
        ("the emulator's thread", audit.cpu_share.map_or(NOTHING.to_owned(), of_a_core)),
        ("real-time priority; memory lock", format!("{realtime}; {locked}")),
        ("packets that entered the network", thousands(audit.packets_in)),
        ("packets handed over", thousands(audit.packets_out)),
        ("packets dropped", counts(dropped)),
        ("most in the network at one time", format!("{packets}, {bytes}")),
        ("packets missing in the record", thousands(audit.records_lost)),
        ("frames that were not for the network", counts(foreign.by_kind().into_iter())),
        ("congestion control of TCP", tcp(&section.controls)),
        ("kernel", if kernel.is_empty() { NOTHING.to_owned() } else { kernel.clone() }),
    ];
    rows.map(|(what, value)| (what.to_owned(), value)).into()
}

/// Congestion controls of the TCP connections, as in `down: bbr (2); up, device 1: cubic (1)`.
fn tcp(controls: &[Control]) -> String {
    let of = |control: &Control| {
        let way = control
            .device
            .map_or("down".to_owned(), |device| format!("up, device {}", u32::from(device) + 1));
        format!("{way}: {} ({})", control.name, thousands(control.connections))
    };
    let all: Vec<String> = controls.iter().map(of).collect();
    if all.is_empty() { NOTHING.to_owned() } else { all.join("; ") }
}

/// Non-zero counts by kind, as in `3 aqm, 1,000 wire_loss`.
fn counts<'a>(kinds: impl Iterator<Item = (&'a str, u64)>) -> String {
    let some =
        kinds.filter(|(_, number)| *number > 0).map(|(kind, number)| format!("{} {kind}", thousands(number)));
    let some: Vec<String> = some.collect();
    if some.is_empty() { "0".to_owned() } else { some.join(", ") }
}

/// Placeholder for a missing value.
const NOTHING: &str = "–";

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use airpace_run::manifest::{Audit, ForeignFrames};

    #[test]
    fn what_the_emulator_measured_of_itself_is_told_with_units() {
        let section = Emulation {
            kernel: "6.18.5".to_owned(),
            realtime_priority: true,
            audit: Audit {
                lateness_ms: Lateness { p50: Some(0.0414), max: Some(12.0), ..Lateness::default() },
                cpu_share: Some(0.1234),
                packets_in: 65_536,
                dropped: BTreeMap::from([("aqm".to_owned(), 3), ("wire_loss".to_owned(), 1_000)]),
                ..Audit::default()
            },
            foreign: ForeignFrames { arp: 2, ..ForeignFrames::default() },
            ..Emulation::default()
        };
        let rows = audit(&section);
        let of = |what: &str| rows.iter().find(|row| row.0 == what).map(|row| row.1.as_str());
        assert_eq!(of("lateness in ms: p50, p99, p99.9, largest"), Some("0.041, –, –, 12.000"));
        assert_eq!(of("the emulator's thread"), Some("12.3 % of a core"));
        assert_eq!(of("real-time priority; memory lock"), Some("held; not held"));
        assert_eq!(of("packets that entered the network"), Some("65,536"));
        assert_eq!(of("packets dropped"), Some("3 aqm, 1,000 wire_loss"));
        assert_eq!(
            of("frames that were not for the network"),
            Some("2 ARP"),
            "what did not come is not listed"
        );
        assert_eq!(of("packets missing in the record"), Some("0"));
        assert_eq!(of("kernel"), Some("6.18.5"));
    }

    #[test]
    fn a_device_has_its_label_and_its_number() {
        let scenario = ManifestScenario {
            name: String::new(),
            about: String::new(),
            source: String::new(),
            argument: String::new(),
            set: vec![],
            file: String::new(),
            trace: None,
            also_replays: Default::default(),
            replays: vec![],
            devices: vec!["phone".to_owned(), "device 1".to_owned()],
        };
        let names = [0, 1, 2].map(|device| named(Some(&scenario), device));
        assert_eq!(names, ["phone (device 1)", "device 2", "device 3"]);
    }

    #[test]
    fn only_a_program_that_failed_counts_as_failed() {
        let words = [Exit::Status(0), Exit::Status(7), Exit::Signal(9), Exit::Stopped].map(ended);
        assert_eq!(
            words,
            ["ended with success", "failed with status 7", "ended by signal 9", "stopped at the run's end"]
        );
    }
}
