//! Layouts of the arrays that user space and the programs share: they are equal to the layouts in `bpf/intf.h`, which a
//! test checks.

use std::sync::atomic::AtomicU64;

/// `struct ap_feed`.
#[repr(C)]
pub struct FeedWords {
    /// The valid record is `told[sequence % 2]`.
    pub sequence: AtomicU64,
    /// Unused.
    pub reserved: AtomicU64,
    /// Two records: the time of writing, and the contents.
    pub told: [[AtomicU64; 4]; 2],
}

/// `struct ap_pbe_feed`.
#[repr(C)]
pub struct CellWords {
    /// The valid record is `told[sequence % 2]`.
    pub sequence: AtomicU64,
    /// The RTprop that a sender last reported, in nanoseconds; zero before the first report.
    pub rtprop: AtomicU64,
    /// Two records: the time of writing, and the contents.
    pub told: [[AtomicU64; 6]; 2],
    /// One bit for each of the last subframes: set if the subframe was full.
    pub full: [AtomicU64; 16],
}

/// `struct ap_totals`.
#[repr(C)]
pub struct TotalsWords {
    /// Number of the current interval.
    pub interval: AtomicU64,
    /// Number of flows that sent in an interval, indexed by the interval's number modulo 4.
    pub active: [AtomicU64; 4],
    /// See [`crate::kernel::Totals`] for this counter and the following ones.
    pub flows: AtomicU64,
    pub acks: AtomicU64,
    pub sends: AtomicU64,
    pub fallbacks: AtomicU64,
    pub returns: AtomicU64,
    pub silences: AtomicU64,
    pub confirmed: AtomicU64,
    pub rooms: AtomicU64,
    pub elsewhere: AtomicU64,
}

/// `struct ap_shown`: a record of the file `flows`, not an array.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ShownWords {
    pub local: [u8; 16],
    pub remote: [u8; 16],
    pub scheme: [u8; 16],
    pub netns: u32,
    pub family: u32,
    pub local_port: u16,
    pub remote_port: u16,
    pub state: u32,
    pub rate: u64,
    pub window: u64,
    pub rtt: u64,
}

/// `struct ap_shares`.
#[repr(C)]
pub struct SharesWords {
    /// The active applications.
    pub apps: HostWords,
    /// Number of bytes that all flows moved, per slot.
    pub all: [AtomicU64; 2],
}

/// `struct ap_host`.
#[repr(C)]
pub struct HostWords {
    /// For each recent slot: the slot and the number of flows whose last packet was sent in this slot.
    pub ring: [AtomicU64; 16],
    /// Number of active flows.
    pub flows: AtomicU64,
    /// Time until which `flows` is valid.
    pub until: AtomicU64,
}
