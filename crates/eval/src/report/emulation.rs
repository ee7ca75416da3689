//! What the page says of an emulated run: what ran behind what, how well the emulator kept up, and each direction of each
//! device.

use airpace_core::Direction;
use serde::Serialize;

use super::table::{Column, texts};
use crate::emulation::{Audit, Emulation, Exit, Program};
use crate::folder::{Manifest, ManifestScenario};
use crate::numbers;
use crate::summary::{LinkSummary, RunSummary};

/// What the page says of the programs and of the emulator, as texts.
#[derive(Serialize)]
pub(super) struct EmulationData<'a> {
    fit: bool,
    unfit_because: &'a [String],
    programs: Vec<ProgramRow>,
    /// What was measured of the emulator, and the value.
    audit: Vec<(String, String)>,
}

#[derive(Serialize)]
struct ProgramRow {
    /// Where it ran.
    place: String,
    command: String,
    /// How it ended.
    ended: String,
    failed: bool,
}

/// One direction of a device.
#[derive(Serialize)]
pub(super) struct LinkRow {
    device: u16,
    #[serde(with = "crate::direction")]
    direction: Direction,
    /// `to phone` or `from phone`.
    name: String,
    connections: String,
    packets: String,
    /// A text per column.
    texts: Vec<String>,
}

impl EmulationData<'_> {
    /// `None` for a simulated run.
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
            // Until the run has ended, nothing is known.
            audit: if manifest.complete { audit(section) } else { vec![] },
        })
    }
}

/// The links of an emulated run; none of a simulated one.
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
            connections: grouped(link.connections),
            packets: grouped(link.metrics.packets),
            texts: texts(&link.metrics, columns),
        }
    };
    run.map_or(vec![], |run| run.links.iter().map(row).collect())
}

/// A device's name and number.
fn named(scenario: Option<&ManifestScenario>, device: u16) -> String {
    let number = format!("device {device}");
    let label = scenario.and_then(|scenario| scenario.devices.get(usize::from(device)));
    match label.filter(|label| **label != number) {
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

/// What was measured of the emulator: what, and the value.
fn audit(section: &Emulation) -> Vec<(String, String)> {
    let Emulation { audit, kernel, foreign, .. } = section;
    let Audit { lateness_ms, .. } = audit;
    let ms = |value: Option<f64>| {
        value.map_or(NOTHING.to_owned(), |value| format!("{} ms", numbers::text(value, 3)))
    };
    let held = |held: bool| if held { "held" } else { "not held" }.to_owned();
    let of_a_core = |share: f64| format!("{} % of a core", numbers::text(share * 100.0, 1));
    let (packets, bytes) = (grouped(audit.largest_backlog_packets), grouped(audit.largest_backlog_bytes));
    let row = |what: &str, value: String| (what.to_owned(), value);
    let mut rows = vec![
        row("handed over late, median", ms(lateness_ms.p50)),
        row("handed over late, 99th percentile", ms(lateness_ms.p99)),
        row("handed over late, 99.9th percentile", ms(lateness_ms.p999)),
        row("handed over late, at most", ms(lateness_ms.max)),
        row("milliseconds of the last hop that were missed", grouped(audit.missed_ticks)),
        row("the emulator's thread", audit.cpu_share.map_or(NOTHING.to_owned(), of_a_core)),
        row("real-time priority", held(section.realtime_priority)),
        row("memory lock", held(section.memory_locked)),
        row("packets that entered the network", grouped(audit.packets_in)),
        row("packets handed over", grouped(audit.packets_out)),
    ];
    let dropped = audit.dropped.iter();
    rows.extend(dropped.map(|(cause, packets)| (format!("packets dropped: {cause}"), grouped(*packets))));
    rows.push(row("most in the network at one time", format!("{packets} packets, {bytes} bytes")));
    rows.push(row("packets missing in the record", grouped(audit.records_lost)));
    let foreign = foreign.by_kind().into_iter().filter(|(_, frames)| *frames > 0);
    rows.extend(
        foreign
            .map(|(kind, frames)| (format!("frames that are not for the network: {kind}"), grouped(frames))),
    );
    rows.push(row("kernel", if kernel.is_empty() { NOTHING.to_owned() } else { kernel.clone() }));
    rows
}

/// Stands in the place of a value that is not there.
const NOTHING: &str = "–";

/// Digits in groups of three: `1,234,567`.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::emulation::{ForeignFrames, Lateness};

    #[test]
    fn digits_are_grouped() {
        let texts = [0, 999, 1_000, 65_536, 1_234_567].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "65,536", "1,234,567"]);
    }

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
        assert_eq!(of("handed over late, median"), Some("0.041 ms"));
        assert_eq!(of("handed over late, 99th percentile"), Some("–"));
        assert_eq!(of("the emulator's thread"), Some("12.3 % of a core"));
        assert_eq!((of("real-time priority"), of("memory lock")), (Some("held"), Some("not held")));
        assert_eq!(of("packets that entered the network"), Some("65,536"));
        assert_eq!(of("packets dropped: wire_loss"), Some("1,000"));
        assert_eq!(of("frames that are not for the network: ARP"), Some("2"));
        assert_eq!(
            of("frames that are not for the network: garbage"),
            None,
            "what did not come is not listed"
        );
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
            devices: vec!["phone".to_owned(), "device 1".to_owned()],
        };
        let names = [0, 1, 2].map(|device| named(Some(&scenario), device));
        assert_eq!(names, ["phone (device 0)", "device 1", "device 2"]);
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
