//! The arrays that user space and the programs share, word by word as `bpf/intf.h` has them. A test compares.

use std::sync::atomic::AtomicU64;

/// `struct ap_feed`.
#[repr(C)]
pub struct FeedWords {
    /// What is valid lies in `told[sequence % 2]`.
    pub sequence: AtomicU64,
    /// Nothing yet.
    pub reserved: AtomicU64,
    /// A time, and what was told then.
    pub told: [[AtomicU64; 4]; 2],
}

/// `struct ap_pbe_feed`.
#[repr(C)]
pub struct CellWords {
    /// What is valid lies in `told[sequence % 2]`.
    pub sequence: AtomicU64,
    /// RTprop of the sender that told it last, in nanoseconds; zero before that.
    pub rtprop: AtomicU64,
    /// A time, and what was told then.
    pub told: [[AtomicU64; 6]; 2],
    /// A bit for each of the last subframes.
    pub full: [AtomicU64; 16],
}

/// `struct ap_totals`.
#[repr(C)]
pub struct TotalsWords {
    /// The present interval.
    pub interval: AtomicU64,
    /// Flows that sent in an interval, by its number modulo 4.
    pub active: [AtomicU64; 4],
    /// See [`crate::kernel::Totals`], also for the others.
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

/// `struct ap_shown`: no array, but lines of a file.
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
    /// Bytes that all moved.
    pub all: [AtomicU64; 2],
}

/// `struct ap_host`.
#[repr(C)]
pub struct HostWords {
    /// Flows by the slot of their last packet.
    pub ring: [AtomicU64; 16],
    /// Active flows.
    pub flows: AtomicU64,
    /// Until when that says something.
    pub until: AtomicU64,
}
