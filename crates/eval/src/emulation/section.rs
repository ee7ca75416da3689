//! The `emulation` part of a manifest: which programs ran on which machine, and whether the emulator kept up with them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a manifest says of an emulated run. All of it depends on the host.
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
    /// How well the emulator kept up.
    pub audit: Audit,
    /// What came out of the devices and was no packet for the network.
    pub foreign: ForeignFrames,
    /// Whether the numbers of this run can be relied on.
    pub fit: bool,
    /// Why not: sentences for people. Empty if the run is fit.
    pub unfit_because: Vec<String>,
}

/// A congestion control of TCP that sockets ran, as the kernel named it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Control {
    /// The device on which the sockets were, by its index in the scenario; `None` for the server's side.
    pub device: Option<u16>,
    /// Its name.
    pub name: String,
    /// Number of connections. Those that lasted for less than some 100 ms may be missing.
    pub connections: u64,
}

/// A program that ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Program {
    /// The device behind which it ran, by its index in the scenario; `None` if it ran on the server's side.
    pub device: Option<u16>,
    /// Its command line, as a shell would read it.
    pub command: String,
    /// How it ended.
    pub exit: Exit,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// By itself, with this exit status. 0 means success.
    Status(i32),
    /// By this signal, which the emulator did not send.
    Signal(i32),
    /// The emulator ended it, because the run was over.
    #[default]
    Stopped,
}

/// How well the emulator kept up. Packets are counted in both directions together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Audit {
    /// How much later than the network said packets were handed to the other side.
    pub lateness_ms: Lateness,
    /// How long packets may have waited before the emulator read them, in ms: 99.9th percentile and maximum of an upper bound.
    pub wait_ms: Lateness,
    /// The longest time for which the emulator's thread was absent from its interfaces, in ms; `None` if it is not known.
    pub absence_max_ms: Option<f64>,
    /// Milliseconds of the last hop that began later than the next one should have.
    pub missed_ticks: u64,
    /// The part of one core, in [0, 1], that the emulator's thread used; `None` if it is not known.
    pub cpu_share: Option<f64>,
    /// Packets that entered the network.
    pub packets_in: u64,
    /// Packets that were handed to the other side.
    pub packets_out: u64,
    /// Packets that were not, by cause: the words of the column `fate`, and those of the emulator.
    pub dropped: BTreeMap<String, u64>,
    /// The most packets that were in the network at one time.
    pub largest_backlog_packets: u64,
    /// The most bytes that were in the network at one time.
    pub largest_backlog_bytes: u64,
    /// Packets that are missing in the record, and so in the tables and numbers.
    pub records_lost: u64,
}

/// Percentiles of lateness in ms; `None` if nothing was handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lateness {
    /// Median.
    pub p50: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
}

/// Frames that came out of a device and did not enter the network, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ForeignFrames {
    /// Neither IPv4 nor IPv6, or with a header that contradicts itself.
    pub garbage: u64,
    /// ARP.
    pub arp: u64,
    /// Fragments of IP packets.
    pub fragments: u64,
    /// Longer than the device's MTU.
    pub too_long: u64,
    /// For an address that nobody has, for several at once, or for this host itself.
    pub not_for_us: u64,
}

impl ForeignFrames {
    /// The kinds in words, with their counts.
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
