//! End of an emulated run: replays its record in virtual time, from which tables, numbers and the report are made.

use std::io::Write;

use airpace_core::Direction;
use airpace_emu::connections::{Connections, OTHERS};
use airpace_emu::ip::FiveTuple;
use airpace_emu::record::Record;
use airpace_emu::replay::{Departure, Reader, replay};
use airpace_emu::session::Control;
use airpace_emu::{Audit, World};
use airpace_eval::LinkSummary;
use airpace_eval::emulation::{
    self, Connection, EmulatedRun, Emulation, End, Finished, ForeignFrames, Lateness, Program, Protocol,
};
use airpace_event::{Event, Recorder};
use airpace_path::trace::mmlink::Line;
use anyhow::Context;

use super::Options;
use super::mmlog::Logs;
use crate::terminal::{self, Paint};

/// Results of a run.
pub struct Ran {
    pub world: World,
    pub record: Record,
    pub connections: Connections,
    pub audit: Audit,
    /// Congestion controls that the sockets of the run used.
    pub controls: Vec<Control>,
    pub programs: Vec<Program>,
}

/// A finished run with its verdict.
pub struct Judged {
    pub finished: Finished,
    pub audit: Audit,
    pub controls: Vec<Control>,
    pub is_fit: bool,
}

/// Writes the replay of a run into its folder.
struct IntoFolder<'a> {
    run: &'a mut EmulatedRun,
    connections: &'a Connections,
    logs: &'a mut Logs,
}

impl Reader for IntoFolder<'_> {
    fn departed(&mut self, departure: &Departure) {
        let &Departure { device, direction, bytes, propagation_delay, fate, duplicate, marked, .. } =
            departure;
        self.run.depart(&emulation::Departure {
            device,
            direction,
            connection: connection(self.connections, departure.connection),
            bytes,
            entered: departure.arrived,
            released: departure.due,
            handed: departure.out,
            propagation_delay,
            fate,
            duplicate,
            marked,
        });
    }

    fn told(&mut self, event: &Event<'_>) {
        self.run.record(*event);
    }

    fn wants_lines(&self) -> bool {
        !self.logs.is_empty()
    }

    fn linked(&mut self, direction: Direction, line: Line) {
        self.logs.add(direction, line);
    }
}

/// Replays the record in virtual time, and writes the files of the run folder.
///
/// # Errors
/// A file cannot be read or written.
pub fn finish(mut run: EmulatedRun, ran: Ran, mut logs: Logs, is_quiet: bool) -> anyhow::Result<Judged> {
    let Ran { world, mut record, connections, mut audit, controls, programs } = ran;
    let bar = terminal::progress(is_quiet);
    bar.set_message("tables and page");
    audit.counts.record_lost += record.lost;
    let mut into = IntoFolder { run: &mut run, connections: &connections, logs: &mut logs };
    let replayed =
        replay(&world, &mut record, &mut into).context("the record of packets cannot be read again")?;
    if record.lost == 0 {
        audit.counts.differing = replayed.differing;
    }
    logs.finish()?;
    audit.judge();
    let finished = run.finish(replayed.over, section(&audit, &controls, programs))?;
    bar.finish_and_clear();
    Ok(Judged { finished, is_fit: audit.is_fit(), audit, controls })
}

/// Converts an audit to the section of the manifest.
fn section(audit: &Audit, controls: &[Control], programs: Vec<Program>) -> Emulation {
    let counts = &audit.counts;
    let has_any = counts.packets_out > 0;
    let ms = |value: f64| Some(value).filter(|_| has_any);
    let dropped = [
        ("by the network", counts.dropped),
        ("not taken by the interface", counts.not_taken),
        ("refused: too much under way", counts.refused),
        ("not read in time", counts.unread),
    ];
    Emulation {
        programs,
        controls: controls
            .iter()
            .map(|it| emulation::Control {
                device: it.device.map(u16::from),
                name: it.name.clone(),
                connections: it.connections,
            })
            .collect(),
        kernel: kernel(),
        realtime_priority: audit.not_real_time_because.is_none(),
        memory_locked: audit.not_locked_because.is_none(),
        audit: emulation::Audit {
            lateness_ms: Lateness {
                p50: ms(audit.lateness_p50_ms),
                p99: ms(audit.lateness_p99_ms),
                p999: ms(audit.lateness_p999_ms),
                max: ms(audit.lateness_max_ms),
            },
            wait_ms: Lateness {
                p999: Some(audit.wait_p999_ms).filter(|_| counts.packets_in > 0),
                max: Some(audit.wait_max_ms).filter(|_| counts.packets_in > 0),
                ..Lateness::default()
            },
            absence_max_ms: Some(audit.absence_max_ms),
            missed_ticks: counts.missed_ticks,
            cpu_share: Some(audit.cpu),
            packets_in: counts.packets_in,
            packets_out: counts.packets_out,
            dropped: dropped
                .into_iter()
                .filter(|it| it.1 > 0)
                .map(|(what, n)| (what.to_owned(), n))
                .collect(),
            largest_backlog_packets: audit.most_packets,
            largest_backlog_bytes: audit.most_bytes,
            records_lost: counts.record_lost,
        },
        foreign: ForeignFrames {
            garbage: counts.garbage,
            arp: 0,
            fragments: counts.fragments,
            too_long: counts.jumbo,
            not_for_us: counts.to_many + counts.to_nobody,
        },
        fit: audit.is_fit(),
        unfit_because: audit.unfit_because.clone(),
    }
}

/// The kernel's release, as `uname -r` prints it.
pub fn kernel() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

/// Prints the path of the run folder, and whether the figures of the run may be used.
///
/// # Errors
/// The output cannot be written.
pub fn tell(judged: &Judged, options: &Options, out: &mut dyn Write) -> anyhow::Result<()> {
    let Judged { finished, audit, .. } = judged;
    if options.json {
        for line in finished.summary.runs.iter().flat_map(|run| run.lines()) {
            writeln!(out, "{}", serde_json::to_string(&line)?)?;
        }
    }
    let paint = Paint::stderr();
    // These reasons are printed even with `--quiet`, because the figures of an unfit run are meaningless.
    let say_unfit = || {
        for reason in &audit.unfit_because {
            let line = terminal::noted(UNFIT, reason);
            terminal::say_painted(line.replacen(UNFIT, &paint.bad(UNFIT), 1));
        }
    };
    if options.quiet {
        say_unfit();
        return Ok(());
    }
    let counts = &audit.counts;
    let lateness = format!(
        "{} s, {} in, {} out, {} dropped by the network; lateness p50 {:.2}, p99 {:.2}, p99.9 {:.2} ms, wait before reading p99.9 {:.2} ms; {:.0} % of a core",
        (audit.seconds * 10.0).round() / 10.0,
        terminal::count(counts.packets_in, "packet"),
        terminal::thousands(counts.packets_out),
        terminal::thousands(counts.dropped),
        audit.lateness_p50_ms,
        audit.lateness_p99_ms,
        audit.lateness_p999_ms,
        audit.wait_p999_ms,
        audit.cpu * 100.0,
    );
    terminal::say(terminal::noted("Emulated:", &lateness));
    for link in finished.summary.runs.iter().flat_map(|run| &run.links) {
        let (heading, text) = carried(link);
        terminal::say(terminal::noted(&heading, &text));
    }
    if let Some(sentence) = tcp(&judged.controls) {
        terminal::say(terminal::noted("TCP:", &sentence));
    }
    say_unfit();
    if judged.is_fit && audit.not_real_time_because.is_some() {
        terminal::say(terminal::noted(
            "Fit:",
            "without real-time priority; on a busier machine a run may be unfit. `airpace doctor --emu` tells how to \
             get it.",
        ));
    }
    terminal::say(format_args!("Run folder: {}", finished.folder.root().display()));
    terminal::say(format_args!("Report:     {}", finished.page.display()));
    Ok(())
}

/// Heading of the reasons why a run is unfit.
const UNFIT: &str = "Unfit:";

/// Summary line of a direction of a device, with its heading. Devices count from 1, as for `--device`.
fn carried(link: &LinkSummary) -> (String, String) {
    let way = match link.direction {
        Direction::Downlink => "Down",
        Direction::Uplink => "Up",
    };
    let (delay, used) = (&link.metrics.one_way_delay_ms, link.metrics.utilization);
    let ms = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.1}"));
    let of_capacity = used.map_or(String::new(), |used| format!(", {:.0} % of the capacity", used * 100.0));
    let text = format!(
        "{:.2} Mbit/s{of_capacity}; one-way delay mean {}, p95 {} ms; {}",
        link.metrics.throughput_mbps,
        ms(delay.mean),
        ms(delay.p95),
        terminal::count(link.connections, "connection"),
    );
    (format!("{way} {}:", link.device + 1), text)
}

/// The congestion controls that TCP used, by direction. Devices count from 1. If no socket was sampled, the default of
/// new sockets.
fn tcp(controls: &[Control]) -> Option<String> {
    if controls.is_empty() {
        let default = default_control()?;
        return Some(format!(
            "no connection lasted long enough to be sampled (0.1 s); this kernel's default is {default}"
        ));
    }
    let mut text = String::new();
    let mut last = None;
    for control in controls {
        let way = control.device.map_or("sent down".to_owned(), |device| format!("sent up {}", device + 1));
        match last.replace(way.clone()) {
            Some(before) if before == way => text += ", ",
            Some(_) => text += &format!("; {way} by "),
            None => text += &format!("{way} by "),
        }
        text += &format!("{} ({})", control.name, terminal::count(control.connections, "connection"));
    }
    Some(text)
}

/// Default TCP congestion control of this machine; `None` if the kernel does not report it.
fn default_control() -> Option<String> {
    let read = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").ok()?;
    Some(read.trim().to_owned()).filter(|name| !name.is_empty())
}

/// The connection with this number in a record; packets of other connections share a placeholder.
fn connection(connections: &Connections, number: u32) -> Connection {
    let others = FiveTuple {
        protocol: 255,
        source: std::net::Ipv4Addr::UNSPECIFIED.into(),
        destination: std::net::Ipv4Addr::UNSPECIFIED.into(),
        source_port: 0,
        destination_port: 0,
    };
    let ends = match number {
        OTHERS => others,
        number => connections.ends().get(number as usize).copied().unwrap_or(others),
    };
    let end = |address, port| End { address, port: Some(port).filter(|&port| port > 0) };
    Connection {
        protocol: Protocol::of_number(ends.protocol),
        source: end(ends.source, ends.source_port),
        destination: end(ends.destination, ends.destination_port),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn congestion_controls_are_told_by_direction() {
        let control = |device, name: &str, connections| Control {
            device,
            name: name.to_owned(),
            connections,
            bytes: 0,
        };
        let all = [
            control(None, "bbr", 2),
            control(None, "reno", 1),
            control(Some(0), "cubic", 1),
            control(Some(1), "cubic", 3),
        ];
        assert_eq!(
            tcp(&all).unwrap(),
            "sent down by bbr (2 connections), reno (1 connection); sent up 1 by cubic (1 connection); sent up 2 by \
             cubic (3 connections)"
        );
    }
}
