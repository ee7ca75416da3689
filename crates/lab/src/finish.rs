//! End of an emulated run: replays its record in virtual time, from which tables and metrics are made.

use airpace_core::Direction;
use airpace_emu::connections::{Connections, OTHERS};
use airpace_emu::ip::FiveTuple;
use airpace_emu::record::Record;
use airpace_emu::replay::{Departure, Reader, replay};
use airpace_emu::session::Control;
use airpace_emu::{Audit, World};
use airpace_event::{Event, Recorder};
use airpace_path::trace::mmlink::Line;
use airpace_run::emulation::{EmulatedRun, Finished};
use airpace_run::manifest::{self, Emulation, ForeignFrames, Lateness, Program};
use airpace_tables::connection::{Connection, End, Protocol};
use airpace_tables::departures;

use crate::error::LabError;

/// Results of a run.
pub struct Ran {
    /// The network of the run.
    pub world: World,
    /// Record of all packets.
    pub record: Record,
    /// The connections of the packets.
    pub connections: Connections,
    /// The emulator's audit of itself.
    pub audit: Audit,
    /// Congestion controls that the sockets of the run used.
    pub controls: Vec<Control>,
    /// The programs that ran.
    pub programs: Vec<Program>,
}

/// A finished run with its verdict.
pub struct Judged {
    /// Folder, metrics and manifest. The caller writes the page, and then the manifest.
    pub finished: Finished,
    /// The emulator's audit of itself.
    pub audit: Audit,
    /// Congestion controls that the sockets of the run used.
    pub controls: Vec<Control>,
    /// Whether the figures of the run may be used.
    pub is_fit: bool,
}

/// Receives the events of a link that follows a trace.
pub type Links<'a> = &'a mut dyn FnMut(Direction, Line);

/// Writes the replay of a run into its folder.
struct IntoFolder<'a, 'l> {
    run: &'a mut EmulatedRun,
    connections: &'a Connections,
    links: Option<Links<'l>>,
}

impl Reader for IntoFolder<'_, '_> {
    fn departed(&mut self, departure: &Departure) {
        let &Departure { device, direction, bytes, propagation_delay, fate, duplicate, marked, .. } =
            departure;
        self.run.depart(&departures::Departure {
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
        self.links.is_some()
    }

    fn linked(&mut self, direction: Direction, line: Line) {
        if let Some(links) = &mut self.links {
            links(direction, line);
        }
    }
}

/// Replays the record in virtual time, and writes tables and summary into the run folder. Events of links that follow a
/// trace go to `links`.
///
/// # Errors
/// A file cannot be read or written.
pub fn finish(mut run: EmulatedRun, ran: Ran, links: Option<Links<'_>>) -> Result<Judged, LabError> {
    let Ran { world, mut record, connections, mut audit, controls, programs } = ran;
    audit.counts.record_lost += record.lost;
    let mut into = IntoFolder { run: &mut run, connections: &connections, links };
    let replayed = replay(&world, &mut record, &mut into)
        .map_err(LabError::step("the record of packets cannot be read again"))?;
    if record.lost == 0 {
        audit.counts.differing = replayed.differing;
    }
    audit.judge();
    let finished = run.finish(replayed.over, section(&audit, &controls, programs))?;
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
            .map(|it| manifest::Control {
                device: it.device.map(u16::from),
                name: it.name.clone(),
                connections: it.connections,
            })
            .collect(),
        kernel: kernel(),
        realtime_priority: audit.not_real_time_because.is_none(),
        memory_locked: audit.not_locked_because.is_none(),
        audit: manifest::Audit {
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
