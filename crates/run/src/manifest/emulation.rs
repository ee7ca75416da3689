//! The `emulation` part of a manifest: which programs ran on which machine, and whether the emulator kept up with them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Programs and audit of an emulated run in a manifest. All values depend on the host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Emulation {
    /// The programs that ran, in the order in which they were started.
    pub programs: Vec<Program>,
    /// The congestion controls that the programs' TCP sockets ran.
    pub controls: Vec<Control>,
    /// Release of the kernel, as `uname -r` prints it.
    pub kernel: String,
    /// Whether the emulator's thread had real-time priority for the whole run.
    pub realtime_priority: bool,
    /// Whether the emulator's memory was locked, so that none of it was swapped out.
    pub memory_locked: bool,
    /// Audit of the emulator's timing.
    pub audit: Audit,
    /// Frames from the devices that were not packets for the network.
    pub foreign: ForeignFrames,
    /// Whether the numbers of this run are reliable.
    pub fit: bool,
    /// Reasons why the run is not fit, as sentences for people. Empty if the run is fit.
    pub unfit_because: Vec<String>,
}

/// A TCP congestion control that sockets used, as named by the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Control {
    /// Device of the sockets, by its index in the scenario; `None` for the server.
    pub device: Option<u16>,
    /// Name of the congestion control.
    pub name: String,
    /// Number of connections. Connections shorter than about 100 ms may be missing.
    pub connections: u64,
}

/// A program that ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Program {
    /// Device behind which the program ran, by its index in the scenario; `None` for the server.
    pub device: Option<u16>,
    /// Command line of the program, in shell syntax.
    pub command: String,
    /// How the program ended.
    pub exit: Exit,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// The program exited with this status; 0 means success.
    Status(i32),
    /// The program was killed by this signal, which the emulator did not send.
    Signal(i32),
    /// The emulator stopped the program at the end of the run.
    #[default]
    Stopped,
}

/// Audit of the emulator's timing. Packets are counted in both directions together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Audit {
    /// Delay from the network's release of a packet until the packet was handed to the other endpoint (ms).
    pub lateness_ms: Lateness,
    /// Upper bound of the time that packets waited before the emulator read them (ms). Only the 99.9th percentile and the
    /// maximum are filled in.
    pub wait_ms: Lateness,
    /// Maximum time for which the emulator's thread did not serve its interfaces, in ms; `None` if unknown.
    pub absence_max_ms: Option<f64>,
    /// Number of ticks (ms) of the last hop that started later than the scheduled start of the next tick.
    pub missed_ticks: u64,
    /// Fraction of one core, in [0, 1], that the emulator's thread used; `None` if unknown.
    pub cpu_share: Option<f64>,
    /// Packets that entered the network.
    pub packets_in: u64,
    /// Packets that were handed to the other endpoint.
    pub packets_out: u64,
    /// Packets that were dropped, by cause. Causes are the words of the column `fate` and those of the emulator.
    pub dropped: BTreeMap<String, u64>,
    /// Maximum number of packets in the network at one time.
    pub largest_backlog_packets: u64,
    /// Maximum number of bytes in the network at one time.
    pub largest_backlog_bytes: u64,
    /// Packets that are missing in the record, and therefore in tables and metrics.
    pub records_lost: u64,
}

/// Percentiles of lateness in ms; `None` if no packet was handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lateness {
    /// Median.
    pub p50: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// Maximum.
    pub max: Option<f64>,
}

/// Number of frames from the devices that did not enter the network, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ForeignFrames {
    /// Frames that are neither IPv4 nor IPv6, or have an inconsistent header.
    pub garbage: u64,
    /// ARP frames.
    pub arp: u64,
    /// Fragments of IP packets.
    pub fragments: u64,
    /// Packets longer than the device's MTU.
    pub too_long: u64,
    /// Packets to an unassigned address, a multicast or broadcast address, or this host itself.
    pub not_for_us: u64,
}

impl ForeignFrames {
    /// Names of the kinds, with their counts.
    pub fn by_kind(&self) -> [(&'static str, u64); 5] {
        [
            ("garbage", self.garbage),
            ("ARP", self.arp),
            ("fragments", self.fragments),
            ("too long", self.too_long),
            ("not for us", self.not_for_us),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_of_an_older_version_can_be_read() {
        let read: Emulation = serde_json::from_str(r#"{"kernel": "6.18.5", "fit": true}"#).unwrap();
        assert_eq!(read, Emulation { kernel: "6.18.5".to_owned(), fit: true, ..Emulation::default() });
    }

    #[test]
    fn how_a_program_ended_is_one_word_or_a_word_with_a_number() {
        let text = |exit: Exit| serde_json::to_string(&exit).unwrap();
        assert_eq!(text(Exit::Status(0)), r#"{"status":0}"#);
        assert_eq!(text(Exit::Signal(11)), r#"{"signal":11}"#);
        assert_eq!(text(Exit::Stopped), r#""stopped""#);
    }

    #[test]
    fn numbers_that_json_cannot_hold_do_not_make_a_folder_unreadable() {
        let section = Emulation {
            audit: Audit {
                cpu_share: Some(f64::NAN),
                lateness_ms: Lateness { max: Some(f64::INFINITY), ..Lateness::default() },
                ..Audit::default()
            },
            ..Emulation::default()
        };
        let read: Emulation = serde_json::from_str(&serde_json::to_string(&section).unwrap()).unwrap();
        assert_eq!((read.audit.cpu_share, read.audit.lateness_ms.max), (None, None));
    }
}
